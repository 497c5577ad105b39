//! `semel certify` as a user starts it: exit statuses, lists, files.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
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
fn what_a_scenario_leaves_out_of_its_source_stands_in_the_list() {
    let listed = json(&certify(&["--list", "--json"]));
    let all = listed["scenarios"].as_array().expect("a list");
    let left_out =
        |id: &str| all.iter().find(|one| one["id"] == id).expect("there is one")["left_out"].clone();
    assert_eq!(left_out("B01"), "");
    let reason = left_out("B66");
    let output = certify(&["--list", "--only", "B66"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("left out: {}", reason.as_str().expect("a text"))), "{text}");
}

#[test]
fn a_thorough_run_takes_the_rounds_and_times_of_the_source() {
    // B39 waits for a timeout: of two seconds, or of the five that its source names.
    let took_ms = |flags: &[&str]| {
        let run = json(&certify(&[&["--own-server", "--strict", "--only", "B39", "--json"], flags].concat()));
        assert_eq!(run["scenarios"][0]["verdict"], "kept", "{run}");
        run["scenarios"][0]["took_ms"].as_u64().expect("a number")
    };
    let (short, whole) = (took_ms(&[]), took_ms(&["--thorough"]));
    assert!(short < 5000 && whole >= 5000, "{short} ms, {whole} ms");
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
fn what_failed_is_tried_once_more_and_fails_again() {
    let output = certify(&["--own-server", "--reference", "--again", "--only", "S1", "--only", "B01"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(told.matches("once more, alone").count(), 1, "{told}");
    assert!(told.contains("once more, alone: S1 "), "{told}");
    assert_eq!(output.status.code(), Some(1), "a stricter promise that is kept twice is none");
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
fn what_no_run_can_do_is_wrong_usage_before_it_starts() {
    let said = |arguments: &[&str]| {
        let output = certify(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    said(&["--own-server", "--only", "B01", "--limit", "0"]);
    said(&["--own-server", "--only", "B01", "--jobs", "0"]);
    said(&["--own-server", "--only", "B01", "--bootstrap", "127.0.0.1:9092"]);
    assert!(said(&["--bootstrap", "foo"]).contains("HOST:PORT"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lost = directory.path().join("missing/file");
    let lost = lost.to_str().expect("a plain path");
    for flag in ["--record", "--junit"] {
        assert!(said(&["--own-server", "--only", "B01", flag, lost]).contains(lost), "{flag}");
    }
}

#[test]
fn an_address_in_the_environment_does_not_keep_semel_from_judging_itself() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(["certify", "--own-server", "--only", "B01"]).env("SEMEL_BOOTSTRAP", "127.0.0.1:1");
    assert!(command.output().expect("the program runs").status.success());
}

#[test]
fn a_restart_command_that_fails_breaks_no_promise() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = semel_certify::Server::start(env!("CARGO_BIN_EXE_semel").as_ref(), directory.path(), &[])
        .expect("it starts");
    for command in ["false", "no-such-program"] {
        let bootstrap = ["--bootstrap", server.address(), "--restart-command", command];
        // B78 kills, B08a needs settings, B84 a small disk.
        let output = certify(
            &[&bootstrap[..], &["--only", "B78", "--only", "B08a", "--only", "B84", "--json"]].concat(),
        );
        let run = json(&output);
        let found = run["scenarios"].as_array().expect("a list");
        assert_eq!(found.len(), 3, "{run}");
        for one in found {
            assert_eq!(one["verdict"], "not run", "{run}");
            assert!(one["reason"]["text"].as_str().expect("a text").contains(command), "{run}");
        }
    }
}

#[test]
fn a_run_leaves_no_directory_behind() {
    // B42 waits for an expiry of more than a second.
    for (id, limit, verdict) in [("B78", "60", "kept"), ("B42", "1", "broken")] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.args(["certify", "--own-server", "--only", id, "--json", "--limit", limit]);
        let output = command.env("TMPDIR", directory.path()).output().expect("the program runs");
        assert_eq!(json(&output)["scenarios"][0]["verdict"], verdict);
        assert_eq!(entries(directory.path()), 0, "{id}");
    }
}

#[test]
fn no_server_outlives_the_run_that_started_it() {
    for (signal, keeps) in [("-TERM", false), ("-INT", false), ("-KILL", true)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut run = Command::new(env!("CARGO_BIN_EXE_semel"));
        run.args(["certify", "--own-server", "--only", "B78"]).env("TMPDIR", directory.path());
        let mut run = run.stdout(Stdio::null()).spawn().expect("the program runs");
        // One beside others, one of the scenario's own.
        until("both servers run", || servers_in(directory.path()) == 2);
        let sent = Command::new("kill").args([signal, &run.id().to_string()]).status().expect("it runs");
        assert!(sent.success() && has_ended(&mut run));
        until("no server runs", || servers_in(directory.path()) == 0);
        assert!(keeps || entries(directory.path()) == 0, "{signal}");
    }
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).expect("a directory").count()
}

fn has_ended(run: &mut Child) -> bool {
    until("the run ends", || run.try_wait().expect("it is ours").is_some());
    true
}

/// How many processes have their data under a directory.
fn servers_in(directory: &Path) -> usize {
    let directory = directory.to_str().expect("a plain path");
    let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
    let command_lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    command_lines.filter(|line| String::from_utf8_lossy(line).contains(directory)).count()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
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
