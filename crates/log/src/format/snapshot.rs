//! The header page of a snapshot; the state's bytes and the index's bytes follow, padded to a block.

use semel_types::{LogSequence, ShardId};

use super::{VERSION, field};
use crate::{FileNumber, LogPosition as Place, disk::BLOCK};

const MAGIC: &[u8; 8] = b"SEMELSNP";
const CHECKED: usize = 12;
const LENGTH: usize = 128;

/// Where the chain of groups goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Boundary {
    /// End of the last group.
    pub place: Place,
    /// Last sequence.
    pub sequence: LogSequence,
    /// CRC of the last group's header.
    pub previous: u32,
    /// Incarnation that wrote it.
    pub incarnation: u64,
    /// What may have come after it.
    pub after: After,
}

/// What may have happened after a group, as far as it tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct After {
    /// It was the last of a clean stop.
    pub is_stop: bool,
    /// Its writer answers before it syncs.
    pub answers_early: bool,
}

/// What a snapshot's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotHeader {
    /// The data directory's identity.
    pub identity: u64,
    /// Whose state.
    pub shard: ShardId,
    /// State and index are those after this.
    pub boundary: Boundary,
    /// Bytes of the state.
    pub state_length: u64,
    /// Bytes of the index.
    pub index_length: u64,
    /// CRC of both.
    pub checksum: u32,
}

/// What stands where a snapshot's header should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A good header.
    Header(SnapshotHeader),
    /// A header of a newer format.
    Newer(u16),
    /// Nothing readable.
    Nothing,
}

impl SnapshotHeader {
    /// Writes it into the first block.
    pub fn write(&self, page: &mut [u8]) {
        let page = &mut page[..BLOCK];
        page.fill(0);
        field::put(page, 0, MAGIC);
        field::put(page, 12, &VERSION.to_le_bytes());
        field::put(page, 16, &self.identity.to_le_bytes());
        field::put(page, 24, &self.shard.get().to_le_bytes());
        field::put(page, 28, &self.boundary.previous.to_le_bytes());
        field::put(page, 32, &self.boundary.place.file.get().to_le_bytes());
        field::put(page, 40, &self.boundary.place.position.to_le_bytes());
        field::put(page, 48, &self.boundary.sequence.get().to_le_bytes());
        field::put(page, 56, &self.boundary.incarnation.to_le_bytes());
        field::put(page, 64, &self.state_length.to_le_bytes());
        field::put(page, 72, &self.index_length.to_le_bytes());
        field::put(page, 80, &self.checksum.to_le_bytes());
        let after = self.boundary.after;
        field::put(page, 84, &[u8::from(after.is_stop), u8::from(after.answers_early)]);
        let checksum = crc32c::crc32c(&page[CHECKED..LENGTH]);
        field::put(page, 8, &checksum.to_le_bytes());
    }

    /// Reads a page.
    pub fn read(page: &[u8]) -> Found {
        if page.len() < LENGTH || &page[..8] != MAGIC {
            return Found::Nothing;
        }
        if field::get_u32(page, 8) != crc32c::crc32c(&page[CHECKED..LENGTH]) {
            return Found::Nothing;
        }
        match field::get_u16(page, 12) {
            VERSION => Found::Header(Self::fields(page)),
            newer => Found::Newer(newer),
        }
    }

    fn fields(page: &[u8]) -> Self {
        Self {
            identity: field::get_u64(page, 16),
            shard: ShardId::new(field::get_u32(page, 24)),
            boundary: Boundary {
                previous: field::get_u32(page, 28),
                place: Place {
                    file: FileNumber::new(field::get_u64(page, 32)),
                    position: field::get_u64(page, 40),
                },
                sequence: LogSequence::new(field::get_u64(page, 48)),
                incarnation: field::get_u64(page, 56),
                after: After { is_stop: page[84] != 0, answers_early: page[85] != 0 },
            },
            state_length: field::get_u64(page, 64),
            index_length: field::get_u64(page, 72),
            checksum: field::get_u32(page, 80),
        }
    }

    /// Bytes of the whole file, padding included; `None` if the lengths are absurd.
    pub fn total(&self) -> Option<u64> {
        let content = self.state_length.checked_add(self.index_length)?;
        content.checked_next_multiple_of(BLOCK as u64)?.checked_add(BLOCK as u64)
    }
}
