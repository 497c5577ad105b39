//! LeaveGroup (key 13): members leave a group (classic protocol).
//!
//! Versions: 3 names several members, static ones too (KIP-345). 4 is flexible. 5 has the reason (KIP-800).

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Who leaves.
    pub struct LeaveGroupRequest for LeaveGroup {
        /// The group.
        [0..] group_id: Text,
        /// The member.
        [..=2] member_id: Text,
        /// The members.
        [3..] members: Vec<LeavingMember>,
    }
}

message! {
    /// One that leaves.
    pub struct LeavingMember {
        /// Its id; may be empty for a static member.
        [3..] member_id: Text,
        /// The static member's name.
        [3.., null 3..] group_instance_id: Option<Text>,
        /// Why, for people.
        [5.., null 5..] reason: Option<Text>,
    }
}

message! {
    /// What became of it.
    pub struct LeaveGroupResponse for LeaveGroup {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// By member.
        [3..] members: Vec<LeftMember>,
    }
}

message! {
    /// What became of one.
    pub struct LeftMember {
        /// Its id, as asked.
        [3..] member_id: Text,
        /// The static member's name, as asked.
        [3.., null 3..] group_instance_id: Option<Text>,
        /// What went wrong, if anything.
        [3..] error_code: WireCode,
    }
}
