//! The two threads of a log: one writes groups, one does the rest.
//!
//! Purpose: takes what waits whenever the disk is free, and keeps the few times that matter: the sync of durability
//! `interval`, the `Rest` group after silence. Invariants: outcomes are reported in order of sequence; after an
//! error nothing more is reported durable. What it does not do: touch the disk itself, or decide.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use crate::{
    Durability, Options, Outcome, SnapshotSource,
    background::{Background, Desk, SnapshotJob},
    files::Progress,
    format::group::Kind,
    open_group::OpenGroup,
    queue::{Item, Queue, Stop},
    syncer::Syncer,
    writer::{Parts, Writer},
};

/// Groups written with one call at most: the system takes 1024 pieces.
const GROUPS_PER_WRITE: usize = 256;
/// Time between two pieces of zeros: filling must not slow commits down.
const FILL_PAUSE: Duration = Duration::from_millis(1);
/// Time between two attempts on a full disk, and the longest sleep of the background.
const RETRY: Duration = Duration::from_secs(1);

/// What the log's threads share with its callers.
pub struct Shared {
    /// What waits to be written.
    pub queue: Queue,
    /// Files, view, cache, room.
    pub parts: Parts,
    /// Snapshots.
    pub desk: Arc<Desk>,
    /// Wakes the background.
    pub bell: Bell,
    /// How outcomes are reported.
    pub on_outcome: crate::OnOutcome,
    /// How the log was opened.
    pub options: Options,
}

/// Wakes the background.
#[derive(Default)]
pub struct Bell {
    state: Mutex<Ring>,
    rung: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Ring {
    #[default]
    Silent,
    Rung,
    Stop,
}

impl Bell {
    /// There may be work.
    pub fn ring(&self) {
        self.set(Ring::Rung);
    }

    /// Finish what is there and end.
    pub fn stop(&self) {
        self.set(Ring::Stop);
    }

    fn set(&self, ring: Ring) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state != Ring::Stop {
            *state = ring;
        }
        self.rung.notify_all();
    }

    /// Waits for work; false when it is time to end.
    fn wait(&self, longest: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |state: &mut Ring| *state == Ring::Silent;
        let (mut state, _) =
            self.rung.wait_timeout_while(state, longest, silent).unwrap_or_else(PoisonError::into_inner);
        let go_on = *state != Ring::Stop;
        if go_on {
            *state = Ring::Silent;
        }
        go_on
    }
}

/// The thread that writes groups; tests step it.
pub struct LogThread {
    shared: Arc<Shared>,
    writer: Writer,
    last_group: Option<Instant>,
    unsynced_since: Option<Instant>,
    /// Syncs beside this thread in durability `interval`; without it this thread does.
    syncer: Option<Arc<Syncer>>,
}

impl LogThread {
    /// Goes on with a writer that has written its `Open` group.
    pub fn new(shared: Arc<Shared>, writer: Writer) -> Self {
        Self { shared, writer, last_group: Some(Instant::now()), unsynced_since: None, syncer: None }
    }

    /// Lets another thread do the syncs that no answer waits for.
    pub fn sync_with(&mut self, syncer: Arc<Syncer>) {
        self.syncer = Some(syncer);
    }

