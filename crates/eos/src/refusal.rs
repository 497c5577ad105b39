//! Typed refusals: why the core said no, with what a person needs to understand it.
//!
//! Purpose: one variant for each reason. Invariants: no wire code stands here (the broker's one table
//! `api/answer.rs` maps a refusal, by API and version, to a code); a refusal is plain data and changes nothing.
//! What it does not do: decide anything.

use alloc::sync::Arc;
use core::fmt;

use semel_events::Outcome;
use semel_types::{
    ConnectionNumber, DurationMs, GroupId, Now, Offset, PartitionHandle, ProducerStamp, Sequence,
    SequenceRange, TransactionalId,
};

use crate::txn::{Fence, TransactionState};

/// Why a request was refused. The codes in the variants' docs are what Kafka's clients are told, see
/// `design.md` sections 3 and 4; the broker decides them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The identity is not the current one of its transactional id, or the epoch is older than the one on file
    /// (47 on Produce and TxnOffsetCommit, 90 or 47 by version elsewhere).
    Fenced {
        /// The identity that was refused.
        sent: ProducerStamp,
        /// The identity that is current; `None` if the producer id was closed for good.
        current: Option<ProducerStamp>,
        /// For an id without owner: when the newer epoch last wrote here, if that is known.
        since: Option<Now>,
        /// For an owned id: what replaced the refused identity, if the fence log still knows.
        fence: Option<Arc<Fence>>,
    },
    /// Nothing is known of the transactional id: never initialized here, or expired (49).
    UnknownTransactionalId {
        /// The id.
        id: TransactionalId,
    },
    /// The transactional id has another producer id (49).
    OtherProducer {
        /// The transactional id.
        id: TransactionalId,
        /// What the request claimed.
        stamp: ProducerStamp,
        /// What is true.
        current: ProducerStamp,
    },
    /// Produce: a plain batch of a producer id that belongs to a transactional id (48).
    PlainBatchOfOwnedId {
        /// The owner.
        owner: TransactionalId,
    },
    /// Produce: the producer id of a transactional batch belongs to another transactional id, or to none (49).
    WrongOwner {
        /// The owner, if there is one.
        owner: Option<TransactionalId>,
    },
    /// Produce: an earlier batch is still on its way, or the range is cut across what is stored (45).
    OutOfOrder {
        /// The sequence that would be accepted.
        expected: Sequence,
        /// What the batch has.
        sent: SequenceRange,
    },
    /// Produce: a stray of a transaction that ended; nothing appended (45).
    StrayOfEndedTransaction {
        /// What the batch has.
        sent: SequenceRange,
    },
    /// Produce: the state that would tell may have been dropped (59, with the log start offset).
    ForgottenProducer {
        /// Oldest offset of the partition; clients decide by it.
        log_start: Offset,
    },
    /// Produce: stored long ago, or in other batches (46).
    AlreadyStored {
        /// What the batch has.
        sent: SequenceRange,
    },
    /// Produce: the numbers of a stored batch with another payload (46, logged and counted).
    OtherPayload {
        /// What the batch has.
        sent: SequenceRange,
        /// Where the stored batch is.
        stored_at: Offset,
    },
    /// The core knows no such partition; the topic was deleted meanwhile (3).
    UnknownPartition {
        /// The partition.
        partition: PartitionHandle,
    },
    /// The partition is not in the open transaction, or none is open (48; 120 where the version has it).
    NotInTransaction {
        /// The partition.
        partition: PartitionHandle,
    },
    /// Offsets for a group that the open transaction does not hold (48, or 120 where the version has it).
    GroupNotInTransaction {
        /// The transactional id.
        id: TransactionalId,
        /// The group.
        group: GroupId,
    },
    /// The request does not fit the state of the transaction (48).
    WrongState {
        /// The transactional id.
        id: TransactionalId,
        /// The state.
        state: TransactionState,
        /// How the client wanted to end it.
        asked: Outcome,
    },
    /// The transaction that the client wants to commit was aborted by a timeout, an administrator or an unclean
    /// start; it may abort and go on (120).
    AbortedMeanwhile {
        /// The transactional id.
        id: TransactionalId,
        /// What aborted it, if the fence log still knows.
        fence: Option<Arc<Fence>>,
    },
    /// Another shard has not finished the last transaction yet (51). Never with one shard.
    ConcurrentTransactions {
        /// The transactional id.
        id: TransactionalId,
    },
    /// One more partition or group than a transaction may hold.
    TooManyPartitions {
        /// The transactional id.
        id: TransactionalId,
        /// The bound.
        limit: usize,
    },
    /// An administrator's marker that would commit: only the producer can commit (48).
    CommitByMarker {
        /// The transactional id.
        id: TransactionalId,
    },
    /// InitProducerId with the empty transactional id (42).
    EmptyTransactionalId,
    /// InitProducerId with a producer id or an epoch, but not both (42).
    HalfAPair,
    /// InitProducerId with a timeout that is not positive or above `transaction.max.timeout.ms` (50).
    InvalidTimeout {
        /// What was asked for.
        timeout: DurationMs,
        /// The most that may be asked for.
        max: DurationMs,
    },
    /// A copy of a request on a connection that the client has left for a newer one: not executed, and its
    /// connection is closed unanswered.
    SupersededConnection {
        /// The request's connection.
        connection: ConnectionNumber,
        /// The newest one in use.
        highest: ConnectionNumber,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced { sent, current, since, fence: None } => fmt_fenced(f, *sent, *current, *since),
            Self::Fenced { fence: Some(fence), .. } => write!(f, "{fence}"),
            Self::UnknownTransactionalId { id } => {
                write!(f, "transactional id {id:?} is unknown here: never initialized, or expired")
            }
            Self::OtherProducer { id, stamp, current } => {
                write!(f, "transactional id {id:?} has producer id {}, not {}", current.id, stamp.id)
            }
            Self::PlainBatchOfOwnedId { owner } => {
                write!(f, "the producer id belongs to transactional id {owner:?}: no plain batch")
            }
            Self::WrongOwner { owner: Some(owner) } => {
                write!(f, "the producer id belongs to transactional id {owner:?}")
            }
            Self::WrongOwner { owner: None } => f.write_str("the producer id belongs to no transactional id"),
            Self::OutOfOrder { expected, sent } => {
                write!(f, "sequences {sent} came, {expected} was expected")
            }
            Self::StrayOfEndedTransaction { sent } => {
                write!(f, "sequences {sent} belong to a transaction that has ended")
            }
            Self::ForgottenProducer { log_start } => {
                write!(f, "this producer's state may have been dropped; the partition starts at {log_start}")
            }
            Self::AlreadyStored { sent } => write!(f, "sequences {sent} were stored before"),
            Self::OtherPayload { sent, stored_at } => {
                write!(f, "sequences {sent} were stored at {stored_at} with another payload")
            }
            Self::UnknownPartition { partition } => write!(f, "partition {partition} does not exist"),
            Self::NotInTransaction { partition } => {
                write!(f, "no open transaction of this producer holds partition {partition}")
            }
            Self::GroupNotInTransaction { id, group } => {
                write!(f, "the open transaction of {id:?} does not hold group {group:?}")
            }
            Self::WrongState { id, state, asked } => {
                write!(f, "transaction of {id:?} is {state}: it cannot {}", verb(*asked))
            }
            Self::AbortedMeanwhile { id, fence } => {
                write!(f, "the transaction of {id:?} was aborted")?;
                fence.iter().try_for_each(|fence| write!(f, "; {fence}"))
            }
            Self::ConcurrentTransactions { id } => {
                write!(f, "the last transaction of {id:?} is still being completed")
            }
            Self::TooManyPartitions { id, limit } => {
                write!(f, "the transaction of {id:?} would hold more than {limit} partitions")
            }
            Self::CommitByMarker { id } => {
                write!(f, "only the producer of {id:?} can commit its transaction")
            }
            Self::EmptyTransactionalId => f.write_str("the transactional id is empty"),
            Self::HalfAPair => f.write_str("producer id and epoch must be given together"),
            Self::InvalidTimeout { timeout, max } => {
                write!(f, "transaction timeout {timeout} is not within 1 ms and {max}")
            }
            Self::SupersededConnection { connection, highest } => {
                write!(f, "a copy on connection {connection}; its client now uses {highest}")
            }
        }
    }
}

impl core::error::Error for Refusal {}

impl Refusal {
    /// The fence that it rests on, if the fence log still has it.
    #[must_use]
    pub const fn fence(&self) -> Option<&Arc<Fence>> {
        if let Self::Fenced { fence, .. } | Self::AbortedMeanwhile { fence, .. } = self {
            fence.as_ref()
        } else {
            None
        }
    }
}

fn verb(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Abort => "abort",
        Outcome::Commit => "commit",
    }
}

fn fmt_fenced(
    f: &mut fmt::Formatter<'_>,
    sent: ProducerStamp,
    current: Option<ProducerStamp>,
    since: Option<Now>,
) -> fmt::Result {
    match current {
        Some(current) => write!(f, "fenced: {sent} is not current, {current} is")?,
        None => write!(f, "fenced: {sent} is closed for good")?,
    }
    since.iter().try_for_each(|since| write!(f, "; it last wrote at {since}"))
}
