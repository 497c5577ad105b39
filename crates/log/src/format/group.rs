//! A group: header, index directory, events, payloads, padding.

use semel_events::{DecodeError, Reader};
use semel_types::{LogSequence, ShardEpoch, ShardId};

use super::{VERSION, field};
use crate::{FileNumber, IndexEntries, LogPosition as Place, disk::BLOCK};

const MAGIC: &[u8; 8] = b"SEMELGRP";
const CHECKED: usize = 12;

/// Bytes of a header, padding for later fields included.
pub const HEADER: usize = 128;

/// What a group is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Decisions.
    Events,
    /// The first group of a start: a new incarnation.
    Open,
    /// Nothing: witnesses the groups before.
    Rest,
    /// Nothing: the last group of a clean stop.
    Stop,
}

/// What a header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupHeader {
    /// What the group is.
    pub kind: Kind,
    /// Its writer answers before it syncs: groups after this one may have been acknowledged and lost.
    pub answers_early: bool,
    /// The data directory's identity, as in the file header.
    pub identity: u64,
    /// Whose log.
    pub shard: ShardId,
    /// Epoch of the shard at the start that wrote it.
    pub shard_epoch: ShardEpoch,
    /// Random at each start.
    pub incarnation: u64,
    /// Where it stands.
    pub place: Place,
    /// Sequence of its first event, or of the next one if it has none.
    pub first_sequence: LogSequence,
    /// Number of its events.
    pub count: u32,
    /// CRC of the header of the group before.
    pub previous: u32,
    /// Last sequence known durable when this was written.
    pub durable_before: LogSequence,
    /// End of the log known durable when this was written: witnesses groups without events too.
    pub durable_end: Place,
    /// Bytes of the index directory.
    pub index_length: u32,
    /// Bytes of the events.
    pub events_length: u32,
    /// Bytes of the payloads.
    pub payload_length: u32,
    /// CRC of index directory and events.
    pub section_checksum: u32,
    /// CRC of the payloads.
    pub payload_checksum: u32,
}

/// What stands where a group header should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A good header and its own CRC.
    Header(GroupHeader, u32),
    /// A good header of a newer format.
    Newer(u16),
    /// Nothing readable.
    Nothing,
}

impl Kind {
    const fn number(self) -> u8 {
        match self {
            Self::Events => 1,
            Self::Open => 2,
            Self::Rest => 3,
            Self::Stop => 4,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Events),
            2 => Some(Self::Open),
            3 => Some(Self::Rest),
            4 => Some(Self::Stop),
            _ => None,
        }
    }
}

impl GroupHeader {
    /// Sequence of its last event, or of the one before if it has none.
    pub const fn last_sequence(&self) -> LogSequence {
        LogSequence::new(self.first_sequence.get() + self.count as u64 - 1)
    }

    /// Bytes of index directory and events.
    pub const fn section_length(&self) -> usize {
        self.index_length as usize + self.events_length as usize
    }

    /// Bytes before the payloads.
    pub const fn payload_start(&self) -> usize {
        HEADER + self.section_length()
    }

    /// Bytes of the whole group, padding included.
    pub const fn total(&self) -> usize {
        padded(self.payload_start() + self.payload_length as usize)
    }

    /// Where the next group may start.
    pub const fn end(&self) -> Place {
        Place { file: self.place.file, position: self.place.position + self.total() as u64 }
    }

    /// Writes it to the front of `out` and returns its CRC.
    pub fn write(&self, out: &mut [u8]) -> u32 {
        let out = &mut out[..HEADER];
        out.fill(0);
        field::put(out, 0, MAGIC);
        field::put(out, 12, &VERSION.to_le_bytes());
        field::put(out, 14, &[self.kind.number(), u8::from(self.answers_early)]);
        field::put(out, 16, &self.identity.to_le_bytes());
        field::put(out, 24, &self.shard.get().to_le_bytes());
        field::put(out, 28, &self.shard_epoch.get().to_le_bytes());
        field::put(out, 32, &self.incarnation.to_le_bytes());
        field::put(out, 40, &self.place.file.get().to_le_bytes());
        field::put(out, 48, &self.place.position.to_le_bytes());
        field::put(out, 56, &self.first_sequence.get().to_le_bytes());
        field::put(out, 64, &self.durable_before.get().to_le_bytes());
        field::put(out, 72, &self.durable_end.file.get().to_le_bytes());
        field::put(out, 80, &self.durable_end.position.to_le_bytes());
        field::put(out, 88, &self.count.to_le_bytes());
        field::put(out, 92, &self.previous.to_le_bytes());
        field::put(out, 96, &self.index_length.to_le_bytes());
        field::put(out, 100, &self.events_length.to_le_bytes());
        field::put(out, 104, &self.payload_length.to_le_bytes());
        field::put(out, 108, &self.section_checksum.to_le_bytes());
        field::put(out, 112, &self.payload_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&out[CHECKED..]);
        field::put(out, 8, &checksum.to_le_bytes());
        checksum
    }

