//! Event 41: members left a consumer group, were silent for too long, or did not give partitions up (KIP-848).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

record! {
    /// They are no members any more; what they had is free.
    ConsumerMembersRemoved {
        /// Which group.
        group: GroupId,
        /// Their ids.
        members: Vec<Arc<str>>,
        /// When.
        now: Now,
    }
}
