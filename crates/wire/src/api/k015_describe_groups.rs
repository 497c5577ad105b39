//! DescribeGroups (key 15): classic groups and their members.
//!
//! Versions: 3 has authorized operations. 4 has static members. 5 is flexible. 6 has a message, and 69 for a group that
//! does not exist (KIP-1043).

use alloc::vec::Vec;

use bytes::Bytes;

use crate::{Text, WireCode, message::message};

message! {
    /// Which groups are asked about.
    pub struct DescribeGroupsRequest for DescribeGroups {
        /// The groups.
        [0..] groups: Vec<Text>,
        /// Tell what the client may do with them.
        [3..] include_authorized_operations: bool,
    }
}

message! {
    /// What is known of them.
    pub struct DescribeGroupsResponse for DescribeGroups {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// By group.
        [0..] groups: Vec<DescribedGroup>,
    }
}

message! {
    /// One group.
    pub struct DescribedGroup {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [6.., null 6..] error_message: Option<Text>,
        /// The group.
        [0..] group_id: Text,
        /// The state's name.
        [0..] group_state: Text,
        /// The protocol's type.
        [0..] protocol_type: Text,
        /// The protocol that was chosen.
        [0..] protocol_data: Text,
        /// Its members.
        [0..] members: Vec<DescribedGroupMember>,
        /// What the client may do, as bits; the lowest number if not asked.
        [3..] authorized_operations: i32 = i32::MIN,
    }
}

message! {
    /// One member.
    pub struct DescribedGroupMember {
        /// Its id.
        [0..] member_id: Text,
        /// The static member's name.
        [4.., null 4..] group_instance_id: Option<Text>,
        /// `client.id` of its last JoinGroup.
        [0..] client_id: Text,
        /// Where that came from.
        [0..] client_host: Text,
        /// What it said of itself.
        [0..] member_metadata: Bytes,
        /// What it got.
        [0..] member_assignment: Bytes,
    }
}
