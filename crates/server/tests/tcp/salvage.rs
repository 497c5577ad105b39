//! `semel log salvage`: a damaged log refuses to start, is set aside from the damage on, and then starts.

use std::{fs::OpenOptions, os::unix::fs::FileExt, path::PathBuf};

use serde_json::Value;

use crate::rig::{Rig, produce, run, said};

/// Flips a bit of the middle group's event section, which later groups prove to have been durable.
fn damage(rig: &Rig) -> PathBuf {
    let entries = std::fs::read_dir(rig.directory.path()).expect("it is ours").filter_map(Result::ok);
    let mut logs: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SEMELLOG")))
        .collect();
    logs.sort();
    let bytes = std::fs::read(&logs[0]).expect("it is ours");
    let needle = b"the record in the middle";
    let at = bytes.windows(needle.len()).position(|window| window == needle).expect("it is stored");
    // The group's header stands at the start of its block.
    let start = (at / 4096 * 4096) as u64;
    let file = OpenOptions::new().read(true).write(true).open(&logs[0]).expect("it is ours");
    let mut byte = [0];
    file.read_exact_at(&mut byte, start).expect("it is there");
    file.write_all_at(&[byte[0] ^ 1], start).expect("it is ours");
    logs.remove(0)
}

#[test]
fn a_damaged_log_is_refused_salvaged_and_starts_with_what_stands_before_the_damage() {
    let mut rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    let mut client = rig.client();
    client.call(&produce(b"before"), 9).expect("answered");
    client.call(&produce(b"the record in the middle"), 9).expect("answered");
    for _ in 0..5 {
        client.call(&produce(b"after"), 9).expect("answered");
    }
    rig.server.kill().expect("it runs");
    let damaged = damage(&rig);
    let directory = rig.directory.path().to_str().expect("a path of ours").to_owned();
    let output = run(&["serve", "--data-dir", &directory, "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let name = damaged.file_name().and_then(|name| name.to_str()).expect("a name of ours");
    for text in ["damaged", name, "semel log salvage"] {
        assert!(said(&output).contains(text), "{text:?} is not in {}", said(&output));
    }
    let output = run(&["log", "salvage", "--data-dir", &directory, "--json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((&told["damaged"], told["file"].as_str()), (&Value::Bool(true), Some(name)));
    for aside in told["set_aside"].as_array().expect("a list") {
        assert!(rig.directory.path().join(aside.as_str().expect("a name")).exists(), "{aside}");
    }
    rig.server.restart().expect("it starts again");
    assert_eq!(rig.end().get(), 1, "what stands before the damage");
    rig.client().call(&produce(b"again"), 9).expect("answered");
    assert_eq!(rig.end().get(), 2);
}

#[test]
fn a_log_without_damage_is_left_as_it_is() {
    let mut rig = Rig::start(&[]);
    rig.server.terminate().expect("it stops");
    let directory = rig.directory.path().to_str().expect("a path of ours").to_owned();
    let output = run(&["log", "salvage", "--data-dir", &directory], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("nothing was changed"), "{}", said(&output));
}

#[test]
fn a_log_in_use_is_not_touched() {
    let rig = Rig::start(&[]);
    let directory = rig.directory.path().to_str().expect("a path of ours").to_owned();
    let output = run(&["log", "salvage", "--data-dir", &directory], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("in use"), "{}", said(&output));
}
