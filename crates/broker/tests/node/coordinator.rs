//! Group Transaction coordinator: decided outcomes stay, retries are answered as then, nothing is left hanging.

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 10);
    broker
}

#[test]
fn b32_a_retried_commit_is_answered_as_the_first_one() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for index in 0..10 {
        broker.open_with(on, "tx", stamp, ("t", index), "v");
    }
    for _ in 0..6 {
        assert_eq!(broker.commit(on, "tx", stamp), 0);
    }
    broker.restart();
    let on = broker.connect();
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    for index in 0..10 {
        assert_eq!(broker.committed(("t", index)), ["v"]);
    }
}

#[test]
fn b32_version_2_the_retry_carries_the_old_epoch_and_gets_the_new_identity() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(
        fate(&broker.produce(on, V2, Some("tx"), T, transactional(stamp, 0, &["v"])).answer()),
        (0, 0)
    );
    let next = broker.end_v2(on, "tx", stamp, true);
    assert_eq!(next, bumped(stamp));
    for _ in 0..5 {
        assert_eq!(broker.end_v2(on, "tx", stamp, true), next);
    }
    broker.restart();
    let on = broker.connect();
    assert_eq!(broker.end_v2(on, "tx", stamp, true), next);
    assert_eq!(broker.committed(T), ["v"]);
    assert_eq!(broker.dump(T).len(), 2);
}

#[test]
fn b33_a_decided_outcome_never_flips() {
    for (first_commits, value) in [(true, Some("v")), (false, None)] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 60_000);
        broker.open_with(on, "tx", stamp, T, "v");
        assert_eq!(broker.end_raw(on, 3, "tx", stamp, first_commits).answer().error_code.get(), 0);
        assert_eq!(broker.end_raw(on, 3, "tx", stamp, !first_commits).answer().error_code.get(), 48);
        assert_eq!(broker.committed(T), value.into_iter().collect::<Vec<_>>());
        assert_eq!(broker.dump(T).len(), 2, "one record, one marker");
    }
}

#[test]
fn b34_end_txn_with_nothing_in_the_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "classic", 60_000);
    assert_eq!(broker.commit(on, "classic", stamp), 48);
    assert_eq!(broker.abort(on, "classic", stamp), 48);
    broker.open_with(on, "classic", stamp, T, "pair stays usable");
    assert_eq!(broker.commit(on, "classic", stamp), 0);

    let stamp = broker.init(on, "v2", 60_000);
    assert_eq!(broker.end_raw(on, 5, "v2", stamp, true).answer().error_code.get(), 48);
    let stamp = broker.end_v2(on, "v2", stamp, false);
    let sent = broker.produce(on, V2, Some("v2"), ("t", 1), transactional(stamp, 0, &["v"])).answer();
    assert_eq!(fate(&sent), (0, 0));
    let stamp = broker.end_v2(on, "v2", stamp, true);
    let stamp = broker.end_v2(on, "v2", stamp, false);
    let sent = broker.produce(on, V2, Some("v2"), ("t", 1), transactional(stamp, 0, &["w"])).answer();
    assert_eq!(sent.error_code.get(), 0);
    broker.end_v2(on, "v2", stamp, true);
    assert_eq!(broker.committed(("t", 1)), ["v", "w"]);
}

#[test]
fn b36_a_delayed_produce_does_not_land_in_the_next_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    let first = broker.init(on, "tx", 60_000);
    let held = transactional(first, 0, &["late"]);
    let second = broker.end_v2(on, "tx", first, false);
    let sent = broker.produce(on, V2, Some("tx"), T, transactional(second, 0, &["good"])).answer();
    assert_eq!(fate(&sent), (0, 0));
    assert_eq!(fate(&broker.produce(on, V2, Some("tx"), T, held).answer()), (47, -1));
    broker.end_v2(on, "tx", second, true);
    assert_eq!(broker.values(T), ["good"]);
    assert_eq!(broker.committed(T), ["good"]);
}

