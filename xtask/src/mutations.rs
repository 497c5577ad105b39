//! `cargo xtask mutations`: does `semel certify` find the faults of `docs/certify/mutations.md`?
//!
//! Purpose: a suite that finds nothing in a broken server proves nothing. One test build of the server can break any
//! rule of the page; each fault is judged by the scenarios that the page names for it, and all of them have to notice.
//! Invariants: what an intact server does not keep proves nothing, so it is judged first; a release build with faults
//! must not compile. What it does not do: break anything itself, or hold the page against the list of faults (a test
//! of the server does).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::plan::{Outcome, outcome};
use crate::project::Project;

const PAGE: &str = "docs/certify/mutations.md";

/// Longest time of one scenario: some faults make it wait for ever.
const LIMIT_S: &str = "20";

/// Scenarios that the page names of one fault, at most, where this command writes them.
const NAMED_MAX: usize = 4;

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// These faults alone.
    only: Vec<String>,
    /// The whole suite against each fault.
    full: bool,
    /// Correct the page.
    write: bool,
}

impl Request {
    /// Reads the options of `mutations`.
    ///
    /// # Errors
    /// An option that is not known, or one without its value.
    pub fn parse(options: &[&str]) -> Result<Self, String> {
        let mut request = Self::default();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            match *option {
                "--full" => request.full = true,
                "--write" => (request.full, request.write) = (true, true),
                "--only" => {
                    let name = rest.next().ok_or("`--only` takes the name of a fault")?;
                    request.only.push((*name).to_owned());
                }
                other => return Err(format!("there is no option `{other}`")),
            }
        }
        Ok(request)
    }

    fn wants(&self, row: &Row) -> bool {
        self.only.is_empty() || self.only.contains(&row.fault)
    }
}

/// A row of the page.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    fault: String,
    named: Vec<String>,
}

/// The step of `cargo xtask test`: what the page says, no more.
pub fn step(project: &Project) -> Outcome {
    judge(project, &Request::default())
}

/// Judges the suite by its faults.
pub fn judge(project: &Project, request: &Request) -> Outcome {
    if let Err(why) = release_is_refused(project) {
        return Outcome::Failed(why);
    }
    let server = match build(project) {
        Ok(server) => server,
        Err(failed) => return failed,
    };
    let page = match fs::read_to_string(project.root.join(PAGE)) {
        Ok(page) => page,
        Err(error) => return Outcome::Failed(format!("{PAGE}: {error}")),
    };
    let rows: Vec<_> = rows(&page).into_iter().filter(|row| request.wants(row)).collect();
    if rows.is_empty() {
        return Outcome::Failed(format!("{PAGE} has no such fault"));
    }
    match run(&server, &rows, request.full) {
        Ok(found) if request.write => write(project, &page, &found),
        Ok(found) => missed(&found),
        Err(why) => Outcome::Failed(why),
    }
}

/// A release build with the switches has to be an error, and that one.
fn release_is_refused(project: &Project) -> Result<(), String> {
    let arguments = ["check", "--quiet", "--release", "--package", "semel-types", "--features", "mutations"];
    let output = project.cargo(&arguments).output().map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("no release build has it") {
        return Err(format!("a release build with faults must not compile; cargo said: {said}"));
    }
    Ok(())
}

/// Builds the server with switches, and keeps a copy: the next build without them takes its place.
fn build(project: &Project) -> Result<PathBuf, Outcome> {
    let arguments = ["build", "--profile", "test", "--package", "semel-server", "--features", "mutations"];
    match outcome(project.cargo(&arguments)) {
        Outcome::Passed => {}
        failed @ (Outcome::Failed(_) | Outcome::NotRun(_)) => return Err(failed),
    }
    let folder = project.target.join("mutations");
    let server = folder.join("semel");
    let copied =
        fs::create_dir_all(&folder).and_then(|()| fs::copy(project.target.join("debug/semel"), &server));
    copied.map_err(|error| Outcome::Failed(format!("{}: {error}", server.display())))?;
    Ok(server)
}

