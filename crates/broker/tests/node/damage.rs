//! Bytes that the disk gives back changed: told, never served.

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset,
    api::fetch::{FetchPartition, FetchRequest, FetchResponse},
};

use crate::support::*;

/// Two records in each of three partitions.
fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 3);
    let on = broker.connect();
    let stamp = broker.init_idempotent(on);
    for partition in 0..3 {
        for sequence in 0..2 {
            let value = format!("p{partition} amount {sequence}");
            broker.send(on, ("t", partition), plain(stamp, sequence, &[&value]));
        }
    }
    broker
}

/// One Fetch of the three partitions: code and bytes of each.
fn fetch_all(broker: &mut Broker, offset: i64) -> Vec<(i16, usize)> {
    let mut request: FetchRequest = fetch_request(("t", 0), offset, 1, 1 << 20);
    let partition = |index| FetchPartition {
        partition: PartitionIndex::new(index),
        fetch_offset: RawOffset(offset),
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    request.topics[0].partitions = (0..3).map(partition).collect();
    request.max_bytes = 50 << 20;
    let on = broker.connect();
    let response: FetchResponse = broker.ask(on, 12, &request).answer();
    let size = |records: &Option<semel_wire::Records>| records.as_ref().map_or(0, |records| records.len());
    let partitions = &response.responses[0].partitions;
    partitions.iter().map(|partition| (partition.error_code.get(), size(&partition.records))).collect()
}

/// LOG-32: only the damaged partition suffers, from the damaged batch on, and the server's log names it.
#[test]
fn damaged_records_are_56_for_their_partition_only() {
    let flip: fn(&mut [u8]) = |bytes| bytes[4] ^= 1;
    let zero: fn(&mut [u8]) = |bytes| bytes.fill(0);
    for change in [flip, zero] {
        let mut broker = broker();
        let whole = fetch_all(&mut broker, 0);
        assert!(whole.iter().all(|(code, bytes)| *code == 0 && *bytes > 0), "{whole:?}");
        broker.damage("p1 amount 1", change);
        let read = fetch_all(&mut broker, 0);
        assert_eq!((read[0], read[2]), (whole[0], whole[2]));
        assert_eq!(read[1], (0, whole[1].1 / 2), "what stands before the damage");
        assert_eq!(broker.notes, [""; 0]);
        let read = fetch_all(&mut broker, 1);
        assert_eq!(read.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [0, 56, 0]);
        assert_eq!(read.iter().map(|(_, bytes)| *bytes > 0).collect::<Vec<_>>(), [true, false, true]);
        let [note] = &broker.notes[..] else { panic!("{:?}", broker.notes) };
        assert!(
            note.starts_with("cannot read t-1: p") && note.contains("at offset 1, file 1 at byte"),
            "{note}"
        );
    }
}

/// LOG-32.
#[test]
fn a_search_by_time_in_damaged_records_is_56() {
    let mut broker = broker();
    assert_eq!(broker.list_offset_raw(("t", 1), -3, 0).error_code.get(), 0);
    broker.damage("p1 amount 0", |bytes| bytes[0] ^= 1);
    for (partition, code) in [(0, 0), (1, 56), (2, 0)] {
        assert_eq!(broker.list_offset_raw(("t", partition), 0, 0).error_code.get(), code);
    }
    assert!(broker.notes[0].starts_with("cannot read t-1: "), "{:?}", broker.notes);
}
