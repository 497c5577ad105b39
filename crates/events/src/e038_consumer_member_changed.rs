//! Event 38: a member of a consumer group came, or said something new of itself (KIP-848).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{DurationMs, GroupId, Now};

use crate::GroupProtocol;

record! {
    /// What a member that speaks the classic protocol in a consumer group said beyond the rest (upstream
    /// `ClassicMemberMetadata`).
    ClassicTraits {
        /// Silence after which it is taken for dead.
        session_timeout: DurationMs,
        /// What it can do, the best first.
        protocols: Vec<GroupProtocol>,
    }
}

record! {
    /// One member of a consumer group, as it describes itself.
    ConsumerMember {
        /// Its id.
        id: Arc<str>,
        /// The static member's name (KIP-345).
        instance: Option<Arc<str>>,
        /// The rack that it is in.
        rack: Option<Arc<str>>,
        /// `client.id` of its last full heartbeat.
        client_id: Arc<str>,
        /// Address that it came from.
        client_host: Arc<str>,
        /// How long it may take to give partitions up.
        rebalance_timeout: DurationMs,
        /// Topics that it names, sorted.
        topics: Vec<Arc<str>>,
        /// Pattern of further topics, empty for none.
        pattern: Arc<str>,
        /// The assignor that it asks for, if any.
        assignor: Option<Arc<str>>,
        /// Stands for a member that speaks the classic protocol.
        classic: Option<ClassicTraits>,
    }
}

record! {
    /// The member is part of the group, described so, from here on.
    ConsumerMemberChanged {
        /// Which group.
        group: GroupId,
        /// The member.
        member: ConsumerMember,
        /// When.
        now: Now,
    }
}