/// The rows of the page's table.
fn rows(page: &str) -> Vec<Row> {
    let row = |line: &str| {
        let (fault, rest) = line.strip_prefix("| `")?.split_once("` |")?;
        let named = rest.trim_end().trim_end_matches('|').rsplit('|').next()?;
        let named = named.split(',').map(str::trim).filter(|id| !id.is_empty());
        Some(Row { fault: fault.to_owned(), named: named.map(str::to_owned).collect() })
    };
    // What stands below the table is not asked of the suite.
    let table = page.split("\n## ").next().unwrap_or_default();
    table.lines().filter_map(row).collect()
}

/// A fault and the scenarios that noticed it.
struct Found {
    row: Row,
    noticed: Vec<String>,
}

/// Judges an intact server, then each fault, two side by side.
fn run(server: &Path, rows: &[Row], full: bool) -> Result<Vec<Found>, String> {
    let all: BTreeSet<_> = rows.iter().flat_map(|row| row.named.iter().cloned()).collect();
    let asked = if full { Vec::new() } else { all.into_iter().collect() };
    let sound: Vec<_> = certify(server, None, &asked)?;
    let broken = ids(&sound, "broken");
    if !broken.is_empty() {
        return Err(format!("an intact server breaks {}: nothing is proved", broken.join(", ")));
    }
    println!("an intact server keeps {} promises", ids(&sound, "kept").len());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), String> {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let asked = if full { &[] } else { row.named.as_slice() };
            let came = if full || !asked.is_empty() {
                certify(server, Some(&row.fault), asked)?
            } else {
                Vec::new()
            };
            let noticed = ids(&came, "broken");
            let told = if noticed.is_empty() { "NOBODY".to_owned() } else { noticed.join(", ") };
            println!("{:<24} {:>5.1} s  {told}", row.fault, started.elapsed().as_secs_f64());
            found.lock().map_err(|_| "a thread failed")?.push(Found { row: row.clone(), noticed });
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(work);
        work().and(other.join().unwrap_or_else(|_| Err("a thread failed".to_owned())))
    })?;
    let mut found = found.into_inner().map_err(|_| "a thread failed")?;
    found.sort_by_key(|one| rows.iter().position(|row| *row == one.row));
    Ok(found)
}

/// Runs scenarios, all for none named; each with its verdict.
fn certify(server: &Path, fault: Option<&str>, ids: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut command = Command::new(server);
    command.args(["certify", "--own-server", "--json", "--limit", LIMIT_S]).stdin(Stdio::null());
    command.args(ids.iter().flat_map(|id| ["--only", id]));
    command.env_remove("SEMEL_MUTATION").envs(fault.map(|fault| ("SEMEL_MUTATION", fault)));
    let output = command.output().map_err(|error| format!("{}: {error}", server.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let verdicts = verdicts(&said);
    if verdicts.is_empty() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("no verdict on {}: {said} {why}", fault.unwrap_or("an intact server")));
    }
    Ok(verdicts)
}

/// Ids and verdicts from the report. Quotes within texts are escaped there, so the keys stand nowhere else.
fn verdicts(report: &str) -> Vec<(String, String)> {
    let value = |text: &str| text.split('"').next().unwrap_or_default().to_owned();
    let scenarios = report.split("\"id\":\"").skip(1);
    let verdict = |scenario: &str| {
        let (_, verdict) = scenario.split_once("\"verdict\":\"")?;
        Some((value(scenario), value(verdict)))
    };
    scenarios.filter_map(verdict).collect()
}

fn ids(verdicts: &[(String, String)], wanted: &str) -> Vec<String> {
    verdicts.iter().filter(|(_, verdict)| verdict == wanted).map(|(id, _)| id.clone()).collect()
}

/// Every fault has to be noticed by every scenario that the page names.
fn missed(found: &[Found]) -> Outcome {
    let missing = |one: &Found| {
        let missing: Vec<_> = one.row.named.iter().filter(|id| !one.noticed.contains(id)).cloned().collect();
        match (one.row.named.is_empty(), missing.is_empty()) {
            (true, _) => Some(format!("{}: the page names nobody", one.row.fault)),
            (false, true) => None,
            (false, false) => Some(format!("{} is not noticed by {}", one.row.fault, missing.join(", "))),
        }
    };
    let missed: Vec<_> = found.iter().filter_map(missing).collect();
    if missed.is_empty() { Outcome::Passed } else { Outcome::Failed(missed.join("; ")) }
}

