//! Group Dedup: a retry is stored once, a gap is refused, whatever the connection did in between.

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

#[test]
fn b01_retry_after_a_lost_acknowledgement_is_stored_once() {
    let mut broker = broker();
    let first = broker.connect();
    let stamp = broker.init_idempotent(first);
    let batch = plain(stamp, 0, &["a", "b", "c"]);
    assert_eq!(fate(&broker.send(first, T, batch.clone())), (0, 0));
    let second = broker.connect();
    assert_eq!(fate(&broker.send(second, T, batch)), (0, 0), "the retry gets its first offset");
    assert_eq!(fate(&broker.send(second, T, plain(stamp, 3, &["d"]))), (0, 3));
    assert_eq!(broker.values(T), ["a", "b", "c", "d"]);
    assert_eq!(broker.end_offset(T, 0), 4);
}

#[test]
fn b02_any_of_the_last_five_batches_is_recognised_in_any_order() {
    let mut broker = broker();
    let (one, two) = (broker.connect(), broker.connect());
    let stamp = broker.init_idempotent(one);
    let batches: Vec<_> = (0..5).map(|n| plain(stamp, n, &[&format!("v{n}")])).collect();
    for (batch, offset) in batches.iter().zip(0..) {
        assert_eq!(fate(&broker.send(one, T, batch.clone())), (0, offset));
    }
    let forth_and_back = (0..5).chain((0..5).rev());
    for on in [one, one, two, two] {
        for n in forth_and_back.clone() {
            assert_eq!(fate(&broker.send(on, T, batches[n].clone())), (0, n as i64));
        }
    }
    let left_behind = broker.produce(one, CLASSIC, None, T, batches[0].clone());
    assert!(left_behind.is_closed(), "a connection that the producer has left is not served");
    assert_eq!(broker.values(T).len(), 5);
}

#[test]
fn b03_a_retry_older_than_the_window_is_46_and_the_producer_goes_on() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    for n in 0..6 {
        assert_eq!(fate(&broker.send(on, T, plain(stamp, n, &["v"]))), (0, i64::from(n)));
    }
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["v"]))), (46, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 6, &["v"]))), (0, 6));
    assert_eq!(broker.values(T).len(), 7);
}

#[test]
fn b04_a_gap_is_refused_and_sequences_count_records() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["a", "b"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 3, &["d"]))), (45, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 2, &["c"]))), (0, 2));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 3, &["d"]))), (0, 3));
    assert_eq!(broker.values(T), ["a", "b", "c", "d"]);
}

/// Stricter than the scenario, which has 45 for all four: a range wholly at or below the last one was stored, and
/// answering 45 makes clients write it again (design section 3).
#[test]
fn b05_an_overlapping_or_resized_batch_is_no_duplicate() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["0", "1", "2", "3", "4"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["x", "x", "x"]))), (46, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 2, &["x", "x", "x"]))), (46, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 3, &["x"; 5]))), (45, -1));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["x"; 6]))), (45, -1));
    assert_eq!(broker.values(T), ["0", "1", "2", "3", "4"]);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 5, &["5"]))), (0, 5));
}

#[test]
fn b07_a_first_batch_out_of_order_on_a_never_written_partition_waits_for_its_predecessor() {
    let mut broker = broker();
    let (one, two) = (broker.connect(), broker.connect());
    let stamp = broker.init_idempotent(one);
    let (early, late) = (plain(stamp, 0, &["e"; 17]), plain(stamp, 17, &["l"; 5]));
    assert_eq!(fate(&broker.send(one, T, late.clone())), (45, -1));
    assert_eq!(fate(&broker.send(two, T, early)), (0, 0));
    assert_eq!(fate(&broker.send(two, T, late)), (0, 17));
    assert_eq!(broker.values(T).len(), 22);
}

#[test]
fn b08a_an_idle_producer_goes_on_where_it_was() {
    let mut broker = Broker::with(&[("producer.id.expiration.ms", "10000")]);
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["v"; 5]))), (0, 0));
    broker.pass(30_000);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 5, &["w"; 2]))), (0, 5));
    assert_eq!(broker.values(T).len(), 7);
}