#[test]
fn b37_the_next_transaction_never_meets_the_last_one() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for n in 0..500 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0, "round {n}: never 51");
        let sent = broker.send_in(on, "tx", T, transactional(stamp, n, &["v"]));
        assert_eq!(sent.error_code.get(), 0);
        assert_eq!(broker.commit(on, "tx", stamp), 0);
    }
    assert_eq!(broker.committed(T).len(), 500);
}

#[test]
fn b39_the_timeout_counts_from_the_first_partition() {
    let mut broker = Broker::new();
    broker.topic("t", 30);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 5000);
    let mut first_refusal = None;
    for second in 0..30 {
        let place = ("t", second);
        let added = broker.add(on, "tx", stamp, place);
        let sent = broker.send_in(on, "tx", place, transactional(stamp, 0, &["v"]));
        if added != 0 {
            assert_eq!((added, sent.error_code.get()), (90, 47));
            first_refusal = first_refusal.or(Some(second));
        }
        broker.pass(1000);
    }
    assert_eq!(first_refusal, Some(5), "no later call extends it");
    for index in 0..30 {
        assert_eq!(broker.end_offset(("t", index), 1), broker.end_offset(("t", index), 0));
    }
}

#[test]
fn b40_a_topic_of_an_open_transaction_is_deleted() {
    let mut broker = Broker::new();
    broker.topic("a", 1);
    broker.topic("b", 1);
    let (a, b) = (("a", 0), ("b", 0));
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, a, "gone");
    broker.open_with(on, "tx", stamp, b, "kept");
    broker.delete_topic("a");
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.committed(b), ["kept"]);
    broker.topic("a", 1);
    assert!(broker.dump(a).is_empty());
    assert_eq!((broker.end_offset(a, 0), broker.end_offset(a, 1)), (0, 0));
    assert_eq!(broker.add_all(on, 3, "tx", stamp, &[a, b]).answer(), [0, 0]);
    assert_eq!(fate(&broker.send_in(on, "tx", b, transactional(stamp, 1, &["more"]))).0, 0);
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.committed(b), ["kept", "more"]);
    broker.restart();
}

#[test]
fn b42_an_expired_transactional_id_is_49_until_it_is_initialized_again() {
    let mut broker = Broker::with(&[("transactional.id.expiration.ms", "10000")]);
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "idle", 60_000);
    broker.open_with(on, "idle", stamp, T, "v");
    assert_eq!(broker.commit(on, "idle", stamp), 0);
    let busy = broker.init(on, "busy", 60_000);
    broker.open_with(on, "busy", busy, T, "w");
    broker.pass(40_000);
    assert_eq!(broker.add(on, "idle", stamp, T), 49);
    assert_eq!(broker.commit(on, "idle", stamp), 49);
    assert_eq!(fate(&broker.send_in(on, "idle", T, transactional(stamp, 1, &["x"]))).0, 47);
    let ids: Vec<_> = broker.state().eos.transactions().iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids, ["busy"], "an ongoing transaction is not expired");
    let again = broker.init(on, "idle", 60_000);
    assert_ne!(again.id, stamp.id);
    assert_eq!(broker.commit(on, "busy", busy), 0);
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
}

#[test]
fn b44_a_very_wide_transaction_is_whole() {
    let mut broker = Broker::new();
    let names: Vec<_> = (0..10).map(|n| format!("w{n}")).collect();
    names.iter().for_each(|name| broker.topic(name, 100));
    let places: Vec<_> = names.iter().flat_map(|name| (0..100).map(move |index| (&**name, index))).collect();
    let on = broker.connect();
    for (round, end) in [Some(true), Some(false), None].into_iter().enumerate() {
        let stamp = broker.init(on, "tx", 5000);
        assert!(broker.add_all(on, 3, "tx", stamp, &places).answer().iter().all(|code| *code == 0));
        let batches: Vec<_> =
            places.iter().map(|place| (*place, transactional(stamp, 0, &[&format!("r{round}")]))).collect();
        let sent = broker.produce_all(on, CLASSIC, Some("tx"), &batches).answer();
        assert!(sent.iter().all(|sent| sent.error_code.get() == 0));
        match end {
            Some(commit) => {
                assert_eq!(broker.end_raw(on, 3, "tx", stamp, commit).answer().error_code.get(), 0);
            }
            None => broker.pass(10_000),
        }
    }
    let visible: usize = places.iter().map(|place| broker.committed(*place).len()).sum();
    assert_eq!(visible, 1000, "only the committed round");
}

