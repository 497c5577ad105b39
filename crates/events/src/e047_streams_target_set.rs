//! Event 47: who shall get which tasks in a streams group (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now, PartitionIndex};

record! {
    /// A task: one partition of one subtopology. Sorted by subtopology, then partition.
    #[derive(PartialOrd, Ord)]
    StreamsTaskId {
        /// The subtopology.
        subtopology: Arc<str>,
        /// The partition.
        partition: PartitionIndex,
    }
}

record! {
    /// What one member shall get in the end.
    StreamsTarget {
        /// The member.
        member: Arc<str>,
        /// Tasks that it works on, in rising order.
        active: Vec<StreamsTaskId>,
        /// Tasks whose stores it keeps a copy of, in rising order.
        standby: Vec<StreamsTaskId>,
    }
}

record! {
    /// The target of an epoch.
    StreamsTargetSet {
        /// Which group.
        group: GroupId,
        /// The epoch that it is for.
        epoch: i32,
        /// Those for whom it changed; the others keep what they were to get.
        targets: Vec<StreamsTarget>,
        /// When: the next one is computed a while later.
        now: Now,
    }
}
