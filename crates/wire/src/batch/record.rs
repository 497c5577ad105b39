//! Uncompressed records, one after another.

use bytes::Bytes;
use semel_types::WallTime;

use crate::RawOffset;

use super::{Attributes, Batch, BatchError, Compression, HEADER_BYTES, RecordFault, TimestampType};

/// One record; key, value and headers are slices of its batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its offset: the batch's base offset plus its delta.
    pub offset: RawOffset,
    /// Its offset relative to the batch's base offset.
    pub offset_delta: i32,
    /// Its timestamp; `None` if it has none.
    pub timestamp: Option<WallTime>,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value.
    pub value: Option<Bytes>,
    headers: RecordHeaders,
}

/// One header of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    /// The header's name; UTF-8 by convention, not checked.
    pub key: Bytes,
    /// Its value.
    pub value: Option<Bytes>,
}

/// The headers of a record, read one at a time; they were checked together with the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordHeaders {
    left: u32,
    bytes: Bytes,
}

impl Record {
    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> RecordHeaders {
        self.headers.clone()
    }
}

impl Iterator for RecordHeaders {
    type Item = RecordHeader;

    fn next(&mut self) -> Option<RecordHeader> {
        self.left = self.left.checked_sub(1)?;
        let mut cursor = Cursor::new(&self.bytes);
        let header = (cursor.slice(), cursor.slice());
        let at = cursor.at;
        let (Ok(Some(key)), Ok(value)) = header else {
            unreachable!("headers are checked when their record is read")
        };
        let header = RecordHeader {
            key: self.bytes.slice(key.start..key.end),
            value: value.map(|value| self.bytes.slice(value.start..value.end)),
        };
        self.bytes = self.bytes.slice(at..);
        Some(header)
    }
}

impl Batch {
    /// Checks that the header's count agrees with its last offset delta and, in an uncompressed batch, that there are
    /// exactly that many records with offset deltas 0, 1, 2 and so on. Records are walked by their lengths; what is
    /// in them is left to [`Batch::records`]. Compressed batches, also of an unknown compression, are judged by their
    /// header alone.
    ///
    /// # Errors
    ///
    /// [`BatchError::Count`] or [`BatchError::Record`].
    pub fn check_count(&self) -> Result<(), BatchError> {
        let (record_count, last_offset_delta) = (self.record_count(), self.last_offset_delta());
        if record_count < 1 || i64::from(last_offset_delta) != i64::from(record_count) - 1 {
            return Err(BatchError::Count { record_count, last_offset_delta });
        }
        if self.attributes().compression() == Some(Compression::None) {
            self.walk_lengths(record_count as u32)?;
        }
        Ok(())
    }

    fn walk_lengths(&self, count: u32) -> Result<(), BatchError> {
        let mut cursor = Cursor::new(self.payload());
        for index in 0..count {
            let found = cursor.offset_delta().map_err(|fault| BatchError::Record { index, fault })?;
            if i64::from(found) != i64::from(index) {
                let fault = RecordFault::OffsetDelta { found };
                return Err(BatchError::Record { index, fault });
            }
        }
        cursor.expect_end(count)
    }

    /// The records of an uncompressed batch, each read and checked in full.
    ///
    /// # Errors
    ///
    /// [`BatchError::Compressed`]; the iterator itself yields [`BatchError::Record`] and then ends.
    pub fn records(&self) -> Result<RecordIter, BatchError> {
        if self.attributes().compression() != Some(Compression::None) {
            return Err(BatchError::Compressed);
        }
        Ok(RecordIter {
            batch: self.clone(),
            at: HEADER_BYTES,
            index: 0,
            count: u32::try_from(self.record_count()).unwrap_or(0),
        })
    }
}

/// See [`Batch::records`].
#[derive(Clone, Debug)]
pub struct RecordIter {
    batch: Batch,
    at: usize,
    index: u32,
    count: u32,
}

