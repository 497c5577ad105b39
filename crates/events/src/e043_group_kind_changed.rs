//! Event 43: a group speaks another protocol from here on; its members, if it keeps any, follow in events of that
//! protocol. Its offsets stay.

use semel_types::{GroupId, Now};

choice! {
    /// The protocols that a group may speak.
    GroupKind {
        /// JoinGroup and SyncGroup.
        Classic = 0,
        /// ConsumerGroupHeartbeat (KIP-848).
        Consumer = 1,
        /// StreamsGroupHeartbeat (KIP-1071).
        Streams = 2,
    }
}

record! {
    /// The group has no members, is of this kind, and goes on from this epoch.
    GroupKindChanged {
        /// Which group.
        group: GroupId,
        /// What it is now.
        kind: GroupKind,
        /// Its generation or epoch so far.
        epoch: i32,
        /// When.
        now: Now,
    }
}
