//! Event 49: members left a streams group, were silent for too long, or did not give tasks up (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

record! {
    /// They are no members any more; what they had is free.
    StreamsMembersRemoved {
        /// Which group.
        group: GroupId,
        /// Their ids.
        members: Vec<Arc<str>>,
        /// The group's epoch from here on.
        epoch: i32,
        /// When.
        now: Now,
    }
}
