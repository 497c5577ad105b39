//! Event 30: a group committed offsets (OffsetCommit).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, LeaderEpoch, Now, Offset, PartitionHandle};

record! {
    /// One committed offset.
    CommittedOffset {
        /// Which partition.
        partition: PartitionHandle,
        /// The next offset to read.
        offset: Offset,
        /// Leader epoch of the last record read, if told.
        leader_epoch: Option<LeaderEpoch>,
        /// The client's own note.
        metadata: Arc<str>,
    }
}

record! {
    /// A group committed offsets outside of a transaction.
    OffsetsCommitted {
        /// Which group.
        group: GroupId,
        /// What it committed.
        offsets: Vec<CommittedOffset>,
        /// When.
        now: Now,
    }
}
