//! Record batches: what the header says, the checksums, the walks, and what is refused.

use bytes::Bytes;
use semel_types::{
    CoordinatorEpoch, LeaderEpoch, Offset, PayloadChecksum, ProducerEpoch, ProducerId, ProducerStamp,
    Sequence, SequenceRange, WallTime,
};
use semel_wire::{
    RawLeaderEpoch, RawOffset,
    batch::{
        self, Attributes, Batch, BatchBuilder, BatchError, Compression, HEADER_BYTES, Marker, MarkerKind,
        NewRecord, RecordFault, TimestampType,
    },
};

const STAMP: ProducerStamp = ProducerStamp { id: ProducerId::new(7), epoch: ProducerEpoch::new(3) };

fn time(ms: i64) -> Option<WallTime> {
    Some(WallTime::from_ms(ms))
}

fn sequence(raw: i32) -> Sequence {
    Sequence::from_wire(raw).expect("not negative")
}

fn two_records() -> Batch {
    let first = NewRecord {
        key: Some(b"k"),
        value: Some(b"v"),
        timestamp: time(1000),
        headers: &[("h", Some(b"1")), ("n", None)],
    };
    let second = NewRecord { timestamp: time(990), ..NewRecord::default() };
    BatchBuilder::new().stamped(STAMP, sequence(5)).transactional().records([first, second]).build()
}

/// The batch with one byte changed and its checksum made right again.
fn with_byte(batch: &Batch, at: usize, byte: u8) -> Batch {
    let mut bytes = batch.bytes().to_vec();
    bytes[at] = byte;
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Batch::parse(bytes.into()).expect("length and magic are as before")
}

#[test]
fn the_header_says_what_was_built() {
    let batch = two_records();
    assert_eq!(batch.base_offset(), RawOffset(0));
    assert_eq!(batch.last_offset(), RawOffset(1));
    assert_eq!(batch.leader_epoch(), RawLeaderEpoch::NONE);
    assert_eq!(batch.attributes().compression(), Some(Compression::None));
    assert_eq!(batch.attributes().timestamp_type(), TimestampType::CreateTime);
    assert!(batch.attributes().is_transactional());
    assert!(!batch.attributes().is_control());
    assert!(!batch.attributes().has_delete_horizon());
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (time(1000), time(1000)));
    assert_eq!(batch.producer_id(), Some(STAMP.id));
    assert_eq!(batch.producer_epoch(), Some(STAMP.epoch));
    assert_eq!(batch.sequences(), Some(SequenceRange::of(sequence(5), 2)));
    assert_eq!(batch.record_count(), 2);
    assert_eq!(batch.verify_crc(), Ok(()));
    assert_eq!(batch.check_count(), Ok(()));
}

#[test]
fn a_batch_of_nobody_has_no_stamps_and_no_times() {
    let batch = BatchBuilder::new().record(NewRecord::of(b"x")).build();
    assert_eq!((batch.producer_id(), batch.producer_epoch()), (None, None));
    assert_eq!((batch.base_sequence(), batch.sequences()), (None, None));
    assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (None, None));
    let records: Vec<_> = batch.records().expect("uncompressed").collect();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].as_ref().map(|record| record.timestamp), Ok(None));
}

#[test]
fn records_are_read_back() {
    let batch = two_records();
    let records: Result<Vec<_>, _> = batch.records().expect("uncompressed").collect();
    let records = records.expect("sound");
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].key.as_deref(), Some(b"k".as_slice()));
    assert_eq!(records[0].value.as_deref(), Some(b"v".as_slice()));
    assert_eq!(records[0].timestamp, time(1000));
    let headers: Vec<_> = records[0].headers().map(|header| (header.key, header.value)).collect();
    let (h, n, one) = (Bytes::from("h"), Bytes::from("n"), Bytes::from("1"));
    assert_eq!(headers, [(h, Some(one)), (n, None)]);
    assert_eq!((&records[1].key, &records[1].value), (&None, &None));
    assert_eq!((records[1].timestamp, records[1].offset), (time(990), RawOffset(1)));
}

#[test]
fn the_payload_checksum_is_the_crc_of_the_bytes_after_the_header() {
    for length in [0, 1, 7, 100, 4096, 300_000] {
        let value = vec![0xa5; length];
        let batch = BatchBuilder::new().stamped(STAMP, sequence(1)).record(NewRecord::of(&value)).build();
        let direct = PayloadChecksum(crc32c::crc32c(batch.payload()));
        assert_eq!(batch.payload_checksum(), direct, "value of {length} bytes");
    }
}

#[test]
fn the_payload_checksum_does_not_see_the_stamps() {
    let plain = BatchBuilder::new().record(NewRecord::of(b"x")).build();
    let stamped = BatchBuilder::new().stamped(STAMP, sequence(9)).record(NewRecord::of(b"x")).build();
    assert_ne!(plain.crc(), stamped.crc());
    assert_eq!(plain.payload_checksum(), stamped.payload_checksum());
}

#[test]
fn offset_and_leader_epoch_can_be_patched_without_touching_the_crc() {
    let mut bytes = two_records().bytes().to_vec();
    batch::patch_base_offset_and_leader_epoch(&mut bytes, Offset::new(1 << 40), LeaderEpoch::new(12));
    let batch = Batch::parse(bytes.into()).expect("still a batch");
    assert_eq!(batch.base_offset(), RawOffset(1 << 40));
    assert_eq!(batch.leader_epoch(), RawLeaderEpoch(12));
    assert_eq!(batch.verify_crc(), Ok(()));
}

#[test]
fn a_flipped_bit_fails_the_crc() {
    let bytes = two_records().bytes().to_vec();
    for at in 17..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        let batch = Batch::parse(flipped.into()).expect("length and magic are as before");
        assert!(matches!(batch.verify_crc(), Err(BatchError::Crc { .. })), "byte {at}");
    }
}

