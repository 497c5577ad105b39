//! What is measured. Each measure ends by checking that what was promised is there: a fast wrong broker scores zero.

use std::{
    error::Error,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use semel_certify::session::{Isolation, Place, Versions, Write};
use semel_types::ErrorCode;
use semel_wire::WireCode;

use crate::{producer::Producer, server::Server};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// No run is longer.
const RUN_MAX: Duration = Duration::from_secs(10);
/// How long a broker may take to show what it acknowledged: Kafka writes markers after the answer.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// A load of B1.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of a record's value.
    pub value_bytes: usize,
    /// Partitions of the topic.
    pub partitions: i32,
    /// Records.
    pub records: u64,
}

/// What B1 gives.
#[derive(Clone, Copy, Debug)]
pub struct Produced {
    /// Records a second.
    pub records_per_s: f64,
    /// Value bytes a second, in MB.
    pub mb_per_s: f64,
    /// CPU seconds of the server for a GB of value bytes.
    pub cpu_s_per_gb: f64,
}

/// B1: one idempotent producer, as fast as it goes.
pub fn produce(server: &Server, topic: &str, load: &Load) -> Outcome<Produced> {
    create(server, topic, load.partitions)?;
    let mut producer = Producer::new(&[
        ("bootstrap.servers", &server.address),
        ("enable.idempotence", "true"),
        ("linger.ms", "5"),
        ("queue.buffering.max.messages", "1000000"),
        ("queue.buffering.max.kbytes", "1000000"),
    ])?;
    let handle = producer.topic(topic)?;
    let value = vec![b'x'; load.value_bytes];
    producer.send(&handle, -1, &value)?;
    producer.flush()?;
    write_back();
    let (cpu_s, started) = (server.cpu_s()?, Instant::now());
    let mut sent = 0;
    while sent < load.records && (sent % 1024 != 0 || started.elapsed() < RUN_MAX) {
        producer.send(&handle, -1, &value)?;
        sent += 1;
    }
    producer.flush()?;
    let elapsed_s = started.elapsed().as_secs_f64();
    let cpu_s = server.cpu_s()? - cpu_s;
    settle(server, topic, load.partitions, sent + 1)?;
    drop(handle);
    delete(server, topic)?;
    let bytes = sent as f64 * load.value_bytes as f64;
    Ok(Produced {
        records_per_s: sent as f64 / elapsed_s,
        mb_per_s: bytes / elapsed_s / 1e6,
        cpu_s_per_gb: cpu_s / (bytes / 1e9),
    })
}

/// What B7 gives.
#[derive(Clone, Copy, Debug)]
pub struct Transacted {
    /// Transactions a second, all producers together.
    pub per_s: f64,
    /// Median time of a commit, in ms.
    pub commit_p50_ms: f64,
    /// Its 99th percentile, in ms.
    pub commit_p99_ms: f64,
}

impl Transacted {
    /// From the time of each, all within `span`.
    pub fn of(mut commits: Vec<Duration>, span: Duration) -> Self {
        commits.sort_unstable();
        let last = commits.len().saturating_sub(1);
        let at = |share: f64| commits.get((last as f64 * share) as usize).map_or(f64::NAN, millis);
        let per_s = commits.len() as f64 / span.as_secs_f64();
        Self { per_s, commit_p50_ms: at(0.5), commit_p99_ms: at(0.99) }
    }
}

const TRANSACTION_PARTITIONS: i32 = 6;

/// B7: producers that commit one record of 100 bytes per transaction.
pub fn transact(server: &Server, topic: &str, producers: usize, span: Duration) -> Outcome<Transacted> {
    create(server, topic, TRANSACTION_PARTITIONS)?;
    write_back();
    let commits = side_by_side(producers, |number, ready| commit_for(server, topic, number, ready, span))?;
    // A transaction is its record and its marker.
    let warm = producers as u64;
    settle(server, topic, TRANSACTION_PARTITIONS, 2 * (commits.len() as u64 + warm))?;
    delete(server, topic)?;
    Ok(Transacted::of(commits, span))
}

/// The same without a client library, each producer on a connection of its own: Produce with the first write adding the partition, then
/// EndTxn (KIP-890). A commit here is the whole EndTxn; the record is acknowledged before.
pub fn transact_raw(server: &Server, topic: &str, producers: usize, span: Duration) -> Outcome<Transacted> {
    create(server, topic, TRANSACTION_PARTITIONS)?;
    // Kafka makes its topic of transactions when a client looks for their coordinator.
    transactional(server, &format!("{topic}-first"))?.init_transactions()?;
    write_back();
    let commits =
        side_by_side(producers, |number, ready| commit_raw_for(server, topic, number, ready, span))?;
    settle(server, topic, TRANSACTION_PARTITIONS, 2 * commits.len() as u64)?;
    delete(server, topic)?;
    Ok(Transacted::of(commits, span))
}

/// Clients by number, each on a thread of its own and ready for the others at the barrier: what all of them measured.
pub fn side_by_side(
    clients: usize,
    work: impl Fn(usize, &Barrier) -> Outcome<Vec<Duration>> + Sync,
) -> Outcome<Vec<Duration>> {
    let (ready, work) = (&Barrier::new(clients), &work);
    let measured: Outcome<Vec<_>> = thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|number| scope.spawn(move || work(number, ready))).collect();
        let each = running.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("panicked".into())));
        each.collect()
    });
    Ok(measured?.concat())
}

