//! Where the batches of a partition lie: extents, and the list of those that are still in memory.
//!
//! Purpose: one [`Extent`] says which bytes of which log file hold which offsets of one partition; an [`ExtentList`]
//! keeps them in 40 bytes each and finds the one that holds an offset. Invariants: LOG-20 (extents of a partition are
//! contiguous in offsets and ascend in the log). What it does not do: read bytes, know what is committed.

use std::{fmt, ops::Range};

use semel_events::{Decode, DecodeError, Encode, Reader};
use semel_types::{Offset, PartitionHandle};

/// A log file's number: dense from 1, never reused, also when its blocks are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileNumber(u64);

impl FileNumber {
    /// Wraps a number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of the file after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
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

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.0)
    }
}

/// A run of log files, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileRange {
    /// The first file.
    pub first: FileNumber,
    /// The last file, not before the first.
    pub last: FileNumber,
}

impl FileRange {
    /// The range of a single file.
    #[must_use]
    pub const fn of(file: FileNumber) -> Self {
        Self { first: file, last: file }
    }

    /// True if the file lies in the range.
    #[must_use]
    pub fn contains(&self, file: FileNumber) -> bool {
        self.first <= file && file <= self.last
    }

    /// True if some file lies in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Number of files from first to last.
    #[must_use]
    pub const fn width(&self) -> u64 {
        self.last.0 - self.first.0 + 1
    }
}

impl fmt::Display for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "files {}..={}", self.first.0, self.last.0)
    }
}

/// A place in the log: file, then byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LogPosition {
    /// The file.
    pub file: FileNumber,
    /// Bytes from the start of the file.
    pub position: u64,
}

/// The batches that one group wrote to one partition: they lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Which partition.
    pub partition: PartitionHandle,
    /// Offset of the first record.
    pub base_offset: Offset,
    /// Number of offsets covered, at least 1.
    pub count: u32,
    /// The file.
    pub file: FileNumber,
    /// Bytes from the start of the file.
    pub position: u64,
    /// Length in bytes.
    pub length: u32,
    /// Largest record timestamp, in milliseconds as the clients gave it.
    pub max_timestamp: i64,
}

impl Extent {
    /// The offset after the last record.
    #[must_use]
    pub const fn end_offset(&self) -> Offset {
        self.base_offset.plus(self.count)
    }

    pub(crate) const fn placed(&self) -> Placed {
        Placed {
            base_offset: self.base_offset,
            position: self.position,
            max_timestamp: self.max_timestamp,
            count: self.count,
            length: self.length,
            file: self.file,
        }
    }
}

/// An extent whose partition is known from where it stands. 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub base_offset: Offset,
    pub position: u64,
    pub max_timestamp: i64,
    pub count: u32,
    pub length: u32,
    pub file: FileNumber,
}

impl Placed {
    pub(crate) const fn end_offset(&self) -> Offset {
        self.base_offset.plus(self.count)
    }

    pub(crate) const fn at(&self) -> LogPosition {
        LogPosition { file: self.file, position: self.position }
    }

    pub(crate) const fn of(&self, partition: PartitionHandle) -> Extent {
        Extent {
            partition,
            base_offset: self.base_offset,
            count: self.count,
            file: self.file,
            position: self.position,
            length: self.length,
            max_timestamp: self.max_timestamp,
        }
    }
}

/// The extents of one partition that no side file holds, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtentList(Vec<Placed>);

impl ExtentList {
    pub(crate) fn as_slice(&self) -> &[Placed] {
        &self.0
    }

    pub(crate) fn last(&self) -> Option<&Placed> {
        self.0.last()
    }

    /// Appends the next extent.
    ///
    /// # Panics
    /// If it does not follow the last one (LOG-20).
    pub(crate) fn push(&mut self, next: Placed) {
        if let Some(last) = self.0.last() {
            assert!(next.base_offset == last.end_offset(), "LOG-20: extents of a partition are contiguous");
            assert!(next.at() > last.at(), "LOG-20: extents of a partition ascend in the log");
        }
        assert!(next.count > 0 && next.length > 0, "LOG-20: an extent holds records");
        self.0.push(next);
    }

    /// Index of the first extent that ends after `offset`.
    pub(crate) fn first_ending_after(&self, offset: Offset) -> usize {
        self.0.partition_point(|extent| extent.end_offset() <= offset)
    }

    /// The extents that lie in one file; they stand together.
    pub(crate) fn of_file(&self, file: FileNumber) -> Range<usize> {
        let start = self.0.partition_point(|extent| extent.file < file);
        let length = self.0[start..].partition_point(|extent| extent.file == file);
        start..start + length
    }

    /// Removes the first `count` extents and gives back room that stands mostly empty.
    pub(crate) fn drop_front(&mut self, count: usize) {
        self.0.drain(..count);
        if self.0.capacity() > 16 && self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(base: i64, count: u32, file: u64, position: u64) -> Placed {
        Placed {
            base_offset: Offset::new(base),
            position,
            max_timestamp: 0,
            count,
            length: 1,
            file: FileNumber::new(file),
        }
    }

    fn list() -> ExtentList {
        let mut list = ExtentList::default();
        for next in [placed(0, 3, 1, 0), placed(3, 2, 1, 9), placed(5, 1, 2, 0), placed(6, 4, 4, 7)] {
            list.push(next);
        }
        list
    }

    #[test]
    fn an_extent_in_memory_takes_at_most_40_bytes() {
        assert!(size_of::<Placed>() <= 40);
    }

    #[test]
    fn the_extent_of_each_offset_is_found() {
        let found: Vec<_> = (0..11).map(|offset| list().first_ending_after(Offset::new(offset))).collect();
        assert_eq!(found, [0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4]);
    }

    #[test]
    fn extents_of_a_file_stand_together() {
        let ranges: Vec<_> = (0..6).map(|file| list().of_file(FileNumber::new(file))).collect();
        assert_eq!(ranges, [0..0, 0..2, 2..3, 3..3, 3..4, 4..4]);
    }

    #[test]
    #[should_panic(expected = "LOG-20")]
    fn a_gap_between_extents_is_refused() {
        list().push(placed(11, 1, 5, 0));
    }

    #[test]
    #[should_panic(expected = "LOG-20")]
    fn an_extent_that_goes_back_in_the_log_is_refused() {
        list().push(placed(10, 1, 4, 7));
    }
}
