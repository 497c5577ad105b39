//! Event 7: a topic grew.

use alloc::vec::Vec;

use semel_types::{Now, PartitionHandle, ProducerId, TopicId};

record! {
    /// A topic has more partitions from here on, by CreatePartitions.
    PartitionsAdded {
        /// The topic's id.
        id: TopicId,
        /// Handles of the new partitions in order: dense, never used before.
        partitions: Vec<PartitionHandle>,
        /// Producer ids below this one may have written to an earlier topic of the name, as in `TopicCreated`.
        may_have_forgotten: ProducerId,
        /// When.
        now: Now,
    }
}
