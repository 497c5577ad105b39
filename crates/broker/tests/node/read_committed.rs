//! Group read_committed: exactly the aborted records are hidden, from any starting point.

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 3);
    broker
}

/// Offsets of the first records of the transactions that an answer lists as aborted.
fn listed(broker: &mut Broker, offset: i64) -> Option<Vec<i64>> {
    let response = broker.fetch(T, offset, 1);
    let entries = response.aborted_transactions?;
    Some(entries.iter().map(|entry| entry.first_offset.get()).collect())
}

#[test]
fn b58_aborted_records_reach_no_read_committed_reader() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for n in 0..20 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &["aborted"]));
        assert!(broker.committed(T).is_empty());
        assert_eq!(broker.abort(on, "tx", stamp), 0);
        assert!(broker.committed(T).is_empty());
    }
    let expected: Vec<_> = (0..20).map(|n| n * 2).collect();
    assert_eq!(listed(&mut broker, 0), Some(expected));
    let response = broker.fetch(T, 0, 1);
    let producers = response.aborted_transactions.unwrap();
    assert!(producers.iter().all(|entry| entry.producer_id == stamp.id.into()));
}

#[test]
fn b59_read_uncommitted_shows_everything_and_lists_nothing() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, T, "committed");
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    for (n, value) in [(1, "aborted"), (2, "open")] {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &[value]));
        if value == "aborted" {
            assert_eq!(broker.abort(on, "tx", stamp), 0);
        }
    }
    assert_eq!(broker.values(T), ["committed", "aborted", "open"]);
    assert_eq!(broker.dump(T).len(), 5);
    assert_eq!(broker.fetch(T, 0, 0).aborted_transactions, None);
}

#[test]
fn b61_commit_abort_commit_of_one_producer_in_one_response() {
    let mut broker = broker();
    let on = broker.connect();
    let stamps = [("p", broker.init(on, "p", 60_000)), ("q", broker.init(on, "q", 60_000))];
    let mut expected = Vec::new();
    for round in 0..60 {
        for (id, stamp) in stamps {
            for (n, commit) in [(0, true), (1, false), (2, true)] {
                let value = format!("{id}{round}-{n}");
                assert_eq!(broker.add(on, id, stamp, T), 0);
                broker.send_in(on, id, T, transactional(stamp, round * 3 + n, &[&value]));
                assert_eq!(broker.end_raw(on, 3, id, stamp, commit).answer().error_code.get(), 0);
                expected.extend(commit.then_some(value));
            }
        }
    }
    let in_first = listed(&mut broker, 0).unwrap();
    assert_eq!(&in_first[..2], [2, 8], "the middle one of each three");
    assert_eq!(broker.committed(T), expected);
}

#[test]
fn b62_a_reader_gets_past_a_long_run_of_aborted_transactions() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let value = "x".repeat(1024);
    for n in 0..200 {
        assert_eq!(broker.add(on, "tx", stamp, T), 0);
        broker.send_in(on, "tx", T, transactional(stamp, n, &[&value]));
        assert_eq!(broker.abort(on, "tx", stamp), 0);
    }
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    broker.send_in(on, "tx", T, transactional(stamp, 200, &["at last"]));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    for max_bytes in [1, 2048] {
        let delivered = broker.committed_from(T, 0, max_bytes);
        assert_eq!(delivered, [(400, "at last".to_owned())], "with {max_bytes} bytes a fetch");
    }
}

#[test]
fn b63_list_offsets_heeds_the_isolation_level() {
    let mut broker = broker();
    let on = broker.connect();
    broker.send(on, T, anonymous_at(1000, &["plain"]));
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add(on, "tx", stamp, T), 0);
    let open = batch_at(stamp, 0, 2000, "open");
    assert_eq!(broker.send_in(on, "tx", T, open).error_code.get(), 0);
    assert_eq!((broker.end_offset(T, 0), broker.end_offset(T, 1)), (2, 1));
    let found = broker.list_offset_raw(T, 1500, 0);
    assert_eq!((found.offset.get(), found.timestamp), (1, 2000));
    let hidden = broker.list_offset_raw(T, 1500, 1);
    assert_eq!((hidden.error_code.get(), hidden.offset.get(), hidden.timestamp), (0, -1, -1));
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    assert_eq!((broker.end_offset(T, 0), broker.end_offset(T, 1)), (3, 3));
}

fn batch_at(
    stamp: semel_types::ProducerStamp,
    sequence: i32,
    timestamp_ms: i64,
    value: &str,
) -> bytes::Bytes {
    let sequence = semel_types::Sequence::from_wire(sequence).unwrap();
    let record = semel_wire::batch::NewRecord {
        value: Some(value.as_bytes()),
        timestamp: Some(semel_types::WallTime::from_ms(timestamp_ms)),
        ..Default::default()
    };
    let batch = semel_wire::batch::BatchBuilder::new().stamped(stamp, sequence).transactional();
    batch.record(record).build().into_bytes()
}

#[test]
fn b64_partial_fetches_through_a_big_aborted_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    let big = broker.init(on, "big", 60_000);
    let small = broker.init(on, "small", 60_000);
    assert_eq!(broker.add(on, "big", big, T), 0);
    let filler = "x".repeat(1024);
    for n in 0..200 {
        broker.send_in(on, "big", T, transactional(big, n, &[&filler]));
        assert_eq!(broker.add(on, "small", small, T), 0);
        broker.send_in(on, "small", T, transactional(small, n, &[&format!("s{n}")]));
        assert_eq!(broker.commit(on, "small", small), 0);
    }
    assert_eq!(broker.abort(on, "big", big), 0);
    let all = broker.committed_from(T, 0, 8 << 10);
    let values: Vec<_> = all.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(values, (0..200).map(|n| format!("s{n}")).collect::<Vec<_>>());
    for start in [1, 2, 7, 100, 301, 599, 600] {
        let expected: Vec<_> = all.iter().filter(|(offset, _)| *offset >= start).cloned().collect();
        assert_eq!(broker.committed_from(T, start, 8 << 10), expected, "from {start}");
    }
}

#[test]
fn b67_concurrent_transactions_interleave_and_stay_whole() {
    let mut broker = broker();
    let on = broker.connect();
    let stamps = [("p", broker.init(on, "p", 60_000)), ("q", broker.init(on, "q", 60_000))];
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); 2];
    for round in 0..40 {
        for (id, stamp) in stamps {
            let places = [("t", 0), ("t", 1), ("t", 2)];
            assert_eq!(broker.add_all(on, 3, id, stamp, &places).answer(), [0, 0, 0]);
        }
        for n in 0..5 {
            for (id, stamp) in stamps {
                for index in 0..3 {
                    let value = format!("{id}{round}-{n}");
                    let sent = transactional(stamp, round * 5 + n, &[&value]);
                    assert_eq!(broker.send_in(on, id, ("t", index), sent).error_code.get(), 0);
                }
            }
        }
        for (number, (id, stamp)) in stamps.into_iter().enumerate() {
            let commit = (round + i32::try_from(number).unwrap()) % 2 == 0;
            assert_eq!(broker.end_raw(on, 3, id, stamp, commit).answer().error_code.get(), 0);
            if commit {
                expected[number].extend((0..5).map(|n| format!("{id}{round}-{n}")));
            }
        }
    }
    for index in 0..3 {
        let committed = broker.committed(("t", index));
        for (number, (id, _)) in stamps.into_iter().enumerate() {
            let own: Vec<_> = committed.iter().filter(|value| value.starts_with(id)).cloned().collect();
            assert_eq!(own, expected[number]);
        }
    }
}
