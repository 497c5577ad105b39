//! The block cache over a source of file bytes.

use std::{io, sync::Arc};

use bytes::Bytes;

use crate::FileNumber;

/// Where blocks of log files come from.
pub trait BlockSource: Send + Sync {
    /// Reads exactly `length` bytes; may block on the disk.
    ///
    /// # Errors
    /// The disk's error; `UnexpectedEof` past the file's end, `NotFound` for a file that is gone.
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes>;

    /// The same, only if it needs no disk.
    ///
    /// # Errors
    /// As [`BlockSource::read`].
    fn try_read_cached(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Option<Bytes>>;
}

/// A bounded cache of file blocks.
pub struct BlockCache {
    source: Arc<dyn BlockSource>,
}

impl BlockCache {
    /// A cache of at most `cache_bytes`, with at most `pinned_bytes` held by reads in flight.
    #[must_use]
    pub fn new(source: Arc<dyn BlockSource>, _cache_bytes: usize, _pinned_bytes: usize) -> Self {
        Self { source }
    }

    /// Where its blocks come from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn BlockSource> {
        &self.source
    }

    /// Takes the bytes of a group that just became durable, so that the tail is read from memory.
    pub fn insert_written(&self, _file: FileNumber, _position: u64, _bytes: Bytes) {}

    /// True while a cached block or a read in flight holds bytes of this file.
    #[must_use]
    pub fn is_held(&self, _file: FileNumber) -> bool {
        false
    }

    /// Drops the cached blocks of a file that is about to be recycled.
    pub fn forget_file(&self, _file: FileNumber) {}
}
