//! A server of its own for each test, and short words for what tests ask.

use std::{
    io::{self, BufRead, BufReader, Read},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use semel_certify::{
    Client, ClientError, Server, Session,
    session::{Isolation, Place, Versions, Write, produce_request, produced},
};
use semel_types::Offset;
use semel_wire::{
    RawOffset,
    api::{
        api_versions::ApiVersionsRequest,
        fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic},
        produce::{ProduceRequest, ProduceResponse},
    },
    batch::{Batch, BatchBuilder, NewRecord},
};
use tempfile::TempDir;

use crate::support::program;

/// Longer than anything takes here on a busy machine; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running server with a directory of its own.
pub struct Rig {
    pub directory: TempDir,
    pub server: Server,
}

impl Rig {
    pub fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Server::start(program(), directory.path(), arguments).expect("the server starts");
        Self { directory, server }
    }

    /// With a topic `t` of one partition, nothing on disk.
    pub fn with_topic(arguments: &[&str]) -> Self {
        let mut all = vec!["--durability", "memory"];
        all.extend(arguments);
        let rig = Self::start(&all);
        rig.session().create_topic("t", 1).expect("it serves");
        rig
    }

    pub fn session(&self) -> Session {
        Session::connect(self.server.address()).expect("it listens")
    }

    pub fn client(&self) -> Client {
        Client::connect(self.server.address()).expect("it listens")
    }

    /// Where the partition ends, by another connection.
    pub fn end(&self) -> RawOffset {
        self.session().end_offset(&t(), Isolation::Uncommitted).expect("it serves")
    }
}

/// Partition 0 of topic `t`.
pub fn t() -> Place {
    Place::of("t", 0)
}

/// A batch of nobody with one record.
pub fn batch(value: &[u8]) -> Batch {
    BatchBuilder::new().record(NewRecord::of(value)).build()
}

/// A Produce of one such batch.
pub fn produce(value: &[u8]) -> ProduceRequest {
    produce_request(&[(&t(), batch(value))], None)
}

/// The same with other acks.
pub fn produce_acks(value: &[u8], acks: i16) -> ProduceRequest {
    ProduceRequest { acks, ..produce(value) }
}

/// Code and first offset of the only partition answered.
pub fn fate(response: ProduceResponse) -> (i16, i64) {
    let answers = response.responses.into_iter().flat_map(|topic| topic.partitions);
    let answer = answers.map(produced).next().expect("one partition was written");
    (answer.code.get(), answer.base_offset.get())
}

/// A Fetch of partition 0 of `t`.
pub fn fetch(offset: i64, (min_bytes, max_wait_ms): (i32, i32), isolation: Isolation) -> FetchRequest {
    let partition = FetchPartition {
        fetch_offset: RawOffset::from(Offset::new(offset)),
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topics = vec![FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() }];
    let isolation_level = i8::from(isolation == Isolation::Committed);
    FetchRequest { min_bytes, max_wait_ms, max_bytes: 1 << 20, isolation_level, topics, ..Default::default() }
}

/// Version in which tests fetch.
pub const FETCH: i16 = 12;

/// Bytes of records in an answer.
pub fn record_bytes(response: &FetchResponse) -> usize {
    let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions
        .filter_map(|partition| partition.records.as_ref())
        .map(|records| records.to_bytes().len())
        .sum()
}

/// A request that any broker answers at once.
pub fn hello() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "certify".into(),
        client_software_version: "1".into(),
        ..Default::default()
    }
}

/// Sends a Produce of one batch and gives code and first offset.
pub fn write(session: &mut Session, write: Write<'_>) -> (i16, i64) {
    let answer = session.produce(&t(), write).expect("it serves");
    (answer.code.get(), answer.base_offset.get())
}

/// The values that a reader gets.
pub fn values(session: &mut Session, isolation: Isolation) -> Vec<String> {
    let values = session.read(&t(), isolation).expect("it serves");
    values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

/// Demands that the connection is closed without another answer.
#[track_caller]
pub fn assert_closed(client: &mut Client) {
    match client.receive_frame() {
        Err(error) => assert!(error.is_closed(), "{error}"),
        Ok(frame) => panic!("answered with {} bytes", frame.len()),
    }
}

/// Demands that the connection still serves.
#[track_caller]
pub fn assert_kept(client: &mut Client) {
    client.call(&hello(), 3).expect("the connection is kept");
}

/// Runs the program to its end.
pub fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
    command.output().expect("the program runs")
}

/// Everything that a program said, for messages of failing tests and for looking into.
pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What `/proc` says of a process, in bytes.
pub fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says it");
    let kib = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    kib.expect("a number") * 1024
}

/// A process started as it is, for what [`Server`] does on its own.
pub struct Bare(pub Child);

impl Bare {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().expect("the program runs"))
    }

    /// The first line of its log.
    pub fn first_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        BufReader::new(self.0.stderr.as_mut().expect("it is a pipe").by_ref()).read_line(&mut line)?;
        Ok(line)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session that speaks version 2 of the transaction protocol.
pub fn version_2(rig: &Rig) -> Session {
    rig.session().speaking(Versions::VERSION_2)
}

/// Is this an answer's absence because the broker closed the connection?
pub fn is_closed<T>(result: &Result<T, ClientError>) -> bool {
    result.as_ref().is_err_and(ClientError::is_closed)
}
