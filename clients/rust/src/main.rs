//! Exactly-once, as the crate `rdkafka` sees it: produce, transactions, fencing, timeout, offsets, takeover.

mod broker;
mod checks;
mod epochs;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::Producer;

use broker::use_broker;
use broker::{
    Isolation, LIMIT, TestProducer, at, consumer, create_topic, end, enqueue, flush, name, producer, read,
    send,
};
use checks::{await_condition, check, equal, eventually, stricter};

const RECORDS: usize = 20_000;
const ABORT_LIMIT: Duration = Duration::from_secs(25);

fn main() -> ExitCode {
    check("idempotent_produce_to_one_partition", || idempotent_produce(1));
    check("idempotent_produce_to_three_partitions", || idempotent_produce(3));
    check("every_compression", every_compression);
    check("transactions_over_three_topics", || transactions_over_three_topics("direct"));
    check("fenced_on_send", || fenced_on_send("send", 0, RDKafkaErrorCode::InvalidProducerEpoch));
    check("fenced_on_send_to_an_untouched_partition", || {
        // Adding the partition is refused, so the record never leaves the client's queue.
        fenced_on_send("untouched", 1, RDKafkaErrorCode::PurgeQueue)
    });
    check("fenced_on_commit", fenced_on_commit);
    check("fenced_on_send_offsets", fenced_on_send_offsets);
    check("transaction_times_out", transaction_times_out);
    check("offsets_in_a_transaction", offsets_in_a_transaction);
    check("epochs_run_out", epochs_run_out);
    stricter(
        "takeover_in_one_request",
        "it answers CONCURRENT_TRANSACTIONS until the markers are written",
        takeover_in_one_request,
    );
    behind_the_relay();
    if checks::has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The library waits up to a second after a lost connection, a lot where every fifth answer is lost.
const IMPATIENT: [(&str, &str); 4] = [
    ("reconnect.backoff.ms", "10"),
    ("reconnect.backoff.max.ms", "20"),
    ("retry.backoff.ms", "20"),
    ("retry.backoff.max.ms", "50"),
];

/// The same broker or another one, of whose answers the relay loses some.
fn behind_the_relay() {
    let Ok(relayed) = env::var("RELAYED") else {
        println!("skipped lost_answers: there is no relay");
        return;
    };
    use_broker(relayed);
    check("idempotent_produce_with_lost_answers", idempotent_produce_with_lost_answers);
    check("transactions_with_lost_answers", || transactions_over_three_topics("relayed"));
}

/// Small batches, so that many answers can get lost, each a duplicate for the broker to recognise.
fn idempotent_produce_with_lost_answers() {
    let topic = create_topic("lost-answers", 1);
    let producer = producer(&[&IMPATIENT[..], &[("batch.num.messages", "200")]].concat());
    let values: Vec<_> = (0..RECORDS).map(|i| i.to_string()).collect();
    values.iter().for_each(|value| enqueue(&producer, &topic, 0, value));
    flush(&producer);
    equal(values, read(&topic, 0, Isolation::Uncommitted), &topic);
}

fn every_compression() {
    // The crate is built without zstd and gzip needs zlib; the other suites have them.
    for kind in ["none", "snappy", "lz4"] {
        let topic = create_topic(&format!("compression-{kind}"), 1);
        let producer = producer(&[("compression.type", kind)]);
        let values: Vec<_> = (0..1000).map(|i| format!("{kind} {i}")).collect();
        values.iter().for_each(|value| enqueue(&producer, &topic, 0, value));
        flush(&producer);
        equal(values, read(&topic, 0, Isolation::Uncommitted), kind);
    }
}

fn idempotent_produce(partitions: usize) {
    let topic = create_topic(&format!("idempotent-{partitions}"), partitions as i32);
    let producer = producer(&[]);
    for i in 0..RECORDS {
        enqueue(&producer, &topic, (i % partitions) as i32, &i.to_string());
    }
    flush(&producer);
    for p in 0..partitions {
        let expected: Vec<_> = (p..RECORDS).step_by(partitions).map(|i| i.to_string()).collect();
        equal(expected, read(&topic, p as i32, Isolation::Uncommitted), &format!("{topic}-{p}"));
    }
}

fn transactions_over_three_topics(way: &str) {
    let topics = ["a", "b", "c"].map(|which| create_topic(&format!("{way}-{which}"), 3));
    let producer = initialised(&name(way), &IMPATIENT);
    let (mut all, mut committed) = (Vec::new(), Vec::new());
    for transaction in 0..12 {
        let values: Vec<_> = (0..5).map(|i| format!("{transaction}.{i}")).collect();
        producer.begin_transaction().expect("begin");
        for value in &values {
            for topic in &topics {
                (0..3).for_each(|p| enqueue(&producer, topic, p, value));
            }
        }
        // What is still in the client's buffer would be dropped by an abort and never reach the log.
        flush(&producer);
        all.extend(values.clone());
        if transaction % 3 == 1 {
            producer.abort_transaction(LIMIT).expect("abort");
        } else {
            producer.commit_transaction(LIMIT).expect("commit");
            committed.extend(values);
        }
    }
    for (topic, p) in topics.iter().flat_map(|topic| (0..3).map(move |p| (topic, p))) {
        equal(&committed, &read(topic, p, Isolation::Committed), &format!("{topic}-{p} read_committed"));
        equal(&all, &read(topic, p, Isolation::Uncommitted), &format!("{topic}-{p} read_uncommitted"));
    }
}

fn transactional(id: &str, settings: &[(&str, &str)]) -> TestProducer {
    producer(&[&[("transactional.id", id)], settings].concat())
}

fn initialised(id: &str, settings: &[(&str, &str)]) -> TestProducer {
    let producer = transactional(id, settings);
    producer.init_transactions(LIMIT).expect("init_transactions");
    producer
}

/// A begins and writes, B takes the transactional id over, A tries to go on, B commits: only B is seen.
fn fencing_walk(what: &str, zombie_step: impl FnOnce(&TestProducer, &str)) {
    let topic = create_topic(what, 2);
    let a = initialised(&topic, &[]);
    a.begin_transaction().expect("A begins");
    send(&a, &topic, "of A");
    let b = initialised(&topic, &[]);
    equal(
        2,
        end(&topic, 0, Isolation::Committed),
        "last stable offset behind A's record and its abort marker",
    );
    zombie_step(&a, &topic);
    b.begin_transaction().expect("B begins");
    send(&b, &topic, "of B");
    b.commit_transaction(LIMIT).expect("B commits");
    equal(vec!["of B".to_owned()], read(&topic, 0, Isolation::Committed), "read_committed");
    equal(
        vec!["of A".to_owned(), "of B".to_owned()],
        read(&topic, 0, Isolation::Uncommitted),
        "read_uncommitted",
    );
    equal(Vec::new(), read(&topic, 1, Isolation::Uncommitted), "what the zombie wrote elsewhere");
}

/// The library's own error for a fenced producer, and fatal.
#[track_caller]
fn assert_fenced(result: KafkaResult<()>, what: &str) {
    match result {
        Err(KafkaError::Transaction(error)) => {
            equal(RDKafkaErrorCode::Fenced, error.code(), what);
            assert!(error.is_fatal(), "{what}: {error} is not fatal");
        }
        other => panic!("{what}: expected a transaction error, saw {other:?}"),
    }
}

/// Partition 0 is in the zombie's transaction; partition 1 was never written by anyone.
fn fenced_on_send(what: &str, partition: i32, delivery: RDKafkaErrorCode) {
    fencing_walk(&format!("fenced-{what}"), |zombie, topic| {
        enqueue(zombie, topic, partition, "of the zombie");
        zombie.flush(LIMIT).expect("flush");
        equal(vec![delivery], zombie.context().take_errors(), "delivery of the zombie's record");
        assert_fenced(zombie.commit_transaction(LIMIT), "commit after the refused send");
    });
}

fn fenced_on_commit() {
    fencing_walk("fenced-commit", |zombie, _| assert_fenced(zombie.commit_transaction(LIMIT), "commit"));
}

fn fenced_on_send_offsets() {
    fencing_walk("fenced-offsets", |zombie, topic| {
        assert_fenced(send_offset(zombie, topic, topic, 1), "send_offsets_to_transaction");
    });
}

fn send_offset(producer: &TestProducer, group: &str, topic: &str, offset: i64) -> KafkaResult<()> {
    let group = consumer(Isolation::Committed, group).group_metadata().expect("a group's name");
    producer.send_offsets_to_transaction(&at(topic, 0, offset), &group, LIMIT)
}

fn transaction_times_out() {
    let topic = create_topic("timeout", 1);
    let producer = initialised(&topic, &[("transaction.timeout.ms", "1000")]);
    producer.begin_transaction().expect("begin");
    send(&producer, &topic, "too late");
    equal(0, end(&topic, 0, Isolation::Committed), "last stable offset while the transaction is open");
    await_condition(ABORT_LIMIT, || end(&topic, 0, Isolation::Committed) == 2, "abort by the broker");
    // Requests of version 1 cannot carry the new identity back, so this client is fenced for good.
    assert_fenced(producer.commit_transaction(LIMIT), "commit after the timeout");
    equal(Vec::new(), read(&topic, 0, Isolation::Committed), "read_committed");
}

fn offsets_in_a_transaction() {
    let group = create_topic("offsets", 1);
    let producer = initialised(&group, &[]);
    let reader = consumer(Isolation::Committed, &group);
    let is_at_five = || {
        let committed = reader.committed_offsets(at(&group, 0, 0), LIMIT).expect("committed offsets");
        committed == at(&group, 0, 5)
    };
    producer.begin_transaction().expect("begin");
    send_offset(&producer, &group, &group, 5).expect("send offset 5");
    producer.commit_transaction(LIMIT).expect("commit");
    eventually(is_at_five, "offset after the commit");
    producer.begin_transaction().expect("begin");
    send_offset(&producer, &group, &group, 9).expect("send offset 9");
    producer.abort_transaction(LIMIT).expect("abort");
    eventually(is_at_five, "offset after an abort");
}

/// The last epoch of a producer id: the next instance goes on under another producer id.
fn epochs_run_out() {
    let topic = create_topic("epochs", 1);
    let first = epochs::raise(&topic, epochs::LAST - 1);
    for instance in ["a", "b"] {
        let producer = initialised(&topic, &[]);
        for transaction in 0..3 {
            producer.begin_transaction().expect("begin");
            send(&producer, &topic, &format!("{instance}{transaction}"));
            let ended = if transaction == 1 {
                producer.abort_transaction(LIMIT)
            } else {
                producer.commit_transaction(LIMIT)
            };
            ended.expect("end");
        }
    }
    let expected = ["a0", "a2", "b0", "b2"].map(str::to_owned).to_vec();
    equal(expected, read(&topic, 0, Isolation::Committed), "read_committed");
    assert_ne!(epochs::raise(&topic, 0), first, "another producer id");
}

fn takeover_in_one_request() {
    let fastest = (0..3).map(takeover).min().expect("three takeovers");
    assert!(fastest < Duration::from_millis(100), "the fastest of three takeovers took {fastest:?}");
}

fn takeover(round: usize) -> Duration {
    let topic = create_topic(&format!("takeover-{round}"), 3);
    let a = initialised(&topic, &[]);
    a.begin_transaction().expect("A begins");
    (0..3).for_each(|p| enqueue(&a, &topic, p, "of A"));
    flush(&a);
    let created = Instant::now();
    let b = transactional(&topic, &[("statistics.interval.ms", "100")]);
    let start = Instant::now();
    b.init_transactions(LIMIT).expect("init_transactions");
    let (elapsed, age) = (start.elapsed(), created.elapsed());
    for p in 0..3 {
        equal(2, end(&topic, p, Isolation::Committed), "last stable offset right after the takeover");
    }
    let requests = || {
        b.poll(Duration::ZERO);
        b.context().requests("InitProducerId", age)
    };
    await_condition(LIMIT, || requests().is_some(), "statistics made after the takeover");
    equal(Some(1), requests(), "InitProducerId requests of the takeover");
    elapsed
}
