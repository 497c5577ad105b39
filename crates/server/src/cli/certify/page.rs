//! `semel certify --page`: recorded runs of several brokers, side by side, as a page.
//!
//! Invariant: the page says nothing that is not in the files or in the scenarios' heads; a broken promise of Kafka's
//! that nobody has explained is an error.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

use semel_certify::{Scenario, scenario::Expectation, scenarios};
use serde_json::Value;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A file cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is no recorded run.
    #[error("{}: {error}", file.display())]
    Json {
        /// Which.
        file: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// A difference is not explained.
    #[error("explanations.json has no word on {id}, which {broker} breaks")]
    Unexplained {
        /// The scenario.
        id: String,
        /// Whose run.
        broker: String,
    },
}

/// Brokers in the order of the page: file and name.
const BROKERS: [(&str, &str); 3] = [("semel", "Semel"), ("kafka", "Apache Kafka 4.4.0"), ("kfake", "kfake")];

/// A recorded run: id to what was recorded.
type Run = BTreeMap<String, Value>;

const HEAD: &str = "# Results

Made from the recorded runs in [results/](results/) by `semel certify --page docs/certify`; a test holds this page to
them. `cargo xtask certify-tables` runs the suite against all of them and records it anew.

";

/// Makes the page from a folder.
///
/// # Errors
/// [`PageError`].
pub fn text(folder: &Path) -> Result<String, PageError> {
    let runs: Vec<Run> = BROKERS.iter().map(|(file, _)| read_run(folder, file)).collect::<Result<_, _>>()?;
    let explanations = read(&folder.join("explanations.json"))?;
    let mut page = HEAD.to_owned();
    sums(&mut page, &runs);
    table(&mut page, "Promises that Apache Kafka keeps", &runs, false);
    table(&mut page, "Stricter promises", &runs, true);
    for ((file, name), run) in BROKERS.iter().zip(&runs) {
        differences(&mut page, (file, name), run, &explanations)?;
    }
    Ok(page)
}

fn read_run(folder: &Path, file: &str) -> Result<Run, PageError> {
    let run = read(&folder.join("results").join(format!("{file}.json")))?;
    let scenarios = run["scenarios"].as_array().cloned().unwrap_or_default();
    Ok(scenarios.into_iter().map(|one| (one["id"].as_str().unwrap_or_default().to_owned(), one)).collect())
}

fn read(file: &Path) -> Result<Value, PageError> {
    let text = fs::read_to_string(file).map_err(|error| PageError::Read { file: file.to_owned(), error })?;
    serde_json::from_str(&text).map_err(|error| PageError::Json { file: file.to_owned(), error })
}

/// The scenarios of a section that some run has tried.
fn section(runs: &[Run], is_stricter: bool) -> Vec<&'static Scenario> {
    let known = |scenario: &&Scenario| runs.iter().any(|run| run.contains_key(scenario.id));
    scenarios::all().into_iter().filter(|one| one.is_stricter() == is_stricter).filter(known).collect()
}

fn verdict<'a>(run: &'a Run, id: &str) -> &'a str {
    run.get(id).and_then(|one| one["verdict"].as_str()).unwrap_or("not run")
}

fn sums(page: &mut String, runs: &[Run]) {
    line(page, "| | promises of Kafka kept | broken | not run | stricter kept | broken | not run |");
    line(page, "|---|---|---|---|---|---|---|");
    for ((_, name), run) in BROKERS.iter().zip(runs) {
        let count = |is_stricter, word| {
            let section = section(runs, is_stricter);
            section.iter().filter(|one| verdict(run, one.id) == word).count()
        };
        let [kept, broken, not_run] = ["kept", "broken", "not run"].map(|word| count(false, word));
        let [more, less, untried] = ["kept", "broken", "not run"].map(|word| count(true, word));
        line(page, &format!("| {name} | {kept} | {broken} | {not_run} | {more} | {less} | {untried} |"));
    }
}

fn table(page: &mut String, title: &str, runs: &[Run], is_stricter: bool) {
    line(page, &format!("\n## {title}\n"));
    let names: Vec<_> = BROKERS.iter().map(|(_, name)| *name).collect();
    line(page, &format!("| | area | what is tried | {} |", names.join(" | ")));
    line(page, &format!("|---|---|---|{}", "---|".repeat(BROKERS.len())));
    for scenario in section(runs, is_stricter) {
        let verdicts: Vec<_> = runs.iter().map(|run| shown(verdict(run, scenario.id))).collect();
        let (id, area, title) = (scenario.id, scenario.area.name(), scenario.title);
        line(page, &format!("| {id} | {area} | {title} | {} |", verdicts.join(" | ")));
    }
}

fn shown(verdict: &str) -> String {
    if verdict == "broken" { "**broken**".to_owned() } else { verdict.to_owned() }
}

fn differences(
    page: &mut String,
    (file, name): (&str, &str),
    run: &Run,
    explanations: &Value,
) -> Result<(), PageError> {
    let of_run = |one: &&Scenario| run.get(one.id).is_some_and(|seen| seen["verdict"] != "kept");
    let all: Vec<_> = scenarios::all().into_iter().filter(of_run).collect();
    if all.is_empty() {
        return Ok(());
    }
    line(page, &format!("\n## {name}: differences\n"));
    for scenario in all {
        let seen = &run[scenario.id];
        let word = explanations[file][scenario.id].as_str();
        let word = match (seen["verdict"].as_str(), scenario.expectation, word) {
            (_, _, Some(word)) => word,
            (Some("broken"), Expectation::Kafka, None) => {
                return Err(PageError::Unexplained { id: scenario.id.to_owned(), broker: file.to_owned() });
            }
            (Some("broken"), Expectation::Stricter { kafka, .. }, None) if file == "kafka" => kafka,
            (_, Expectation::Kafka | Expectation::Stricter { .. }, None) => scenario.promise,
        };
        line(page, &format!("- **{}** {}: {}. {word}", scenario.id, scenario.title, evidence(seen)));
    }
    Ok(())
}

/// What was seen.
fn evidence(seen: &Value) -> String {
    match (seen["sent"].as_str(), seen["came"].as_str(), seen["due"].as_str()) {
        (Some(sent), Some(came), Some(due)) => format!("sent `{sent}`, came `{came}`, due `{due}`"),
        _ => format!(
            "{}: {}",
            seen["verdict"].as_str().unwrap_or_default(),
            seen["reason"].as_str().unwrap_or_default()
        ),
    }
}

fn line(page: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "{text}");
}
