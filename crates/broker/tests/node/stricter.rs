//! Where Kafka 4.4 breaks its own promise and Semel must not: S1 to S17, S19 to S21 as far as one node and no process
//! kill show them.

use semel_types::ProducerEpoch;

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 3);
    broker
}

#[test]
fn s1_the_same_numbers_with_another_payload_are_no_success() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["A"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["B"]))), (46, -1));
    assert_eq!(broker.values(T), ["A"]);
    assert!(broker.notes.iter().any(|note| note.contains("reused")), "{:?}", broker.notes);
}

#[test]
fn s2_a_stray_of_an_aborted_transaction_is_not_acknowledged_into_the_next() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "A");
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 0, &["B"]))), (45, -1));
    assert_eq!(
        fate(&broker.send_in(on, "tx", T, transactional(stamp, 0, &["A"]))),
        (45, -1),
        "a true stray too"
    );
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert!(broker.committed(T).is_empty());
}

#[test]
fn s3_a_zombies_recovery_request_touches_nothing() {
    let mut broker = broker();
    let on = broker.connect();
    let zombie = broker.init(on, "tx", 60_000);
    broker.init(on, "tx", 60_000);
    let live = broker.init(on, "tx", 60_000);
    assert_eq!(live.epoch.get(), 2);
    broker.open_with(on, "tx", live, T, "live");
    let late = broker.connect();
    let answer = broker.init_raw(late, 4, Some("tx"), 1, Some(zombie));
    assert_eq!(answer.error_code.get(), 90);
    broker.pass(10_000);
    assert_eq!(broker.commit(late, "tx", live), 0, "its timeout was not changed either");
    assert_eq!(broker.committed(T), ["live"]);
}

#[test]
fn s4_a_late_copy_of_the_owners_own_recovery_does_not_fence_it() {
    let mut broker = broker();
    let on = broker.connect();
    let first = broker.init(on, "tx", 60_000);
    let second = bumped(first);
    assert_eq!(broker.init_raw(on, 4, Some("tx"), 60_000, Some(first)).producer_epoch, second.epoch.into());
    assert_eq!(broker.init_raw(on, 4, Some("tx"), 60_000, Some(first)).producer_epoch, second.epoch.into());
    broker.open_with(on, "tx", second, T, "kept");
    assert_eq!(broker.init_raw(on, 4, Some("tx"), 60_000, Some(first)).error_code.get(), 90);
    assert_eq!(broker.commit(on, "tx", second), 0);
    assert_eq!(broker.committed(T), ["kept"]);
}

#[test]
fn s5_nobody_raises_the_epoch_of_an_owned_id() {
    let mut broker = broker();
    let (owner, other) = (broker.connect(), broker.connect());
    let stamp = broker.init(owner, "tx", 60_000);
    let forged = semel_types::ProducerStamp { epoch: ProducerEpoch::new(99), ..stamp };
    broker.init(other, "other", 60_000);
    assert_eq!(fate(&broker.send(other, T, plain(forged, 0, &["x"]))).0, 48);
    assert_eq!(fate(&broker.send_in(other, "other", T, transactional(forged, 0, &["x"]))).0, 49);
    assert_eq!(fate(&broker.send_in(other, "tx", T, transactional(forged, 0, &["x"]))).0, 47);
    let on = broker.connect();
    broker.open_with(on, "tx", stamp, T, "unharmed");
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.values(T), ["unharmed"]);
}

#[test]
fn s6_a_late_copy_of_end_txn_on_a_left_connection_is_not_executed() {
    let mut broker = broker();
    let (old, new) = (broker.connect(), broker.connect());
    let stamp = broker.init(old, "tx", 60_000);
    broker.open_with(new, "tx", stamp, T, "1");
    assert_eq!(broker.commit(new, "tx", stamp), 0);
    assert_eq!(broker.add(new, "tx", stamp, T), 0);
    assert_eq!(fate(&broker.send_in(new, "tx", T, transactional(stamp, 1, &["2"]))).0, 0);
    assert!(broker.end_raw(old, 3, "tx", stamp, true).is_closed());
    assert_eq!(fate(&broker.send_in(new, "tx", T, transactional(stamp, 2, &["3"]))).0, 0);
    assert_eq!(broker.abort(new, "tx", stamp), 0);
    assert_eq!(broker.committed(T), ["1"]);
}

