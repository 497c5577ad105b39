//! Makes batches: for tests, the demo, and markers.

use alloc::vec::Vec;

use bytes::Bytes;
use semel_types::{LeaderEpoch, Offset, ProducerStamp, Sequence, WallTime};

use crate::{RawProducerEpoch, RawProducerId, crc};

use super::{Attributes, Batch, CRC_START, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC};

/// A record to be put into a batch.
#[derive(Clone, Copy, Default, Debug)]
pub struct NewRecord<'a> {
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
    /// Its timestamp; `None` for none (the batch should have none at all, then).
    pub timestamp: Option<WallTime>,
    /// Its headers.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

impl<'a> NewRecord<'a> {
    /// A record that has a value and nothing else.
    #[must_use]
    pub fn of(value: &'a [u8]) -> Self {
        Self { value: Some(value), ..Self::default() }
    }
}

/// Builds an uncompressed batch, as a producer would send it (base offset 0, no leader epoch) unless told otherwise.
///
/// ```
/// use semel_types::{ProducerEpoch, ProducerId, ProducerStamp, Sequence};
/// use semel_wire::batch::{BatchBuilder, NewRecord};
///
/// let (id, epoch) = (ProducerId::new(7), ProducerEpoch::ZERO);
/// let batch = BatchBuilder::new()
///     .stamped(ProducerStamp { id, epoch }, Sequence::ZERO)
///     .transactional()
///     .record(NewRecord::of(b"hello"))
///     .build();
/// assert_eq!(batch.verify_crc(), Ok(()));
/// assert_eq!(batch.producer_id(), Some(id));
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    producer_id: RawProducerId,
    producer_epoch: RawProducerEpoch,
    base_sequence: i32,
    base_timestamp_ms: i64,
    max_timestamp_ms: i64,
    count: i32,
    records: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// A batch of nobody, without records.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            base_offset: 0,
            leader_epoch: -1,
            attributes: 0,
            producer_id: RawProducerId::NONE,
            producer_epoch: RawProducerEpoch::NONE,
            base_sequence: -1,
            base_timestamp_ms: -1,
            max_timestamp_ms: -1,
            count: 0,
            records: Vec::new(),
        }
    }

    /// Stamps producer id, epoch and the first record's sequence.
    #[must_use]
    pub fn stamped(mut self, stamp: ProducerStamp, base_sequence: Sequence) -> Self {
        self.base_sequence = base_sequence.get();
        self.identity(stamp)
    }

    /// Stamps producer id and epoch, but no sequence.
    pub(super) fn identity(mut self, stamp: ProducerStamp) -> Self {
        self.producer_id = stamp.id.into();
        self.producer_epoch = stamp.epoch.into();
        self
    }

    /// Stamps whatever is given, sound or not; for tests of what a broker refuses.
    #[must_use]
    pub const fn stamped_raw(
        mut self,
        producer_id: RawProducerId,
        producer_epoch: RawProducerEpoch,
        base_sequence: i32,
    ) -> Self {
        self.producer_id = producer_id;
        self.producer_epoch = producer_epoch;
        self.base_sequence = base_sequence;
        self
    }

    /// Makes the batch part of a transaction.
    #[must_use]
    pub const fn transactional(mut self) -> Self {
        self.attributes |= Attributes::TRANSACTIONAL;
        self
    }

    /// Makes it a control batch.
    #[must_use]
    pub const fn control(mut self) -> Self {
        self.attributes |= Attributes::CONTROL;
        self
    }

    /// Sets the attributes as a whole, sound or not.
    #[must_use]
    pub const fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes.0;
        self
    }

    /// Gives it a place in a log.
    #[must_use]
    pub const fn placed(mut self, base_offset: Offset, leader_epoch: LeaderEpoch) -> Self {
        self.base_offset = base_offset.get();
        self.leader_epoch = leader_epoch.get();
        self
    }

    /// Adds a record. The first one's timestamp is what all others are relative to.
    #[must_use]
    pub fn record(mut self, record: NewRecord<'_>) -> Self {
        let timestamp_ms = record.timestamp.map_or(-1, WallTime::as_ms);
        if self.count == 0 {
            self.base_timestamp_ms = timestamp_ms;
        }
        self.max_timestamp_ms = self.max_timestamp_ms.max(timestamp_ms);
        let mut content = Vec::from([0]);
        put_varint(&mut content, timestamp_ms.wrapping_sub(self.base_timestamp_ms));
        put_varint(&mut content, i64::from(self.count));
        put_bytes(&mut content, record.key);
        put_bytes(&mut content, record.value);
        put_varint(&mut content, record.headers.len() as i64);
        for (key, value) in record.headers {
            put_bytes(&mut content, Some(key.as_bytes()));
            put_bytes(&mut content, *value);
        }
        put_bytes(&mut self.records, Some(&content));
        self.count += 1;
        self
    }

    /// Adds many records.
    #[must_use]
    pub fn records<'a>(self, records: impl IntoIterator<Item = NewRecord<'a>>) -> Self {
        records.into_iter().fold(self, Self::record)
    }

    /// The batch, with its checksum.
    ///
    /// # Panics
    ///
    /// If it is longer than 2 GiB.
    #[must_use]
    pub fn build(self) -> Batch {
        let length = HEADER_BYTES - LENGTH_OVERHEAD_BYTES + self.records.len();
        let length = i32::try_from(length).expect("a batch is shorter than 2 GiB");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.records.len());
        bytes.extend(self.base_offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.leader_epoch.to_be_bytes());
        bytes.extend(MAGIC.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.attributes.to_be_bytes());
        bytes.extend((self.count - 1).to_be_bytes());
        bytes.extend(self.base_timestamp_ms.to_be_bytes());
        bytes.extend(self.max_timestamp_ms.to_be_bytes());
        bytes.extend(self.producer_id.get().to_be_bytes());
        bytes.extend(self.producer_epoch.get().to_be_bytes());
        bytes.extend(self.base_sequence.to_be_bytes());
        bytes.extend(self.count.to_be_bytes());
        bytes.extend(self.records);
        let crc = crc::crc32c(&bytes[CRC_START..]);
        bytes[17..CRC_START].copy_from_slice(&crc.to_be_bytes());
        Batch::parse(Bytes::from(bytes)).expect("the builder makes whole batches")
    }
}

/// A zigzag number of variable length.
fn put_varint(bytes: &mut Vec<u8>, value: i64) {
    let mut raw = (value << 1 ^ value >> 63) as u64;
    while raw > 0x7f {
        bytes.push((raw & 0x7f) as u8 | 0x80);
        raw >>= 7;
    }
    bytes.push(raw as u8);
}

/// A length, -1 for null, and that many bytes.
fn put_bytes(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    put_varint(bytes, value.map_or(-1, |value| value.len() as i64));
    bytes.extend(value.unwrap_or_default());
}
