//! How a log is opened. Every size is in bytes.

use std::{path::PathBuf, sync::Arc};

use semel_types::ShardId;

use crate::disk::Disk;

/// Where the log lives.
#[derive(Clone)]
pub enum Engine {
    /// Files in this directory, which exists.
    Files(PathBuf),
    /// Nothing on disk: everything is gone with the process.
    Memory,
    /// A given disk, for tests and the simulator.
    Disk(Arc<dyn Disk>),
}

/// When an outcome is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// After a sync.
    Sync,
    /// After the write; a sync follows within this many milliseconds.
    Interval(u64),
    /// At once; nothing survives the process.
    Memory,
}

/// How a log is opened; `Options::files` and `Options::memory` give the defaults.
#[derive(Clone)]
pub struct Options {
    /// Where the log lives.
    pub engine: Engine,
    /// When an outcome is reported.
    pub durability: Durability,
    /// Which shard this is.
    pub shard: ShardId,
    /// Bound of the block cache.
    pub cache_bytes: usize,
    /// Bound of blocks held by reads in flight.
    pub pinned_bytes: usize,
    /// Event bytes after which a snapshot is wanted; never less than the last snapshot's size.
    pub snapshot_interval_bytes: u64,
    /// Size of the first file; each next one is twice as large ...
    pub file_bytes_min: u64,
    /// ... up to this.
    pub file_bytes_max: u64,
    /// Allocated blocks kept for ends of transactions, deletions and settings on a full disk.
    pub reserve_bytes: u64,
    /// The end of a file that records never get: half of it for what the reserve is for, half for the groups of a
    /// start, so that a node starts on a full disk when the reserve is used up too.
    pub kept_bytes: u64,
    /// A group is closed before it would pass this; a larger decision is a group of its own.
    pub group_bytes_max: usize,
    /// Silence after which a `Rest` group is written, in milliseconds.
    pub rest_after_ms: u64,
    /// Try direct, synced writes; off, the log writes through the page cache and calls fdatasync.
    pub direct: bool,
    /// Fill the next file with zeros in the background.
    pub fill: bool,
    /// Check payload checksums of the whole replayed log, not only of its unwitnessed tail.
    pub verify_payloads: bool,
}

impl Options {
    /// The defaults for files in a directory.
    #[must_use]
    pub fn files(directory: impl Into<PathBuf>) -> Self {
        Self::with(Engine::Files(directory.into()), Durability::Sync)
    }

    /// The defaults for a log that lives in memory only.
    #[must_use]
    pub fn memory() -> Self {
        Self::with(Engine::Memory, Durability::Memory)
    }

    /// The defaults for a given engine.
    #[must_use]
    pub fn with(engine: Engine, durability: Durability) -> Self {
        Self {
            engine,
            durability,
            shard: ShardId::new(0),
            cache_bytes: 64 << 20,
            pinned_bytes: 256 << 20,
            snapshot_interval_bytes: 64 << 20,
            file_bytes_min: 4 << 20,
            file_bytes_max: 128 << 20,
            reserve_bytes: 64 << 20,
            kept_bytes: 256 << 10,
            group_bytes_max: 1 << 20,
            rest_after_ms: 1000,
            direct: true,
            fill: true,
            verify_payloads: false,
        }
    }
}
