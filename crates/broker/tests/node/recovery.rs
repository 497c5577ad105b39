//! Group Recovery, as far as a replay of the log shows it: what was proposed is there after a restart.

use semel_broker::room::Room;

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

#[test]
fn b79_an_open_transaction_survives_a_restart_and_goes_on() {
    for commit in [true, false] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 60_000);
        let places = [("t", 0), ("t", 1)];
        assert_eq!(broker.add_all(on, 3, "tx", stamp, &places).answer(), [0, 0]);
        for n in 0..5 {
            for place in places {
                broker.send_in(on, "tx", place, transactional(stamp, n, &[&format!("v{n}")]));
            }
        }
        broker.restart();
        let on = broker.connect();
        for place in places {
            assert_eq!(fate(&broker.send_in(on, "tx", place, transactional(stamp, 4, &["v4"]))), (0, 4));
            assert_eq!(fate(&broker.send_in(on, "tx", place, transactional(stamp, 5, &["v5"]))), (0, 5));
        }
        assert_eq!(broker.end_raw(on, 3, "tx", stamp, commit).answer().error_code.get(), 0);
        for place in places {
            assert_eq!(broker.committed(place).len(), if commit { 6 } else { 0 });
        }
    }
}

#[test]
fn b83_a_producer_known_only_through_a_marker_stays_fenced_past_the_expiry() {
    let mut broker = Broker::with(&[("producer.id.expiration.ms", "15000")]);
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 3000);
    broker.open_with(on, "tx", stamp, T, "old");
    broker.pass(4000);
    for ms in [0, 1000, 10_000, 60_000] {
        broker.pass(ms);
        let on = broker.connect();
        assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 1, &["x"]))).0, 47);
        broker.restart();
    }
}

#[test]
fn b84_a_full_disk_gives_retriable_codes_and_leaves_nothing_half_done() {
    let mut broker = broker();
    let on = broker.connect();
    let before = broker.init(on, "tx", 60_000);
    broker.disk.say(Room::Full);
    for _ in 0..50 {
        assert_eq!(broker.init_raw(on, 4, Some("tx"), 60_000, None).error_code.get(), 15);
        assert_eq!(broker.add(on, "tx", before, T), 15);
        assert_eq!(broker.add_offsets(on, 3, "tx", before, "g"), 15);
        assert_eq!(broker.offset_commit(on, "g", T, 1), 15);
    }
    broker.disk.say(Room::Enough);
    let after = broker.init(on, "tx", 60_000);
    assert_eq!(after, bumped(before), "nothing was bumped meanwhile");
    broker.open_with(on, "tx", after, T, "v");
    assert_eq!(broker.commit(on, "tx", after), 0);
    assert_eq!(broker.committed(T), ["v"]);
}

#[test]
fn an_unclean_start_in_interval_aborts_what_was_open_and_keeps_identities() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let plain_stamp = broker.init_idempotent(on);
    broker.open_with(on, "tx", stamp, T, "may be incomplete");
    broker.send(on, ("t", 1), plain(plain_stamp, 0, &["a"]));
    broker.restart_after(true);
    let on = broker.connect();
    assert!(broker.committed(T).is_empty());
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
    assert_eq!(broker.end_raw(on, 5, "tx", stamp, true).answer().error_code.get(), 120);
    assert_eq!(broker.end_v2(on, "tx", stamp, false), bumped(stamp), "its pair is remembered");
    let gap = broker.send(on, ("t", 1), plain(plain_stamp, 3, &["d"]));
    assert_eq!((gap.error_code.get(), gap.log_start_offset.get()), (59, 0), "what was between may be lost");
    broker.pass(1);
    assert_eq!(fate(&broker.send(on, ("t", 1), plain(plain_stamp, 1, &["b"]))), (0, 1));
    assert_eq!(
        fate(&broker.send(on, ("t", 1), plain(plain_stamp, 3, &["d"]))).0,
        45,
        "until it was accepted once"
    );
}

#[test]
fn a_proposal_says_when_durability_interval_must_sync_all_the_same() {
    let mut broker = broker();
    let on = broker.connect();
    broker.synced();
    let stamp = broker.init(on, "tx", 5000);
    assert!(broker.synced(), "an identity");
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    assert!(broker.synced(), "a start");
    assert_eq!(broker.add(on, "tx", stamp, ("t", 1)), 0);
    assert!(!broker.synced(), "growth is no start");
    broker.send_in(on, "tx", T, transactional(stamp, 0, &["v"]));
    assert!(!broker.synced(), "records");
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert!(broker.synced(), "an end");
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    assert!(broker.synced(), "a start");
    broker.pass(6000);
    assert!(broker.synced(), "a timeout");
    assert_eq!(broker.offset_commit(on, "g", T, 1), 0);
    assert!(!broker.synced(), "plain offsets");
}
