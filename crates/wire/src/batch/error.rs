//! What can be wrong with a batch.

use core::fmt;

/// Why bytes are no batch, or a batch is not what it claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchError {
    /// The bytes end before the batch does.
    Truncated {
        /// Bytes of the batch, or of a header if not even that is there.
        needed: usize,
        /// Bytes that were there.
        left: usize,
    },
    /// An old or unknown format.
    Magic {
        /// Its number; 2 is the only one allowed.
        magic: i8,
    },
    /// A length field that no batch can have.
    Length {
        /// The length claimed.
        length: i32,
    },
    /// Bytes after the batch, where only one was expected.
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// The checksum does not match.
    Crc {
        /// The one in the header.
        stored: u32,
        /// The one of the bytes.
        computed: u32,
    },
    /// The record count is negative or does not agree with the last offset delta.
    Count {
        /// Records claimed.
        record_count: i32,
        /// The header's last offset delta; one less than the count in a sound batch.
        last_offset_delta: i32,
    },
    /// The records are compressed (or marked so with an unknown number) and cannot be walked.
    Compressed,
    /// A record is not what it should be.
    Record {
        /// The record's place in the batch, from 0.
        index: u32,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A control batch that is no transaction marker.
    NoMarker,
}

/// What can be wrong with one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordFault {
    /// It ends after the batch, or something in it ends after the record.
    Truncated,
    /// A negative length where there is no null.
    Length,
    /// A variable-length number longer than its type.
    Varint,
    /// Its offset delta is not its place.
    OffsetDelta {
        /// The delta found.
        found: i32,
    },
    /// The record is longer than its content.
    Slack,
    /// Bytes behind the last record.
    BytesAfterLast,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => write!(f, "batch of {needed} bytes, {left} present"),
            Self::Magic { magic } => write!(f, "batch of format {magic}, only 2 is known"),
            Self::Length { length } => write!(f, "batch length {length}"),
            Self::TrailingBytes { count } => write!(f, "{count} bytes after the batch"),
            Self::Crc { stored, computed } => {
                write!(f, "batch claims checksum {stored:08x}, its bytes have {computed:08x}")
            }
            Self::Count { record_count, last_offset_delta } => {
                write!(f, "batch of {record_count} records ends at offset delta {last_offset_delta}")
            }
            Self::Compressed => f.write_str("compressed records cannot be walked"),
            Self::Record { index, fault } => write!(f, "record {index}: {fault}"),
            Self::NoMarker => f.write_str("not a transaction marker"),
        }
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("cut short"),
            Self::Length => f.write_str("negative length"),
            Self::Varint => f.write_str("variable-length number too long"),
            Self::OffsetDelta { found } => write!(f, "offset delta {found}"),
            Self::Slack => f.write_str("longer than its content"),
            Self::BytesAfterLast => f.write_str("should not be there"),
        }
    }
}

impl core::error::Error for BatchError {}
