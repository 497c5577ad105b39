//! Starting: what the first line says, and what stands in the way.

use std::{net::TcpListener, os::unix::fs::FileExt, path::Path, process::Output};

use semel_wire::api::metadata::MetadataRequest;

use crate::rig::{Bare, PATIENCE, Rig, assert_kept, run, said};

/// Starts a server that must not start.
#[track_caller]
fn fails(directory: &Path, arguments: &[&str], status: i32) -> Output {
    let directory = directory.to_str().expect("a path of ours");
    let mut all = vec!["serve", "--data-dir", directory, "--listen", "127.0.0.1:0"];
    all.extend(arguments);
    let output = run(&all, &[]);
    assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    output
}

#[track_caller]
fn assert_says(output: &Output, texts: &[&str]) {
    let said = said(output);
    let errors = said.lines().filter(|line| line.starts_with("semel: "));
    assert_eq!(errors.count(), 1, "one readable line: {said}");
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in {said:?}");
    }
}

#[test]
fn the_first_line_of_the_log_says_version_listeners_directory_durability_and_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("a path of ours");
    let mut server = Bare::start(&["serve", "--data-dir", path, "--listen", "127.0.0.1:0"]);
    let line = server.first_line().expect("it says something");
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    let directory = format!("data_dir={path}");
    for text in [&*version, "listeners=127.0.0.1:", &directory, "durability=sync", "ready_ms="] {
        assert!(line.contains(text), "{text:?} is not in {line:?}");
    }
}

#[test]
fn a_second_server_on_the_same_directory_is_told_which_and_who_has_it() {
    let rig = Rig::start(&[]);
    let output = fails(rig.directory.path(), &[], 1);
    let (directory, holder) = (rig.directory.path().display().to_string(), rig.server.id().to_string());
    assert_says(&output, &[&directory, "in use", &holder]);
    assert_kept(&mut rig.client());
}

#[test]
fn a_port_that_is_taken_is_named_and_what_to_do_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let path = directory.path().to_str().expect("a path of ours");
    let output = run(&["serve", "--data-dir", path, "--listen", &address], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_says(&output, &[&address, "--listen"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    std::fs::write(&file, "not a directory").expect("it is ours");
    assert_says(&fails(&file, &[], 1), &[&file.display().to_string(), "not writable"]);
    assert_says(&fails(Path::new("/proc/semel"), &[], 1), &["/proc/semel", "not writable"]);
}

#[test]
fn a_listener_that_cannot_be_resolved_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = fails(directory.path(), &["--listen", "no-such-host.invalid:9092"], 1);
    assert_says(&output, &["no-such-host.invalid:9092", "resolve"]);
}

#[test]
fn an_address_that_is_none_is_wrong_usage() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    assert_says(&fails(directory.path(), &["--listen", "localhost"], 2), &["localhost", "HOST:PORT"]);
    assert_says(&fails(directory.path(), &["--advertise", "localhost"], 2), &["localhost", "HOST:PORT"]);
    assert!(std::fs::read_dir(directory.path()).expect("it is ours").next().is_none(), "nothing was started");
}

#[test]
fn a_directory_of_a_newer_format_is_refused_and_left_as_it_is() {
    let mut rig = Rig::start(&[]);
    rig.server.terminate().expect("it stops");
    let logs: Vec<_> = std::fs::read_dir(rig.directory.path())
        .expect("it is ours")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SEMELLOG")))
        .collect();
    assert!(!logs.is_empty(), "a log file begins with its magic");
    for path in &logs {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("it is ours");
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0).expect("a header");
        header[12..14].copy_from_slice(&900_u16.to_le_bytes());
        let checksum = crc32c::crc32c(&header[12..]);
        header[8..12].copy_from_slice(&checksum.to_le_bytes());
        file.write_all_at(&header, 0).expect("it is ours");
    }
    let before: Vec<_> = logs.iter().map(|path| std::fs::read(path).expect("it is ours")).collect();
    assert_says(&fails(rig.directory.path(), &[], 1), &["version 900", "newer"]);
    let after: Vec<_> = logs.iter().map(|path| std::fs::read(path).expect("it is ours")).collect();
    assert!(before == after, "nothing was changed");
}

#[test]
fn a_wrong_setting_is_named_with_the_nearest_that_exists() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = fails(directory.path(), &["--set", "num.partition=3"], 2);
    assert_says(&output, &["num.partition", "did you mean num.partitions?", "--set"]);
    let output = fails(directory.path(), &["--set", "num.partitions=many"], 2);
    assert_says(&output, &["num.partitions", "many"]);
}

/// Where a client of this server is told to connect.
fn told(rig: &Rig) -> (String, i32) {
    let answer = rig.client().call(&MetadataRequest { topics: Some(Vec::new()), ..Default::default() }, 9);
    let broker = answer.expect("answered").brokers.into_iter().next().expect("one broker");
    (broker.host.as_str().to_owned(), broker.port)
}

#[test]
fn clients_are_told_the_address_they_came_by_or_the_one_that_is_advertised() {
    let rig = Rig::with_topic(&[]);
    let (host, port) = told(&rig);
    assert_eq!(format!("{host}:{port}"), rig.server.address());
    let rig = Rig::with_topic(&["--advertise", "broker.example:1234"]);
    assert_eq!(told(&rig), ("broker.example".to_owned(), 1234));
}

#[test]
fn an_advertised_port_0_stands_for_the_listeners() {
    let rig = Rig::with_topic(&["--advertise", "broker.example:0"]);
    let (host, port) = told(&rig);
    assert_eq!(host, "broker.example");
    assert!(rig.server.address().ends_with(&format!(":{port}")));
}

#[test]
fn port_0_takes_a_free_port_each_time_and_restart_keeps_it() {
    let mut rig = Rig::with_topic(&[]);
    let other = Rig::with_topic(&[]);
    assert_ne!(rig.server.address(), other.server.address());
    assert!(!rig.server.address().ends_with(":0"));
    let before = rig.server.address().to_owned();
    rig.server.kill().expect("it runs");
    rig.server.restart().expect("it starts again");
    assert_eq!(rig.server.address(), before);
    assert_kept(&mut rig.client());
}

#[test]
fn settings_of_a_properties_file_that_have_no_effect_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("server.properties");
    std::fs::write(&file, "node.id=7\nlog.dirs=/elsewhere\n").expect("it is ours");
    let mut rig = Rig::with_topic(&["--config", file.to_str().expect("a path of ours")]);
    let line = rig.server.wait_line("log.dirs", PATIENCE).expect("it is said");
    assert!(line.contains("line 2") && line.contains("--data-dir"), "{line}");
}
