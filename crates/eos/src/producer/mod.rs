//! What each producer wrote on each partition: is a batch new, a retry, a gap or a stray?
//!
//! Purpose: Produce's own path. `judge.rs` decides by the table of the design, `table.rs` holds the state. Invariants:
//! EOS-02 to EOS-08. What it does not do: say who owns an id (that is `fence`), move transactions (that is `txn`).

mod check;
mod describe;
mod entry;
mod expire;
mod foreign;
mod judge;
mod manager;
mod page;
mod recent;
mod slot;
mod snapshot;
mod table;

use semel_events::{Protocol, TransactionExtended};
use semel_types::{
    ConnectionNumber, Now, Offset, PayloadChecksum, ProducerStamp, Sequence, SequenceRange,
    TransactionNumber, TransactionalId,
};

pub use describe::Writer;
pub(crate) use entry::AcceptedBatch;
pub use entry::{Entry, RememberedBatch, Stub};
pub use expire::Due;
pub use judge::{Finding, ProducerView, verdict};
pub use manager::{ProducerStateManager, Verdict};
pub use recent::Recent;
pub use slot::{Known, OwnedSlot};
pub use table::Table;

use crate::refusal::Refusal;

/// What a Produce request says of all its batches.
#[derive(Clone, Copy, Debug)]
pub struct ProduceScope<'a> {
    /// The transactional id, if the request has one.
    pub transactional_id: Option<&'a TransactionalId>,
    /// Version 2 from Produce 12 on: the first write adds its partition to the transaction.
    pub protocol: Protocol,
    /// The connection it came on.
    pub connection: ConnectionNumber,
}

/// What one batch says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchStamp {
    /// Producer id and epoch.
    pub producer: ProducerStamp,
    /// Sequence of the first record.
    pub first_sequence: Sequence,
    /// Number of records, at least 1.
    pub count: u32,
    /// Checksum of the bytes after the header.
    pub checksum: PayloadChecksum,
    /// The batch says that it belongs to a transaction.
    pub transactional: bool,
}

impl BatchStamp {
    /// The sequences that the batch takes.
    #[must_use]
    pub const fn sequences(&self) -> SequenceRange {
        SequenceRange::of(self.first_sequence, self.count)
    }
}

/// What is to be done with a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// New and in order: append it, unless something else forbids.
    Append,
    /// A retry of a stored batch: answer as then, append nothing.
    Duplicate {
        /// Where the stored batch is.
        first_offset: Offset,
        /// When it was appended.
        appended_at: Now,
    },
    /// Append nothing.
    Refuse(Refusal),
}

/// The right of a batch to be appended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admission {
    /// The event that adds the partition to the transaction first (version 2).
    pub extension: Option<TransactionExtended>,
    /// The transaction that the batch belongs to.
    pub transaction: Option<TransactionNumber>,
}
