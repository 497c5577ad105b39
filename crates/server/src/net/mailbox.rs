//! Where the node leaves a connection's answers.

use std::sync::Arc;

use parking_lot::Mutex;
use semel_broker::NodeReply;
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
    /// Close the connection without answering.
    Close,
}

/// One connection's inbox.
#[derive(Default)]
pub struct Mailbox {
    deliveries: Mutex<Vec<Delivery>>,
    arrived: Notify,
}

impl Mailbox {
    /// A new, shared inbox.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Leaves something; `notify` wakes the connection.
    pub fn put(&self, delivery: Delivery) {
        self.deliveries.lock().push(delivery);
    }

    /// Wakes the connection.
    pub fn notify(&self) {
        self.arrived.notify_one();
    }

    /// Takes all that is there.
    pub fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut *self.deliveries.lock())
    }

    /// Completes when something was left since the last call.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }
}
