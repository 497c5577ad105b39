//! Time: deadlines of transactions and the expiry of ids, through the real clock, kills and restarts.

use std::{
    thread,
    time::{Duration, Instant},
};

use semel_certify::{
    Session,
    session::{Identity, Isolation, Write},
};
use semel_types::PartitionIndex;
use semel_wire::api::{
    describe_producers::{DescribeProducersRequest, DescribeProducersTopic, ProducerDescription},
    describe_transactions::DescribeTransactionsRequest,
};

use crate::rig::*;

/// How late an abort may be (Kafka looks for silent producers every ten seconds).
const LATE_MAX: Duration = Duration::from_millis(100);
/// Rounds of a measurement, whose median counts: on a busy machine any single one may be late.
const ROUNDS: usize = 5;

/// An open transaction.
struct Open {
    identity: Identity,
    /// Its first partition was added between these two moments.
    asked: Instant,
    added: Instant,
}

/// Opens a transaction of one record.
fn open(session: &mut Session, id: &str, timeout: Duration) -> Open {
    let timeout_ms = i32::try_from(timeout.as_millis()).expect("a short time");
    let (code, identity) = session.try_init(Some(id), timeout_ms, None).expect("it serves");
    let identity = identity.unwrap_or_else(|| panic!("{id}: {code}"));
    let asked = Instant::now();
    let codes = session.add(id, identity, &[t()]).expect("it serves");
    assert!(codes.iter().all(|code| !code.is_error()), "{codes:?}");
    let added = Instant::now();
    let write =
        Write { identity: Some(identity), sequence: 0, values: &[b"open"], transactional_id: Some(id) };
    assert_eq!(super::rig::write(session, write).0, 0);
    Open { identity, asked, added }
}

/// The state's name; the code where there is none.
fn state(session: &mut Session, id: &str) -> String {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
    let response = session.client.call(&request, 0).expect("it serves");
    let described = &response.transaction_states[0];
    match described.error_code.get() {
        0 => described.transaction_state.to_string(),
        code => code.to_string(),
    }
}

fn producers(session: &mut Session) -> Vec<ProducerDescription> {
    let topic = DescribeProducersTopic { name: "t".into(), partition_indexes: vec![PartitionIndex::new(0)] };
    let response =
        session.client.call(&DescribeProducersRequest { topics: vec![topic] }, 0).expect("it serves");
    response.topics[0].partitions[0].active_producers.clone()
}

/// Waits for what the broker does in its own time.
#[track_caller]
fn eventually(mut holds: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a reader at `offset` that may not pass an undecided record gets something.
fn await_decision(session: &mut Session, offset: i64) {
    let request = fetch(offset, (1, 20_000), Isolation::Committed);
    let response = session.client.call(&request, FETCH).expect("it serves");
    assert!(record_bytes(&response) > 0, "nothing was decided in 20 s");
}

#[test]
fn a_silent_transaction_is_fenced_and_aborted_within_100_ms_of_its_deadline() {
    let rig = Rig::with_topic(&[]);
    let mut session = rig.session();
    let timeout = Duration::from_millis(300);
    let mut late: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let Open { identity, asked, added } = open(&mut session, "tx", timeout);
            await_decision(&mut session, i64::try_from(round).expect("few") * 2);
            // The broker's clock has whole milliseconds.
            assert!(asked.elapsed() + Duration::from_millis(2) >= timeout, "aborted before its time");
            let late = added.elapsed().saturating_sub(timeout);
            assert_eq!(state(&mut session, "tx"), "CompleteAbort");
            let write = Write {
                identity: Some(identity),
                sequence: 1,
                values: &[b"x"],
                transactional_id: Some("tx"),
            };
            assert_eq!(super::rig::write(&mut session, write).0, 47, "the silent producer is fenced");
            late
        })
        .collect();
    late.sort_unstable();
    println!("aborted after the deadline by {late:?}");
    assert!(late[ROUNDS / 2] <= LATE_MAX, "{late:?}");
    assert!(values(&mut session, Isolation::Committed).is_empty());
}

