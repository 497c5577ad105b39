//! ListGroups (key 16): the groups that a broker coordinates.
//!
//! Versions: 3 is flexible. 4 has states and filters by them (KIP-518), 5 the same for types (KIP-848).

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Which are wanted; an empty filter lets all pass.
    pub struct ListGroupsRequest for ListGroups {
        /// Names of states.
        [4..] states_filter: Vec<Text>,
        /// Names of types.
        [5..] types_filter: Vec<Text>,
    }
}

message! {
    /// Those found.
    pub struct ListGroupsResponse for ListGroups {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The groups.
        [0..] groups: Vec<ListedGroup>,
    }
}

message! {
    /// One of them.
    pub struct ListedGroup {
        /// The group.
        [0..] group_id: Text,
        /// The protocol's type.
        [0..] protocol_type: Text,
        /// The state's name.
        [4..] group_state: Text,
        /// The type's name.
        [5..] group_type: Text,
    }
}
