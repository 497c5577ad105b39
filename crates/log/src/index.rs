//! Extents and the entries that side files and snapshots hold.

use std::fmt;

use semel_events::{AbortedTransaction, Decode, DecodeError, Encode, Reader};
use semel_types::{Offset, PartitionHandle};

/// A log file's number: dense from 1, never reused, also when its blocks are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileNumber(u64);

impl FileNumber {
    /// Wraps a number.
    #[must_use]
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The file after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.0)
    }
}

/// Whole batches of one partition that lie side by side in one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Whose batches.
    pub partition: PartitionHandle,
    /// Offset of the first record.
    pub base_offset: Offset,
    /// Offsets from the first record to the one after the last (a marker's offset in between counts).
    pub count: u32,
    /// Which file.
    pub file: FileNumber,
    /// Where in it, in bytes.
    pub position: u64,
    /// How long, in bytes.
    pub length: u32,
    /// Largest record timestamp in milliseconds.
    pub max_timestamp: i64,
}

/// What the index knows of some files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexEntries {
    /// Extents, by partition and offset.
    pub extents: Vec<Extent>,
    /// Aborted transactions, by partition and offset of their marker.
    pub aborted: Vec<(PartitionHandle, AbortedTransaction)>,
    /// Files whose entries stand in a synced side file instead.
    pub side_files: Vec<FileNumber>,
}

impl Encode for FileNumber {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for FileNumber {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u64::decode(reader).map(Self)
    }
}

impl Encode for Extent {
    fn encode(&self, out: &mut Vec<u8>) {
        self.partition.encode(out);
        self.base_offset.encode(out);
        self.count.encode(out);
        self.file.encode(out);
        self.position.encode(out);
        self.length.encode(out);
        self.max_timestamp.encode(out);
    }
}

impl Decode for Extent {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            partition: Decode::decode(reader)?,
            base_offset: Decode::decode(reader)?,
            count: Decode::decode(reader)?,
            file: Decode::decode(reader)?,
            position: Decode::decode(reader)?,
            length: Decode::decode(reader)?,
            max_timestamp: Decode::decode(reader)?,
        })
    }
}

impl IndexEntries {
    /// Appends the written form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.extents.encode(out);
        (self.aborted.len() as u64).encode(out);
        for (partition, aborted) in &self.aborted {
            partition.encode(out);
            aborted.encode(out);
        }
        self.side_files.encode(out);
    }

    /// Reads the written form.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let extents = Decode::decode(reader)?;
        let length = reader.length()?;
        let mut aborted = Vec::with_capacity(length.min(1024));
        for _ in 0..length {
            aborted.push((Decode::decode(reader)?, Decode::decode(reader)?));
        }
        Ok(Self {
            extents,
            aborted,
            side_files: Decode::decode(reader)?,
        })
    }
}
