//! The log as the node and the server see it.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use semel_types::{LeaderEpoch, LogSequence};

use crate::{
    BlockCache, Durability, Engine, FileNumber, OpenError, Options, Outcome, Proposal, Published, Room,
    RoomClass, SnapshotSource, StartError, StateMachine,
    background::{Background, Desk},
    disk::{Disk, MemoryDisk, RealDisk},
    files::{FileRules, Files, LogFile, Preparer},
    format::group::Kind,
    open_group::{Chain, OpenGroup},
    queue::{Queue, Stop},
    recover::{self, End, Readers, Recovered, shard_epoch},
    room::{ReserveTaken, RoomBook},
    salvage::{Salvaged, salvage_disk},
    snapshot::Snapshots,
    syncer::Syncer,
    thread::{Bell, LogThread, Shared},
    writer::{Parts, Progress, WriteRules, Writer},
};

/// A snapshot that took longer than this is not written at shutdown.
const SHUTDOWN_SNAPSHOT_MS: u64 = 500;

/// An opened log and what recovery found.
pub struct Opened {
    /// The log; it serves reads at once and writes after [`Log::start`].
    pub log: Log,
    /// The last stop was a clean shutdown.
    pub clean: bool,
    /// The last stop was not clean and answers were given before the sync: acknowledged writes may be missing.
    pub may_have_lost_writes: bool,
    /// The directory held no log.
    pub fresh: bool,
    /// Last sequence found; the machine has applied everything up to it.
    pub last_sequence: LogSequence,
}

/// Called by the log's threads: be quick, and never call the log's `shutdown` from it.
pub type OnOutcome = Box<dyn Fn(Outcome) + Send + Sync>;

/// The one log of a shard. All methods may be called from any thread, but only one thread submits.
pub struct Log {
    shared: Arc<Shared>,
    disk: Arc<dyn Disk>,
    idle: Mutex<Option<Idle>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    syncer: Arc<Syncer>,
    /// Event bytes since the last snapshot.
    event_bytes: AtomicU64,
}

/// What recovery found, until the log is started.
struct Idle {
    end: End,
    identity: u64,
    files: Vec<LogFile>,
    rubbish: Vec<String>,
    background: Background,
}

fn disk_of(options: &Options) -> (Arc<dyn Disk>, PathBuf) {
    match &options.engine {
        Engine::Files(path) => (Arc::new(RealDisk::new(path, options.direct)), path.clone()),
        Engine::Memory => (Arc::new(MemoryDisk::default()), PathBuf::from("memory")),
        Engine::Disk(disk) => (disk.clone(), PathBuf::from("disk")),
    }
}

/// `semel log salvage`: cuts the log where [`Log::open`] refuses it, after setting the rest aside; `None` if it
/// would open.
///
/// # Errors
/// As [`Log::open`].
pub fn salvage(options: &Options) -> Result<Option<Salvaged>, OpenError> {
    let (disk, directory) = disk_of(options);
    recover::lock(&*disk, directory)?;
    salvage_disk(disk, options)
}

impl Log {
    /// Locks the directory, recovers, and replays into `machine` and the published view. What it accepted is made
    /// durable; nothing is written yet.
    ///
    /// # Errors
    /// [`OpenError`]; its text is for the operator.
    pub fn open(
        options: Options,
        machine: &mut dyn StateMachine,
        on_outcome: OnOutcome,
    ) -> Result<Opened, OpenError> {
        let (disk, directory) = disk_of(&options);
        recover::lock(&*disk, directory)?;
        let published = Arc::new(Published::new());
        let files = Arc::new(Files::new(disk.clone()));
        let cache = Arc::new(BlockCache::new(files.clone(), options.cache_bytes, options.pinned_bytes));
        let readers = Readers { published: &published, cache: &cache, files: &files };
        let recovered = recover::recover(disk.clone(), &options, machine, &readers)?;
        let (end, fresh) = (recovered.end, recovered.fresh);
        let after = end.boundary.after;
        let log = Self::assemble(options, disk, (published, files, cache), recovered, on_outcome);
        Ok(Opened {
            log,
            clean: fresh || after.is_stop,
            may_have_lost_writes: after.answers_early && !after.is_stop,
            fresh,
            last_sequence: end.boundary.sequence,
        })
    }

