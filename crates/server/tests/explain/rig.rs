//! A server with its admin endpoint, named clients, and the commands run against it.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use semel_certify::{
    Client, Identity, Server, Session,
    session::{Place, Versions, Write},
};
use semel_wire::api::api_versions::ApiVersionsRequest;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything takes here on a busy machine; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_semel"))
}

/// A running server with a topic `t` of one partition.
pub struct Rig {
    pub server: Server,
    _directory: TempDir,
}

/// Partition 0 of topic `t`.
pub fn t() -> Place {
    Place::of("t", 0)
}

impl Rig {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let arguments = ["--durability", "memory"];
        let server = Server::start(program(), directory.path(), &arguments).expect("the server starts");
        let rig = Self { server, _directory: directory };
        rig.client("maker").create_topic("t", 1).expect("it serves");
        rig
    }

    /// A connection of a client that says its name and software.
    pub fn client(&self, name: &str) -> Session {
        let mut client = Client::connect(self.server.address()).expect("it listens").named(name);
        let hello = ApiVersionsRequest {
            client_software_name: "java".into(),
            client_software_version: "4.4.0".into(),
            ..Default::default()
        };
        client.call(&hello, 3).expect("it serves");
        Session { client, versions: Versions::CLASSIC }
    }

    /// Runs a command against this server.
    pub fn run(&self, arguments: &[&str]) -> Output {
        run(arguments, &[("SEMEL_BOOTSTRAP", self.server.address()), ("SEMEL_ADMIN", self.server.admin())])
    }

    /// Runs a command that has to succeed; what it prints.
    #[track_caller]
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The same with `--json`.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The sentences of an id's story, newest last.
    #[track_caller]
    pub fn story(&self, id: &str) -> Vec<String> {
        let explained = self.json(&["txn", "explain", id]);
        let story = explained["story"].as_array().expect("it has a story");
        story.iter().map(|sentence| sentence["text"].as_str().expect("text").to_owned()).collect()
    }
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
    command.output().expect("the program runs")
}

/// Everything that a program said.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Opens a transaction and writes one record to `t`.
#[track_caller]
pub fn open(session: &mut Session, id: &str, identity: Identity, sequence: i32) {
    session.add(id, identity, &[t()]).expect("it serves");
    let write = Write { identity: Some(identity), sequence, values: &[b"x"], transactional_id: Some(id) };
    let produced = session.produce(&t(), write).expect("it serves");
    assert!(!produced.code.is_error(), "{}: {:?}", produced.code, produced.message);
}
