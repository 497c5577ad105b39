//! Fetches that wait: woken by what is published, answered empty when the time is up.

use std::time::{Duration, Instant};

use semel_certify::session::{Isolation, Write, produce_request};
use semel_wire::api::fetch::FetchRequest;

use crate::rig::{FETCH, Rig, batch, fetch, produce, record_bytes, t, version_2, write};

/// Longer than a test ever waits for something that comes.
const LONG_MS: i32 = 60_000;

#[test]
fn a_poll_is_woken_by_a_publish() {
    let rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    let (mut reader, mut writer) = (rig.client(), rig.client());
    for offset in 0..10 {
        reader.send(&fetch(offset, (1, LONG_MS), Isolation::Uncommitted), FETCH).expect("it listens");
        writer.call(&produce(b"x"), 9).expect("answered");
        let fetched = reader.receive::<FetchRequest>(FETCH).expect("woken");
        assert_eq!(record_bytes(&fetched), batch(b"x").bytes().len());
    }
}

#[test]
fn a_poll_ends_empty_when_its_time_is_up_and_not_before() {
    let rig = Rig::with_topic(&[]);
    let mut reader = rig.client();
    let asked = Instant::now();
    let fetched = reader.call(&fetch(0, (1, 300), Isolation::Uncommitted), FETCH).expect("answered");
    assert!(asked.elapsed() >= Duration::from_millis(300), "after {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(5), "after {:?}", asked.elapsed());
    assert_eq!((record_bytes(&fetched), fetched.responses[0].partitions[0].error_code.get()), (0, 0));
}

#[test]
fn a_poll_without_patience_or_without_a_minimum_is_answered_at_once() {
    let rig = Rig::with_topic(&[]);
    let mut reader = rig.client();
    for (min_bytes, max_wait_ms) in [(1, 0), (0, LONG_MS)] {
        let request = fetch(0, (min_bytes, max_wait_ms), Isolation::Uncommitted);
        assert_eq!(record_bytes(&reader.call(&request, FETCH).expect("answered")), 0);
    }
}

#[test]
fn a_poll_waits_for_min_bytes() {
    let rig = Rig::with_topic(&[]);
    let (mut reader, mut writer) = (rig.client(), rig.client());
    let one = batch(b"x").bytes().len();
    let min_bytes = i32::try_from(one * 3).expect("small");
    reader.send(&fetch(0, (min_bytes, LONG_MS), Isolation::Uncommitted), FETCH).expect("it listens");
    for _ in 0..3 {
        writer.call(&produce(b"x"), 9).expect("answered");
    }
    let fetched = reader.receive::<FetchRequest>(FETCH).expect("woken");
    assert_eq!(record_bytes(&fetched), one * 3, "not before the third");
}

#[test]
fn what_came_before_the_time_was_up_is_given_even_if_it_is_less_than_asked() {
    let rig = Rig::with_topic(&[]);
    let (mut reader, mut writer) = (rig.client(), rig.client());
    reader.send(&fetch(0, (1 << 20, 300), Isolation::Uncommitted), FETCH).expect("it listens");
    writer.call(&produce(b"x"), 9).expect("answered");
    let fetched = reader.receive::<FetchRequest>(FETCH).expect("answered");
    assert_eq!(record_bytes(&fetched), batch(b"x").bytes().len());
}

#[test]
fn an_answer_has_whole_batches_up_to_max_bytes_and_at_least_one() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let value = vec![7; 1000];
    let one = batch(&value).bytes().len();
    for _ in 0..10 {
        client.call(&produce(&value), 9).expect("answered");
    }
    let mut bytes_for = |max_bytes: usize, partition_max_bytes: usize| {
        let mut request = fetch(0, (1, 0), Isolation::Uncommitted);
        request.max_bytes = i32::try_from(max_bytes).expect("small");
        request.topics[0].partitions[0].partition_max_bytes =
            i32::try_from(partition_max_bytes).expect("small");
        record_bytes(&client.call(&request, FETCH).expect("answered"))
    };
    assert_eq!(bytes_for(1 << 20, 1 << 20), one * 10);
    assert_eq!(bytes_for(one * 3, 1 << 20), one * 3);
    assert_eq!(bytes_for(1 << 20, one * 2), one * 2);
    assert_eq!(bytes_for(1, 1), one, "a reader is never stuck");
}

