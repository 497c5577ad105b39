//! How long a group is without some of its partitions when a member dies.

use std::{
    env,
    error::Error,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    consumer::Consumer,
    measure::{create, delete, millis},
    producer::Producer,
    server::Server,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The word that makes this program a member of a group: `member ADDRESS TOPIC`.
pub const MEMBER: &str = "member";

const PARTITIONS: usize = 6;
/// Between two records of a partition.
const STEP: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Both servers allow no less by default.
const SESSION_MS: &str = "6000";

/// Kills one of two members with SIGKILL: ms until the other one has read, from each partition, a record that was sent
/// since.
pub fn after_a_kill(server: &Server, topic: &str) -> Outcome<[f64; 1]> {
    create(server, topic, PARTITIONS as i32)?;
    let (sender, seen) = channel();
    let mut group = [member(server, topic, 0, &sender)?, member(server, topic, 1, &sender)?];
    let measured = watch(server, topic, &seen, || {
        group[0].kill()?;
        group[0].wait()?;
        Ok(())
    });
    for member in &mut group {
        // It fails for one that has ended.
        let _ = member.kill();
        member.wait()?;
    }
    delete(server, topic)?;
    measured
}

/// What a member has read.
struct Seen {
    member: usize,
    partition: usize,
    /// When the record was sent, since the start.
    sent: Duration,
}

fn watch(
    server: &Server,
    topic: &str,
    seen: &Receiver<Seen>,
    kill: impl FnOnce() -> Outcome<()>,
) -> Outcome<[f64; 1]> {
    let start = Instant::now();
    let settings =
        [("bootstrap.servers", &*server.address), ("enable.idempotence", "true"), ("linger.ms", "0")];
    let mut producer = Producer::new(&settings)?;
    let handle = producer.topic(topic)?;
    let mut send_until = |what: &str, done: &mut dyn FnMut(Seen) -> bool| -> Outcome<()> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let sent = start.elapsed().as_nanos().to_string();
            for partition in 0..PARTITIONS {
                producer.send(&handle, partition as i32, sent.as_bytes())?;
            }
            thread::sleep(STEP);
            // All are looked at: what has been read since is not to be taken for later.
            let mut found = false;
            for one in seen.try_iter() {
                found |= done(one);
            }
            if found {
                return Ok(());
            }
        }
        Err(format!("{what}: not within {} s", PATIENCE.as_secs()).into())
    };
    let mut readers = [None; PARTITIONS];
    send_until("each member reads half of the partitions", &mut |seen| {
        readers[seen.partition] = Some(seen.member);
        [0, 1]
            .iter()
            .all(|member| readers.iter().filter(|one| **one == Some(*member)).count() == PARTITIONS / 2)
    })?;
    let killed = start.elapsed();
    kill()?;
    let mut missing = [true; PARTITIONS];
    send_until("the other member reads all partitions", &mut |seen| {
        missing[seen.partition] &= seen.member == 0 || seen.sent < killed;
        !missing.contains(&true)
    })?;
    Ok([millis(&(start.elapsed() - killed))])
}

/// Starts this program as a member; what it reads comes through the channel.
fn member(server: &Server, topic: &str, number: usize, seen: &Sender<Seen>) -> Outcome<Child> {
    let mut child = Command::new(env::current_exe()?)
        .args([MEMBER, &server.address, topic])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let seen = seen.clone();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut words = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
            let (Some(partition), Some(nanos)) = (words.next(), words.next()) else { continue };
            let read =
                Seen { member: number, partition: partition as usize, sent: Duration::from_nanos(nanos) };
            if seen.send(read).is_err() {
                return;
            }
        }
    });
    Ok(child)
}

/// A member: prints the partition and the value of all that it reads, until it is killed.
pub fn be_member(address: &str, topic: &str) -> Outcome<()> {
    let consumer = Consumer::subscribe(
        &[
            ("bootstrap.servers", address),
            ("group.id", topic),
            ("auto.offset.reset", "earliest"),
            ("session.timeout.ms", SESSION_MS),
            ("heartbeat.interval.ms", "2000"),
            ("fetch.wait.max.ms", "50"),
        ],
        topic,
    )?;
    let mut output = std::io::stdout().lock();
    loop {
        // Right after its creation Kafka may not know the topic yet.
        for record in consumer.next(PARTITIONS, 20).unwrap_or_default() {
            writeln!(output, "{} {}", record.partition, String::from_utf8_lossy(&record.value))?;
        }
        output.flush()?;
    }
}
