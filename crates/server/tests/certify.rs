//! `semel certify` as a user starts it: exit statuses, lists, files.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

use serde_json::Value;

fn certify(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.arg("certify").args(arguments).env_remove("SEMEL_BOOTSTRAP");
    command.output().expect("the program runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn semel_keeps_a_promise_and_its_verdict_is_in_every_form() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("report.xml");
    let junit = file.to_str().expect("a plain path");
    let output =
        certify(&["--own-server", "--strict", "--only", "B01", "--only", "S1", "--json", "--junit", junit]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let run = json(&output);
    assert_eq!((&run["kafka"]["kept"], &run["stricter"]["kept"]), (&1.into(), &1.into()), "{run}");
    let xml = std::fs::read_to_string(file).expect("it was written");
    assert_eq!(xml.matches("<testcase ").count(), 2, "{xml}");
    assert!(!xml.contains("<failure"), "{xml}");
}

#[test]
fn a_scenario_that_needs_a_restart_is_not_run_without_the_command() {
    let listed = json(&certify(&["--list", "--json"]));
    let needs_restart = |scenario: &&Value| scenario["needs"] == "restart";
    let all = listed["scenarios"].as_array().expect("a list");
    let Some(scenario) = all.iter().find(needs_restart) else { panic!("there are such scenarios") };
    let id = scenario["id"].as_str().expect("a text");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = semel_certify::Server::start(env!("CARGO_BIN_EXE_semel").as_ref(), directory.path(), &[])
        .expect("it starts");
    let output = certify(&["--bootstrap", server.address(), "--only", id, "--json"]);
    let run = json(&output);
    assert_eq!(run["scenarios"][0]["verdict"], "not run", "{run}");
    assert!(run["scenarios"][0]["reason"]["text"].as_str().expect("a text").contains("--restart-command"));
}

#[test]
fn a_small_disk_is_mounted_for_semel_or_the_reason_is_told() {
    let output = certify(&["--own-server", "--strict", "--only", "B84", "--json"]);
    let run = json(&output);
    let found = &run["scenarios"][0];
    if found["verdict"] == "not run" {
        let reason = found["reason"]["text"].as_str().expect("a text");
        assert!(reason.contains("no small file system can be mounted here"), "{run}");
    } else {
        assert_eq!((&found["verdict"], output.status.code()), (&"kept".into(), Some(0)), "{run}");
    }
}

#[test]
fn a_restart_command_without_the_word_for_a_small_disk_fills_no_disk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = semel_certify::Server::start(env!("CARGO_BIN_EXE_semel").as_ref(), directory.path(), &[])
        .expect("it starts");
    for (command, word) in [("false", "starts no broker on a small disk"), ("true", "it is not on it")] {
        let script = directory.path().join("command");
        std::fs::write(&script, format!("[ $1 = small-disk ] && exec {command}\ntrue\n")).expect("a script");
        let command = format!("sh {}", script.display());
        let bootstrap = ["--bootstrap", server.address(), "--restart-command", &command];
        let run = json(&certify(&[&bootstrap[..], &["--only", "B84", "--json"]].concat()));
        let found = &run["scenarios"][0];
        assert_eq!(found["verdict"], "not run", "{run}");
        assert!(found["reason"]["text"].as_str().expect("a text").contains(word), "{run}");
    }
}

#[test]
fn what_is_not_begun_in_time_is_not_run() {
    let output = certify(&["--own-server", "--strict", "--only", "B01", "--within", "0", "--json"]);
    let run = json(&output);
    assert_eq!(run["scenarios"][0]["verdict"], "not run", "{run}");
    assert!(run["scenarios"][0]["reason"]["text"].as_str().expect("a text").contains("time"), "{run}");
}

#[test]
fn wrong_usage_is_2_and_nobody_there_is_3() {
    assert_eq!(certify(&["--only", "no-such-scenario"]).status.code(), Some(2));
    assert_eq!(certify(&["--no-such-flag"]).status.code(), Some(2));
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    assert_eq!(certify(&["--bootstrap", &format!("127.0.0.1:{port}")]).status.code(), Some(3));
}

#[test]
fn reference_mode_fails_where_a_stricter_promise_is_kept() {
    let output = certify(&["--own-server", "--reference", "--only", "S1"]);
    assert_eq!(output.status.code(), Some(1), "a stricter promise that is kept is none");
}

#[test]
fn the_page_of_results_is_what_the_recorded_runs_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/certify");
    let made = certify(&["--page", folder]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = std::fs::read(format!("{folder}/results.md")).expect("the page");
    assert!(page == made.stdout, "make it anew: semel certify --page docs/certify >docs/certify/results.md");
}