#[test]
fn b46_a_write_to_a_partition_that_was_never_added() {
    for (version, code) in [(CLASSIC, 48), (11, 120), (V2, 0)] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 60_000);
        let sent = broker.produce(on, version, Some("tx"), T, transactional(stamp, 0, &["v"])).answer();
        assert_eq!(sent.error_code.get(), code, "Produce {version}");
        if version == V2 {
            broker.end_v2(on, "tx", stamp, false);
        } else {
            assert_eq!(broker.abort(on, "tx", stamp), 48, "nothing was opened");
        }
        assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
        assert!(broker.committed(T).is_empty());
    }
}

#[test]
fn b46_a_write_that_arrives_after_the_abort_opens_nothing() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "v");
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 1, &["late"]))), (48, -1));
    assert_eq!(broker.end_offset(T, 1), broker.end_offset(T, 0));
}

#[test]
fn b47_a_plain_batch_of_a_producer_with_an_open_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "first");
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 1, &["x"]))).0, 48);
    assert_eq!(fate(&broker.send_in(on, "tx", T, plain(stamp, 1, &["x"]))).0, 48);
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.committed(T), ["first"]);
}

#[test]
fn b48_every_request_of_two_interleaved_producers_is_answered() {
    let mut broker = broker();
    let (one, two) = (broker.connect(), broker.connect());
    let mut stamps =
        [(one, "tx-1", broker.init(one, "tx-1", 60_000)), (two, "tx-2", broker.init(two, "tx-2", 60_000))];
    for round in 0..200 {
        for place in [("t", 0), ("t", 1)] {
            for (on, id, stamp) in &stamps {
                assert_eq!(broker.add(*on, id, *stamp, place), 0);
            }
            for (on, id, stamp) in &stamps {
                let sent = broker.send_in(*on, id, place, transactional(*stamp, round, &["v"]));
                assert_eq!(sent.error_code.get(), 0, "{:?}", sent.error_message);
            }
            for (on, id, stamp) in &stamps {
                assert_eq!(broker.end_raw(*on, 3, id, *stamp, round % 3 != 0).answer().error_code.get(), 0);
            }
        }
        if round % 50 == 49 {
            broker.restart();
            stamps.iter_mut().for_each(|(on, ..)| *on = broker.connect());
        }
    }
    assert_eq!(broker.committed(("t", 1)).len(), 2 * 133);
}

#[test]
fn an_unknown_partition_makes_the_others_55_and_adds_nothing() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let added = broker.add_all(on, 3, "tx", stamp, &[T, ("nowhere", 0), ("t", 99)]).answer();
    assert_eq!(added, [55, 3, 3]);
    assert_eq!(broker.commit(on, "tx", stamp), 48, "nothing was started");
}

#[test]
fn verify_only_starts_nothing_and_tells_a_partition_outside_of_the_transaction() {
    use semel_wire::{Text, api::add_partitions_to_txn::*};
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let verify = |broker: &mut Broker, index: i32| {
        let topic = AddPartitionsToTxnTopic {
            name: Text::from("t"),
            partitions: vec![semel_types::PartitionIndex::new(index)],
        };
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: Text::from("tx"),
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            verify_only: true,
            topics: vec![topic],
        };
        let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
        let response: AddPartitionsToTxnResponse = broker.ask(on, 5, &request).answer();
        let result = &response.results_by_transaction[0].topic_results[0].results_by_partition[0];
        result.partition_error_code.get()
    };
    assert_eq!(verify(&mut broker, 0), 120);
    assert_eq!(broker.commit(on, "tx", stamp), 48, "nothing was started");
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    assert_eq!(verify(&mut broker, 0), 0);
    assert_eq!(verify(&mut broker, 1), 120);
}
