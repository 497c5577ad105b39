//! Event 46: a streams group has a new epoch: members came or changed, topics or settings did (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now, PartitionHandle};

record! {
    /// Partitions whose handles follow each other: those that were made together.
    StreamsHandleRun {
        /// Handle of the first one.
        first: PartitionHandle,
        /// How many.
        count: u32,
    }
}

record! {
    /// A topic of the topology that exists.
    StreamsKnownTopic {
        /// Its name.
        name: Arc<str>,
        /// Its partitions in order.
        runs: Vec<StreamsHandleRun>,
    }
}

record! {
    /// What is to be assigned changes; who gets what follows in its own event.
    StreamsEpochStarted {
        /// Which group.
        group: GroupId,
        /// The epoch, higher than every one before.
        epoch: i32,
        /// Those topics of the topology that exist, sorted by name.
        topics: Vec<StreamsKnownTopic>,
        /// Copies of each store on other instances.
        standby_replicas: u32,
        /// Tags that members have to bring, for copies on other racks.
        tags: Vec<Arc<str>>,
        /// When.
        now: Now,
    }
}
