//! The project's own commands: `cargo xtask COMMAND`.
//!
//! Purpose: one command runs everything that has to hold, the same on a desk and in CI. Invariants: a step that did
//! not run is said to be so, never counted as passed. What it does not do: no check is made here; each step calls the
//! tool that makes it. It uses the standard library only, so that it is built in a second on a bare machine.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to the person at the terminal"
)]

mod certify;
mod clients;
mod mutations;
mod plan;
mod process;
mod project;
mod run;
mod tools;

use std::process::ExitCode;

use plan::{Outcome, Selection};
use project::Project;

const HELP: &str = "\
The project's own commands.

  cargo xtask test [--quick] [--only STEP]   everything that has to hold, in order; stops at the first failure
      --quick       leave the real clients and Apache Kafka out
      --only STEP   one step, by name; `clients` is all clients
  cargo xtask mutations [--only FAULT] [--full] [--write]
                                             does semel certify find the faults of docs/certify/mutations.md?
      --only FAULT  this one; may be given often
      --full        the whole suite against each, not only the scenarios that the page names
      --write       with --full: correct the page
  cargo xtask steps                          the names of the steps
  cargo xtask certify-tables                 run semel certify against Semel, Apache Kafka and kfake, record the runs
                                             in docs/certify and make their page
  cargo xtask help                           this text

Exit codes: 0 all passed, 1 a step failed, 2 the command was not understood or could not start.
docs/testing.md has the steps and what a client's script has to do.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        ["steps"] => with_project(|project| {
            plan::all(project).iter().for_each(|step| println!("{:<16} {}", step.name, step.about));
            ExitCode::SUCCESS
        }),
        ["certify-tables"] => with_project(|project| match certify::tables(project) {
            plan::Outcome::Passed => ExitCode::SUCCESS,
            plan::Outcome::Failed(message) | plan::Outcome::NotRun(message) => {
                eprintln!("{message}");
                ExitCode::FAILURE
            }
        }),
        ["mutations", ref options @ ..] => match mutations::Request::parse(options) {
            Ok(request) => with_project(|project| tell(mutations::judge(project, &request))),
            Err(message) => refuse(&message),
        },
        ["test", ref options @ ..] => match Selection::parse(options) {
            Ok(selection) => with_project(|project| run::test(project, &selection)),
            Err(message) => refuse(&message),
        },
        [other, ..] => refuse(&format!("there is no command `{other}`")),
    }
}

fn tell(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Passed => {
            println!("every fault is noticed by every scenario that the page names");
            ExitCode::SUCCESS
        }
        Outcome::Failed(why) | Outcome::NotRun(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn with_project(work: impl FnOnce(&Project) -> ExitCode) -> ExitCode {
    match Project::find() {
        Ok(project) => work(&project),
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{message}\n\n{HELP}");
    ExitCode::from(2)
}