#[test]
fn a_read_committed_poll_is_woken_by_the_commit_and_not_by_the_records() {
    let rig = Rig::with_topic(&[]);
    let mut producer = version_2(&rig);
    let mut reader = rig.client();
    let identity = producer.init(Some("tx")).expect("it serves");
    reader.send(&fetch(0, (1, LONG_MS), Isolation::Committed), FETCH).expect("it listens");
    let values: [&[u8]; 1] = [b"x"];
    let one = Write { identity: Some(identity), sequence: 0, values: &values, transactional_id: Some("tx") };
    assert_eq!(write(&mut producer, one), (0, 0));
    // Read by another connection, so the write was published; the poll must sleep on.
    let mut other = rig.client();
    let seen = other.call(&fetch(0, (1, LONG_MS), Isolation::Uncommitted), FETCH).expect("answered");
    assert!(record_bytes(&seen) > 0);
    assert!(!is_readable(&reader), "woken by records of an open transaction");
    assert_eq!(producer.end("tx", identity, true).expect("answered").code.get(), 0);
    let fetched = reader.receive::<FetchRequest>(FETCH).expect("woken");
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!((partition.last_stable_offset.get(), partition.high_watermark.get()), (2, 2));
    assert!(record_bytes(&fetched) >= one.batch().bytes().len());
}

#[test]
fn a_read_committed_poll_is_woken_by_an_abort_and_told_what_to_skip() {
    let rig = Rig::with_topic(&[]);
    let mut producer = version_2(&rig);
    let mut reader = rig.client();
    let identity = producer.init(Some("tx")).expect("it serves");
    let values: [&[u8]; 1] = [b"x"];
    let one = Write { identity: Some(identity), sequence: 0, values: &values, transactional_id: Some("tx") };
    assert_eq!(write(&mut producer, one), (0, 0));
    reader.send(&fetch(0, (1, LONG_MS), Isolation::Committed), FETCH).expect("it listens");
    assert_eq!(producer.end("tx", identity, false).expect("answered").code.get(), 0);
    let fetched = reader.receive::<FetchRequest>(FETCH).expect("woken");
    let aborted =
        fetched.responses[0].partitions[0].aborted_transactions.as_ref().expect("level 1 has a list");
    assert_eq!(aborted.len(), 1);
    assert_eq!((aborted[0].producer_id.get(), aborted[0].first_offset.get()), (identity.id.get(), 0));
}

#[test]
fn a_poll_of_a_topic_that_is_deleted_ends_with_an_error() {
    let rig = Rig::with_topic(&[]);
    let mut reader = rig.client();
    reader.send(&fetch(0, (1, LONG_MS), Isolation::Uncommitted), FETCH).expect("it listens");
    rig.session().delete_topic("t").expect("it serves");
    let fetched = reader.receive::<FetchRequest>(FETCH).expect("woken");
    assert_eq!(fetched.responses[0].partitions[0].error_code.get(), 3);
}

#[test]
fn a_hundred_polls_are_all_woken_by_one_publish() {
    let rig = Rig::with_topic(&[]);
    let mut readers: Vec<_> = (0..100).map(|_| rig.client()).collect();
    for reader in &mut readers {
        reader.send(&fetch(0, (1, LONG_MS), Isolation::Uncommitted), FETCH).expect("it listens");
    }
    rig.client().call(&produce_request(&[(&t(), batch(b"x"))], None), 9).expect("answered");
    for reader in &mut readers {
        assert!(record_bytes(&reader.receive::<FetchRequest>(FETCH).expect("woken")) > 0);
    }
}

/// Is there an answer already?
fn is_readable(client: &semel_certify::Client) -> bool {
    client.has_answer().expect("a socket")
}