#[test]
fn s7_late_offsets_of_an_ended_transaction_do_not_land_in_the_next() {
    let mut broker = broker();
    let (old, new) = (broker.connect(), broker.connect());
    let stamp = broker.init(old, "tx", 60_000);
    assert_eq!(broker.add_offsets(new, 3, "tx", stamp, "g"), 0);
    assert_eq!(broker.txn_offset_commit(new, 3, "tx", stamp, "g", &[(T, 30)]).answer(), [0]);
    assert_eq!(broker.abort(new, "tx", stamp), 0);
    assert_eq!(broker.add_offsets(new, 3, "tx", stamp, "g"), 0);
    assert!(broker.txn_offset_commit(old, 3, "tx", stamp, "g", &[(T, 100)]).is_closed());
    assert_eq!(broker.txn_offset_commit(new, 3, "tx", stamp, "g", &[(T, 50)]).answer(), [0]);
    assert_eq!(broker.commit(new, "tx", stamp), 0);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 50));
}

#[test]
fn s8_an_admin_abort_ends_the_whole_transaction_and_fences() {
    let mut broker = broker();
    let (on, admin) = (broker.connect(), broker.connect());
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "1");
    broker.open_with(on, "tx", stamp, ("t", 1), "1");
    assert_eq!(broker.write_marker(admin, stamp, true, 0, T), 48, "only the producer commits");
    assert_eq!(broker.write_marker(admin, stamp, false, 0, T), 0);
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 1, &["2"]))).0, 47);
    assert_eq!(broker.commit(on, "tx", stamp), 90);
    for place in [T, ("t", 1)] {
        assert!(broker.committed(place).is_empty());
        assert_eq!(broker.end_offset(place, 1), broker.end_offset(place, 0));
    }
    assert_eq!(broker.write_marker(admin, stamp, false, 0, T), 47, "the identity is not current any more");
    assert_eq!(broker.write_marker(admin, bumped(stamp), false, 0, T), 0, "nothing is open");
}

#[test]
fn s9_an_admins_coordinator_epoch_is_never_stored() {
    let mut broker = broker();
    let (on, admin) = (broker.connect(), broker.connect());
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "1");
    assert_eq!(broker.write_marker(admin, stamp, false, 1000, T), 0);
    let next = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", next, T, "2");
    assert_eq!(broker.commit(on, "tx", next), 0);
    assert_eq!(broker.committed(T), ["2"]);
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
}

#[test]
fn s10_the_second_batch_of_a_new_producer_waits_for_the_first() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 1, &["b"]))), (45, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["a"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 1, &["b"]))), (0, 1));
    assert_eq!(broker.values(T), ["a", "b"]);
}

#[test]
fn s11_a_retry_older_than_the_window_is_46() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    for n in 0..7 {
        broker.send(on, T, plain(stamp, n, &["v"]));
    }
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["v"]))), (46, -1));
    assert_eq!(broker.values(T).len(), 7);
}

#[test]
fn s12_all_five_batches_are_known_after_a_restart() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let batches: Vec<_> = (0..5).map(|n| plain(stamp, n, &[&format!("v{n}")])).collect();
    for batch in &batches {
        broker.send(on, T, batch.clone());
    }
    broker.restart();
    let on = broker.connect();
    for (batch, offset) in batches.into_iter().zip(0..) {
        assert_eq!(fate(&broker.send(on, T, batch)), (0, offset));
    }
    assert_eq!(broker.values(T).len(), 5);
}

#[test]
fn s13_a_takeover_is_answered_once_with_the_transaction_gone() {
    let mut broker = broker();
    let (a, b) = (broker.connect(), broker.connect());
    let old = broker.init(a, "tx", 60_000);
    broker.open_with(a, "tx", old, T, "gone");
    assert_eq!(broker.init_raw(b, 4, Some("tx"), 60_000, None).error_code.get(), 0);
    assert_eq!(broker.dump(T).last(), Some(&Entry::Abort(1)));
    assert_eq!(broker.end_offset(T, 1), 2);
}

