//! The header page of a log file: it says which file this is; the name never does.

use semel_types::ShardId;

use super::{VERSION, field};
use crate::{FileNumber, buffer::Aligned, disk::BLOCK};

const MAGIC: &[u8; 8] = b"SEMELLOG";
const CHECKED: usize = 12;
const LENGTH: usize = 64;

/// Where the first group stands.
pub const FIRST_GROUP: u64 = BLOCK as u64;

/// What a header page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// Random, one per data directory: never leaves it, so that no client can forge a header inside a batch.
    pub identity: u64,
    /// Whose log.
    pub shard: ShardId,
    /// Which file.
    pub number: FileNumber,
    /// Bytes of the file: a shorter one was cut.
    pub length: u64,
}

/// What stands where a header page should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A good header.
    Header(FileHeader),
    /// A header of a newer format.
    Newer(u16),
    /// Nothing readable.
    Nothing,
}

impl FileHeader {
    /// The whole page.
    pub fn page(&self) -> Aligned {
        let mut page = Aligned::zeroed(BLOCK);
        field::put(&mut page, 0, MAGIC);
        field::put(&mut page, 12, &VERSION.to_le_bytes());
        field::put(&mut page, 16, &self.identity.to_le_bytes());
        field::put(&mut page, 24, &self.number.get().to_le_bytes());
        field::put(&mut page, 32, &self.shard.get().to_le_bytes());
        field::put(&mut page, 40, &self.length.to_le_bytes());
        let checksum = crc32c::crc32c(&page[CHECKED..LENGTH]);
        field::put(&mut page, 8, &checksum.to_le_bytes());
        page
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
            VERSION => Found::Header(Self {
                identity: field::get_u64(page, 16),
                number: FileNumber::new(field::get_u64(page, 24)),
                shard: ShardId::new(field::get_u32(page, 32)),
                length: field::get_u64(page, 40),
            }),
            newer => Found::Newer(newer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_page_survives_and_any_flipped_bit_is_noticed() {
        let header =
            FileHeader { identity: 9, shard: ShardId::new(3), number: FileNumber::new(77), length: 1 << 22 };
        let mut page = header.page();
        assert_eq!(FileHeader::read(&page), Found::Header(header));
        for at in 0..LENGTH {
            page[at] ^= 4;
            assert_eq!(FileHeader::read(&page), Found::Nothing, "byte {at}");
            page[at] ^= 4;
        }
    }
}