impl Iterator for RecordIter {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.batch.bytes().slice(self.at..);
        let mut cursor = Cursor::new(&rest);
        if self.index >= self.count {
            let ended = cursor.expect_end(self.index);
            self.at = self.batch.bytes().len();
            return ended.err().map(Err);
        }
        let index = self.index;
        let read = self.read(&mut cursor).map_err(|fault| BatchError::Record { index, fault });
        if read.is_err() {
            (self.index, self.at) = (self.count, self.batch.bytes().len());
        }
        Some(read)
    }
}

impl RecordIter {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<Record, RecordFault> {
        let length = cursor.length()?;
        let start = self.at + cursor.at;
        let content = cursor.take(length)?;
        let mut inner = Cursor::new(content);
        inner.take(1)?;
        let timestamp_delta = inner.varint64()?;
        let offset_delta = inner.varint32()?;
        let (key, value) = (inner.slice()?, inner.slice()?);
        let headers = self.headers(&mut inner, start)?;
        let bytes = self.batch.bytes();
        let slice = |range: Range| bytes.slice(start + range.start..start + range.end);
        let record = Record {
            offset: RawOffset(self.batch.base_offset().get().saturating_add(i64::from(offset_delta))),
            offset_delta,
            timestamp: self.timestamp(timestamp_delta),
            key: key.map(slice),
            value: value.map(slice),
            headers,
        };
        self.at = start + length;
        self.index += 1;
        Ok(record)
    }

    /// Checks the headers, up to the end of the record that starts at `start`.
    fn headers(&self, inner: &mut Cursor<'_>, start: usize) -> Result<RecordHeaders, RecordFault> {
        let left = u32::try_from(inner.varint32()?).map_err(|_| RecordFault::Length)?;
        let from = inner.at;
        for _ in 0..left {
            inner.slice()?.ok_or(RecordFault::Length)?;
            inner.slice()?;
        }
        if inner.at != inner.bytes.len() {
            return Err(RecordFault::Slack);
        }
        let bytes = self.batch.bytes().slice(start + from..start + inner.at);
        Ok(RecordHeaders { left, bytes })
    }

    fn timestamp(&self, delta: i64) -> Option<WallTime> {
        let attributes: Attributes = self.batch.attributes();
        match attributes.timestamp_type() {
            TimestampType::LogAppendTime => self.batch.max_timestamp(),
            TimestampType::CreateTime => {
                let base = self.batch.base_timestamp()?;
                super::time(base.as_ms().saturating_add(delta))
            }
        }
    }
}

/// A slice of a cursor's bytes.
#[derive(Clone, Copy)]
struct Range {
    start: usize,
    end: usize,
}

/// Reads the variable-length numbers of records.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], RecordFault> {
        let end = self.at.checked_add(length).ok_or(RecordFault::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(RecordFault::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    /// A zigzag number of at most 64 bits.
    fn varint64(&mut self) -> Result<i64, RecordFault> {
        let mut raw = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(RecordFault::Truncated)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            raw |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
            }
        }
        Err(RecordFault::Varint)
    }

    fn varint32(&mut self) -> Result<i32, RecordFault> {
        i32::try_from(self.varint64()?).map_err(|_| RecordFault::Varint)
    }

    fn length(&mut self) -> Result<usize, RecordFault> {
        usize::try_from(self.varint32()?).map_err(|_| RecordFault::Length)
    }

    /// A length, -1 for null, and that many bytes.
    fn slice(&mut self) -> Result<Option<Range>, RecordFault> {
        let length = self.varint32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| RecordFault::Length)?;
        let start = self.at;
        self.take(length)?;
        Ok(Some(Range { start, end: self.at }))
    }

    /// Passes over one record and returns its offset delta.
    fn offset_delta(&mut self) -> Result<i32, RecordFault> {
        let length = self.length()?;
        let mut inner = Cursor::new(self.take(length)?);
        inner.take(1)?;
        inner.varint64()?;
        inner.varint32()
    }

    fn expect_end(&self, index: u32) -> Result<(), BatchError> {
        if self.at == self.bytes.len() {
            return Ok(());
        }
        let fault = RecordFault::BytesAfterLast;
        Err(BatchError::Record { index, fault })
    }
}
