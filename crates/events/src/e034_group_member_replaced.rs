//! Event 34: a static member came back with a new id and takes the place of its old one (KIP-345).

use alloc::sync::Arc;

use semel_types::{GroupId, Now};

use crate::GroupMember;

record! {
    /// The old id is fenced; assignment, and leadership if it had it, go to the new one.
    GroupMemberReplaced {
        /// Which group.
        group: GroupId,
        /// The old member id.
        old: Arc<str>,
        /// The member as it is from here on.
        member: GroupMember,
        /// When.
        now: Now,
    }
}