/// Names of each row those that still notice, or, if there are none, the first that do.
fn write(project: &Project, page: &str, found: &[Found]) -> Outcome {
    let corrected: String = page.lines().map(|line| corrected(line, found) + "\n").collect();
    if let Err(error) = fs::write(project.root.join(PAGE), corrected) {
        return Outcome::Failed(format!("{PAGE}: {error}"));
    }
    let nobody: Vec<_> =
        found.iter().filter(|one| one.noticed.is_empty()).map(|one| one.row.fault.as_str()).collect();
    if nobody.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("noticed by nobody: {}", nobody.join(", ")))
    }
}

fn corrected(line: &str, found: &[Found]) -> String {
    let of_line = |one: &&Found| line.starts_with(&format!("| `{}` |", one.row.fault));
    let Some(one) = found.iter().find(of_line) else { return line.to_owned() };
    let still: Vec<_> = one.row.named.iter().filter(|id| one.noticed.contains(id)).cloned().collect();
    let first = || one.noticed.iter().take(NAMED_MAX).cloned().collect();
    let named: Vec<String> = if still.is_empty() { first() } else { still };
    let columns: Vec<_> = line.trim_end_matches('|').trim_end().split('|').collect();
    format!("{}| {} |", columns[..4].join("|"), named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n\n| fault | rule | where | noticed by |\n|---|---|---|---|\n| `A` | a | `x.rs` | B01, S2 |\n\
        | `B` | b | `y.rs` |  |\n\n## Not asked\n\n| `C` | c |\n";

    #[test]
    fn the_table_is_read_to_its_end() {
        let named = |fault: &str, named: &[&str]| Row {
            fault: fault.into(),
            named: named.iter().map(|id| (*id).to_owned()).collect(),
        };
        assert_eq!(rows(TABLE), [named("A", &["B01", "S2"]), named("B", &[])]);
    }

    #[test]
    fn a_report_gives_ids_and_verdicts_whatever_stands_in_its_texts() {
        let report = r#"{"scenarios":[{"id":"B01","reason":{"text":"\"id\":\"X\",\"verdict\":\"kept\""},"verdict":"broken"},
            {"id":"S2","verdict":"not run"}]}"#;
        let pair = |id: &str, verdict: &str| (id.to_owned(), verdict.to_owned());
        assert_eq!(verdicts(report), [pair("B01", "broken"), pair("S2", "not run")]);
    }

    #[test]
    fn a_named_scenario_that_notices_nothing_fails_the_step() {
        let found = |noticed: &[&str]| Found {
            row: rows(TABLE).remove(0),
            noticed: noticed.iter().map(|id| (*id).to_owned()).collect(),
        };
        assert_eq!(missed(&[found(&["B01", "S2", "B9"])]), Outcome::Passed);
        assert_eq!(missed(&[found(&["B01"])]), Outcome::Failed("A is not noticed by S2".into()));
        let nobody = Found { row: rows(TABLE).remove(1), noticed: vec!["B01".into()] };
        assert_eq!(missed(&[nobody]), Outcome::Failed("B: the page names nobody".into()));
    }

    #[test]
    fn the_page_keeps_who_still_notices_and_takes_others_if_nobody_does() {
        let found = |row: usize, noticed: &[&str]| Found {
            row: rows(TABLE).remove(row),
            noticed: noticed.iter().map(|id| (*id).to_owned()).collect(),
        };
        let found = [found(0, &["B1", "S2"]), found(1, &["B1", "B2", "B3", "B4", "B5"])];
        assert_eq!(corrected("| `A` | a | `x.rs` | B01, S2 |", &found), "| `A` | a | `x.rs` | S2 |");
        assert_eq!(corrected("| `B` | b | `y.rs` |  |", &found), "| `B` | b | `y.rs` | B1, B2, B3, B4 |");
        assert_eq!(corrected("| `C` | c |", &found), "| `C` | c |");
    }

    #[test]
    fn options_are_read() {
        let request = Request::parse(&["--only", "A", "--full"]).expect("they are known");
        assert_eq!(request, Request { only: vec!["A".into()], full: true, write: false });
        assert!(Request::parse(&["--only"]).is_err());
        assert!(Request::parse(&["--fast"]).is_err());
    }
}