    fn assemble(
        options: Options,
        disk: Arc<dyn Disk>,
        (published, readable, cache): (Arc<Published>, Arc<Files>, Arc<BlockCache>),
        recovered: Recovered,
        on_outcome: OnOutcome,
    ) -> Self {
        let Recovered { end, identity, files, spares, reserve, snapshots, rubbish, .. } = recovered;
        let rules = FileRules::new(&options, identity);
        let next = files.last().map_or((FileNumber::new(1), rules.bytes_min), |file| {
            (file.number.next(), rules.next_length(file.length))
        });
        let book = Arc::new(RoomBook::default());
        files.iter().for_each(|file| readable.insert(file.clone()));
        let preparer = Preparer::new(disk.clone(), book.clone(), rules, next, (spares, reserve));
        let (preparer, progress) = (Arc::new(preparer), Arc::new(Progress::default()));
        let parts = Parts { files: readable, preparer, book, published, cache, progress };
        let desk = Arc::new(Desk::default());
        let snapshots = Snapshots::new(disk.clone(), identity, options.shard, snapshots);
        let background = Background::new(parts.clone(), desk.clone(), snapshots);
        let queue = Queue::new(end.boundary.sequence, options.group_bytes_max);
        let shared = Shared { queue, parts, desk, bell: Bell::default(), on_outcome, options };
        Self {
            shared: Arc::new(shared),
            disk,
            idle: Mutex::new(Some(Idle { end, identity, files, rubbish, background })),
            threads: Mutex::default(),
            syncer: Arc::default(),
            event_bytes: AtomicU64::new(end.event_bytes),
        }
    }