    /// Reads a header.
    pub fn read(bytes: &[u8]) -> Found {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Found::Nothing;
        }
        let (bytes, checksum) = (&bytes[..HEADER], field::get_u32(bytes, 8));
        if checksum != crc32c::crc32c(&bytes[CHECKED..]) {
            return Found::Nothing;
        }
        match (field::get_u16(bytes, 12), Kind::from_number(bytes[14])) {
            (VERSION, Some(kind)) => Found::Header(Self::fields(bytes, kind), checksum),
            (version, _) if version > VERSION => Found::Newer(version),
            _ => Found::Nothing,
        }
    }

    fn fields(bytes: &[u8], kind: Kind) -> Self {
        Self {
            kind,
            answers_early: bytes[15] != 0,
            identity: field::get_u64(bytes, 16),
            shard: ShardId::new(field::get_u32(bytes, 24)),
            shard_epoch: ShardEpoch::new(field::get_u32(bytes, 28)),
            incarnation: field::get_u64(bytes, 32),
            place: place(bytes, 40),
            first_sequence: LogSequence::new(field::get_u64(bytes, 56)),
            durable_before: LogSequence::new(field::get_u64(bytes, 64)),
            durable_end: place(bytes, 72),
            count: field::get_u32(bytes, 88),
            previous: field::get_u32(bytes, 92),
            index_length: field::get_u32(bytes, 96),
            events_length: field::get_u32(bytes, 100),
            payload_length: field::get_u32(bytes, 104),
            section_checksum: field::get_u32(bytes, 108),
            payload_checksum: field::get_u32(bytes, 112),
        }
    }
}

/// Reads a place from a file number and the position behind it.
fn place(bytes: &[u8], at: usize) -> Place {
    Place { file: FileNumber::new(field::get_u64(bytes, at)), position: field::get_u64(bytes, at + 8) }
}

/// Rounded up to whole blocks.
pub const fn padded(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK) * BLOCK
}

/// Where the positions of a group's index directory count from: the start of its payloads.
pub const fn index_origin(header: &GroupHeader) -> Place {
    Place { file: header.place.file, position: header.place.position + header.payload_start() as u64 }
}

/// Reads the index directory of a group.
///
/// # Errors
/// What is wrong with the bytes.
pub fn read_index(header: &GroupHeader, bytes: &[u8]) -> Result<IndexEntries, DecodeError> {
    IndexEntries::decode(&mut Reader::new(bytes), index_origin(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> GroupHeader {
        GroupHeader {
            kind: Kind::Open,
            answers_early: true,
            identity: 1,
            shard: ShardId::new(2),
            shard_epoch: ShardEpoch::new(3),
            incarnation: 4,
            place: Place { file: FileNumber::new(5), position: 4096 },
            first_sequence: LogSequence::new(6),
            count: 7,
            previous: 8,
            durable_before: LogSequence::new(5),
            durable_end: Place { file: FileNumber::new(4), position: 8192 },
            index_length: 9,
            events_length: 10,
            payload_length: 11,
            section_checksum: 12,
            payload_checksum: 13,
        }
    }

    #[test]
    fn a_header_survives_and_any_flipped_bit_is_noticed() {
        let mut bytes = [0xff; HEADER];
        let checksum = header().write(&mut bytes);
        assert_eq!(GroupHeader::read(&bytes), Found::Header(header(), checksum));
        for bit in 0..HEADER * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::read(&bytes), Found::Nothing, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_group_of_a_newer_format_is_told_from_damage() {
        let mut bytes = [0; HEADER];
        header().write(&mut bytes);
        bytes[12] = 2;
        let checksum = crc32c::crc32c(&bytes[CHECKED..]);
        field::put(&mut bytes, 8, &checksum.to_le_bytes());
        assert_eq!(GroupHeader::read(&bytes), Found::Newer(2));
    }
}