#[test]
fn s14_a_committed_transaction_is_seen_on_all_its_partitions_at_once() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for index in 0..3 {
        broker.open_with(on, "tx", stamp, ("t", index), "v");
    }
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    for index in 0..3 {
        assert_eq!(broker.committed(("t", index)), ["v"]);
        assert_eq!(broker.end_offset(("t", index), 1), 2);
    }
}

#[test]
fn s15_a_live_producer_over_a_wiped_directory_is_told_59() {
    let mut before = broker();
    let on = before.connect();
    let old = before.init_idempotent(on);
    assert_eq!(fate(&before.send(on, T, plain(old, 0, &["a"]))), (0, 0));
    let mut after = Broker::seeded(&[], 99);
    after.topic("t", 1);
    let on = after.connect();
    let new = after.init_idempotent(on);
    assert_ne!(new.id, old.id);
    let late = after.send(on, T, plain(old, 1, &["b"]));
    assert_eq!((late.error_code.get(), late.log_start_offset.get()), (59, 0));
    assert_eq!(fate(&after.send(on, T, plain(new, 0, &["new"]))), (0, 0));
    assert_eq!(after.values(T), ["new"]);
}

#[test]
fn s16_an_idle_producer_is_shrunk_and_not_forgotten() {
    let mut broker = Broker::with(&[("producer.id.expiration.ms", "10000")]);
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let last = plain(stamp, 4, &["last"]);
    broker.send(on, T, plain(stamp, 0, &["v"; 4]));
    broker.send(on, T, last.clone());
    broker.pass(60_000);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 5, &["next"]))), (0, 5));
    assert_eq!(fate(&broker.send(on, T, last)), (46, -1), "a duplicate, though its offset is forgotten");
    assert_eq!(broker.values(T).len(), 6);
    broker.restart();
}

#[test]
fn s17_a_topic_made_anew_tells_a_live_producer_59() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    broker.send(on, T, plain(stamp, 0, &["a"]));
    broker.delete_topic("t");
    broker.topic("t", 1);
    let late = broker.send(on, T, plain(stamp, 1, &["b"]));
    assert_eq!((late.error_code.get(), late.log_start_offset.get()), (59, 0));
    assert_eq!(
        fate(&broker.send(on, T, plain(bumped(stamp), 0, &["b"]))),
        (0, 0),
        "under a new epoch it goes on"
    );
}

#[test]
fn s19_an_old_owners_end_is_not_answered_with_its_successors_identity() {
    for commit in [false, true] {
        let mut broker = broker();
        let (a, b) = (broker.connect(), broker.connect());
        let first = broker.init(a, "tx", 60_000);
        let second = broker.init(b, "tx", 60_000);
        broker.open_with(b, "tx", second, T, "B");
        assert_eq!(broker.end_raw(b, 3, "tx", second, commit).answer().error_code.get(), 0);
        let answer = broker.end_raw(a, 5, "tx", first, commit).answer();
        assert_eq!((answer.error_code.get(), answer.producer_epoch.get()), (90, -1));
        assert_eq!(broker.add(b, "tx", second, T), 0, "B is unharmed");
    }
}

#[test]
fn s20_a_retry_is_known_although_the_topic_would_not_take_it_any_more() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let big = plain(stamp, 0, &["x".repeat(500).as_str(), "y".repeat(500).as_str()]);
    assert_eq!(fate(&broker.send(on, T, big.clone())), (0, 0));
    broker.restart_with(&[("message.max.bytes", "700")]);
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, big)), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["x".repeat(500).as_str()]))), (46, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 1, &["y".repeat(500).as_str()]))), (46, -1));
    let too_big = plain(stamp, 2, &["z".repeat(900).as_str()]);
    assert_eq!(fate(&broker.send(on, T, too_big)), (10, -1), "a new one of the size is refused");
    assert_eq!(broker.values(T).len(), 2);
}

#[test]
fn s21_a_late_copy_of_init_producer_id_is_not_executed() {
    let mut broker = broker();
    let (old, new) = (broker.connect(), broker.connect());
    let stamp = broker.init(new, "tx", 60_000);
    assert!(broker.try_init(old, 4, Some("tx"), 60_000, None).is_closed());
    broker.open_with(new, "tx", stamp, T, "v");
    assert_eq!(broker.commit(new, "tx", stamp), 0);
}
