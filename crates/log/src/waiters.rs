//! Who is woken when something is published.
//!
//! Purpose: a connection waits until the sequence its answers rest on is visible; a long poll waits until one of its
//! partitions changes. Invariants: LOG-26 (no wake-up is lost: a ticket is registered first and the sequence checked
//! after it), LOG-27 (only who is due is woken; a ticket is gone when it is dropped or has fired, so nothing grows).
//! What it does not do: hold answers, look into the view.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use semel_types::{LogSequence, PartitionHandle};

type WaiterNumber = u64;

/// All that wait, and the sequence that is visible.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    sequence: AtomicU64,
    registered: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    next: WaiterNumber,
    by_sequence: BTreeMap<(LogSequence, WaiterNumber), Waker>,
    by_partition: HashMap<PartitionHandle, BTreeSet<WaiterNumber>>,
    polls: HashMap<WaiterNumber, Parked>,
}

#[derive(Debug)]
struct Parked {
    waker: Waker,
    partitions: Arc<[PartitionHandle]>,
}

#[derive(Debug)]
enum Place {
    Sequence(LogSequence),
    Partitions,
}

/// A registration: fires at most once and is taken back when dropped.
#[derive(Debug)]
#[must_use = "a dropped ticket wakes nobody"]
pub struct Ticket {
    waiters: Arc<Waiters>,
    number: WaiterNumber,
    place: Place,
}

impl Ticket {
    /// True once it has fired.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let registered = self.waiters.registered.lock();
        match self.place {
            Place::Sequence(sequence) => !registered.by_sequence.contains_key(&(sequence, self.number)),
            Place::Partitions => !registered.polls.contains_key(&self.number),
        }
    }

    /// Takes another waker for the same registration; false if it has fired already.
    #[must_use]
    pub fn update(&self, waker: &Waker) -> bool {
        let mut registered = self.waiters.registered.lock();
        let slot = match self.place {
            Place::Sequence(sequence) => registered.by_sequence.get_mut(&(sequence, self.number)),
            Place::Partitions => registered.polls.get_mut(&self.number).map(|parked| &mut parked.waker),
        };
        slot.map(|slot| slot.clone_from(waker)).is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut registered = self.waiters.registered.lock();
        let waker = match self.place {
            Place::Sequence(sequence) => registered.by_sequence.remove(&(sequence, self.number)),
            Place::Partitions => registered.unpark(self.number),
        };
        drop(registered);
        drop(waker);
    }
}

/// Ready once a sequence is visible; see [`crate::Published::reached`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Reached {
    waiters: Arc<Waiters>,
    sequence: LogSequence,
    ticket: Option<Ticket>,
}

impl Future for Reached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.waiters.sequence() >= self.sequence {
            self.ticket = None;
            return Poll::Ready(());
        }
        if !self.ticket.as_ref().is_some_and(|ticket| ticket.update(context.waker())) {
            self.ticket = Some(self.waiters.wake_when(self.sequence, context.waker()));
        }
        if self.waiters.sequence() >= self.sequence { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Ready once one of some partitions has changed since this was made; see [`crate::Published::changed`].
#[derive(Debug)]
#[must_use = "made before the view is read, it misses no change"]
pub struct Changed(Ticket);

impl Future for Changed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.update(context.waker()) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Registered {
    fn number(&mut self) -> WaiterNumber {
        self.next += 1;
        self.next
    }

    /// Takes a long poll out of every list; gives its waker.
    fn unpark(&mut self, number: WaiterNumber) -> Option<Waker> {
        let parked = self.polls.remove(&number)?;
        for partition in &*parked.partitions {
            if let Some(waiting) = self.by_partition.get_mut(partition) {
                waiting.remove(&number);
                if waiting.is_empty() {
                    self.by_partition.remove(partition);
                }
            }
        }
        Some(parked.waker)
    }

    fn due_by_sequence(&mut self, sequence: LogSequence, due: &mut Vec<Waker>) {
        while let Some(first) = self.by_sequence.first_entry() {
            if first.key().0 > sequence {
                break;
            }
            due.push(first.remove());
        }
    }

    fn due_by_partition(&mut self, changed: &[PartitionHandle], due: &mut Vec<Waker>) {
        for partition in changed {
            if self.polls.is_empty() {
                return;
            }
            let waiting = self.by_partition.get(partition).map(|numbers| numbers.iter().copied().collect());
            let waiting: Vec<_> = waiting.unwrap_or_default();
            due.extend(waiting.into_iter().filter_map(|number| self.unpark(number)));
        }
    }
}

impl Waiters {
    pub(crate) fn sequence(&self) -> LogSequence {
        LogSequence::new(self.sequence.load(Ordering::Acquire))
    }

    /// Called under the view's write lock: from here on the sequence counts as visible.
    pub(crate) fn set_sequence(&self, sequence: LogSequence) {
        self.sequence.store(sequence.get(), Ordering::Release);
    }

    /// Wakes who is due. Called after [`Waiters::set_sequence`], without the view's lock.
    pub(crate) fn wake(&self, sequence: LogSequence, changed: &[PartitionHandle]) {
        let mut due = Vec::new();
        let mut registered = self.registered.lock();
        registered.due_by_sequence(sequence, &mut due);
        registered.due_by_partition(changed, &mut due);
        drop(registered);
        due.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wake_when(self: &Arc<Self>, sequence: LogSequence, waker: &Waker) -> Ticket {
        let mut registered = self.registered.lock();
        let number = registered.number();
        // Read under the lock that `wake` takes after the sequence was set: either this sees the new sequence, or
        // `wake` sees the registration.
        let due = self.sequence() >= sequence;
        if !due {
            registered.by_sequence.insert((sequence, number), waker.clone());
        }
        drop(registered);
        if due {
            waker.wake_by_ref();
        }
        Ticket { waiters: Arc::clone(self), number, place: Place::Sequence(sequence) }
    }

    pub(crate) fn wake_on_change(self: &Arc<Self>, partitions: &[PartitionHandle], waker: &Waker) -> Ticket {
        let mut registered = self.registered.lock();
        let number = registered.number();
        for partition in partitions {
            registered.by_partition.entry(*partition).or_default().insert(number);
        }
        let parked = Parked { waker: waker.clone(), partitions: partitions.into() };
        registered.polls.insert(number, parked);
        drop(registered);
        Ticket { waiters: Arc::clone(self), number, place: Place::Partitions }
    }

    pub(crate) fn reached(self: &Arc<Self>, sequence: LogSequence) -> Reached {
        Reached { waiters: Arc::clone(self), sequence, ticket: None }
    }

    pub(crate) fn changed(self: &Arc<Self>, partitions: &[PartitionHandle]) -> Changed {
        Changed(self.wake_on_change(partitions, Waker::noop()))
    }

    /// How many wait: for a sequence, for a partition.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let registered = self.registered.lock();
        (registered.by_sequence.len(), registered.polls.len())
    }
}

#[cfg(test)]
mod tests;
