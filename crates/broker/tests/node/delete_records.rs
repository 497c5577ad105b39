//! DeleteRecords: the start moves, readers follow, producers and open transactions are not forgotten.

use semel_types::PartitionIndex;
use semel_wire::{RawOffset, Text, api::delete_records::*};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

/// Code and low watermark.
fn delete_in(broker: &mut Broker, version: i16, place: Place<'_>, offset: i64) -> (i16, i64) {
    let partition =
        DeleteRecordsPartition { partition_index: PartitionIndex::new(place.1), offset: RawOffset(offset) };
    let topic = DeleteRecordsTopic { name: Text::from(place.0), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1000 };
    let on = broker.connect();
    let response: DeleteRecordsResponse = broker.ask(on, version, &request).answer();
    let result = &response.topics[0].partitions[0];
    (result.error_code.get(), result.low_watermark.get())
}

fn delete(broker: &mut Broker, offset: i64) -> (i16, i64) {
    delete_in(broker, 2, T, offset)
}

/// Code of a read_uncommitted Fetch, and the start that it names.
fn fetched(broker: &mut Broker, offset: i64) -> i16 {
    broker.fetch(T, offset, 0).error_code.get()
}

fn earliest(broker: &mut Broker) -> i64 {
    broker.list_offset_raw(T, -2, 0).offset.get()
}

#[test]
fn the_start_moves_and_readers_below_it_are_out_of_range() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    for n in 0..6 {
        assert_eq!(fate(&broker.send(on, T, plain(stamp, n, &[&format!("v{n}")]))), (0, i64::from(n)));
    }
    assert_eq!(delete(&mut broker, 2), (0, 2));
    assert_eq!(delete_in(&mut broker, 0, T, 4), (0, 4));
    assert_eq!(delete_in(&mut broker, 1, T, 1), (0, 4), "the start does not go back");
    for restarted in [false, true] {
        if restarted {
            broker.restart();
        }
        assert_eq!((fetched(&mut broker, 3), fetched(&mut broker, 4)), (1, 0));
        assert_eq!((earliest(&mut broker), broker.end_offset(T, 0)), (4, 6));
        assert_eq!(broker.fetch(T, 4, 1).log_start_offset.get(), 4);
        let read = broker.committed_from(T, 4, 1 << 20);
        assert_eq!(read, [(4, "v4".to_owned()), (5, "v5".to_owned())]);
        assert_eq!(broker.list_offset_raw(T, 0, 0).offset.get(), 4, "a time finds nothing that is gone");
    }
    let on = broker.connect();
    assert_eq!(delete(&mut broker, -1), (0, 6));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 6, &["v6"]))), (0, 6));
    assert_eq!(broker.committed_from(T, 6, 1 << 20), [(6, "v6".to_owned())]);
}

#[test]
fn what_cannot_be_deleted_is_refused_and_changes_nothing() {
    let mut broker = broker();
    broker.topic_with("compacted", 1, &[("cleanup.policy", "compact")]);
    broker.topic_with("both", 1, &[("cleanup.policy", "compact,delete")]);
    let on = broker.connect();
    broker.send(on, T, anonymous(&["a", "b"]));
    for (place, offset, code) in [
        (("no", 0), 0, 3),
        (("t", 2), 0, 3),
        (T, 3, 1),
        (T, -2, 1),
        (T, i64::MAX, 1),
        (("compacted", 0), -1, 44),
    ] {
        assert_eq!(delete_in(&mut broker, 2, place, offset), (code, -1), "{place:?} {offset}");
    }
    assert_eq!(delete_in(&mut broker, 2, ("both", 0), -1), (0, 0));
    assert_eq!((earliest(&mut broker), broker.values(T).len()), (0, 2));
}

#[test]
fn of_a_partition_named_twice_the_higher_start_holds() {
    let mut broker = broker();
    let on = broker.connect();
    broker.send(on, T, anonymous(&["a", "b", "c"]));
    let partition = |offset| DeleteRecordsPartition {
        partition_index: PartitionIndex::new(0),
        offset: RawOffset(offset),
    };
    let topic = DeleteRecordsTopic {
        name: Text::from("t"),
        partitions: vec![partition(2), partition(9), partition(1)],
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 0 };
    let response: DeleteRecordsResponse = broker.ask(on, 2, &request).answer();
    let results = response.topics[0].partitions.iter();
    let results: Vec<_> =
        results.map(|result| (result.error_code.get(), result.low_watermark.get())).collect();
    assert_eq!(results, [(0, 2), (1, -1), (0, 2)]);
    assert_eq!(earliest(&mut broker), 2);
}

