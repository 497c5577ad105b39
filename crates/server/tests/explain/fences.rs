//! `semel fences`, what it shows and as it happens.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::Value;

use crate::rig::{PATIENCE, Rig, open, program};

/// A running follower and its lines.
struct Follower(Child, Receiver<String>);

impl Follower {
    fn start(rig: &Rig, arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["fences", "--follow"]).args(arguments).env("SEMEL_ADMIN", rig.server.admin());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        Self(child, receiver)
    }

    #[track_caller]
    fn line(&self) -> String {
        self.1.recv_timeout(PATIENCE).expect("a line")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_follower_sees_what_was_and_each_fence_as_it_happens() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    app.init(Some("a")).expect("it serves");
    app.init(Some("a")).expect("it serves");
    let (all, of_b) = (Follower::start(&rig, &["--json"]), Follower::start(&rig, &["--id", "b"]));
    let fence: Value = serde_json::from_str(&all.line()).expect("one object a line");
    assert_eq!((&fence["number"], &fence["transactional_id"]), (&1.into(), &"a".into()));
    // From here on it waits for what comes.
    app.init(Some("b")).expect("it serves");
    app.init(Some("a")).expect("it serves");
    app.init(Some("b")).expect("it serves");
    let next: Value = serde_json::from_str(&all.line()).expect("one object a line");
    assert_eq!((&next["number"], &next["transactional_id"]), (&2.into(), &"a".into()));
    let line = of_b.line();
    assert!(line.contains("  b  takeover  fenced: epoch 0 was replaced by 1 at "), "{line}");
}

#[test]
fn a_fence_says_who_when_what_it_had_written_and_outlives_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut server =
        semel_certify::Server::start(program(), directory.path(), &[]).expect("the server starts");
    let mut app = semel_certify::Session::connect(server.address()).expect("it listens");
    app.create_topic("t", 1).expect("it serves");
    let identity = app.init(Some("a")).expect("it serves");
    open(&mut app, "a", identity, 0);
    app.init(Some("a")).expect("it serves");
    let fences = |admin: &str| -> Value {
        let output = crate::rig::run(&["fences", "--json"], &[("SEMEL_ADMIN", admin)]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let before = fences(server.admin());
    let fence = &before["fences"][0];
    assert_eq!(fence["cause"], "takeover");
    assert_eq!(fence["victim"]["producer_id"], identity.id.get());
    assert_eq!(
        (&fence["victim_client"]["client_id"], &fence["author"]["api"]),
        (&"certify".into(), &"InitProducerId".into())
    );
    let aborted = &fence["aborted"];
    assert_eq!((&aborted["transaction"], &aborted["partition_count"]), (&1.into(), &1.into()));
    assert_eq!(
        (&aborted["partitions"][0]["topic"], &aborted["partitions"][0]["partition"]),
        (&"t".into(), &0.into())
    );
    server.terminate().expect("it stops");
    server.restart().expect("it starts");
    assert_eq!(fences(server.admin()), before, "numbers included");
}

#[test]
fn filters_leave_out_what_was_not_asked_for() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    for id in ["a", "a", "a", "b", "b"] {
        app.init(Some(id)).expect("it serves");
    }
    let numbers = |arguments: &[&str]| -> Vec<i64> {
        let answer = rig.json(&[&["fences"], arguments].concat());
        answer["fences"].as_array().expect("a list").iter().filter_map(|one| one["number"].as_i64()).collect()
    };
    assert_eq!(numbers(&[]), [1, 2, 3]);
    assert_eq!(numbers(&["--id", "a"]), [1, 2]);
    assert_eq!(numbers(&["--limit", "1"]), [3], "the newest");
    assert_eq!(numbers(&["--since", "1h"]), [1, 2, 3]);
    assert_eq!(numbers(&["--since", "0s"]), Vec::<i64>::new());
    assert_eq!(rig.text(&["fences", "--id", "nobody"]), "No fences.\n");
}
