//! Event 32: the members of a group agreed on a new generation (JoinGroup), or the last one is gone.

use alloc::{sync::Arc, vec::Vec};

use semel_types::{DurationMs, GroupId, Now};

use crate::Blob;

record! {
    /// One protocol that a member knows, opaque to the broker.
    GroupProtocol {
        /// Its name.
        name: Arc<str>,
        /// What the leader needs to know of the member.
        metadata: Blob,
    }
}

record! {
    /// One member of a generation.
    GroupMember {
        /// Its id.
        id: Arc<str>,
        /// The static member's name (KIP-345).
        instance: Option<Arc<str>>,
        /// `client.id` of its JoinGroup.
        client_id: Arc<str>,
        /// Address that it came from.
        client_host: Arc<str>,
        /// Silence after which it is taken for dead.
        session_timeout: DurationMs,
        /// How long a rebalance waits for it.
        rebalance_timeout: DurationMs,
        /// What it can do, the best first.
        protocols: Vec<GroupProtocol>,
    }
}

record! {
    /// A new generation; nothing is assigned in it yet.
    GroupGenerationStarted {
        /// Which group.
        group: GroupId,
        /// Its number, higher than every one before.
        generation: i32,
        /// The protocol's type; empty if there never was a member.
        protocol_type: Arc<str>,
        /// The protocol that was chosen; empty without members.
        protocol: Arc<str>,
        /// Member id of the leader; empty without members.
        leader: Arc<str>,
        /// All members; none if the last is gone.
        members: Vec<GroupMember>,
        /// When.
        now: Now,
    }
}
