//! Every reason to say no, as data: no wire codes, no texts. The broker's one table turns them into codes.

use semel_types::{
    Now, Offset, PartitionHandle, ProducerEpoch, ProducerStamp, Sequence, SequenceRange, TransactionalId,
};

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Produce: an epoch older than the one on file (47 on Produce).
    Fenced {
        /// What the request said.
        sent: ProducerStamp,
        /// The epoch on file.
        current: ProducerEpoch,
        /// When the newer epoch last wrote here, if that is known.
        since: Option<Now>,
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
        /// Oldest offset of the partition.
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
    /// Produce: a plain batch of a producer id that belongs to a transactional id (48).
    PlainBatchOfOwnedId {
        /// The owner.
        owner: TransactionalId,
    },
    /// The producer id belongs to another transactional id, or to none (49).
    WrongOwner {
        /// The owner, if there is one.
        owner: Option<TransactionalId>,
    },
    /// Produce: the partition is not in the open transaction, or none is open (48; 120 where the version has it).
    NotInTransaction {
        /// Which partition.
        partition: PartitionHandle,
    },
    /// No such partition (3).
    UnknownPartition {
        /// Which partition.
        partition: PartitionHandle,
    },
    /// A request from a connection that the client has left: not executed, the connection is closed unanswered.
    SupersededConnection,
}