#[test]
fn b09_a_producer_without_transactional_id_raises_its_own_epoch() {
    let mut broker = broker();
    let on = broker.connect();
    let first = broker.init_idempotent(on);
    let (second, third) = (bumped(first), bumped(bumped(first)));
    assert_eq!(fate(&broker.send(on, T, plain(first, 0, &["a", "b"]))), (0, 0));
    assert_eq!(fate(&broker.send(on, T, plain(second, 0, &["c"]))), (0, 2));
    assert_eq!(fate(&broker.send(on, T, plain(first, 2, &["x"]))), (47, -1));
    assert_eq!(fate(&broker.send(on, T, plain(third, 4, &["x"]))), (45, -1));
    assert_eq!(fate(&broker.send(on, T, plain(third, 0, &["d"]))), (0, 3));
    assert_eq!(broker.values(T), ["a", "b", "c", "d"]);
}

fn produce_with_acks(broker: &mut Broker, acks: i16, batch: bytes::Bytes) -> Outcome<Vec<(i16, i64)>> {
    let on = broker.connect();
    let request = produce_request(CLASSIC, acks, None, &[(T, batch)], broker);
    let outcome: Outcome<semel_wire::api::produce::ProduceResponse> = broker.ask(on, CLASSIC, &request);
    match outcome {
        Outcome::Answer(response) => {
            let partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
            Outcome::Answer(partitions.map(fate).collect())
        }
        Outcome::Silence => Outcome::Silence,
        Outcome::Closed => Outcome::Closed,
    }
}

#[test]
fn b12_acks_1_and_0_are_deduplicated_like_minus_1() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let first = plain(stamp, 0, &["a"]);
    assert_eq!(produce_with_acks(&mut broker, 1, first.clone()).answer(), [(0, 0)]);
    assert_eq!(produce_with_acks(&mut broker, 1, first).answer(), [(0, 0)]);
    let silent = plain(stamp, 1, &["b"]);
    assert!(matches!(produce_with_acks(&mut broker, 0, silent.clone()), Outcome::Silence));
    assert!(matches!(produce_with_acks(&mut broker, 0, silent), Outcome::Silence));
    let gap = plain(stamp, 9, &["x"]);
    assert!(produce_with_acks(&mut broker, 0, gap).is_closed(), "an error with acks 0 closes the connection");
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 2, &["c"]))), (0, 2));
    assert_eq!(broker.values(T), ["a", "b", "c"]);
}

#[test]
fn b13_a_sequence_error_on_one_partition_leaves_its_neighbours_alone() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let mixed = [
        (("t", 0), plain(stamp, 0, &["a"])),
        (("t", 1), plain(stamp, 5, &["x"])),
        (("nowhere", 0), plain(stamp, 0, &["x"])),
        (("t", 7), plain(stamp, 0, &["x"])),
    ];
    let answers = broker.produce_all(on, CLASSIC, None, &mixed).answer();
    let fates: Vec<_> = answers.iter().map(fate).collect();
    assert_eq!(fates, [(0, 0), (45, -1), (3, -1), (3, -1)]);
    let good = [(("t", 0), plain(stamp, 1, &["b"])), (("t", 1), plain(stamp, 0, &["c"]))];
    let answers = broker.produce_all(on, CLASSIC, None, &good).answer();
    assert_eq!(answers.iter().map(fate).collect::<Vec<_>>(), [(0, 1), (0, 0)]);
    assert_eq!(broker.values(("t", 0)), ["a", "b"]);
    assert_eq!(broker.values(("t", 1)), ["c"]);
}

#[test]
fn b14_a_sequence_met_again_after_an_abort_is_not_acknowledged_with_the_aborted_record() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "A");
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 0, &["B"]))), (45, -1));
    assert_eq!(fate(&broker.send_in(on, "tx", T, transactional(stamp, 1, &["B"]))), (0, 2));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.committed(T), ["B"]);
}

#[test]
fn b100_a_duplicate_is_answered_with_the_offset_that_holds_its_value() {
    let mut broker = broker();
    let (one, two) = (broker.connect(), broker.connect());
    let producers = [broker.init_idempotent(one), broker.init_idempotent(two)];
    let mut acknowledged = Vec::new();
    for n in 0..20 {
        for (producer, name) in producers.iter().zip(["p", "q"]) {
            let value = format!("{name}{n}");
            let batch = plain(*producer, n, &[&value]);
            let sent = broker.send(two, T, batch.clone());
            assert_eq!(fate(&sent), fate(&broker.send(two, T, batch)));
            acknowledged.push((sent.base_offset.get(), value));
        }
        if n % 7 == 0 {
            broker.restart();
        }
    }
    let stored = broker.dump(T);
    for (offset, value) in acknowledged {
        assert_eq!(stored[usize::try_from(offset).unwrap()], Entry::Record(offset, value));
    }
}
