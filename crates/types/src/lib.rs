//! Words of the domain: ids, epochs, sequences, offsets, times, error codes, limits.
//!
//! Purpose: one newtype for each kind of number the protocol knows, so that two integers of different meaning can
//! never be swapped. Invariants: an id, epoch, sequence or offset held here is valid (never the wire's `-1`);
//! absence is `Option`. What it does not do: no clock, no I/O, no protocol bytes, no rule of exactly-once.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod code;
mod ids;
mod limits;
pub mod mutation;
mod names;
mod sequence;
mod time;

pub use code::ErrorCode;
pub use ids::{
    ClusterId, ConnectionNumber, CoordinatorEpoch, LeaderEpoch, LogSequence, Offset, PartitionHandle,
    PartitionIndex, ProducerEpoch, ProducerId, ProducerStamp, RequestToken, ShardEpoch, ShardId, TopicId,
    TransactionNumber,
};
pub use limits::{
    AUTOMATIC_METADATA_LIMIT_BYTES, MAX_PARTITIONS_PER_TRANSACTION, MAX_USABLE_EPOCH, PRODUCER_ID_BASE_LIMIT,
    PRODUCER_ID_BASE_STEP, PRODUCER_ID_BLOCK, REMEMBERED_BATCHES,
};
pub use names::{GroupId, TopicName, TransactionalId};
pub use sequence::{Sequence, SequencePosition, SequenceRange};
pub use time::{Context, DurationMs, Now, PayloadChecksum, WallTime};
