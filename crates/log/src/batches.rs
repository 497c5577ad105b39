//! Walking stored batches by their headers.
//!
//! Purpose: find where batches begin and end inside an extent, and the few header fields that reading needs (record
//! batch format version 2: base offset at byte 0, length at 8, leader epoch at 12, magic at 16, CRC-32C of all that
//! follows it at 17, attributes at 21, last offset delta at 23, base timestamp at 27, largest timestamp at 35, records
//! at 61). What it does not do: judge what it finds (see [`crate::read`]), decompress.

use std::io;

use bytes::{Buf, Bytes};
use semel_types::{LeaderEpoch, Offset};

/// Bytes of a batch before its records.
pub(crate) const HEADER: usize = 61;

/// Where the bytes under a batch's checksum begin.
const CHECKED: usize = 21;

const COMPRESSION: u16 = 0x07;
const LOG_APPEND_TIME: u16 = 0x08;

/// What reading needs of a batch's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHeader {
    pub base_offset: Offset,
    /// The whole batch, in bytes.
    pub length: usize,
    /// CRC-32C of the bytes from 21 on.
    pub checksum: u32,
    pub leader_epoch: LeaderEpoch,
    pub attributes: u16,
    pub end_offset: Offset,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub records: u32,
}

impl BatchHeader {
    /// `None` if the bytes begin no record batch.
    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let mut at = &bytes[..];
        let base_offset = Offset::new(at.get_i64());
        let length = u32::try_from(at.get_i32()).ok()? as usize + 12;
        let leader_epoch = LeaderEpoch::new(at.get_i32());
        let magic = at.get_u8();
        let checksum = at.get_u32();
        let attributes = at.get_u16();
        let last_offset_delta = u32::try_from(at.get_i32()).ok()?;
        let (base_timestamp, max_timestamp) = (at.get_i64(), at.get_i64());
        at.advance(14);
        let records = u32::try_from(at.get_i32()).ok()?;
        let end_offset = base_offset.plus(last_offset_delta.checked_add(1)?);
        (magic == 2 && length >= HEADER).then_some(Self {
            base_offset,
            length,
            checksum,
            leader_epoch,
            attributes,
            end_offset,
            base_timestamp,
            max_timestamp,
            records,
        })
    }

    pub(crate) const fn is_compressed(&self) -> bool {
        self.attributes & COMPRESSION != 0
    }

    pub(crate) const fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }
}

/// Bytes that lie side by side in a file but not in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces(pub Vec<Bytes>);

impl Pieces {
    /// Copies `into.len()` bytes from `at`; false if they are not all there.
    fn copy(&self, at: usize, into: &mut [u8]) -> bool {
        let mut skip = at;
        let mut filled = 0;
        for piece in &self.0 {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let part = &piece[skip..piece.len().min(skip + into.len() - filled)];
            into[filled..filled + part.len()].copy_from_slice(part);
            (skip, filled) = (0, filled + part.len());
            if filled == into.len() {
                return true;
            }
        }
        into.is_empty()
    }

    /// The bytes from `from` to `to`, without copying.
    pub(crate) fn slice(&self, from: usize, to: usize) -> Vec<Bytes> {
        let mut start = 0;
        let mut slices = Vec::new();
        for piece in &self.0 {
            let end = start + piece.len();
            if start < to && from < end {
                slices.push(piece.slice(from.max(start) - start..to.min(end) - start));
            }
            start = end;
        }
        slices
    }

    /// The bytes of the batch header at `at`, `None` if they are not all there.
    pub(crate) fn header(&self, at: usize) -> Option<[u8; HEADER]> {
        let mut bytes = [0; HEADER];
        self.copy(at, &mut bytes).then_some(bytes)
    }

    /// The checksum that the batch in `from..to` must have.
    pub(crate) fn checksum(&self, from: usize, to: usize) -> u32 {
        let from = from + CHECKED;
        let (mut start, mut checksum) = (0, 0);
        for piece in &self.0 {
            let end = start + piece.len();
            if start < to && from < end {
                let part = &piece[from.max(start) - start..to.min(end) - start];
                checksum = crc32c::crc32c_append(checksum, part);
            }
            start = end;
        }
        checksum
    }
}

pub(crate) fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// One record of an uncompressed batch, as far as timestamps need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordStamp {
    pub offset: Offset,
    pub timestamp: i64,
}

/// The records of an uncompressed batch, in order; stops at the first that does not parse.
pub(crate) fn record_stamps(header: BatchHeader, batch: &[u8]) -> impl Iterator<Item = RecordStamp> {
    let mut rest = batch.get(HEADER..).unwrap_or_default();
    (0..header.records).map_while(move |_| {
        let length = usize::try_from(varint(&mut rest)?).ok()?;
        let (mut record, after) = rest.split_at_checked(length)?;
        rest = after;
        record = record.get(1..)?;
        let timestamp = header.base_timestamp.wrapping_add(varint(&mut record)?);
        let delta = u32::try_from(varint(&mut record)?).ok()?;
        let timestamp = if header.is_log_append_time() { header.max_timestamp } else { timestamp };
        Some(RecordStamp { offset: header.base_offset.plus(delta), timestamp })
    })
}

/// A zigzag variable-length number.
fn varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut raw = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        raw |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((raw >> 1) as i64 ^ -((raw & 1) as i64));
        }
    }
    None
}
