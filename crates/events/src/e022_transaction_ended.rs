//! Event 22: a transaction ended: decision, every marker, every offset, completion, in one event.

use alloc::vec::Vec;

use semel_types::{
    GroupId, Now, Offset, PartitionHandle, ProducerStamp, TransactionNumber, TransactionalId, WallTime,
};

use crate::Author;

choice! {
    /// How a transaction ended.
    Outcome {
        /// Nothing of it is ever visible to read_committed.
        Abort = 0,
        /// All of it is visible at once.
        Commit = 1,
    }
}

choice! {
    /// Who or what ended it.
    EndCause {
        /// The producer's own EndTxn.
        EndTxn = 0,
        /// InitProducerId of another instance.
        Takeover = 1,
        /// InitProducerId of the producer itself (KIP-360).
        Recovery = 2,
        /// Silence longer than its timeout.
        Timeout = 3,
        /// An administrator.
        Admin = 4,
        /// An unclean start in durability `interval`: writes of it may be missing.
        UncleanStart = 5,
    }
}

record! {
    /// The marker of a transaction in one partition.
    Marker {
        /// Which partition.
        partition: PartitionHandle,
        /// The offset that the marker takes.
        offset: Offset,
    }
}

record! {
    /// A transaction ended.
    TransactionEnded {
        /// Which transactional id.
        id: TransactionalId,
        /// Which transaction; for an abort of nothing (KIP-890, version 2) the number of the last one.
        number: TransactionNumber,
        /// How.
        outcome: Outcome,
        /// By what.
        cause: EndCause,
        /// The client's protocol was version 2.
        version2: bool,
        /// Producer id and epoch in the markers.
        marker_stamp: ProducerStamp,
        /// One marker for each partition of the transaction.
        markers: Vec<Marker>,
        /// Groups whose pending offsets are committed or dropped.
        groups: Vec<GroupId>,
        /// The identity before.
        identity_before: ProducerStamp,
        /// The identity from here on; another producer id closes the old slot for good.
        identity_after: ProducerStamp,
        /// Who asked, where somebody did.
        author: Option<Author>,
        /// When, by the broker's clock.
        now: Now,
        /// When, for markers and people.
        wall: WallTime,
    }
}
