//! What waits between the node and the log thread: closed groups, the open one, and where snapshots stand.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use semel_types::LogSequence;

use crate::{Proposal, SnapshotSource, open_group::OpenGroup, room::RoomBook};

/// Something to be written, in order.
pub enum Item {
    /// A closed group.
    Group(OpenGroup),
    /// A snapshot of the state after everything before.
    Boundary(Box<dyn SnapshotSource>),
}

/// How the log thread ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// After everything is written.
    Clean,
    /// At once, as if killed.
    Abandon,
}

/// See the module.
pub struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    waiting: AtomicU64,
    group_bytes_max: usize,
}

#[derive(Default)]
struct State {
    open: OpenGroup,
    closed: VecDeque<Item>,
    sequence: LogSequence,
    stop: Option<Stop>,
    last: Option<Box<dyn SnapshotSource>>,
    failed: Option<Arc<io::Error>>,
    /// The log thread waits for something to do.
    idle: bool,
}

impl State {
    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(Item::Group(std::mem::take(&mut self.open)));
        }
    }

    fn has_work(&self) -> bool {
        self.stop.is_some() || !self.open.is_empty() || !self.closed.is_empty()
    }
}

impl Queue {
    /// Nothing waits; the log ends at `sequence`.
    pub fn new(sequence: LogSequence, group_bytes_max: usize) -> Self {
        let state = State { sequence, ..State::default() };
        Self { state: Mutex::new(state), filled: Condvar::new(), waiting: AtomicU64::new(0), group_bytes_max }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first group of a start was written beside the queue.
    pub fn advance(&self, events: u64) {
        let mut state = self.state();
        state.sequence = LogSequence::new(state.sequence.get() + events);
    }

    /// Adds one whole decision and returns its last sequence and the bytes of its events.
    pub fn submit(&self, proposal: Proposal, book: &RoomBook) -> (LogSequence, u64) {
        let mut state = self.state();
        if proposal.is_empty() {
            return (state.sequence, 0);
        }
        let payload_bytes = proposal.payload_bytes();
        if state.open.bytes() + payload_bytes > self.group_bytes_max {
            state.close();
        }
        state.sequence = LogSequence::new(state.sequence.get() + proposal.events.len() as u64);
        let (bytes, events, promised) = (state.open.bytes(), state.open.events.len(), state.open.promised);
        state.open.add(proposal);
        let events = (state.open.events.len() - events) as u64;
        self.waiting.fetch_add((state.open.bytes() - bytes) as u64, Ordering::AcqRel);
        book.promised.fetch_add(state.open.promised - promised, Ordering::AcqRel);
        if state.open.bytes() > self.group_bytes_max {
            state.close();
        }
        let (sequence, wake) = (state.sequence, std::mem::take(&mut state.idle));
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        (sequence, events)
    }

    /// A snapshot stands after everything submitted so far.
    pub fn boundary(&self, source: Box<dyn SnapshotSource>) {
        let mut state = self.state();
        state.close();
        state.closed.push_back(Item::Boundary(source));
        state.idle = false;
        self.filled.notify_one();
    }

    /// Everything that waits, in order.
    pub fn take(&self) -> VecDeque<Item> {
        let mut state = self.state();
        state.close();
        std::mem::take(&mut state.closed)
    }

    /// The snapshot to be written at the end.
    pub fn take_last(&self) -> Option<Box<dyn SnapshotSource>> {
        self.state().last.take()
    }

    /// Waits for something to do, at most until `deadline`.
    pub fn wait(&self, deadline: Option<Instant>) -> Option<Stop> {
        let mut state = self.state();
        while !state.has_work() {
            state.idle = true;
            let Some(deadline) = deadline else {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.idle = false;
        state.stop
    }

    /// Bytes left the queue for the disk.
    pub fn written(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes as u64, Ordering::AcqRel);
    }

    /// Bytes submitted and not yet written.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Acquire)
    }

    /// The log thread ends, with a snapshot of the last state if one is given.
    pub fn stop(&self, how: Stop, last: Option<Box<dyn SnapshotSource>>) {
        let mut state = self.state();
        if state.stop.is_none() {
            (state.stop, state.last) = (Some(how), last);
        }
        self.filled.notify_one();
    }

    /// The log is dead. False if it was already.
    pub fn fail(&self, error: Arc<io::Error>) -> bool {
        let mut state = self.state();
        let first = state.failed.is_none();
        state.failed.get_or_insert(error);
        state.stop = Some(Stop::Abandon);
        self.filled.notify_one();
        first
    }

    /// Why the log is dead.
    pub fn failure(&self) -> Option<Arc<io::Error>> {
        self.state().failed.clone()
    }
}
