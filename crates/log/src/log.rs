//! The log as the node and the server see it.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use semel_events::DecodeError;
use semel_types::{LeaderEpoch, LogSequence, PartitionHandle};

use crate::{
    BlockCache, BlockSource, FileNumber, Options, Outcome, Proposal, Published, Room, RoomClass,
    SnapshotSource, StateMachine,
};

/// Why a log cannot be opened. Nothing was changed on the disk.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory.
    InUse {
        /// Which directory.
        directory: PathBuf,
        /// Who has it, if known.
        holder: String,
    },
    /// The directory cannot be used.
    NotWritable {
        /// Which directory.
        directory: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A newer Semel wrote it.
    NewerFormat {
        /// Which file.
        name: String,
        /// The version found.
        found: u16,
        /// The newest version known here.
        known: u16,
    },
    /// Acknowledged data is damaged.
    Corrupt(Corruption),
    /// A snapshot or event has valid checksums but cannot be understood.
    Undecodable {
        /// Which file.
        name: String,
        /// Where in it.
        position: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The disk failed.
    Io(io::Error),
}

/// What recovery knows of damage to acknowledged data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The file's name.
    pub name: String,
    /// Where in it, in bytes.
    pub position: u64,
    /// First sequence that is missing.
    pub first_missing: LogSequence,
    /// Last sequence known to have been durable.
    pub last_durable: LogSequence,
    /// Partitions known to be affected.
    pub partitions: Vec<PartitionHandle>,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "acknowledged data is damaged: {} at byte {}, log sequences {} to {}",
            self.name, self.position, self.first_missing, self.last_durable
        )?;
        for (index, partition) in self.partitions.iter().enumerate() {
            write!(f, "{}{partition}", if index == 0 { ", partitions " } else { ", " })?;
        }
        f.write_str(
            "; nothing was changed; restore the file, or run `semel log salvage` to set the rest of the log aside \
             and start without it",
        )
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { directory, holder } => {
                write!(f, "{} is in use by {holder}", directory.display())
            }
            Self::NotWritable { directory, source } => {
                write!(f, "{} is not writable: {source}", directory.display())
            }
            Self::NewerFormat { name, found, known } => write!(
                f,
                "{name} has format version {found}, this Semel knows up to {known}: a newer Semel wrote it"
            ),
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::Undecodable { name, position, source } => {
                write!(f, "{name} at byte {position} cannot be understood: {source}")
            }
            Self::Io(source) => write!(f, "the disk failed: {source}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

/// Why a log could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// It was started before, or shut down.
    AlreadyStarted,
    /// The disk failed.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => f.write_str("the log was started before"),
            Self::Io(source) => write!(f, "the log's first group could not be written: {source}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

/// An opened log and what recovery found.
pub struct Opened {
    /// The log; it serves reads at once and writes after [`Log::start`].
    pub log: Log,
    /// The last stop was clean: nothing acknowledged can be missing.
    pub clean: bool,
    /// The directory held no log.
    pub fresh: bool,
    /// Last sequence found; the machine has applied everything up to it.
    pub last_sequence: LogSequence,
}

/// Called by the log's thread.
pub type OnOutcome = Box<dyn Fn(Outcome) + Send + Sync>;

/// The one log of a shard. All methods may be called from any thread, but only one thread submits.
pub struct Log {
    published: Arc<Published>,
    cache: Arc<BlockCache>,
    on_outcome: OnOutcome,
    last: Mutex<LogSequence>,
}

struct NoFiles;

impl BlockSource for NoFiles {
    fn read(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Bytes> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn try_read_cached(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Option<Bytes>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Log {
    /// Locks the directory, recovers, and replays into `machine` and the published view. What it accepted is made
    /// durable; nothing is written yet.
    ///
    /// # Errors
    /// [`OpenError`]; its text is for the operator.
    pub fn open(
        options: Options,
        _machine: &mut dyn StateMachine,
        on_outcome: OnOutcome,
    ) -> Result<Opened, OpenError> {
        let cache = BlockCache::new(Arc::new(NoFiles), options.cache_bytes, options.pinned_bytes);
        let log = Self {
            published: Arc::new(Published::new()),
            cache: Arc::new(cache),
            on_outcome,
            last: Mutex::default(),
        };
        Ok(Opened { log, clean: true, fresh: true, last_sequence: LogSequence::new(0) })
    }

    /// Writes and syncs the `Open` group with the node's first events, then takes proposals. Returns the last
    /// sequence of `first`, which is published by then.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(&self, _leader_epoch: LeaderEpoch, first: Proposal) -> Result<LogSequence, StartError> {
        Ok(self.submit(first))
    }

    /// Takes one decision; its last sequence comes back at once, durability comes as an [`Outcome`]. Never waits
    /// for the disk. A proposal without events gets the last sequence submitted so far.
    pub fn submit(&self, proposal: Proposal) -> LogSequence {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = LogSequence::new(last.get() + proposal.events.len() as u64);
        self.published.publish(*last, &[], proposal.visible);
        (self.on_outcome)(Outcome::Durable(*last));
        *last
    }

    /// What readers see.
    #[must_use]
    pub fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Where readers get bytes.
    #[must_use]
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// Is there room for a command of at most this many bytes (events and batches)? Asked before it is decided;
    /// the caller submits it, or asks anew, before it asks for the next one.
    #[must_use]
    pub fn room(&self, _bytes: u64, _class: RoomClass) -> Room {
        Room::Enough
    }

    /// Bytes submitted and not yet written; at 8 MiB the node takes no more Produce.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        0
    }

    /// True if [`Log::snapshot`] should be called.
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        false
    }

    /// Writes a snapshot of the state after everything submitted so far. One at a time: another is dropped.
    pub fn snapshot(&self, _source: Box<dyn SnapshotSource>) {}

    /// Writes everything submitted, a `Rest` group and, if `last` is given and worth it, a snapshot; then stops.
    ///
    /// # Errors
    /// The disk's error.
    pub fn shutdown(&self, _last: Option<Box<dyn SnapshotSource>>) -> Result<(), io::Error> {
        Ok(())
    }
}
