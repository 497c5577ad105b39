//! SyncGroup (key 14): the leader gives every member its assignment (classic protocol).
//!
//! Versions: 3 has static members (KIP-345). 4 is flexible. 5 names the protocol.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::{Text, WireCode, message::message};

message! {
    /// Who asks for its assignment; the leader brings all of them.
    pub struct SyncGroupRequest for SyncGroup {
        /// The group.
        [0..] group_id: Text,
        /// The member's generation.
        [0..] generation_id: i32,
        /// The member.
        [0..] member_id: Text,
        /// The static member's name.
        [3.., null 3..] group_instance_id: Option<Text>,
        /// The protocol's type.
        [5.., null 5..] protocol_type: Option<Text>,
        /// The protocol that was chosen.
        [5.., null 5..] protocol_name: Option<Text>,
        /// From the leader: who gets what.
        [0..] assignments: Vec<SyncGroupRequestAssignment>,
    }
}

message! {
    /// What one member gets.
    pub struct SyncGroupRequestAssignment {
        /// The member.
        [0..] member_id: Text,
        /// What it gets; opaque to the broker.
        [0..] assignment: Bytes,
    }
}

message! {
    /// The member's assignment.
    pub struct SyncGroupResponse for SyncGroup {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The protocol's type.
        [5.., null 5..] protocol_type: Option<Text>,
        /// The protocol that was chosen.
        [5.., null 5..] protocol_name: Option<Text>,
        /// What the member gets.
        [0..] assignment: Bytes,
    }
}