#[test]
fn b08b_a_producer_goes_on_after_its_records_were_deleted() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["a", "b", "c", "d", "e"]))), (0, 0));
    assert_eq!(delete(&mut broker, -1), (0, 5));
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 5, &["f", "g"]))), (0, 5));
    broker.restart();
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 7, &["h"]))), (0, 7));
    let read = broker.committed_from(T, 5, 1 << 20);
    assert_eq!(read.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["f", "g", "h"]);
}

#[test]
fn b10_a_retry_of_a_record_that_was_deleted_is_not_stored_anew() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    let batches: Vec<_> = (0..5).map(|n| plain(stamp, n, &[&format!("v{n}")])).collect();
    for batch in &batches {
        broker.send(on, T, batch.clone());
    }
    assert_eq!(delete(&mut broker, 3), (0, 3));
    assert_eq!(fate(&broker.send(on, T, batches[2].clone())), (0, 2), "below the start");
    assert_eq!(fate(&broker.send(on, T, batches[4].clone())), (0, 4), "above it");
    assert_eq!(delete(&mut broker, -1), (0, 5));
    broker.restart();
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, T, batches[0].clone())), (0, 0));
    // Older than the five that are known, and never -1.
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 5, &["v5"]))), (0, 5));
    assert_eq!(fate(&broker.send(on, T, batches[0].clone())), (46, -1));
    assert_eq!((earliest(&mut broker), broker.end_offset(T, 0)), (5, 6));
}

#[test]
fn a_stub_of_a_producer_survives_the_deletion_of_its_records() {
    let mut broker = Broker::with(&[("producer.id.expiration.ms", "1000")]);
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    broker.send(on, T, plain(stamp, 0, &["a", "b"]));
    delete(&mut broker, -1);
    broker.pass(10_000);
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 0, &["a", "b"]))).0, 46, "its retry is known");
    assert_eq!(fate(&broker.send(on, T, plain(stamp, 2, &["c"]))), (0, 2));
}

#[test]
fn an_open_transaction_outlives_its_first_records() {
    for committed in [true, false] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 60_000);
        broker.open_with(on, "tx", stamp, T, "first");
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, 1, &["second"]));
        assert_eq!(delete(&mut broker, 1), (0, 1));
        assert_eq!(broker.end_offset(T, 1), 1, "the last stable offset stays within the log");
        assert!(broker.committed_from(T, 1, 1 << 20).is_empty());
        broker.restart();
        let on = broker.connect();
        assert_eq!(broker.end_offset(T, 1), 1);
        let ended = if committed { broker.commit(on, "tx", stamp) } else { broker.abort(on, "tx", stamp) };
        assert_eq!(ended, 0);
        let read = broker.committed_from(T, 1, 1 << 20);
        if committed {
            assert_eq!(read, [(1, "second".to_owned())]);
            continue;
        }
        assert!(read.is_empty());
        let listed = broker.fetch(T, 1, 1).aborted_transactions.unwrap();
        assert_eq!(listed.iter().map(|entry| entry.first_offset.get()).collect::<Vec<_>>(), [0]);
    }
}

#[test]
fn the_aborted_list_loses_what_ended_below_the_start() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for n in 0..3 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &["gone"]));
        assert_eq!(broker.abort(on, "tx", stamp), 0);
    }
    // Records at 0, 2, 4 and their markers behind them: the second marker is the oldest entry that stays.
    assert_eq!(delete(&mut broker, 3), (0, 3));
    for _ in 0..2 {
        let listed = broker.fetch(T, 3, 1).aborted_transactions.unwrap();
        assert_eq!(listed.iter().map(|entry| entry.first_offset.get()).collect::<Vec<_>>(), [2, 4]);
        assert!(broker.committed_from(T, 3, 1 << 20).is_empty());
        broker.restart();
    }
}
