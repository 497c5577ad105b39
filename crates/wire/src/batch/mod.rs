//! Record batches (magic 2), seen through their 61-byte header.
//!
//! Purpose: what the broker must know of a batch without touching its records; walks over uncompressed records;
//! builders for tests, the demo and transaction markers.
//!
//! Invariants: a [`Batch`] is exactly one whole batch of magic 2. Its CRC is *not* checked until
//! [`Batch::verify_crc`]; nothing else here relies on it but [`Batch::payload_checksum`].
//!
//! What it does not do: no decompression, no rule about which batches a broker accepts.

mod builder;
mod error;
mod marker;
mod record;

use bytes::Bytes;
use semel_types::{
    LeaderEpoch, Offset, PayloadChecksum, ProducerEpoch, ProducerId, Sequence, SequenceRange, WallTime,
};

use crate::{RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, crc};

pub use builder::{BatchBuilder, NewRecord};
pub use error::{BatchError, RecordFault};
pub use marker::{Marker, MarkerKind};
pub use record::{Record, RecordHeader, RecordHeaders, RecordIter};

/// Bytes of a batch's header; the records follow.
pub const HEADER_BYTES: usize = 61;

/// Bytes before the ones that the length field counts: base offset and length.
const LENGTH_OVERHEAD_BYTES: usize = 12;

/// First byte that the CRC covers; base offset, length, leader epoch, magic and the CRC itself are outside.
const CRC_START: usize = 21;

/// The only format: Kafka 4 has given up magic 0 and 1.
const MAGIC: i8 = 2;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Where the records' timestamps come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker, on append.
    LogAppendTime,
}

