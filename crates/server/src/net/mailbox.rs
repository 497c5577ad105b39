//! Where the node leaves a connection's answers.
//!
//! Invariant: a connection is woken once for what the node leaves in one go, when the first of it is due, and never
//! sleeps on an answer that is due. What it does not do: order answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use parking_lot::Mutex;
use semel_broker::NodeReply;
use semel_log::{Published, Ticket};
use semel_types::{LogSequence, RequestToken};
use tokio::sync::Notify;

/// What the node tells a connection.
pub enum Delivery {
    /// An answer; it may leave once the log is published up to `rests_on`.
    Answer {
        /// Which request.
        token: RequestToken,
        /// What to say.
        reply: NodeReply,
        /// The last sequence that the answer rests on.
        rests_on: LogSequence,
    },
    /// Nothing more will be decided: answer what is decided, then close the connection.
    Close,
}

impl Delivery {
    const fn rests_on(&self) -> Option<LogSequence> {
        match self {
            Self::Answer { rests_on, .. } => Some(*rests_on),
            Self::Close => None,
        }
    }
}

#[derive(Default)]
struct Inner {
    deliveries: Vec<Delivery>,
    /// The connection wants to know at once what is decided: it may not send more before.
    eager: bool,
    /// Wakes the connection when the first delivery is due.
    ticket: Option<Ticket>,
}

/// One connection's inbox.
#[derive(Default)]
pub struct Mailbox {
    inner: Mutex<Inner>,
    arrived: Notify,
    left: AtomicBool,
}

impl Wake for Mailbox {
    fn wake(self: Arc<Self>) {
        self.arrived.notify_one();
    }
}

impl Mailbox {
    /// A new, shared inbox.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Leaves something; true if it is the first since the connection last took what was there. Then
    /// [`Mailbox::settle`] has to follow.
    pub fn put(&self, delivery: Delivery) -> bool {
        let mut inner = self.inner.lock();
        inner.deliveries.push(delivery);
        inner.deliveries.len() == 1 || inner.eager
    }

    /// Sees to it that the connection wakes: when the first answer is due, or at once if it asked for that.
    pub fn settle(self: &Arc<Self>, published: &Published) {
        let mut inner = self.inner.lock();
        let Some(first) = inner.deliveries.first() else { return };
        let due = first.rests_on().filter(|rests_on| !inner.eager && *rests_on > published.sequence());
        match due {
            None => self.arrived.notify_one(),
            Some(_) if inner.ticket.is_some() => {}
            Some(due) => inner.ticket = Some(published.wake_when(due, &Waker::from(Arc::clone(self)))),
        }
    }

    /// Takes all that is there into an empty vector.
    pub fn take(&self, into: &mut Vec<Delivery>) {
        let mut inner = self.inner.lock();
        std::mem::swap(&mut inner.deliveries, into);
        inner.ticket = None;
    }

    /// Says whether the connection is to be woken at once from here on; false if something is there already, which
    /// it has to take first.
    pub fn listen(&self, eager: bool) -> bool {
        let mut inner = self.inner.lock();
        inner.eager = eager;
        !eager || inner.deliveries.is_empty()
    }

    /// Completes when something due was left since the last call.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// The client has gone: what it asked and nobody decided yet need not be done.
    pub fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    /// True once the client has gone.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
