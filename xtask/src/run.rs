//! Running the steps and telling how it went.
//!
//! Purpose: one look at the end tells what passed, what did not, and what was not tried. Invariants: the last line
//! counts the steps; a step that was not run is in it as skipped, never as passed. What it does not do: it goes on
//! after no failure.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::clients;
use crate::plan::{self, Outcome, Selection, Step};
use crate::project::Project;

/// Runs what is asked for, up to the first failure.
pub fn test(project: &Project, selection: &Selection) -> ExitCode {
    let steps = match selection.choose(plan::all(project)) {
        Ok(steps) => steps,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let lines = run_all(project, &steps);
    println!("\n== summary ==");
    lines.iter().for_each(|line| println!("{line}"));
    if let Some(what) = selection.left_out() {
        println!("left out: {what}");
    }
    let without = clients::without_script(project);
    if !without.is_empty() {
        println!("no step for clients/{}: no script `run`", without.join(", clients/"));
    }
    let tally = Tally::of(&lines);
    println!("{tally}");
    if tally.failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// One step's line in the summary.
struct Line {
    name: String,
    took: Option<Duration>,
    outcome: Outcome,
}

fn run_all(project: &Project, steps: &[Step]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let name = step.name.clone();
        if lines.iter().any(|line| matches!(line.outcome, Outcome::Failed(_))) {
            lines.push(Line { name, took: None, outcome: Outcome::NotRun("a step before it failed".into()) });
            continue;
        }
        println!("\n== {}/{} {}: {} ==", index + 1, steps.len(), step.name, step.about);
        let start = Instant::now();
        let outcome = judge(step, step.run(project), project.is_ci);
        let line = Line { name, took: Some(start.elapsed()), outcome };
        println!("{line}");
        if matches!(line.outcome, Outcome::Failed(_)) {
            println!("again, alone: cargo xtask test --only {}", step.name);
        }
        lines.push(line);
    }
    lines
}

/// In CI a step that has to run and could not has failed.
fn judge(step: &Step, outcome: Outcome, is_ci: bool) -> Outcome {
    match outcome {
        Outcome::NotRun(why) if is_ci && step.required_in_ci => {
            Outcome::Failed(format!("not run: {why} (CI=true)"))
        }
        Outcome::Passed | Outcome::Failed(_) | Outcome::NotRun(_) => outcome,
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let took = self.took.map_or_else(String::new, |took| format!("{:.1} s", took.as_secs_f64()));
        let (word, why) = match &self.outcome {
            Outcome::Passed => ("passed", ""),
            Outcome::Failed(why) => ("FAILED", why.as_str()),
            Outcome::NotRun(why) => ("not run", why.as_str()),
        };
        let line = format!("{word:<8} {:<18} {took:>9}  {why}", self.name);
        f.write_str(line.trim_end())
    }
}

/// The closing line: `N passed, N failed`, and what was skipped if anything was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn of(lines: &[Line]) -> Self {
        let count = |wanted: fn(&Outcome) -> bool| lines.iter().filter(|line| wanted(&line.outcome)).count();
        Self {
            passed: count(|outcome| matches!(outcome, Outcome::Passed)),
            failed: count(|outcome| matches!(outcome, Outcome::Failed(_))),
            skipped: count(|outcome| matches!(outcome, Outcome::NotRun(_))),
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: Outcome) -> Line {
        Line { name: "a".into(), took: None, outcome }
    }

    #[test]
    fn the_closing_line_counts_what_was_not_run_apart() {
        let failed = line(Outcome::Failed("x".into()));
        let not_run = line(Outcome::NotRun("y".into()));
        assert_eq!(Tally::of(&[line(Outcome::Passed)]).to_string(), "1 passed, 0 failed");
        let all = [line(Outcome::Passed), failed, not_run];
        assert_eq!(Tally::of(&all).to_string(), "1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_step_that_has_to_run_fails_in_ci_when_it_could_not() {
        let project = Project { root: ".".into(), target: ".".into(), cache: ".".into(), is_ci: true };
        let steps = plan::all(&project);
        let not_run = || Outcome::NotRun("no toolchain".into());
        let judged = |name: &str, is_ci| {
            let step = steps.iter().find(|step| step.name == name).expect("the step exists");
            judge(step, not_run(), is_ci)
        };
        assert!(matches!(judged("tests", true), Outcome::Failed(_)));
        assert_eq!(judged("tests", false), not_run());
        assert_eq!(judged("advisories", true), not_run());
    }
}