/// A batch's attributes, bit by bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    const COMPRESSION: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// The compression; `None` for a number without meaning.
    #[must_use]
    pub const fn compression(self) -> Option<Compression> {
        match self.0 & Self::COMPRESSION {
            0 => Some(Compression::None),
            1 => Some(Compression::Gzip),
            2 => Some(Compression::Snappy),
            3 => Some(Compression::Lz4),
            4 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Where the timestamps come from.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Part of a transaction?
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// A control batch, such as a transaction marker?
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Does the base timestamp hold the time from which compaction may drop the batch?
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// One whole record batch of magic 2; a slice of whatever it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    bytes: Bytes,
}

impl Batch {
    /// Takes the first batch of `blob`, and leaves what follows it.
    ///
    /// # Errors
    ///
    /// [`BatchError::Truncated`], [`BatchError::Magic`] or [`BatchError::Length`]; `blob` is unchanged then.
    pub fn take_first(blob: &mut Bytes) -> Result<Self, BatchError> {
        let left = blob.len();
        // The magic byte stands at the same place in every format, so that an old one is named as such.
        let magic = *blob.get(16).ok_or(BatchError::Truncated { needed: HEADER_BYTES, left })? as i8;
        if magic != MAGIC {
            return Err(BatchError::Magic { magic });
        }
        let length = read_i32(blob, 8);
        let needed = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(LENGTH_OVERHEAD_BYTES))
            .filter(|needed| *needed >= HEADER_BYTES)
            .ok_or(BatchError::Length { length })?;
        if needed > left {
            return Err(BatchError::Truncated { needed, left });
        }
        let bytes = blob.split_to(needed);
        Ok(Self { bytes })
    }

    /// Takes `bytes` as exactly one batch.
    ///
    /// # Errors
    ///
    /// As [`Batch::take_first`], and [`BatchError::TrailingBytes`].
    pub fn parse(mut bytes: Bytes) -> Result<Self, BatchError> {
        let batch = Self::take_first(&mut bytes)?;
        match bytes.len() {
            0 => Ok(batch),
            count => Err(BatchError::TrailingBytes { count }),
        }
    }

    /// The whole batch, header included.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Gives the batch's bytes back.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The bytes after the header: the records, perhaps compressed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Offset of the first record; 0 from a producer.
    #[must_use]
    pub fn base_offset(&self) -> RawOffset {
        RawOffset(read_i64(&self.bytes, 0))
    }

    /// Offset of the last record.
    #[must_use]
    pub fn last_offset(&self) -> RawOffset {
        RawOffset(self.base_offset().get().saturating_add(i64::from(self.last_offset_delta())))
    }

    /// Epoch of the leader that appended it; -1 from a producer.
    #[must_use]
    pub fn leader_epoch(&self) -> RawLeaderEpoch {
        RawLeaderEpoch(read_i32(&self.bytes, 12))
    }

    /// The CRC32C that the batch claims.
    #[must_use]
    pub fn crc(&self) -> u32 {
        read_i32(&self.bytes, 17) as u32
    }

    /// Compression, timestamp type and flags.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        Attributes(read_i16(&self.bytes, 21))
    }

    /// Offset of the last record relative to the base offset.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        read_i32(&self.bytes, 23)
    }

    /// What the records' timestamps are relative to; `None` if the batch has none.
    #[must_use]
    pub fn base_timestamp(&self) -> Option<WallTime> {
        time(read_i64(&self.bytes, 27))
    }

    /// The largest timestamp; `None` if the batch has none.
    #[must_use]
    pub fn max_timestamp(&self) -> Option<WallTime> {
        time(read_i64(&self.bytes, 35))
    }

    /// The producer id as it stands there.
    #[must_use]
    pub fn raw_producer_id(&self) -> RawProducerId {
        RawProducerId(read_i64(&self.bytes, 43))
    }

    /// The producer id; `None` if negative.
    #[must_use]
    pub fn producer_id(&self) -> Option<ProducerId> {
        self.raw_producer_id().known()
    }

    /// The producer epoch as it stands there.
    #[must_use]
    pub fn raw_producer_epoch(&self) -> RawProducerEpoch {
        RawProducerEpoch(read_i16(&self.bytes, 51))
    }

    /// The producer epoch; `None` if negative.
    #[must_use]
    pub fn producer_epoch(&self) -> Option<ProducerEpoch> {
        self.raw_producer_epoch().known()
    }

    /// The first record's sequence as it stands there.
    #[must_use]
    pub fn raw_base_sequence(&self) -> i32 {
        read_i32(&self.bytes, 53)
    }

    /// The first record's sequence; `None` if negative.
    #[must_use]
    pub fn base_sequence(&self) -> Option<Sequence> {
        Sequence::from_wire(self.raw_base_sequence())
    }

    /// The sequences that the batch takes; `None` without a base sequence or without records.
    #[must_use]
    pub fn sequences(&self) -> Option<SequenceRange> {
        let count = u32::try_from(self.record_count()).ok().filter(|count| *count > 0)?;
        Some(SequenceRange::of(self.base_sequence()?, count))
    }

    /// How many records the batch claims to have.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        read_i32(&self.bytes, 57)
    }

    /// Computes the CRC32C and compares.
    ///
    /// # Errors
    ///
    /// [`BatchError::Crc`].
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.crc(), crc::crc32c(&self.bytes[CRC_START..]));
        if stored == computed { Ok(()) } else { Err(BatchError::Crc { stored, computed }) }
    }

    /// CRC32C of the payload, derived from the batch's CRC: right only if [`Batch::verify_crc`] has passed.
    #[must_use]
    pub fn payload_checksum(&self) -> PayloadChecksum {
        let header = crc::crc32c(&self.bytes[CRC_START..HEADER_BYTES]);
        let payload_length = self.bytes.len() - HEADER_BYTES;
        PayloadChecksum(crc::crc32c_of_rest(self.crc(), header, payload_length))
    }
}

/// The batches of a blob, one after another; ends after the first error.
pub fn split(blob: Bytes) -> impl Iterator<Item = Result<Batch, BatchError>> {
    let mut rest = Some(blob);
    core::iter::from_fn(move || {
        let blob = rest.as_mut().filter(|blob| !blob.is_empty())?;
        let batch = Batch::take_first(blob);
        if batch.is_err() {
            rest = None;
        }
        Some(batch)
    })
}

/// Sets the two fields that a broker fills in on append; the CRC does not cover them.
///
/// # Panics
///
/// If `batch` is shorter than a header.
pub fn patch_base_offset_and_leader_epoch(batch: &mut [u8], base_offset: Offset, leader_epoch: LeaderEpoch) {
    assert!(batch.len() >= HEADER_BYTES, "a batch has a whole header");
    batch[..8].copy_from_slice(&base_offset.get().to_be_bytes());
    batch[12..16].copy_from_slice(&leader_epoch.get().to_be_bytes());
}

const fn time(raw_ms: i64) -> Option<WallTime> {
    if raw_ms < 0 { None } else { Some(WallTime::from_ms(raw_ms)) }
}

fn read_array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

fn read_i64(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(read_array(bytes, at))
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(read_array(bytes, at))
}

fn read_i16(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes(read_array(bytes, at))
}
