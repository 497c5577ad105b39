//! A client: its numbers, what it has on its way, what it wants.

use std::collections::VecDeque;

use semel_events::Protocol;
use semel_types::{PartitionHandle, ProducerStamp};

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
    /// One batch at a time of a place. 45 and a fence end it; after 59 or 48 its application aborts or stops, and the
    /// numbers go on.
    Aiokafka,
}

impl Library {
    /// Batches of one place on their way at once, of at most so many.
    pub const fn in_flight(self, most: usize) -> usize {
        match self {
            Self::Java | Self::Librdkafka => most,
            Self::Kafkajs | Self::Aiokafka => 1,
        }
    }
}

/// A batch that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub request: u64,
    pub first: i64,
    pub value: Value,
    /// Sent, and no answer yet.
    pub outstanding: bool,
    /// Where there was no room for it, if that was the last answer; it goes again.
    pub no_room: Option<PartitionHandle>,
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

    /// True if something before this one was refused here for want of room and has not gone again.
    pub fn waits_behind(&self, flight: usize, place: Option<PartitionHandle>) -> bool {
        let mut before = self.unacknowledged.iter().take(flight);
        before.any(|before| before.no_room.is_some() && before.no_room == place)
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
    /// The offset that the transaction is to commit.
    pub offset: Value,
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
