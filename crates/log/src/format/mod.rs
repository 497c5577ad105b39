//! What stands on the disk, byte by byte. `docs/formats/{log-file,group,snapshot}.md` draw it.

pub mod file;
pub mod group;
pub mod snapshot;

/// Newest format version of files, groups and snapshots that this build reads; it writes this one.
pub const VERSION: u16 = 1;

/// Reads and writes little-endian numbers at fixed places.
pub(crate) mod field {
    pub fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        let mut raw = [0; N];
        raw.copy_from_slice(&bytes[at..at + N]);
        raw
    }

    pub fn get_u16(bytes: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(get(bytes, at))
    }

    pub fn get_u32(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(get(bytes, at))
    }

    pub fn get_u64(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(get(bytes, at))
    }

    pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }
}
