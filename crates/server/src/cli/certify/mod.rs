//! `semel certify`: judges any broker that speaks Kafka's protocol, one promise at a time.
//!
//! The scenarios and the runner are in `semel-certify`, which knows nothing of Semel's inside; this file reads the
//! command line, tells what came of it and gives the exit status.

mod interrupt;
mod json;
mod list;
mod page;
mod record;

use std::{
    env, fs, io,
    io::IsTerminal,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use interrupt::Stopping;
use semel_certify::{
    Failure, Scenario,
    report::{junit, text},
    runner::{self, Finding, Plan, Target, Verdict},
    scenarios,
};

use crate::{
    cli::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, ask::EXIT_NOT_FOUND},
    net::endpoint::Endpoint,
    say,
};

/// Exit status: the broker cannot be reached.
const EXIT_UNREACHABLE: u8 = EXIT_NOT_FOUND;

/// Longest time of one scenario, in seconds.
const LIMIT_S: u64 = 60;

/// The same in a thorough run.
const THOROUGH_LIMIT_S: u64 = 3600;

/// The last exchanges of a broken promise say why; a long fight has thousands.
const STEPS_SHOWN: usize = 40;

const AFTER_HELP: &str = "Examples:
  semel certify --bootstrap localhost:9092           judge the broker there
  semel certify --own-server --strict                judge Semel itself, on servers started for it
  semel certify --list --only 'dedup'                what would be tried, and on whose word
  semel certify --only 'B0*' --only fencing --steps  some of it, with every exchange
  semel certify --own-server --strict --thorough     the same in full size, for twenty minutes
  semel certify --restart-command ./restart --junit report.xml

The restart command is called with one more word, `kill` (SIGKILL the broker), `restart` (start it again on the same
data), `wipe` (kill it, start it on an empty directory), `small-disk MIB KEY=VALUE ...` (kill it, start it on an empty
file system of that size with these settings) or `settings KEY=VALUE ...` (restart it with these settings, with none: with its own), and CERTIFY_BOOTSTRAP in its environment; it returns once that is done. Without it the scenarios that need it are not run, and said so.

Exit status: 0 all of Kafka's promises are kept (with --strict the stricter ones, too), 1 one is broken, 2 wrong usage,
3 the broker cannot be reached.";

/// Judge any broker that speaks Kafka's protocol: which promises of exactly-once does it keep?
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Certify {
    /// Address of the broker to be judged; it should have one node and nothing that matters. Without it that in
    /// SEMEL_BOOTSTRAP, or 127.0.0.1:9092.
    #[arg(long, value_name = "HOST:PORT", value_parser = super::ask::address)]
    bootstrap: Option<String>,
    /// Judge Semel itself, on servers of this program that are started for the run.
    #[arg(long, conflicts_with_all = ["restart_command", "bootstrap"])]
    own_server: bool,
    /// Command that kills and restarts the broker; see below.
    #[arg(long, value_name = "COMMAND")]
    restart_command: Option<String>,
    /// Only scenarios whose id or area is like this; `*` stands for anything. May be given often.
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// Say what would be tried, try nothing.
    #[arg(long)]
    list: bool,
    /// Stricter promises, which Apache Kafka does not keep, count for the exit status.
    #[arg(long)]
    strict: bool,
    /// The broker is Apache Kafka: a stricter promise that it keeps is an error of this suite, and fails.
    #[arg(long, conflicts_with = "strict")]
    reference: bool,
    /// How many scenarios run side by side.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Longest time of one scenario, in seconds; 60, with --thorough 3600.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Every scenario with the rounds and sizes that its source writes down: hundreds of kills, a hundred thousand
    /// transactions. Takes Semel twenty minutes instead of half a one, with --restart-command longer.
    #[arg(long)]
    thorough: bool,
    /// Begin no scenario after so many seconds; those that are left are not run, and said so.
    #[arg(long, value_name = "SECONDS")]
    within: Option<u64>,
    /// Try what failed once more, alone, at the end; the second time counts.
    #[arg(long)]
    again: bool,
    /// Show the last exchanges of every broken promise.
    #[arg(long)]
    steps: bool,
    /// Machine-readable output: one object with every scenario.
    #[arg(long)]
    json: bool,
    /// Write the result as JUnit XML, too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the result to be kept, too, without what differs from run to run.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Try nothing: print the page of the recorded runs in this folder.
    #[arg(long, value_name = "FOLDER")]
    page: Option<PathBuf>,
}