/// One raw client: how long each EndTxn took.
fn commit_raw_for(
    server: &Server,
    topic: &str,
    number: usize,
    ready: &Barrier,
    span: Duration,
) -> Outcome<Vec<Duration>> {
    let id = format!("{topic}-{number}");
    let prepared = server.session().and_then(|session| {
        let mut session = session.speaking(Versions::VERSION_2);
        let identity = session.init(Some(&id))?;
        Ok((session, identity))
    });
    ready.wait();
    let (mut session, mut identity) = prepared?;
    let place = Place::of(topic, number as i32 % TRANSACTION_PARTITIONS);
    let started = Instant::now();
    let mut commits = Vec::new();
    while started.elapsed() < span {
        let write = Write {
            identity: Some(identity),
            sequence: 0,
            values: &[&[b'x'; 100]],
            transactional_id: Some(&id),
        };
        until_taken("Produce", || Ok(session.produce(&place, write)?.code))?;
        let asked = Instant::now();
        until_taken("EndTxn", || {
            let ended = session.end(&id, identity, true)?;
            identity = ended.identity.unwrap_or(identity);
            Ok(ended.code)
        })?;
        commits.push(asked.elapsed());
    }
    Ok(commits)
}

/// Asks again while the broker still works on the transaction before.
fn until_taken(what: &str, mut ask: impl FnMut() -> Outcome<WireCode>) -> Outcome<()> {
    loop {
        match ask()? {
            WireCode::NONE => return Ok(()),
            code if code.known() == Some(ErrorCode::ConcurrentTransactions) => {
                thread::sleep(Duration::from_millis(1));
            }
            code => return Err(format!("{what}: {code}").into()),
        }
    }
}

fn commit_for(
    server: &Server,
    topic: &str,
    number: usize,
    ready: &Barrier,
    span: Duration,
) -> Outcome<Vec<Duration>> {
    let prepared = transactional(server, &format!("{topic}-{number}")).and_then(|producer| {
        producer.init_transactions()?;
        Ok(producer)
    });
    ready.wait();
    let mut producer = prepared?;
    let handle = producer.topic(topic)?;
    let partition = number as i32 % TRANSACTION_PARTITIONS;
    let mut transaction = |value: &[u8]| -> Outcome<Duration> {
        producer.begin()?;
        producer.send(&handle, partition, value)?;
        producer.commit()
    };
    let value = [b'x'; 100];
    transaction(&value)?;
    ready.wait();
    let started = Instant::now();
    let mut commits = Vec::new();
    while started.elapsed() < span {
        commits.push(transaction(&value)?);
    }
    drop(handle);
    Ok(commits)
}

/// A second instance takes a transactional id whose first has an open transaction: ms until it may write, for
/// librdkafka, and for a raw client that asks again at once when told that the broker is busy.
pub fn take_over(server: &Server, topic: &str) -> Outcome<[f64; 2]> {
    create(server, topic, 1)?;
    let first = open(server, topic)?;
    let second = transactional(server, topic)?;
    // Else the figure is the library's pause until its first connection stands.
    second.connect(&second.topic(topic)?)?;
    let asked = Instant::now();
    second.init_transactions()?;
    let by_library = asked.elapsed();
    settle(server, topic, 1, 2)?;
    let third = open(server, topic)?;
    let mut session = server.session()?;
    let asked = Instant::now();
    until_taken("InitProducerId", || Ok(session.try_init(Some(topic), 60_000, None)?.0))?;
    let by_hand = asked.elapsed();
    settle(server, topic, 1, 4)?;
    drop((first, third));
    delete(server, topic)?;
    Ok([millis(&by_library), millis(&by_hand)])
}

/// A producer with an open transaction of one acknowledged record.
fn open(server: &Server, topic: &str) -> Outcome<Producer> {
    let mut producer = transactional(server, topic)?;
    producer.init_transactions()?;
    producer.begin()?;
    let handle = producer.topic(topic)?;
    producer.send(&handle, 0, &[b'x'; 100])?;
    producer.flush()?;
    Ok(producer)
}

/// A transactional producer that has not asked for its identity yet.
pub fn transactional(server: &Server, id: &str) -> Outcome<Producer> {
    Producer::new(&[
        ("bootstrap.servers", &server.address),
        ("transactional.id", id),
        ("linger.ms", "0"),
        ("transaction.timeout.ms", "60000"),
    ])
}

/// In ms.
pub fn millis(duration: &Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Creates a topic.
pub fn create(server: &Server, topic: &str, partitions: i32) -> Outcome<()> {
    let code = server.session()?.create_topic(topic, partitions)?;
    if code.is_error() { Err(format!("CreateTopics: {code}").into()) } else { Ok(()) }
}

/// Deletes a topic.
pub fn delete(server: &Server, topic: &str) -> Outcome<()> {
    let code = server.session()?.delete_topic(topic)?;
    if code.is_error() { Err(format!("DeleteTopics: {code}").into()) } else { Ok(()) }
}

/// Waits until the topic holds exactly these many offsets.
pub fn settle(server: &Server, topic: &str, partitions: i32, due: u64) -> Outcome<()> {
    let mut session = server.session()?;
    let deadline = Instant::now() + SETTLE_MAX;
    loop {
        let mut found = 0;
        for index in 0..partitions {
            let end = session.end_offset(&Place::of(topic, index), Isolation::Committed)?;
            found += u64::try_from(end.get()).unwrap_or(0);
        }
        if found == due {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{topic} holds {found} offsets instead of {due}").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Lets the disk finish what earlier runs left in the page cache, so that no run pays for another's.
pub fn write_back() {
    // SAFETY: sync takes nothing and returns nothing.
    unsafe { libc::sync() };
}
