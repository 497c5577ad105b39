//! The suite of `semel certify`: against Semel, against Apache Kafka, and the recorded runs.
//!
//! Purpose: an expectation is never held against ourselves alone: a promise of Kafka's that Kafka breaks fails, and so
//! does a stricter one that it keeps. Invariants: whatever broker was started here is stopped. What it does not do:
//! judge; the exit status of the suite says all.

use std::path::PathBuf;
use std::process::Command;

use crate::plan::{Outcome, outcome};
use crate::process::{self, Ending};
use crate::project::Project;

/// Where Apache Kafka and kfake listen; Kafka takes the three ports behind its own, too.
const KAFKA_PORT: &str = "20900";
const KFAKE_PORT: &str = "20910";

/// A killed Kafka comes up again once its controller has given up the registration of before, nine seconds by default.
const KAFKA_SETTINGS: &[&str] = &["broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=500"];
/// On a slow machine the last scenarios are left out, and the report names them. Those that need no kill come first.
const KAFKA_WITHIN_S: u64 = 540;
/// With the end of the scenario that was begun last.
const KAFKA_LIMIT_S: u64 = 720;
/// Semel's own run takes a fraction of it.
const SEMEL_LIMIT_S: u64 = 180;
/// First starts fetch what they start.
const START_LIMIT_S: u64 = 600;

/// Semel keeps every promise, the stricter ones, too.
pub fn semel(project: &Project) -> Outcome {
    built(project, |program| ended(own_run(project, program, &["--strict"])))
}

/// Apache Kafka keeps its promises and none of the stricter ones.
pub fn kafka(project: &Project) -> Outcome {
    if let Some(missing) = ["java", "mvn"].iter().find(|tool| !is_there(tool)) {
        return Outcome::NotRun(format!("Apache Kafka needs {missing}, which is not there"));
    }
    built(project, |program| {
        match with_kafka(project, || {
            let within = KAFKA_WITHIN_S.to_string();
            kafka_run(project, program, &["--reference", "--again", "--within", &within])
        }) {
            Ok(()) => Outcome::Passed,
            Err(ending) => Outcome::Failed(ending.describe()),
        }
    })
}

/// Runs the suite against all brokers, records the runs and makes the page of them.
pub fn tables(project: &Project) -> Outcome {
    built(project, |program| {
        let record = |name: &str| format!("docs/certify/results/{name}.json");
        let recorded = own_run(project, program, &["--record", &record("semel")])
            .and_then(|()| {
                with_kafka(project, || told(kafka_run(project, program, &["--record", &record("kafka")])))
            })
            .and_then(|()| {
                with_peer(project, "kfake", KFAKE_PORT, &[], || {
                    told(peer_run(project, program, KFAKE_PORT, &["--record", &record("kfake")]))
                })
            });
        match recorded {
            Ok(()) => page(project, program),
            Err(ending) => Outcome::Failed(ending.describe()),
        }
    })
}

/// A broken promise is a result like any other.
fn told(ended: Result<(), Ending>) -> Result<(), Ending> {
    if ended == Err(Ending::Code(1)) { Ok(()) } else { ended }
}

fn ended(ended: Result<(), Ending>) -> Outcome {
    ended.map_or_else(|ending| Outcome::Failed(ending.describe()), |()| Outcome::Passed)
}

/// Builds the program as tests are built, and works with it.
fn built(project: &Project, work: impl FnOnce(&PathBuf) -> Outcome) -> Outcome {
    let built = outcome(project.cargo(&["build", "--quiet", "--profile", "test", "--bin", "semel"]));
    if built != Outcome::Passed {
        return built;
    }
    // Cargo puts what its profile `test` makes where `dev` puts it.
    work(&project.target.join("debug/semel"))
}

fn own_run(project: &Project, program: &PathBuf, options: &[&str]) -> Result<(), Ending> {
    let mut command = project.command(program, &["certify", "--own-server"]);
    process::run_group(command.args(options), SEMEL_LIMIT_S)
}

fn peer_run(project: &Project, program: &PathBuf, port: &str, options: &[&str]) -> Result<(), Ending> {
    let mut command = project.command(program, &["certify", "--bootstrap", &format!("127.0.0.1:{port}")]);
    process::run_group(peer(project, &mut command).args(options), KAFKA_LIMIT_S)
}

fn kafka_run(project: &Project, program: &PathBuf, options: &[&str]) -> Result<(), Ending> {
    let restart = format!("bench/peers/kafka control {KAFKA_PORT}");
    let options = [&["--restart-command", &restart], options].concat();
    peer_run(project, program, KAFKA_PORT, &options)
}

fn with_kafka(project: &Project, work: impl FnOnce() -> Result<(), Ending>) -> Result<(), Ending> {
    with_peer(project, "kafka", KAFKA_PORT, KAFKA_SETTINGS, work)
}

/// Starts a peer by its script, works, and stops it.
fn with_peer(
    project: &Project,
    name: &str,
    port: &str,
    settings: &[&str],
    work: impl FnOnce() -> Result<(), Ending>,
) -> Result<(), Ending> {
    let script = format!("bench/peers/{name}");
    let run = |action: &str, settings: &[&str]| {
        let mut command = project.command(project.root.join(&script), &[action, port]);
        process::run_group(peer(project, &mut command).args(settings), START_LIMIT_S)
    };
    let worked = run("start", settings).and_then(|()| work());
    let stopped = run("stop", &[]);
    worked.and(stopped)
}

fn peer<'a>(project: &Project, command: &'a mut Command) -> &'a mut Command {
    command.env("SEMEL_CACHE", &project.cache)
}

fn page(project: &Project, program: &PathBuf) -> Outcome {
    let mut command = project.command(program, &["certify", "--page", "docs/certify"]);
    let made = command.output().map_err(|error| error.to_string()).and_then(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let refused = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(text) } else { Err(refused) }
    });
    let file = project.root.join("docs/certify/results.md");
    match made.and_then(|text| std::fs::write(file, text).map_err(|error| error.to_string())) {
        Ok(()) => Outcome::Passed,
        Err(message) => Outcome::Failed(message),
    }
}

fn is_there(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}
