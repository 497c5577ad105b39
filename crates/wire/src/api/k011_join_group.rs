//! JoinGroup (key 11): become a member of the next generation of a group (classic protocol).
//!
//! Versions: 1 has the rebalance timeout. 4 asks a new member to come back with the id it is given (KIP-394). 5 has
//! static members (KIP-345). 6 is flexible. 7 tells the protocol's type. 8 has the reason (KIP-800). 9 can tell a
//! leader that nothing has to be assigned (KIP-814).

use alloc::vec::Vec;

use bytes::Bytes;

use crate::{Text, WireCode, message::message};

message! {
    /// Who wants to join, and what it can do.
    pub struct JoinGroupRequest for JoinGroup {
        /// The group.
        [0..] group_id: Text,
        /// Silence after which the member is taken for dead.
        [0..] session_timeout_ms: i32,
        /// How long the group waits for the member in a rebalance; the session timeout before version 1.
        [1..] rebalance_timeout_ms: i32 = -1,
        /// The member; empty for a new one.
        [0..] member_id: Text,
        /// The static member's name.
        [5.., null 5..] group_instance_id: Option<Text>,
        /// The protocol's type: `consumer`, `connect`.
        [0..] protocol_type: Text,
        /// What it can do, the best first.
        [0..] protocols: Vec<JoinGroupRequestProtocol>,
        /// Why it joins, for people.
        [8.., null 8..] reason: Option<Text>,
    }
}

message! {
    /// One protocol that a member knows.
    pub struct JoinGroupRequestProtocol {
        /// Its name.
        [0..] name: Text,
        /// What the leader needs to know of the member; opaque to the broker.
        [0..] metadata: Bytes,
    }
}

message! {
    /// The generation that the member belongs to.
    pub struct JoinGroupResponse for JoinGroup {
        /// How long the client was or should be held back, for a quota.
        [2..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The generation.
        [0..] generation_id: i32 = -1,
        /// The protocol's type.
        [7.., null 7..] protocol_type: Option<Text>,
        /// The protocol that was chosen.
        [0.., null 7..] protocol_name: Option<Text> = Some(Text::EMPTY),
        /// The leader's member id.
        [0..] leader: Text,
        /// The leader has nothing to assign.
        [9..] skip_assignment: bool,
        /// The member's id.
        [0..] member_id: Text,
        /// All members, told to the leader alone.
        [0..] members: Vec<JoinGroupResponseMember>,
    }
}

message! {
    /// A member as the leader sees it.
    pub struct JoinGroupResponseMember {
        /// Its id.
        [0..] member_id: Text,
        /// The static member's name.
        [5.., null 5..] group_instance_id: Option<Text>,
        /// What it said of itself.
        [0..] metadata: Bytes,
    }
}
