//! Event 39: a consumer group has a new epoch, and with it what each member shall get (KIP-848).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now, PartitionHandle};

record! {
    /// What one member shall get in the end.
    ConsumerTarget {
        /// The member.
        member: Arc<str>,
        /// All its partitions, in rising order.
        partitions: Vec<PartitionHandle>,
    }
}

record! {
    /// The group's epoch rose: members came, went or changed, or topics did.
    ConsumerEpochStarted {
        /// Which group.
        group: GroupId,
        /// The epoch, higher than every one before.
        epoch: i32,
        /// A hash of the topics that are read and their partitions, to tell when they change.
        topics_hash: u64,
        /// Name of the assignor that was used; empty without members.
        assignor: Arc<str>,
        /// Those for whom it changed; the others keep what they were to get.
        targets: Vec<ConsumerTarget>,
        /// When.
        now: Now,
    }
}
