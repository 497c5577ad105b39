//! Group Markers and last stable offset.

use semel_broker::api::ViewCall;

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

#[test]
fn b49_no_record_of_an_open_transaction_is_shown_at_the_edge() {
    let mut broker = broker();
    let on = broker.connect();
    broker.send(on, T, anonymous(&["plain"]));
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "open");
    let from_0 = broker.fetch(T, 0, 1);
    let seen: Vec<_> = batches(&from_0).iter().flat_map(entries).collect();
    assert_eq!(seen, [Entry::Record(0, "plain".to_owned())]);
    assert_eq!((from_0.last_stable_offset.get(), from_0.high_watermark.get()), (1, 2));
    let from_1 = broker.fetch(T, 1, 1);
    assert_eq!((from_1.error_code.get(), batches(&from_1).len()), (0, 0));
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    let after = broker.fetch(T, 0, 1);
    assert_eq!((after.last_stable_offset.get(), after.high_watermark.get()), (3, 3));
    assert_eq!(broker.committed(T), ["plain"]);
}

#[test]
fn b50_the_oldest_open_transaction_holds_everybody() {
    let mut broker = broker();
    let on = broker.connect();
    let ids = ["a", "b", "c"];
    let stamps = ids.map(|id| broker.init(on, id, 60_000));
    broker.open_with(on, "a", stamps[0], T, "A");
    broker.open_with(on, "b", stamps[1], T, "B");
    broker.send(on, T, anonymous(&["plain"]));
    assert_eq!(broker.commit(on, "b", stamps[1]), 0);
    assert!(broker.committed(T).is_empty());
    assert_eq!(broker.end_offset(T, 1), 0);
    broker.open_with(on, "c", stamps[2], T, "C");
    assert_eq!(broker.abort(on, "a", stamps[0]), 0);
    assert_eq!(broker.committed(T), ["B", "plain"]);
    assert_eq!(broker.end_offset(T, 1), 4, "up to C's first offset");
    assert_eq!(broker.commit(on, "c", stamps[2]), 0);
    assert_eq!(broker.committed(T), ["B", "plain", "C"]);
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
}

#[test]
fn b51_a_transaction_takes_its_records_and_one_marker() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for (n, end) in [(0, 2), (1, 4), (2, 6)] {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        let sent = broker.send_in(on, "tx", T, transactional(stamp, n, &["v"]));
        assert_eq!(fate(&sent), (0, i64::from(n) * 2));
        assert_eq!(broker.commit(on, "tx", stamp), 0);
        assert_eq!(broker.end_offset(T, 0), end);
    }
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    broker.send_in(on, "tx", T, transactional(stamp, 3, &["v"; 5]));
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    assert_eq!(broker.end_offset(T, 0), 12);
}

#[test]
fn b52_a_partition_added_and_never_written_is_passed_over() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_all(on, 3, "tx", stamp, &[T, ("t", 1)]).answer(), [0, 0]);
    broker.send_in(on, "tx", T, transactional(stamp, 0, &["v"]));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert!([0, 1].contains(&broker.end_offset(("t", 1), 0)));
    assert_eq!(broker.end_offset(("t", 1), 0), broker.end_offset(("t", 1), 1));
    broker.send(on, ("t", 1), anonymous(&["plain"]));
    assert_eq!(broker.committed(("t", 1)), ["plain"]);
}

#[test]
fn b53_a_forgotten_transaction_ends_by_itself_also_across_a_restart() {
    let mut broker = broker();
    broker.topic("other", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 5000);
    broker.open_with(on, "tx", stamp, T, "forgotten");
    broker.open_with(on, "tx", stamp, ("other", 0), "forgotten");
    broker.pass(2000);
    broker.restart();
    broker.delete_topic("other");
    broker.topic("other", 1);
    broker.pass(5000);
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
    let on = broker.connect();
    broker.send(on, T, anonymous(&["plain"]));
    assert_eq!(broker.committed(T), ["plain"]);
    assert!(broker.dump(("other", 0)).is_empty());
}

#[test]
fn b54_a_fetch_at_a_marker_returns_it() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for n in 0..10 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &["v"]));
        assert_eq!(broker.commit(on, "tx", stamp), 0);
    }
    let at_marker = broker.fetch(T, 19, 1);
    let seen: Vec<_> = batches(&at_marker).iter().flat_map(entries).collect();
    assert_eq!(seen, [Entry::Commit(19)]);
    assert_eq!(broker.end_offset(T, 1), 20);
}

#[test]
fn b56_the_last_stable_offset_does_not_go_back_over_a_restart() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for n in 0..200 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &["v"]));
        assert_eq!(broker.end_raw(on, 3, "tx", stamp, n % 2 == 0).answer().error_code.get(), 0);
    }
    let stable = broker.end_offset(T, 1);
    broker.restart();
    assert_eq!(broker.end_offset(T, 1), stable);
    let at_end = broker.fetch(T, stable, 1);
    assert_eq!((at_end.error_code.get(), batches(&at_end).len()), (0, 0));
    assert_eq!(broker.committed(T).len(), 100);
}

#[test]
fn b57_an_open_transaction_elsewhere_stalls_nobody_and_its_end_wakes_the_poll() {
    let mut broker = broker();
    broker.topic("y", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "open");
    let poll = ViewCall::Fetch(semel_broker::Asked { version: 12, body: fetch_request(T, 0, 1, 1 << 20) });
    assert!(!broker.fetch_is_ready(&poll), "nothing to see yet");
    for place in [("t", 1), ("y", 0)] {
        broker.send(on, place, anonymous(&["plain"]));
        assert_eq!(broker.committed(place), ["plain"]);
    }
    assert!(!broker.fetch_is_ready(&poll));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert!(broker.fetch_is_ready(&poll));
    assert_eq!(broker.committed(T), ["open"]);
}

#[test]
fn a_transaction_of_offsets_alone_is_aborted_by_the_partition_that_its_group_is_described_in() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    let admin = broker.connect();
    let is_open = |broker: &Broker| broker.state().eos.transactions().open(&"tx".into()).is_some();
    assert_eq!(broker.write_marker(admin, stamp, false, 0, ("__consumer_offsets", 4)), 0, "another group's");
    assert_eq!(broker.write_marker(admin, stamp, false, 0, ("__consumer_offsets", 50)), 3, "there is none");
    assert!(is_open(&broker));
    assert_eq!(broker.write_marker(admin, stamp, false, 0, ("__consumer_offsets", 3)), 0);
    assert!(!is_open(&broker));
    assert_eq!(broker.commit(on, "tx", stamp), 90, "its producer is fenced");
}
