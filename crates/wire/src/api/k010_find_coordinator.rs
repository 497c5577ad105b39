//! FindCoordinator (key 10): which broker serves a group or a transactional id.
//!
//! Versions: 1 asks by type. 3 is flexible. 4 asks for several keys at once. 5 may answer 120. 6 knows share groups.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

/// `key_type` of a consumer group.
pub const KEY_TYPE_GROUP: i8 = 0;
/// `key_type` of a transactional id.
pub const KEY_TYPE_TRANSACTION: i8 = 1;
/// `key_type` of a share group's partition.
pub const KEY_TYPE_SHARE: i8 = 2;

message! {
    /// Whose coordinator is wanted.
    pub struct FindCoordinatorRequest for FindCoordinator {
        /// The group or transactional id.
        [..=3] key: Text,
        /// What the keys are: see `KEY_TYPE_GROUP` and its neighbours.
        [1..] key_type: i8 = KEY_TYPE_GROUP,
        /// The groups or transactional ids.
        [4..] coordinator_keys: Vec<Text>,
    }
}

message! {
    /// The coordinators.
    pub struct FindCoordinatorResponse for FindCoordinator {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [..=3] error_code: WireCode,
        /// Why, for people.
        [1..=3, null 1..=3] error_message: Option<Text>,
        /// The coordinator's node id.
        [..=3] node_id: i32,
        /// Its host name.
        [..=3] host: Text,
        /// Its port.
        [..=3] port: i32,
        /// One entry for each key.
        [4..] coordinators: Vec<Coordinator>,
    }
}

message! {
    /// The coordinator of one key.
    pub struct Coordinator {
        /// The group or transactional id.
        [4..] key: Text,
        /// The coordinator's node id.
        [4..] node_id: i32,
        /// Its host name.
        [4..] host: Text,
        /// Its port.
        [4..] port: i32,
        /// What went wrong, if anything.
        [4..] error_code: WireCode,
        /// Why, for people.
        [4.., null 4..] error_message: Option<Text>,
    }
}
