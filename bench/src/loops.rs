//! Consume, transform, produce: loops that read ten records, write ten and commit with the offsets of what was read.

use std::{
    error::Error,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    consumer::{Consumer, Offsets},
    measure::{Transacted, create, delete, settle, transactional, write_back},
    producer::Producer,
    server::Server,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Records of a loop.
const BATCH: usize = 10;
/// Partitions of what is read; the output has one, in which a loop is ten records and a marker.
const PARTITIONS: i32 = 6;
/// More than any client reads in the longest run.
const RECORDS: u64 = 300_000;
/// Loops before the first that counts.
const WARM_LOOPS: usize = 50;

/// librdkafka: one consumer that subscribes, one transactional producer.
pub fn librdkafka(server: &Server, topic: &str, span: Duration) -> Outcome<Transacted> {
    let target = filled(server, topic)?;
    let consumer = Consumer::subscribe(
        &[
            ("bootstrap.servers", &server.address),
            ("group.id", topic),
            ("isolation.level", "read_committed"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
        ],
        topic,
    )?;
    let mut producer = transactional(server, topic)?;
    producer.init_transactions()?;
    let handle = producer.topic(&target)?;
    let mut one = || -> Outcome<Duration> {
        let started = Instant::now();
        let records = consumer.next(BATCH, 10_000)?;
        if records.len() != BATCH {
            return Err(format!("{} records instead of {BATCH}", records.len()).into());
        }
        producer.begin()?;
        for record in &records {
            producer.send(&handle, 0, &record.value)?;
        }
        producer.send_offsets(&Offsets::behind(topic, &records)?, &consumer.member()?)?;
        producer.commit()?;
        Ok(started.elapsed())
    };
    for _ in 0..WARM_LOOPS {
        one()?;
    }
    let started = Instant::now();
    let mut loops = Vec::new();
    while started.elapsed() < span {
        loops.push(one()?);
    }
    drop(handle);
    let count = (WARM_LOOPS + loops.len()) as u64;
    let committed = consumer.committed(topic, PARTITIONS)?;
    drop(consumer);
    done(server, topic, count, count * BATCH as u64, committed)?;
    Ok(Transacted::of(loops, span))
}

/// The same by Apache Kafka's own client, in a process of its own that warms up for two seconds before it counts.
pub fn java(server: &Server, topic: &str, span: Duration, kafka_peer: &Path) -> Outcome<Transacted> {
    let target = filled(server, topic)?;
    let output = Command::new(kafka_peer)
        .args(["java", "Loops.java", &server.address, topic, &target, topic])
        .arg(span.as_secs_f64().to_string())
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [loops, records, per_s, commit_p50_ms, commit_p99_ms, committed] = numbers[..] else {
        let failure = String::from_utf8_lossy(&output.stderr);
        return Err(format!("Loops.java: {said}{}", &failure[..failure.len().min(2000)]).into());
    };
    done(server, topic, loops as u64, records as u64, committed as u64)?;
    Ok(Transacted { per_s, commit_p50_ms, commit_p99_ms })
}

/// A topic full of records, and an empty one for the output, whose name is returned.
fn filled(server: &Server, topic: &str) -> Outcome<String> {
    let target = output_of(topic);
    create(server, topic, PARTITIONS)?;
    create(server, &target, 1)?;
    let mut producer = Producer::new(&[
        ("bootstrap.servers", &server.address),
        ("enable.idempotence", "true"),
        ("linger.ms", "5"),
        ("queue.buffering.max.messages", "1000000"),
    ])?;
    let handle = producer.topic(topic)?;
    for number in 0..RECORDS {
        producer.send(&handle, (number % PARTITIONS as u64) as i32, &[b'x'; 100])?;
    }
    producer.flush()?;
    drop(handle);
    write_back();
    Ok(target)
}

fn output_of(topic: &str) -> String {
    format!("{topic}-output")
}

/// All loops, and nothing else, are in the output and in the offsets of the group.
fn done(server: &Server, topic: &str, loops: u64, records: u64, committed: u64) -> Outcome<()> {
    if committed != records {
        return Err(format!("{committed} records are committed, {records} were read").into());
    }
    settle(server, &output_of(topic), 1, records + loops)?;
    delete(server, topic)?;
    delete(server, &output_of(topic))
}
