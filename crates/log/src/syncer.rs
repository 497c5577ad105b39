//! The sync of durability `interval`, beside the writer: answers go on while the disk works.
//!
//! Invariants: a ticket says what was written before the sync began, and only that is durable when it is done; one
//! sync is in flight. What it does not do: the syncs that an answer waits for; the writer does those itself.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use semel_types::LogSequence;

use crate::{LogPosition as Place, disk::DiskFile};

/// The end of what was written when a sync began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Last sequence.
    pub sequence: LogSequence,
    /// End of the last group.
    pub place: Place,
}

/// One sync to be done.
pub struct Ticket {
    /// Which file.
    pub file: Arc<dyn DiskFile>,
    /// What it makes durable.
    pub mark: Mark,
}

/// Hands tickets to the thread that syncs.
#[derive(Default)]
pub struct Syncer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ticket: Option<Ticket>,
    is_syncing: bool,
    done: Option<Mark>,
    stop: bool,
}

impl Syncer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a sync; false if one is still in flight.
    pub fn ask(&self, ticket: Ticket) -> bool {
        let mut state = self.state();
        let free = state.ticket.is_none() && !state.is_syncing;
        if free {
            state.ticket = Some(ticket);
            self.changed.notify_one();
        }
        free
    }

    /// What became durable since this was asked last.
    pub fn done(&self) -> Option<Mark> {
        self.state().done.take()
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.state().stop = true;
        self.changed.notify_one();
    }

    /// Syncs until told to stop; `on_done` hears of each success.
    ///
    /// # Errors
    /// The disk failed; never retried.
    pub fn run(&self, on_done: &dyn Fn(Mark)) -> io::Result<()> {
        loop {
            let mut state = self.state();
            let waiting = |state: &mut State| state.ticket.is_none() && !state.stop;
            state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
            if state.stop {
                return Ok(());
            }
            let ticket = state.ticket.take().expect("there is a ticket or a stop");
            state.is_syncing = true;
            drop(state);
            ticket.file.sync()?;
            let mut state = self.state();
            (state.is_syncing, state.done) = (false, Some(ticket.mark));
            drop(state);
            on_done(ticket.mark);
        }
    }
}
