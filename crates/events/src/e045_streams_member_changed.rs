//! Event 45: a member of a streams group came, came back, or said something new of itself (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{DurationMs, GroupId, Now};

use crate::StreamsPair;

record! {
    /// Where an instance of an application answers (interactive queries).
    StreamsEndpoint {
        /// The host.
        host: Arc<str>,
        /// The port.
        port: u16,
    }
}

record! {
    /// One member of a streams group, as it describes itself.
    StreamsMember {
        /// Its id.
        id: Arc<str>,
        /// The static member's name (KIP-345).
        instance: Option<Arc<str>>,
        /// The rack that it is in.
        rack: Option<Arc<str>>,
        /// `client.id` of its last heartbeat.
        client_id: Arc<str>,
        /// Address that it came from.
        client_host: Arc<str>,
        /// How long it may take to give tasks up.
        rebalance_timeout: DurationMs,
        /// Epoch of its topology.
        topology_epoch: i32,
        /// The instance of the application, which may have several members.
        process: Arc<str>,
        /// Where the instance answers.
        endpoint: Option<StreamsEndpoint>,
        /// What it says about its place, sorted by name.
        tags: Vec<StreamsPair>,
    }
}

record! {
    /// The member is part of the group, described so, from here on.
    StreamsMemberChanged {
        /// Which group.
        group: GroupId,
        /// The member.
        member: StreamsMember,
        /// The id of a static member that it takes the place of: what that one had and was to get is this one's,
        /// which starts in epoch 0.
        replaces: Option<Arc<str>>,
        /// When.
        now: Now,
    }
}
