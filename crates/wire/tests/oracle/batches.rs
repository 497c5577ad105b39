//! Record batches against the oracle: it reads what we build, and we read what it builds.

use bytes::{Bytes, BytesMut};
use kafka_protocol::{
    protocol::StrBytes,
    records::{
        Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
        RecordEncodeOptions, TimestampType as TheirTimestampType,
    },
};
use semel_types::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, ProducerStamp, Sequence, WallTime,
};
use semel_wire::{
    Samples,
    batch::{self, Batch, BatchBuilder, Marker, MarkerKind, NewRecord, Record},
};

/// What a record is, to both.
type Plain = (i64, i64, Option<Bytes>, Option<Bytes>, Vec<(Bytes, Option<Bytes>)>);

fn ours(record: Record) -> Plain {
    let headers = record.headers().map(|header| (header.key, header.value)).collect();
    let timestamp_ms = record.timestamp.map_or(-1, WallTime::as_ms);
    (record.offset.get(), timestamp_ms, record.key, record.value, headers)
}

fn theirs(record: TheirRecord) -> Plain {
    let headers = record.headers.into_iter().map(|(key, value)| (key.into_bytes(), value)).collect();
    (record.offset, record.timestamp, record.key, record.value, headers)
}

fn stamp(samples: &mut Samples) -> ProducerStamp {
    ProducerStamp {
        id: ProducerId::new((samples.next() >> 1) as i64),
        epoch: ProducerEpoch::new((samples.next() & 0x7fff) as i16),
    }
}

fn maybe_bytes(samples: &mut Samples) -> Option<Bytes> {
    (samples.below(3) > 0).then(|| samples.bytes())
}

#[test]
fn the_oracle_reads_what_we_build() {
    for seed in 0..300 {
        let mut samples = Samples::new(seed);
        let stamp = stamp(&mut samples);
        let base = 1 + samples.below(1 << 40) as i64;
        let mut builder = BatchBuilder::new()
            .stamped(stamp, Sequence::ZERO.plus(samples.below(1000) as u32))
            .placed(Offset::new(base), LeaderEpoch::new(3));
        let mut expected = Vec::new();
        for index in 0..=samples.below(5) as i64 {
            let timestamp_ms = samples.below(1 << 42) as i64;
            let (key, value, header) =
                (maybe_bytes(&mut samples), maybe_bytes(&mut samples), maybe_bytes(&mut samples));
            builder = builder.record(NewRecord {
                key: key.as_deref(),
                value: value.as_deref(),
                timestamp: Some(WallTime::from_ms(timestamp_ms)),
                headers: &[("name", header.as_deref())],
            });
            expected.push((base + index, timestamp_ms, key, value, vec![("name".into(), header)]));
        }
        let batch = builder.transactional().build();
        let read = RecordBatchDecoder::decode(&mut batch.bytes().clone()).expect("the oracle takes it");
        let first = &read.records[0];
        assert_eq!((first.producer_id, first.producer_epoch), (stamp.id.get(), stamp.epoch.get()));
        assert_eq!(Some(first.sequence), batch.base_sequence().map(Sequence::get));
        assert_eq!((first.partition_leader_epoch, first.transactional, first.control), (3, true, false));
        assert_eq!(read.records.into_iter().map(theirs).collect::<Vec<_>>(), expected);
        let again: Result<Vec<_>, _> =
            batch.records().expect("uncompressed").map(|read| read.map(ours)).collect();
        assert_eq!(again, Ok(expected));
    }
}

#[test]
fn the_oracle_reads_our_markers() {
    for kind in [MarkerKind::Abort, MarkerKind::Commit] {
        let marker = Marker {
            kind,
            stamp: stamp(&mut Samples::new(1)),
            coordinator_epoch: CoordinatorEpoch::new(9),
            timestamp: WallTime::from_ms(1234),
        };
        let batch = marker.to_batch(Offset::new(42), LeaderEpoch::new(2));
        let read = RecordBatchDecoder::decode(&mut batch.bytes().clone()).expect("the oracle takes it");
        let [record] = &read.records[..] else { panic!("one record") };
        assert!(record.control && record.transactional);
        assert_eq!((record.producer_id, record.offset), (marker.stamp.id.get(), 42));
        assert_eq!(record.timestamp, 1234);
    }
}

#[test]
fn we_read_what_the_oracle_builds() {
    for seed in 0..300 {
        let mut samples = Samples::new(seed);
        let stamp = stamp(&mut samples);
        let (base, count) = (samples.below(1 << 40) as i64, 1 + samples.below(5) as i64);
        let records: Vec<_> = (0..count)
            .map(|index| {
                let mut record = TheirRecord {
                    transactional: true,
                    control: false,
                    delete_horizon: false,
                    partition_leader_epoch: 3,
                    producer_id: stamp.id.get(),
                    producer_epoch: stamp.epoch.get(),
                    timestamp_type: TheirTimestampType::Creation,
                    offset: base + index,
                    sequence: 5 + index as i32,
                    timestamp: samples.below(1 << 42) as i64,
                    key: maybe_bytes(&mut samples),
                    value: maybe_bytes(&mut samples),
                    headers: Default::default(),
                };
                record.headers.insert(StrBytes::from_static_str("h"), maybe_bytes(&mut samples));
                record
            })
            .collect();
        let (version, compression) = (2, TheirCompression::None);
        let mut blob = BytesMut::new();
        RecordBatchEncoder::encode(&mut blob, &records, &RecordEncodeOptions { version, compression })
            .expect("the oracle builds it");
        let batches: Result<Vec<Batch>, _> = batch::split(blob.freeze()).collect();
        let batches = batches.expect("sound batches");
        assert_eq!(batches[0].base_sequence(), Sequence::from_wire(5));
        let mut read = Vec::new();
        for batch in &batches {
            assert_eq!((batch.verify_crc(), batch.check_count()), (Ok(()), Ok(())));
            assert_eq!((batch.producer_id(), batch.producer_epoch()), (Some(stamp.id), Some(stamp.epoch)));
            assert!(batch.attributes().is_transactional() && !batch.attributes().is_control());
            assert_eq!(batch.leader_epoch().get(), 3);
            read.extend(batch.records().expect("uncompressed").map(|record| record.map(ours)));
        }
        let read: Result<Vec<_>, _> = read.into_iter().collect();
        assert_eq!(read, Ok(records.into_iter().map(theirs).collect()));
    }
}
