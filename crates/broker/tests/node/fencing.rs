//! Group Fencing: the older producer is shut out on every request, at every version, with the right code.

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 3);
    broker
}

#[test]
fn b15_the_older_producer_is_shut_out_on_every_request_type() {
    let mut broker = broker();
    let (a, b) = (broker.connect(), broker.connect());
    let old = broker.init(a, "tx", 60_000);
    broker.open_with(a, "tx", old, T, "zombie");
    let new = broker.init(b, "tx", 60_000);
    assert_eq!(new, bumped(old));
    assert_eq!(fate(&broker.send_in(a, "tx", T, transactional(old, 1, &["x"]))).0, 47);
    assert_eq!(broker.add(a, "tx", old, ("t", 1)), 90);
    assert_eq!(broker.add_offsets(a, 3, "tx", old, "g"), 90);
    assert_eq!(broker.txn_offset_commit(a, 3, "tx", old, "g", &[(T, 5)]).answer(), [47]);
    assert_eq!(broker.commit(a, "tx", old), 90);
    assert_eq!(broker.abort(a, "tx", old), 90);
    assert_eq!(broker.offset_fetch("g", T, true), (0, -1));
    broker.open_with(b, "tx", new, T, "successor");
    assert_eq!(broker.commit(b, "tx", new), 0);
    assert_eq!(broker.committed(T), ["successor"]);
}

#[test]
fn b17_a_producer_whose_transaction_timed_out_is_fenced() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 3000);
    broker.open_with(on, "tx", stamp, T, "late");
    broker.pass(20_000);
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 1, &["x"]))).0, 47);
    assert_eq!(broker.commit(on, "tx", stamp), 90);
    assert_eq!(broker.end_raw(on, 1, "tx", stamp, true).answer().error_code.get(), 47);
    assert!(broker.committed(T).is_empty());
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
    assert_eq!(broker.dump(T).last(), Some(&Entry::Abort(1)));
}

/// A fenced pair: the first identity of an id that was taken over.
fn fenced(broker: &mut Broker) -> (semel_types::ConnectionNumber, semel_types::ProducerStamp) {
    let on = broker.connect();
    let old = broker.init(on, "tx", 60_000);
    broker.init(on, "tx", 60_000);
    (on, old)
}

/// Two instances take turns in taking the id over, at every point of the other's transaction.
#[test]
fn b19_two_live_owners_of_one_id_never_lose_or_double_a_commit() {
    let mut broker = broker();
    let (mut acknowledged, mut fenced_values) = (Vec::new(), Vec::new());
    let mut owners = [None, None];
    for turn in 0..400_usize {
        let (owner, step) = (turn % 2, (turn / 2) % 5);
        let on = broker.connect();
        let value = format!("v{turn}");
        let stamp = match owners[owner] {
            Some(stamp) if step != 0 => stamp,
            _ => *owners[owner].insert(broker.init(on, "tx", 60_000)),
        };
        let sent = broker.produce(on, V2, Some("tx"), T, transactional(stamp, 0, &[&value])).answer();
        let ended = broker.end_raw(on, 5, "tx", stamp, true).answer();
        match (sent.error_code.get(), ended.error_code.get()) {
            (0, 0) => {
                acknowledged.push(value);
                owners[owner] = Some(pair(ended.producer_id, ended.producer_epoch));
            }
            (47, 90) => {
                fenced_values.push(value);
                owners[owner] = None;
            }
            other => panic!("turn {turn}: {other:?}"),
        }
    }
    assert!(acknowledged.len() > 100 && fenced_values.len() > 50);
    assert_eq!(broker.committed(T), acknowledged);
}

#[test]
fn b20_the_fencing_code_follows_api_and_version() {
    let mut broker = broker();
    let (on, old) = fenced(&mut broker);
    for (version, code) in [(3, 47), (4, 90), (5, 90)] {
        let answer = broker.init_raw(on, version, Some("tx"), 60_000, Some(old));
        assert_eq!(answer.error_code.get(), code, "InitProducerId {version}");
        assert_eq!((answer.producer_id.get(), answer.producer_epoch.get()), (-1, -1));
    }
    for version in 0..=5 {
        let code = if version < 2 { 47 } else { 90 };
        assert_eq!(broker.end_raw(on, version, "tx", old, false).answer().error_code.get(), code);
    }
    for version in 0..=3 {
        let code = if version < 2 { 47 } else { 90 };
        assert_eq!(broker.add_all(on, version, "tx", old, &[T]).answer(), [code]);
    }
    for version in 0..=4 {
        let code = if version < 2 { 47 } else { 90 };
        assert_eq!(broker.add_offsets(on, version, "tx", old, "g"), code);
    }
    for version in 0..=5 {
        assert_eq!(broker.txn_offset_commit(on, version, "tx", old, "g", &[(T, 1)]).answer(), [47]);
    }
    for version in 3..=13 {
        let sent = broker.produce(on, version, Some("tx"), T, transactional(old, 0, &["x"])).answer();
        assert_eq!(sent.error_code.get(), 47, "Produce {version}");
    }
    assert!(broker.dump(T).is_empty());
}

