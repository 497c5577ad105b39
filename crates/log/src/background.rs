//! What the log does beside writing groups: the next file, snapshots, dead files.
//!
//! Purpose: a plain struct stepped by a thread of its own, or by tests. Invariants: a dead file is given back only
//! when the older kept snapshot was taken after it died, so that no recovery needs it or finds an extent in it, and
//! when no planned read can touch it; cached blocks of it are dropped first. What it does not do: touch the file that groups are written to.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use semel_types::LogSequence;

use crate::{
    FileNumber, IndexEntries, SnapshotSource, disk::is_full, files::Progress, format::snapshot::Boundary,
    snapshot::Snapshots, writer::Parts,
};

/// A snapshot to be written: the log is durable through its boundary.
pub struct SnapshotJob {
    /// Where it stands.
    pub boundary: Boundary,
    /// The state there.
    pub state: Box<dyn SnapshotSource>,
}

/// What the log's other threads see of the background.
#[derive(Default)]
pub struct Desk {
    jobs: Mutex<VecDeque<SnapshotJob>>,
    /// A snapshot is wanted, being sealed or being written.
    pub busy: AtomicBool,
    /// Bytes of the last snapshot.
    pub last_bytes: AtomicU64,
    /// How long the last one took, in milliseconds.
    pub last_took_ms: AtomicU64,
    /// Bytes of dead files that wait for snapshots.
    pub dead_waiting: AtomicU64,
}

impl Desk {
    /// Hands over a sealed snapshot.
    pub fn put(&self, job: SnapshotJob) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
    }

    fn take(&self) -> Option<SnapshotJob> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The background. See the module.
pub struct Background {
    parts: Parts,
    desk: Arc<Desk>,
    snapshots: Snapshots,
    /// A snapshot with its index, and the sequence that must be durable before it is written: the index may lack
    /// entries of topics whose deletion is published and not yet durable.
    sealed_snapshot: Option<(SnapshotJob, IndexEntries, LogSequence)>,
    /// Dead files and the published sequence at which each was found dead.
    dead: BTreeMap<FileNumber, LogSequence>,
    /// Newest sealed file when dead ones were last looked for.
    sealed: FileNumber,
}

impl Background {
    /// Goes on with what recovery found.
    pub fn new(parts: Parts, desk: Arc<Desk>, snapshots: Snapshots) -> Self {
        let bytes = snapshots.newest().map_or(0, |kept| kept.bytes);
        desk.last_bytes.store(bytes, Ordering::Release);
        Self {
            parts,
            desk,
            snapshots,
            dead: BTreeMap::new(),
            sealed: FileNumber::new(0),
            sealed_snapshot: None,
        }
    }

    /// Does one bounded piece of work, the most urgent first: a snapshot, the index, dead files, the next file.
    ///
    /// # Errors
    /// The disk failed; being full is no failure.
    pub fn step(&mut self) -> io::Result<Progress> {
        if let Some(job) = self.desk.take() {
            self.seal_snapshot(job);
        }
        if self.sealed_snapshot.as_ref().is_some_and(|(_, _, wait)| *wait <= self.parts.progress.durable()) {
            self.write_snapshot()?;
            return Ok(Progress::Prepared);
        }
        let sealed = self.parts.progress.sealed();
        if sealed != self.sealed || self.parts.published.wants_upkeep(sealed) {
            self.sealed = sealed;
            self.maintain(sealed)?;
            self.reclaim()?;
        } else if self.parts.book.full.load(Ordering::Acquire) {
            // A topic deleted meanwhile may have left files dead that were sealed long ago.
            self.reclaim()?;
        }
        self.parts.preparer.step()
    }

    /// Writes the snapshots that were handed over; nothing else matters any more.
    ///
    /// # Errors
    /// The disk failed.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_snapshot()?;
        while let Some(job) = self.desk.take() {
            self.seal_snapshot(job);
            self.write_snapshot()?;
        }
        Ok(())
    }

    fn maintain(&self, sealed: FileNumber) -> io::Result<()> {
        match self.parts.published.maintain(&self.parts.cache, &*self.parts.files, sealed) {
            // The entries stay in memory and in snapshots.
            Err(error) if is_full(&error) => Ok(()),
            done => done,
        }
    }

    fn seal_snapshot(&mut self, job: SnapshotJob) {
        let index = self.parts.published.index_before(job.boundary.place);
        let published = self.parts.published.sequence();
        self.sealed_snapshot = Some((job, index, published));
    }

    fn write_snapshot(&mut self) -> io::Result<()> {
        let Some((job, index, _)) = self.sealed_snapshot.take() else { return Ok(()) };
        let mut written = self.snapshots.write(job.boundary, &*job.state, &index);
        // With two snapshots files of deleted topics become free, which is more than the reserve holds.
        if written.as_ref().is_err_and(is_full) && self.parts.preparer.give_reserve_up()? {
            written = self.snapshots.write(job.boundary, &*job.state, &index);
        }
        match written {
            // Without room for it the log only grows longer; what is set aside for the next one makes this rare.
            Err(error) if is_full(&error) => self.parts.book.full.store(true, Ordering::Release),
            written => written?,
        }
        match self.snapshots.reserve() {
            Err(error) if is_full(&error) => {}
            reserved => reserved?,
        }
        let bytes = self.snapshots.newest().map_or(0, |kept| kept.bytes);
        self.desk.last_bytes.store(bytes, Ordering::Release);
        self.desk.last_took_ms.store(self.snapshots.last_took_ms, Ordering::Release);
        self.desk.busy.store(false, Ordering::Release);
        self.reclaim()
    }

    /// Gives dead files back that no recovery and no reader needs.
    fn reclaim(&mut self) -> io::Result<()> {
        let sealed = self.parts.files.through(self.parts.progress.sealed());
        let now = self.parts.published.sequence();
        for file in self.parts.published.dead_files(&sealed) {
            self.dead.entry(file).or_insert(now);
        }
        let oldest = self.snapshots.oldest().map(|kept| kept.boundary).unwrap_or_default();
        // The file that the older snapshot ends in is read from there on.
        let is_free = |(file, died): (&FileNumber, &LogSequence)| {
            (*died <= oldest.sequence && *file < oldest.place.file).then_some(*file)
        };
        for file in self.dead.iter().filter_map(is_free).collect::<Vec<_>>() {
            self.free(file)?;
        }
        let waiting = self.dead.iter().filter(|(_, died)| **died > oldest.sequence);
        let lengths = waiting.filter_map(|(file, _)| Some(self.parts.files.get(*file)?.length));
        self.desk.dead_waiting.store(lengths.sum(), Ordering::Release);
        Ok(())
    }

    fn free(&mut self, file: FileNumber) -> io::Result<()> {
        self.parts.cache.forget_file(file);
        self.dead.remove(&file);
        self.parts.files.remove(file).map_or(Ok(()), |file| self.parts.preparer.give_back(file))
    }
}
