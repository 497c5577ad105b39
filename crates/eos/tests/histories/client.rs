//! A client: its numbers, what it has on its way, what it wants.

use std::collections::VecDeque;

use semel_events::Protocol;
use semel_types::ProducerStamp;

use crate::{network::Sent, promises::Value, shard::PLACES};

/// Whose habits a client has (what each does after an error: its producer's source).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// Retries in order, raises its own epoch, recovers with its pair.
    Java,
    /// As Java, but 45 for the next expected batch, and 47 in a transaction, end it.
    Librdkafka,
    /// One batch at a time; gives a batch up after a lost connection and takes its numbers again; no recovery.
    Kafkajs,
    /// Any refusal of a batch ends it.
    Aiokafka,
}

/// A batch that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub request: u64,
    pub first: i64,
    pub value: Value,
    /// Sent, and no answer yet.
    pub outstanding: bool,
}

impl Flight {
    /// A value is a batch of one to three records, always of the same.
    pub const fn count(self) -> u32 {
        count(self.value)
    }
}

pub const fn count(value: Value) -> u32 {
    1 + value % 3
}

/// The numbers of one place.
#[derive(Clone, Debug)]
pub struct Part {
    pub stamp: ProducerStamp,
    pub next: i64,
    pub unacknowledged: VecDeque<Flight>,
    /// Of a plain producer: a new epoch once nothing is outstanding.
    pub bump: bool,
}

impl Part {
    pub const fn new(stamp: ProducerStamp) -> Self {
        Self { stamp, next: 0, unacknowledged: VecDeque::new(), bump: false }
    }

    pub fn outstanding(&self) -> usize {
        self.unacknowledged.iter().filter(|flight| flight.outstanding).count()
    }
}

/// Where a transactional client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It needs an identity; with its pair if it recovers.
    NeedsIdentity { recovers: bool },
    /// It has one.
    Ready,
    /// It writes.
    Writes,
    /// It will abort once nothing is outstanding.
    Aborts,
    /// It is of no more use.
    Dead,
}

pub struct Client {
    pub serial: u64,
    pub habit: Library,
    pub protocol: Protocol,
    /// Its transactional id, if it has one.
    pub id: Option<usize>,
    /// The connection it uses.
    pub line: u64,
    pub identity: Option<ProducerStamp>,
    pub stage: Stage,
    /// The request, other than Produce, that is not answered.
    pub control: Option<Sent>,
    pub parts: [Part; PLACES],
    /// What the transaction is to hold, and how much of it was sent.
    pub task: Vec<(usize, Value)>,
    pub at: usize,
    /// The attempt that is open.
    pub attempt: Option<usize>,
    pub added: [bool; PLACES],
    /// Offsets: how many steps are left.
    pub offsets: u8,
    /// A number was given up: numbers must start anew.
    pub gave_up: bool,
}

impl Client {
    pub fn outstanding(&self) -> usize {
        self.parts.iter().map(Part::outstanding).sum()
    }

    pub fn unacknowledged(&self) -> usize {
        self.parts.iter().map(|part| part.unacknowledged.len()).sum()
    }

    pub fn is_dead(&self) -> bool {
        self.stage == Stage::Dead
    }

    /// Numbers start anew under this identity.
    pub fn identity_is(&mut self, identity: ProducerStamp) {
        if self.identity != Some(identity) {
            self.parts = std::array::from_fn(|_| Part::new(identity));
        }
        self.identity = Some(identity);
        self.gave_up = false;
    }
}
