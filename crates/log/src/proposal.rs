//! What the node hands to the log and what comes back.

use std::{io, sync::Arc};

use bytes::Bytes;
use semel_events::{DecodeError, Event, Reader, Visible};
use semel_types::{LogSequence, Offset, PartitionHandle};

/// The state that the log rebuilds at start: the node's whole state behind its `apply`.
pub trait StateMachine {
    /// Takes the state part of a snapshot; called at most once, before any [`StateMachine::apply`].
    ///
    /// # Errors
    /// What is wrong with the bytes: an older or newer Semel wrote them.
    fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError>;

    /// Applies one event of the log, in order, as it was applied live.
    fn apply(&mut self, sequence: LogSequence, event: &Event, visible: &mut Vec<Visible>);

    /// Everything readers may see of the restored state, to rebuild the published view.
    fn visible(&self, out: &mut Vec<Visible>);
}

/// The state at one boundary, written out by another thread than the node's.
pub trait SnapshotSource: Send {
    /// Appends the state's written form; [`StateMachine::restore`] reads it.
    fn encode(&self, out: &mut Vec<u8>);
}

/// One whole record batch on its way into the log.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Which partition it goes to.
    pub partition: PartitionHandle,
    /// The offset of its first record; patched into the batch while it is gathered.
    pub base_offset: Offset,
    /// Its number of records (offsets it takes), at least 1.
    pub count: u32,
    /// Its largest record timestamp in milliseconds, -1 if unknown.
    pub max_timestamp: i64,
    /// The batch as the client sent it, at least 16 bytes.
    pub bytes: Bytes,
}

/// One decision of the node: becomes durable whole, never split over groups.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    /// Its events in order; each takes one sequence.
    pub events: Vec<Event>,
    /// The batches that belong to its `BatchAppended` events.
    pub payloads: Vec<Payload>,
    /// What readers may see once it is durable.
    pub visible: Vec<Visible>,
    /// In durability `interval`: sync before the outcome (identity changes, id reservations).
    pub sync_now: bool,
}

impl Proposal {
    /// Bytes of all its batches.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.payloads.iter().map(|payload| payload.bytes.len()).sum()
    }

    /// True if there is nothing to write and nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.payloads.is_empty() && self.visible.is_empty()
    }
}

/// What became of submitted proposals.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Everything up to this sequence is durable and published.
    Durable(LogSequence),
    /// Another node owns the shard: nothing more will become durable. Files never report it.
    Deposed,
    /// A write or sync failed: nothing more will become durable, and what was in flight is unknown. The process
    /// ends; it is never retried.
    Failed(Arc<io::Error>),
}

/// What a command needs room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomClass {
    /// Records: refused first.
    Produce,
    /// New identities, topics, offsets: refused like records.
    Identity,
    /// Ends of transactions, aborts, timeouts, deletions, settings: may use the reserve.
    Reserve,
}

/// Whether a command may be decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// The bytes are there.
    Enough,
    /// A file is being prepared: ask again; `on_outcome` is called when that is worthwhile.
    Wait,
    /// The disk refused to give more.
    Full,
}