#[test]
fn b21_a_zombie_writes_nothing_to_a_partition_its_successor_never_touched() {
    for version in [CLASSIC, 11, V2] {
        let mut broker = broker();
        let (a, b) = (broker.connect(), broker.connect());
        let old = broker.init(a, "tx", 5000);
        assert_eq!(broker.add(a, "tx", old, T), 0);
        broker.init(b, "tx", 5000);
        let other = ("t", 1);
        let sent = broker.produce(a, version, Some("tx"), other, transactional(old, 0, &["z"])).answer();
        assert_eq!(sent.error_code.get(), 47);
        broker.pass(20_000);
        assert_eq!(fate(&broker.send(b, other, anonymous(&["plain"]))), (0, 0));
        assert_eq!(broker.end_offset(other, 1), broker.end_offset(other, 0));
        assert_eq!(broker.committed(other), ["plain"]);
    }
}

/// Classic: 90. Version 2: 120, so that the Java client aborts and lives (design section 4; Kafka has 90).
#[test]
fn b22_a_commit_after_the_coordinators_own_abort_is_refused() {
    for (version, code) in [(3, 90), (5, 120)] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 3000);
        broker.open_with(on, "tx", stamp, T, "late");
        broker.pass(10_000);
        let answer = broker.end_raw(on, version, "tx", stamp, true).answer();
        assert_eq!(answer.error_code.get(), code, "EndTxn {version}");
        assert_eq!(broker.init(on, "tx", 3000).id, stamp.id);
        assert!(broker.committed(T).is_empty());
    }
}

#[test]
fn b22_the_abort_that_follows_gives_the_silent_producer_its_new_identity() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 3000);
    let sent = broker.produce(on, V2, Some("tx"), T, transactional(stamp, 0, &["late"])).answer();
    assert_eq!(fate(&sent), (0, 0));
    broker.pass(10_000);
    assert_eq!(broker.end_raw(on, 5, "tx", stamp, true).answer().error_code.get(), 120);
    let next = broker.end_v2(on, "tx", stamp, false);
    assert_eq!(next, bumped(stamp));
    let sent = broker.produce(on, V2, Some("tx"), T, transactional(next, 0, &["good"])).answer();
    assert_eq!(sent.error_code.get(), 0);
    broker.end_v2(on, "tx", next, true);
    assert_eq!(broker.committed(T), ["good"]);
}

#[test]
fn b23_an_admin_fence_right_after_a_commit_always_fences() {
    let mut broker = broker();
    for round in 0..200 {
        let (producer, admin) = (broker.connect(), broker.connect());
        let id = format!("tx-{}", round % 3);
        let stamp = broker.init(producer, &id, 60_000);
        broker.open_with(producer, &id, stamp, T, "v");
        assert_eq!(broker.commit(producer, &id, stamp), 0);
        assert_eq!(broker.init_raw(admin, 4, Some(&id), 1, None).error_code.get(), 0);
        assert_eq!(broker.add(producer, &id, stamp, T), 90);
        assert_eq!(fate(&broker.send_in(producer, &id, T, transactional(stamp, 1, &["x"]))).0, 47);
    }
    assert_eq!(broker.committed(T).len(), 200);
}

#[test]
fn a_fenced_producer_is_told_who_took_its_place() {
    let mut broker = broker();
    let (a, b) = (broker.connect(), broker.connect());
    let old = broker.init(a, "tx", 60_000);
    broker.init(b, "tx", 60_000);
    let sent = broker.send_in(a, "tx", T, transactional(old, 0, &["x"]));
    let message = sent.error_message.unwrap();
    assert!(message.contains(&format!("127.0.0.1:{}", b.get())), "{message}");
}
