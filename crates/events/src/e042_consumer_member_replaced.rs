//! Event 42: a static member of a consumer group came back and takes the place of its old id (KIP-848).

use alloc::sync::Arc;

use semel_types::{GroupId, Now};

use crate::ConsumerMember;

record! {
    /// The old id is gone; what it had and was to get goes to the new one, which starts in epoch 0.
    ConsumerMemberReplaced {
        /// Which group.
        group: GroupId,
        /// The old member id.
        old: Arc<str>,
        /// The member as it is from here on.
        member: ConsumerMember,
        /// When.
        now: Now,
    }
}
