//! DeleteGroups (key 42): forget groups without members, and their offsets.
//!
//! Versions: 2 is flexible.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Which are to be forgotten.
    pub struct DeleteGroupsRequest for DeleteGroups {
        /// The groups.
        [0..] groups_names: Vec<Text>,
    }
}

message! {
    /// What became of them.
    pub struct DeleteGroupsResponse for DeleteGroups {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By group.
        [0..] results: Vec<DeletableGroupResult>,
    }
}

message! {
    /// What became of one.
    pub struct DeletableGroupResult {
        /// The group.
        [0..] group_id: Text,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