#[test]
fn a_transaction_whose_deadline_passed_while_the_server_was_down_is_aborted_at_start() {
    let mut rig = Rig::start(&[]);
    let mut session = rig.session();
    session.create_topic("t", 1).expect("it serves");
    let timeout = Duration::from_millis(500);
    let Open { identity, added, .. } = open(&mut session, "short", timeout);
    let Open { identity: long, .. } = open(&mut session, "long", Duration::from_secs(60));
    rig.server.kill().expect("it runs");
    thread::sleep(timeout.saturating_sub(added.elapsed()) + Duration::from_millis(50));
    rig.server.restart().expect("it starts again");
    let ready = Instant::now();
    let mut session = rig.session();
    await_decision(&mut session, 0);
    let late = ready.elapsed();
    println!("aborted {late:?} after the server was ready again");
    assert!(late <= 5 * LATE_MAX, "{late:?}");
    assert_eq!(state(&mut session, "short"), "CompleteAbort");
    let zombie =
        Write { identity: Some(identity), sequence: 1, values: &[b"x"], transactional_id: Some("short") };
    assert_eq!(write(&mut session, zombie).0, 47);
    assert_eq!(state(&mut session, "long"), "Ongoing", "its time has not come");
    assert_eq!(session.end("long", long, true).expect("it serves").code.get(), 0);
    assert_eq!(values(&mut session, Isolation::Committed), ["open"]);
}

#[test]
fn a_transactional_id_expires_also_while_the_server_is_down_and_never_with_a_transaction_open() {
    let mut rig = Rig::start(&["--set", "transactional.id.expiration.ms=700"]);
    let mut session = rig.session();
    session.create_topic("t", 1).expect("it serves");
    let Open { identity: open_identity, .. } = open(&mut session, "open", Duration::from_secs(60));
    let idle = session.init(Some("idle")).expect("it serves");
    eventually(|| state(&mut session, "idle") == "105", "an idle id expires");
    let refused = session.end("idle", idle, false).expect("it serves").code;
    assert_eq!(refused.get(), 49, "until it is initialized again");
    session.init(Some("down")).expect("it serves");
    rig.server.kill().expect("it runs");
    thread::sleep(Duration::from_millis(750));
    rig.server.restart().expect("it starts again");
    let mut session = rig.session();
    eventually(|| state(&mut session, "down") == "105", "it expired while the server was down");
    assert_eq!(state(&mut session, "open"), "Ongoing", "far beyond its expiry");
    assert_eq!(session.end("open", open_identity, true).expect("it serves").code.get(), 0);
    assert_eq!(values(&mut session, Isolation::Committed), ["open"]);
}

#[test]
fn a_producer_expires_by_the_brokers_clock_and_never_with_a_transaction_open() {
    let mut rig = Rig::start(&["--set", "producer.id.expiration.ms=500"]);
    let mut session = rig.session();
    session.create_topic("t", 1).expect("it serves");
    let Open { identity: owner, .. } = open(&mut session, "tx", Duration::from_secs(60));
    let idle = session.init(None).expect("it serves");
    let plain = Write { identity: Some(idle), sequence: 0, values: &[b"plain"], transactional_id: None };
    assert_eq!(write(&mut session, plain), (0, 1));
    rig.server.kill().expect("it runs");
    thread::sleep(Duration::from_millis(550));
    rig.server.restart().expect("it starts again");
    let mut session = rig.session();
    eventually(|| producers(&mut session).len() == 1, "the idle producer is no longer active");
    let kept = producers(&mut session).remove(0);
    assert_eq!(kept.producer_id, owner.id.into(), "the one with a transaction is");
    assert_eq!(kept.current_txn_start_offset.get(), 0);
    assert_eq!(write(&mut session, plain).0, 46, "expiry forgets no acknowledged record");
    let next = Write { sequence: 1, ..plain };
    assert_eq!(write(&mut session, next), (0, 2));
    assert_eq!(session.end("tx", owner, true).expect("it serves").code.get(), 0);
}