/// Runs the command; the exit status.
pub fn run(certify: &Certify) -> u8 {
    if let Some(folder) = &certify.page {
        return print_page(folder);
    }
    let chosen: Vec<_> = scenarios::all().into_iter().filter(|scenario| certify.wants(scenario)).collect();
    if chosen.is_empty() {
        say::note("no scenario has such an id or area; semel certify --list has them all");
        return EXIT_USAGE;
    }
    if certify.list {
        list::print(&chosen, certify.json);
        return EXIT_OK;
    }
    let address = certify.address();
    if let Some(mistake) =
        Endpoint::parse(&address).err().map(|error| error.to_string()).or_else(|| certify.lost_file())
    {
        say::note(&mistake);
        return EXIT_USAGE;
    }
    match certify.plan(chosen, &address).and_then(|plan| certify.judge(&plan, &address)) {
        Ok(status) => status,
        Err(error) => {
            say::error(&error);
            EXIT_FAILED
        }
    }
}

fn print_page(folder: &Path) -> u8 {
    match page::text(folder) {
        Ok(page) => {
            say::line(page.trim_end());
            EXIT_OK
        }
        Err(error) => {
            say::error(&error);
            EXIT_FAILED
        }
    }
}

impl Certify {
    fn wants(&self, scenario: &Scenario) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| scenario.is_named(pattern))
    }

    /// Where the broker is, unless servers are started for the run.
    fn address(&self) -> String {
        let named =
            self.bootstrap.clone().or_else(|| env::var("SEMEL_BOOTSTRAP").ok().filter(|_| !self.own_server));
        named.unwrap_or_else(|| "127.0.0.1:9092".into())
    }

    /// What is said of a file that could not be written after the run.
    fn lost_file(&self) -> Option<String> {
        let files = [&self.junit, &self.record].into_iter().flatten();
        let mut lost = files.filter(|file| {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            file.is_dir() || !folder.unwrap_or(Path::new(".")).is_dir()
        });
        lost.next().map(|file| {
            format!("cannot write {}: it is a folder, or its folder is not there", file.display())
        })
    }

    /// Runs the plan and tells what came of it; the exit status.
    fn judge(&self, plan: &Plan, address: &str) -> io::Result<u8> {
        let stopping = match &plan.target {
            Target::Own(servers) => Some(Stopping::with(servers.clone())?),
            Target::Listening { .. } => None,
        };
        let is_watched = !self.json && io::stderr().is_terminal();
        let came = self.played(plan, &|finding| progress(finding, is_watched));
        stopping.into_iter().for_each(Stopping::wait_if_asked);
        Ok(match came {
            Ok(findings) => self.tell(&findings),
            Err(failure) => {
                say::note(&format!("cannot reach a broker at {address}: {failure}"));
                EXIT_UNREACHABLE
            }
        })
    }

    /// Runs the plan, and with `--again` what failed in it.
    fn played(&self, plan: &Plan, progress: &(dyn Fn(&Finding) + Sync)) -> Result<Vec<Finding>, Failure> {
        let mut findings = runner::run(plan, progress)?;
        let failed: Vec<_> =
            findings.iter().filter(|one| self.again && self.fails(one)).map(|one| one.scenario).collect();
        if failed.is_empty() {
            return Ok(findings);
        }
        failed.iter().for_each(|one| say::note(&format!("once more, alone: {} {}", one.id, one.title)));
        let second = Plan { scenarios: failed, jobs: 1, last_start: None, ..plan.clone() };
        for finding in runner::run(&second, progress)? {
            let first = findings.iter_mut().find(|one| one.scenario.id == finding.scenario.id);
            *first.expect("what is tried again was tried") = finding;
        }
        Ok(findings)
    }

    fn plan(&self, scenarios: Vec<&'static Scenario>, address: &str) -> io::Result<Plan> {
        let target = if self.own_server {
            Target::own(&env::current_exe()?)
        } else {
            let address = address.to_owned();
            Target::Listening { address, restart_command: self.restart_command.clone() }
        };
        let last_start = self.within.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let limit = self.limit.unwrap_or(if self.thorough { THOROUGH_LIMIT_S } else { LIMIT_S });
        let (jobs, limit) = (self.jobs.into(), Duration::from_secs(limit));
        Ok(Plan { scenarios, target, jobs, limit, is_thorough: self.thorough, last_start })
    }

    /// Prints the report and writes the files; the exit status.
    fn tell(&self, findings: &[Finding]) -> u8 {
        if self.json {
            say::line(&json::document(findings).to_string());
        } else {
            say::line(text::report(findings).trim_end());
            if self.steps {
                findings.iter().filter(|one| matches!(one.verdict, Verdict::Broken(_))).for_each(tell_steps);
            }
            self.tell_failing(findings);
        }
        let written = [
            (&self.junit, junit::document as fn(&[Finding]) -> String),
            (&self.record, record::text as fn(&[Finding]) -> String),
        ];
        let files = written.iter().filter_map(|(file, text)| file.as_ref().map(|file| (file, text)));
        for (file, text) in files {
            if let Err(error) = fs::write(file, text(findings)) {
                say::note(&format!("cannot write {}: {error}", file.display()));
                return EXIT_FAILED;
            }
        }
        self.status(findings)
    }

    /// Ends the report with what counts. Among all that Kafka is meant to break one line is easily overlooked.
    fn tell_failing(&self, findings: &[Finding]) {
        let failing: Vec<_> = findings.iter().filter(|finding| self.fails(finding)).collect();
        if !failing.is_empty() {
            let ids: Vec<_> = failing.iter().map(|finding| finding.scenario.id).collect();
            say::line(&format!("\nThe run fails for {}", ids.join(", ")));
        }
        if self.reference {
            failing.iter().for_each(|finding| {
                let scenario = finding.scenario;
                let kept = || format!("NOT STRICTER {} {}: kept", scenario.id, scenario.title);
                say::line(&text::broken(finding).unwrap_or_else(kept));
            });
        }
    }

    fn status(&self, findings: &[Finding]) -> u8 {
        if findings.iter().any(|finding| self.fails(finding)) { EXIT_FAILED } else { EXIT_OK }
    }

    /// Does it count against the exit status?
    fn fails(&self, finding: &Finding) -> bool {
        match finding.verdict {
            Verdict::Broken(_) => self.strict || !finding.scenario.is_stricter(),
            Verdict::Kept => self.reference && finding.scenario.is_surely_broken_by_kafka(),
            Verdict::NotRun(_) => false,
        }
    }
}

fn progress(finding: &Finding, is_watched: bool) {
    let word = match &finding.verdict {
        Verdict::Kept => "kept",
        Verdict::Broken(Failure::Broken { .. } | Failure::Failed(_) | Failure::NotRun(_)) => "broken",
        Verdict::NotRun(_) => "not run",
    };
    if is_watched {
        let (id, title) = (finding.scenario.id, finding.scenario.title);
        say::note(&format!("{word:<8} {id} {title} ({:.1} s)", finding.took.as_secs_f64()));
    }
}

fn tell_steps(finding: &Finding) {
    say::line(&format!("\n{} {}", finding.scenario.id, finding.scenario.title));
    let skipped = finding.steps.len().saturating_sub(STEPS_SHOWN);
    if skipped > 0 {
        say::line(&format!("  ... {skipped} exchanges before these"));
    }
    finding
        .steps
        .iter()
        .skip(skipped)
        .for_each(|step| say::line(&format!("  {} -> {}", step.sent, step.came)));
}
