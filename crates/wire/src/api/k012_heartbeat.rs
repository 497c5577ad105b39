//! Heartbeat (key 12): a member is alive (classic protocol).
//!
//! Versions: 3 has static members (KIP-345). 4 is flexible.

use crate::{Text, WireCode, message::message};

message! {
    /// Who is alive.
    pub struct HeartbeatRequest for Heartbeat {
        /// The group.
        [0..] group_id: Text,
        /// The member's generation.
        [0..] generation_id: i32,
        /// The member.
        [0..] member_id: Text,
        /// The static member's name.
        [3.., null 3..] group_instance_id: Option<Text>,
    }
}

message! {
    /// Whether it still belongs to the group.
    pub struct HeartbeatResponse for Heartbeat {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
