//! Group InitProducerId: identities, timeouts, takeover in one step.

use std::collections::BTreeSet;

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 3);
    broker
}

#[test]
fn b26_a_timeout_out_of_range_is_50_and_leaves_no_trace() {
    let mut broker = Broker::with(&[("transaction.max.timeout.ms", "10000")]);
    let on = broker.connect();
    for (timeout_ms, code) in [(10_001, 50), (0, 50), (-1, 50)] {
        assert_eq!(broker.init_raw(on, 4, Some("tx"), timeout_ms, None).error_code.get(), code);
        assert!(broker.state().eos.transactions().is_empty(), "{timeout_ms}");
    }
    assert_eq!(broker.init_raw(on, 4, Some("tx"), 10_000, None).error_code.get(), 0);
}

#[test]
fn b27_null_and_empty_transactional_ids_are_different_things() {
    let mut broker = broker();
    let mut ids = BTreeSet::new();
    for _ in 0..10 {
        let on = broker.connect();
        let stamp = broker.init_idempotent(on);
        assert_eq!(stamp.epoch.get(), 0);
        ids.insert(stamp.id);
    }
    assert_eq!(ids.len(), 10);
    let on = broker.connect();
    assert_eq!(broker.init_raw(on, 4, Some(""), 60_000, None).error_code.get(), 42);
    let stamp = broker.init(on, "x", 60_000);
    assert_eq!(broker.commit(on, "", stamp), 42);
    assert_eq!(broker.add(on, "", stamp, T), 42);
    assert_eq!(broker.add_offsets(on, 3, "", stamp, "g"), 42);
}

#[test]
fn a_null_id_gets_a_fresh_producer_id_whatever_pair_was_sent() {
    let mut broker = broker();
    let on = broker.connect();
    let first = broker.init_idempotent(on);
    let again = broker.init_raw(on, 4, None, 60_000, Some(first));
    assert_eq!(again.error_code.get(), 0);
    assert_ne!(again.producer_id, first.id.into());
}

#[test]
fn b28_producer_ids_are_never_handed_out_twice() {
    let mut broker = broker();
    let mut ids = BTreeSet::new();
    let mut early = None;
    for round in 0..3 {
        for n in 0..600 {
            let on = broker.connect();
            let stamp = if n % 6 == 0 {
                broker.init(on, &format!("tx-{round}-{n}"), 60_000)
            } else {
                broker.init_idempotent(on)
            };
            assert!(ids.insert(stamp.id), "{} came twice", stamp.id);
            if n == 1 {
                early = early.or(Some(stamp));
            }
        }
        broker.restart();
    }
    let on = broker.connect();
    let (early, newest) = (early.unwrap(), broker.init_idempotent(on));
    assert_eq!(fate(&broker.send(on, T, plain(early, 0, &["early"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(newest, 0, &["newest"]))), (0, 1));
}

#[test]
fn b29_a_restarted_application_does_not_wait_for_the_old_timeout() {
    let mut broker = broker();
    let (a, b) = (broker.connect(), broker.connect());
    let old = broker.init(a, "tx", 60_000);
    broker.open_with(a, "tx", old, T, "lost");
    let before_ms = broker.now_ms();
    let new = broker.init(b, "tx", 60_000);
    assert_eq!((new, broker.now_ms()), (bumped(old), before_ms), "one request, no time");
    assert!(broker.committed(T).is_empty());
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
}

#[test]
fn b30_init_after_a_decided_commit_never_turns_it_into_an_abort() {
    let mut broker = Broker::new();
    broker.topic("wide", 50);
    for round in 0..20 {
        let (a, b) = (broker.connect(), broker.connect());
        let stamp = broker.init(a, "tx", 60_000);
        let places: Vec<_> = (0..50).map(|index| ("wide", index)).collect();
        assert!(broker.add_all(a, 3, "tx", stamp, &places).answer().iter().all(|code| *code == 0));
        let value = format!("r{round}");
        for place in &places {
            let sent = broker.send_in(a, "tx", *place, transactional(stamp, 0, &[&value]));
            assert_eq!(sent.error_code.get(), 0);
        }
        assert_eq!(broker.commit(a, "tx", stamp), 0);
        if round % 5 == 0 {
            broker.restart();
        }
        broker.init(b, "tx", 60_000);
        for place in places {
            assert_eq!(broker.committed(place).last(), Some(&value));
        }
    }
}

#[test]
fn b31_a_fresh_broker_serves_transactions_at_once() {
    let mut broker = Broker::new();
    let on = broker.connect();
    let request = semel_wire::api::find_coordinator::FindCoordinatorRequest {
        key: semel_wire::Text::from("tx"),
        key_type: 1,
        ..Default::default()
    };
    let found: semel_wire::api::find_coordinator::FindCoordinatorResponse =
        broker.ask(on, 2, &request).answer();
    assert_eq!((found.error_code.get(), found.node_id, found.port), (0, 1, 9092));
    assert_eq!(broker.init(on, "tx", 60_000).epoch.get(), 0);
}

#[test]
fn kip_360_the_current_pair_recovers_and_the_request_may_be_repeated() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "given up");
    let next = broker.init_raw(on, 4, Some("tx"), 60_000, Some(stamp));
    assert_eq!((next.error_code.get(), next.producer_epoch.get()), (0, 1));
    let again = broker.init_raw(on, 4, Some("tx"), 60_000, Some(stamp));
    assert_eq!(
        (again.error_code.get(), again.producer_epoch.get()),
        (0, 1),
        "a repeated request bumps nothing"
    );
    broker.open_with(on, "tx", bumped(stamp), T, "kept");
    let late = broker.init_raw(on, 4, Some("tx"), 60_000, Some(stamp));
    assert_eq!(late.error_code.get(), 90, "once a transaction has started the old pair is nobody's");
    assert_eq!(broker.commit(on, "tx", bumped(stamp)), 0);
    assert_eq!(broker.committed(T), ["kept"]);
}

#[test]
fn half_a_pair_and_numbers_below_minus_one_are_42() {
    use semel_wire::{RawProducerEpoch, RawProducerId, Text, api::init_producer_id::*};
    let mut broker = broker();
    let on = broker.connect();
    for (id, epoch) in [(7, -1), (-1, 3), (-2, -1), (-2, -2), (7, -2)] {
        let request = InitProducerIdRequest {
            transactional_id: Some(Text::from("tx")),
            transaction_timeout_ms: 60_000,
            producer_id: RawProducerId(id),
            producer_epoch: RawProducerEpoch(epoch),
            ..Default::default()
        };
        let answer: InitProducerIdResponse = broker.ask(on, 4, &request).answer();
        assert_eq!(answer.error_code.get(), 42, "{id} {epoch}");
    }
}