#[test]
fn a_blob_is_split_into_its_batches() {
    let one = two_records();
    let blob: Bytes = [one.bytes().as_ref(), one.bytes()].concat().into();
    assert_eq!(batch::split(blob).collect::<Vec<_>>(), [Ok(one.clone()), Ok(one)]);
    assert_eq!(batch::split(Bytes::new()).count(), 0);
}

#[test]
fn a_blob_cut_anywhere_ends_in_one_error() {
    let whole = two_records();
    for cut in 1..whole.bytes().len() {
        let blob: Bytes = [whole.bytes().as_ref(), &whole.bytes()[..cut]].concat().into();
        let parts: Vec<_> = batch::split(blob).collect();
        assert_eq!(parts.len(), 2, "cut at {cut}");
        assert!(matches!(parts[1], Err(BatchError::Truncated { left, .. }) if left == cut), "cut at {cut}");
    }
}

#[test]
fn old_formats_and_impossible_lengths_are_refused() {
    let sound = two_records().bytes().to_vec();
    for magic in [0, 1, 3, 0xff] {
        let mut bytes = sound.clone();
        bytes[16] = magic;
        let expected = BatchError::Magic { magic: magic as i8 };
        assert_eq!(Batch::parse(bytes.into()), Err(expected));
    }
    for length in [-1, i32::MIN, 0, 48] {
        let mut bytes = sound.clone();
        bytes[8..12].copy_from_slice(&i32::to_be_bytes(length));
        assert_eq!(Batch::parse(bytes.into()), Err(BatchError::Length { length }));
    }
    let mut bytes = sound.clone();
    bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    assert!(matches!(Batch::parse(bytes.into()), Err(BatchError::Truncated { .. })));
    let longer = [sound.as_slice(), &[0]].concat();
    assert_eq!(Batch::parse(longer.into()), Err(BatchError::TrailingBytes { count: 1 }));
}

#[test]
fn a_count_that_disagrees_with_the_last_offset_delta_is_refused() {
    let batch = with_byte(&two_records(), 60, 3);
    let expected = BatchError::Count { record_count: 3, last_offset_delta: 1 };
    assert_eq!(batch.check_count(), Err(expected));
    assert!(BatchBuilder::new().build().check_count().is_err(), "no records");
}

#[test]
fn more_or_fewer_records_than_counted_are_refused() {
    let more = with_byte(&with_byte(&two_records(), 60, 3), 26, 2);
    let fault = RecordFault::Truncated;
    assert_eq!(more.check_count(), Err(BatchError::Record { index: 2, fault }));

    let fewer = with_byte(&with_byte(&two_records(), 60, 1), 26, 0);
    let fault = RecordFault::BytesAfterLast;
    assert_eq!(fewer.check_count(), Err(BatchError::Record { index: 1, fault }));
    let read: Vec<_> = fewer.records().expect("uncompressed").collect();
    assert_eq!(read.len(), 2);
    assert_eq!(read[1], Err(BatchError::Record { index: 1, fault }));
}

#[test]
fn offset_deltas_must_count_from_zero() {
    let batch = BatchBuilder::new().record(NewRecord::of(b"x")).build();
    let broken = with_byte(&batch, HEADER_BYTES + 3, 2);
    let fault = RecordFault::OffsetDelta { found: 1 };
    assert_eq!(broken.check_count(), Err(BatchError::Record { index: 0, fault }));
}

#[test]
fn compressed_records_are_counted_by_the_header_only() {
    let zstd = BatchBuilder::new().record(NewRecord::of(b"x")).attributes(Attributes(4)).build();
    assert_eq!(zstd.attributes().compression(), Some(Compression::Zstd));
    assert_eq!(zstd.check_count(), Ok(()));
    assert!(matches!(zstd.records(), Err(BatchError::Compressed)));
    assert_eq!(Attributes(5).compression(), None);
}

#[test]
fn a_record_longer_than_its_content_is_refused() {
    let batch = BatchBuilder::new().record(NewRecord::of(b"xyz")).build();
    let value_length_at = HEADER_BYTES + 5;
    let broken = with_byte(&batch, value_length_at, 2 << 1);
    let read: Vec<_> = broken.records().expect("uncompressed").collect();
    assert!(matches!(read[..], [Err(BatchError::Record { index: 0, .. })]), "{read:?}");
}

#[test]
fn a_marker_has_kafkas_bytes_and_is_read_back() {
    for (kind, number) in [(MarkerKind::Abort, 0), (MarkerKind::Commit, 1)] {
        let marker = Marker {
            kind,
            stamp: STAMP,
            coordinator_epoch: CoordinatorEpoch::new(9),
            timestamp: WallTime::from_ms(1234),
        };
        let batch = marker.to_batch(Offset::new(42), LeaderEpoch::new(2));
        assert!(batch.attributes().is_control() && batch.attributes().is_transactional());
        assert_eq!((batch.raw_base_sequence(), batch.record_count()), (-1, 1));
        assert_eq!(batch.payload(), [32, 0, 0, 0, 8, 0, 0, 0, number, 12, 0, 0, 0, 0, 0, 9, 0]);
        assert_eq!(Marker::parse(&batch), Ok(Some(marker)));
    }
}

#[test]
fn what_is_no_marker_is_told_apart() {
    assert_eq!(Marker::parse(&two_records()), Ok(None));
    let empty = BatchBuilder::new().control().transactional().build();
    assert_eq!(Marker::parse(&empty), Ok(None));
    let other = BatchBuilder::new().control().record(NewRecord::of(b"x")).build();
    assert_eq!(Marker::parse(&other), Err(BatchError::NoMarker));
}