    /// Runs until the log stops or fails.
    pub fn run(mut self) {
        loop {
            let stop = self.shared.queue.wait(self.deadline());
            if stop == Some(Stop::Abandon) {
                return;
            }
            let result = self.turn(Instant::now());
            let result = match (result, stop) {
                (Ok(()), Some(Stop::Clean)) => match self.finish() {
                    Ok(()) => return,
                    failed => failed,
                },
                (result, _) => result,
            };
            if let Err(error) = result {
                return self.shared.fail(error);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let rest = (!self.writer.is_at_rest()).then_some(self.last_group).flatten();
        let rest = rest.map(|at| at + Duration::from_millis(self.shared.options.rest_after_ms));
        let sync = self.unsynced_since.and_then(|since| Some(since + self.interval()?));
        [rest, sync].into_iter().flatten().min()
    }

    fn interval(&self) -> Option<Duration> {
        match self.shared.options.durability {
            Durability::Interval(ms) => Some(Duration::from_millis(ms)),
            Durability::Sync | Durability::Memory => None,
        }
    }

    /// Writes what waits, and does what is due.
    ///
    /// # Errors
    /// The disk failed.
    pub fn turn(&mut self, now: Instant) -> io::Result<()> {
        self.drain(now)?;
        if let (Some(since), Some(interval)) = (self.unsynced_since, self.interval())
            && now >= since + interval
        {
            self.sync_soon(now)?;
        }
        let silence = Duration::from_millis(self.shared.options.rest_after_ms);
        if !self.writer.is_at_rest() && self.last_group.is_some_and(|last| now >= last + silence) {
            self.rest()?;
        }
        Ok(())
    }

    /// What a sync beside this thread would make durable now.
    #[cfg(test)]
    pub fn ticket(&self) -> Option<crate::syncer::Ticket> {
        self.writer.ticket()
    }

    /// A sync beside this thread is done.
    #[cfg(test)]
    pub fn note_synced(&mut self, mark: crate::syncer::Mark) {
        self.writer.note_synced(mark);
    }

    /// The sync of durability `interval` is due.
    fn sync_soon(&mut self, now: Instant) -> io::Result<()> {
        let Some(syncer) = self.syncer.clone() else { return self.sync() };
        if let Some(mark) = syncer.done() {
            self.writer.note_synced(mark);
        }
        let asked = self.writer.ticket().is_none_or(|ticket| syncer.ask(ticket));
        // One still in flight means that the disk is slower than the interval: ask again after another one.
        self.unsynced_since = (!asked).then_some(now);
        Ok(())
    }

    /// Syncs in durability `interval`.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&mut self) -> io::Result<()> {
        self.unsynced_since = None;
        self.writer.sync()?;
        self.shared.bell.ring();
        Ok(())
    }

    /// Writes a `Rest` group.
    ///
    /// # Errors
    /// The disk failed.
    pub fn rest(&mut self) -> io::Result<()> {
        self.unsynced_since = None;
        self.writer.rest()
    }

    /// Writes all groups that wait, in order, and seals snapshots between them.
    ///
    /// # Errors
    /// The disk failed.
    pub fn drain(&mut self, now: Instant) -> io::Result<()> {
        let mut groups = Vec::new();
        for item in self.shared.queue.take() {
            match item {
                Item::Group(group) => groups.push(group),
                Item::Boundary(state) => {
                    self.commit(std::mem::take(&mut groups), now)?;
                    self.seal(state)?;
                }
            }
            if groups.len() >= GROUPS_PER_WRITE {
                self.commit(std::mem::take(&mut groups), now)?;
            }
        }
        self.commit(groups, now)
    }

    fn commit(&mut self, groups: Vec<OpenGroup>, now: Instant) -> io::Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        let bytes: usize = groups.iter().map(OpenGroup::bytes).sum();
        let durable = self.writer.commit(Kind::Events, groups)?;
        self.shared.queue.written(bytes);
        self.last_group = Some(now);
        self.unsynced_since =
            if self.writer.is_unsynced() { self.unsynced_since.or(Some(now)) } else { None };
        (self.shared.on_outcome)(Outcome::Durable(durable));
        let parts = &self.shared.parts;
        if parts.book.prepared.load(Ordering::Acquire) == 0
            || parts.published.wants_upkeep(parts.progress.sealed())
        {
            self.shared.bell.ring();
        }
        Ok(())
    }

    /// Hands a snapshot over: everything before it is durable and published.
    fn seal(&mut self, state: Box<dyn SnapshotSource>) -> io::Result<()> {
        let boundary = self.writer.boundary()?;
        self.unsynced_since = None;
        self.shared.desk.put(SnapshotJob { boundary, state });
        self.shared.bell.ring();
        Ok(())
    }

    /// The last groups of a clean stop.
    ///
    /// # Errors
    /// The disk failed.
    pub fn finish(&mut self) -> io::Result<()> {
        self.writer.stop()?;
        let last = self.shared.queue.take_last();
        last.map_or(Ok(()), |state| self.seal(state))
    }
}

impl Shared {
    /// Reports an error once; the log is dead from here on.
    pub fn fail(&self, error: io::Error) {
        let error = Arc::new(error);
        if self.queue.fail(error.clone()) {
            (self.on_outcome)(Outcome::Failed(error));
        }
    }

    /// Runs the syncs that no answer waits for until told to stop.
    pub fn run_syncer(&self, syncer: &Syncer) {
        let on_done = |mark: crate::syncer::Mark| {
            self.parts.progress.note_durable(mark.sequence);
            self.bell.ring();
        };
        if let Err(error) = syncer.run(&on_done) {
            self.fail(error);
        }
    }

    /// Runs the background until it is told to stop.
    pub fn run_background(&self, mut background: Background) {
        loop {
            let pause = match background.step() {
                Ok(Progress::Prepared) => {
                    self.wake_waiting();
                    continue;
                }
                Ok(Progress::Filled) => FILL_PAUSE,
                Ok(Progress::Full) => {
                    self.wake_waiting();
                    RETRY
                }
                Ok(Progress::Idle) => RETRY,
                Err(error) => return self.fail(error),
            };
            if !self.bell.wait(pause) {
                return self.finish_background(background);
            }
        }
    }

    fn finish_background(&self, mut background: Background) {
        if let Err(error) = background.finish() {
            self.fail(error);
        }
    }

    /// Tells the node to ask for room again.
    fn wake_waiting(&self) {
        if self.parts.book.asked.swap(false, Ordering::AcqRel) {
            (self.on_outcome)(Outcome::Durable(self.parts.published.sequence()));
        }
    }
}
