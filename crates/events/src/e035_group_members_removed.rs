//! Event 35: members left a group, or were silent for too long.

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

record! {
    /// They are no members any more, and the group has to rebalance.
    GroupMembersRemoved {
        /// Which group.
        group: GroupId,
        /// Their ids.
        members: Vec<Arc<str>>,
        /// When.
        now: Now,
    }
}