    /// Writes and syncs the `Open` group with the node's first events, then takes proposals. Returns the last
    /// sequence of `first`, which is durable and published by then.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(&self, leader_epoch: LeaderEpoch, first: Proposal) -> Result<LogSequence, StartError> {
        let (sequence, mut log_thread, background) = self.begin(leader_epoch, first)?;
        let shared = self.shared.clone();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(run)
        };
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = matches!(shared.options.durability, Durability::Interval(_));
        if beside {
            log_thread.sync_with(self.syncer.clone());
        }
        threads.push(spawn("semel-log", Box::new(move || log_thread.run()))?);
        let background_shared = shared.clone();
        threads.push(spawn("semel-log-bg", Box::new(move || background_shared.run_background(background)))?);
        if beside {
            let syncer = self.syncer.clone();
            threads.push(spawn("semel-log-sync", Box::new(move || shared.run_syncer(&syncer)))?);
        }
        Ok(sequence)
    }

    /// The same without threads: the caller steps them.
    pub(crate) fn begin(
        &self,
        leader_epoch: LeaderEpoch,
        first: Proposal,
    ) -> Result<(LogSequence, LogThread, Background), StartError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Idle { end, identity, files, rubbish, background } = idle.ok_or(StartError::AlreadyStarted)?;
        for name in rubbish {
            self.disk.remove(&name)?;
        }
        let parts = &self.shared.parts;
        let mut place = end.boundary.place;
        let current = match files.into_iter().next_back() {
            // What followed was lost, but the file was sealed and its side file is complete: go on in the next one.
            Some(file) if parts.published.covered_through() >= file.number => {
                LogFile { length: place.position, ..file }
            }
            Some(file) => file,
            None => {
                let file = parts.preparer.take(parts.book.kept.load(Ordering::Acquire))?;
                parts.files.insert(file.clone());
                place.file = file.number;
                file
            }
        };
        parts.book.current_is_reserve.store(current.is_reserve, Ordering::Release);
        let options = &self.shared.options;
        let chain = Chain {
            identity,
            shard: options.shard,
            shard_epoch: shard_epoch(leader_epoch),
            incarnation: self.disk.random() | 1,
            answers_early: matches!(options.durability, Durability::Interval(_)),
            sequence: end.boundary.sequence,
            previous: end.boundary.previous,
            place,
            durable: end.boundary.sequence,
            durable_end: place,
        };
        parts.published.set_leader_epoch(leader_epoch);
        let rules = WriteRules { durability: options.durability, cached_max: options.group_bytes_max * 2 };
        let mut writer = Writer::new(parts.clone(), rules, current, chain);
        let mut group = OpenGroup::default();
        group.add(first);
        parts.book.promised.fetch_add(group.promised, Ordering::AcqRel);
        self.event_bytes.fetch_add(group.events.len() as u64, Ordering::AcqRel);
        self.shared.queue.advance(u64::from(group.count));
        let sequence = writer.commit(Kind::Open, vec![group])?;
        Ok((sequence, LogThread::new(self.shared.clone(), writer), background))
    }

    /// Takes one decision; its last sequence comes back at once, durability comes as an [`Outcome`]. Never waits
    /// for the disk. An empty proposal gets the last sequence submitted so far.
    pub fn submit(&self, proposal: Proposal) -> LogSequence {
        let (sequence, bytes) = self.shared.queue.submit(proposal, &self.shared.parts.book);
        self.event_bytes.fetch_add(bytes, Ordering::AcqRel);
        sequence
    }

    /// What is known of room, for tests.
    #[cfg(test)]
    pub(crate) fn shared_book(&self) -> &RoomBook {
        &self.shared.parts.book
    }

    /// What readers see.
    #[must_use]
    pub fn published(&self) -> &Arc<Published> {
        &self.shared.parts.published
    }

    /// Where readers get bytes.
    #[must_use]
    pub fn cache(&self) -> &Arc<BlockCache> {
        &self.shared.parts.cache
    }

    /// Is there room for a command of at most this many bytes (events and batches)? Asked before it is decided;
    /// the caller submits it, or asks anew, before it asks for the next one. After `Wait`, an outcome comes when
    /// asking again is worthwhile.
    #[must_use]
    pub fn room(&self, bytes: u64, class: RoomClass) -> Room {
        let room = self.shared.parts.book.ask(bytes, class);
        if room == Room::Wait {
            self.shared.bell.ring();
        }
        room
    }

    /// What this start got of its reserve, once that is known: soon after it.
    #[must_use]
    pub fn reserve_taken(&self) -> Option<ReserveTaken> {
        self.shared.parts.book.reserve_taken.get().copied()
    }

    /// Bytes submitted and not yet written; at 8 MiB the node takes no more Produce.
    #[must_use]
    pub fn waiting_bytes(&self) -> u64 {
        self.shared.queue.waiting()
    }

    /// True if [`Log::snapshot`] should be called: enough events since the last one, or as many bytes of dead files
    /// wait for one, or any while the disk is full.
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        let desk = &self.shared.desk;
        let options = &self.shared.options;
        if options.durability == Durability::Memory || desk.busy.load(Ordering::Acquire) {
            return false;
        }
        let due = options.snapshot_interval_bytes.max(desk.last_bytes.load(Ordering::Acquire));
        let full = self.shared.parts.book.full.load(Ordering::Acquire);
        let dead = desk.dead_waiting.load(Ordering::Acquire);
        self.event_bytes.load(Ordering::Acquire) >= due || dead >= due || (full && dead > 0)
    }

    /// Writes a snapshot of the state after everything submitted so far. One at a time: another is dropped.
    pub fn snapshot(&self, source: Box<dyn SnapshotSource>) {
        let in_memory = self.shared.options.durability == Durability::Memory;
        if in_memory || self.shared.desk.busy.swap(true, Ordering::AcqRel) {
            return;
        }
        self.event_bytes.store(0, Ordering::Release);
        self.shared.queue.boundary(source);
    }

    /// Writes everything submitted, the last group of a clean stop and, if `last` is given and worth it, a
    /// snapshot; then stops.
    ///
    /// # Errors
    /// The disk's error, also one reported before.
    pub fn shutdown(&self, last: Option<Box<dyn SnapshotSource>>) -> Result<(), io::Error> {
        self.shared.queue.stop(Stop::Clean, last.filter(|_| self.is_worth_a_last_snapshot()));
        self.join();
        self.shared
            .queue
            .failure()
            .map_or(Ok(()), |error| Err(io::Error::new(error.kind(), error.to_string())))
    }

    fn is_worth_a_last_snapshot(&self) -> bool {
        let quick = self.shared.desk.last_took_ms.load(Ordering::Acquire) <= SHUTDOWN_SNAPSHOT_MS;
        let in_memory = self.shared.options.durability == Durability::Memory;
        quick && !in_memory && self.event_bytes.load(Ordering::Acquire) > 0
    }

    /// Waits for the log thread, then for the background to finish what it was handed.
    fn join(&self) {
        for handle in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if handle.join().is_err() {
                self.shared.fail(io::Error::other("a thread of the log panicked"));
            }
            self.shared.bell.stop();
            self.syncer.stop();
        }
    }
}

impl Drop for Log {
    /// Without [`Log::shutdown`] the log ends as if the process were killed.
    fn drop(&mut self) {
        self.shared.queue.stop(Stop::Abandon, None);
        self.join();
    }
}
