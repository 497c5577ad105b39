//! Event 40: what a member of a consumer group has, and what it has to give up (KIP-848).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now, PartitionHandle};

choice! {
    /// How far a member is on its way to its target (upstream `MemberState`).
    ConsumerProgress {
        /// It has its target.
        Stable = 0,
        /// It has to give partitions up first.
        Revoking = 1,
        /// It waits for partitions that others have to give up.
        Waiting = 2,
    }
}

record! {
    /// A partition that a member has.
    OwnedPartition {
        /// Which.
        partition: PartitionHandle,
        /// The member's epoch in which it got it: commits of older epochs are stale (KIP-1251).
        since: i32,
    }
}

record! {
    /// The member is told this from here on.
    ConsumerMemberReconciled {
        /// Which group.
        group: GroupId,
        /// The member.
        member: Arc<str>,
        /// Its epoch; -2 for a static member that is away.
        epoch: i32,
        /// Its epoch before: good for a member that missed the last answer.
        previous_epoch: i32,
        /// How far it is.
        progress: ConsumerProgress,
        /// What it has, in rising order.
        assigned: Vec<OwnedPartition>,
        /// What it has to give up and still owns, in rising order.
        revoking: Vec<OwnedPartition>,
        /// When.
        now: Now,
    }
}
