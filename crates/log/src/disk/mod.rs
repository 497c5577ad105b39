//! Everything that touches the operating system: one directory of flat files.
//!
//! Purpose: the log runs unchanged on a real directory, in memory, or on a simulated disk that loses power.
//! Invariants: names hold no path separator; a write through [`DiskFile::write`] is durable on return exactly if
//! [`DiskFile::writes_are_durable`]; a new, renamed or removed name is durable only after
//! [`Disk::sync_directory`]. What it does not do: retry, cache, or know formats.

mod memory;
mod real;
mod simulated;

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
    io,
    sync::Arc,
};

pub use memory::MemoryDisk;
pub use real::RealDisk;
pub use simulated::SimulatedDisk;

/// The unit of all positions and lengths that the log writes.
pub const BLOCK: usize = 4096;

/// How an opened file will be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteMode {
    /// Each write is durable on return where the disk can do it (direct and synced), else as `Buffered`.
    Durable,
    /// Through the page cache; durable after [`DiskFile::sync`].
    Buffered,
}

/// One directory.
pub trait Disk: Send + Sync {
    /// Takes the directory for this process until the disk is dropped.
    ///
    /// # Errors
    /// `WouldBlock` with the holder in its text if another process has it; else the disk's error.
    fn lock(&self) -> io::Result<()>;

    /// All names, in no order.
    ///
    /// # Errors
    /// The disk's error.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file, or empties one.
    ///
    /// # Errors
    /// The disk's error.
    fn create(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// `NotFound`, else the disk's error.
    fn open(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames over what stands at `to`.
    ///
    /// # Errors
    /// The disk's error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name; readers that hold the file keep it.
    ///
    /// # Errors
    /// The disk's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// The disk's error.
    fn sync_directory(&self) -> io::Result<()>;

    /// Fresh random bits.
    fn random(&self) -> u64;
}

impl fmt::Debug for dyn Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// One open file.
pub trait DiskFile: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// The disk's error.
    fn length(&self) -> io::Result<u64>;

    /// Makes it at least this long, with blocks allocated; new bytes read as zero.
    ///
    /// # Errors
    /// `StorageFull` if the disk has no more: it is then as long as before, and has no more blocks; else the disk's
    /// error.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Writes pieces side by side. Position and lengths are multiples of [`BLOCK`], pieces aligned to it.
    ///
    /// # Errors
    /// The disk's error; what was written is then unknown.
    fn write(&self, position: u64, pieces: &[&[u8]]) -> io::Result<()>;

    /// Writes zeros that need not be durable.
    ///
    /// # Errors
    /// The disk's error.
    fn fill(&self, position: u64, length: usize) -> io::Result<()>;

    /// True if [`DiskFile::write`] is durable on return.
    fn writes_are_durable(&self) -> bool;

    /// Makes bytes and length durable (fdatasync).
    ///
    /// # Errors
    /// The disk's error.
    fn sync(&self) -> io::Result<()>;

    /// Reads exactly this much; may block.
    ///
    /// # Errors
    /// `UnexpectedEof` past the end, else the disk's error.
    fn read(&self, position: u64, into: &mut [u8]) -> io::Result<()>;

    /// The same if it needs no disk; false if it would.
    ///
    /// # Errors
    /// As [`DiskFile::read`].
    fn try_read(&self, position: u64, into: &mut [u8]) -> io::Result<bool>;

    /// Asks that later reads come from the disk, not from memory.
    fn drop_cache(&self);
}

/// Random bits from the system; the standard library's hash keys where the call is refused.
fn random() -> u64 {
    let mut raw = [0; 8];
    match rustix::rand::getrandom(&mut raw, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(raw),
        Ok(_) | Err(_) => RandomState::new().build_hasher().finish(),
    }
}

/// True if the disk refused to give more space, which is no failure of the disk.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
