//! ConsumerGroupHeartbeat (key 68): join, stay in and leave a consumer group (KIP-848).
//!
//! Versions: 0 is flexible. 1 has a pattern of topics, and members make their ids themselves (KIP-1082).

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{Text, WireCode, message::message};

message! {
    /// What a member says of itself. Null is what it has said before.
    pub struct ConsumerGroupHeartbeatRequest for ConsumerGroupHeartbeat {
        /// The group.
        [0..] group_id: Text,
        /// The member.
        [0..] member_id: Text,
        /// Its epoch; 0 to join, -1 to leave, -2 for a static member that leaves and will be back.
        [0..] member_epoch: i32,
        /// The static member's name.
        [0.., null 0..] instance_id: Option<Text>,
        /// The rack that it is in.
        [0.., null 0..] rack_id: Option<Text>,
        /// How long it may take to give partitions up, in ms; -1 if that has not changed.
        [0..] rebalance_timeout_ms: i32 = -1,
        /// The topics that it reads.
        [0.., null 0..] subscribed_topic_names: Option<Vec<Text>>,
        /// Pattern of further topics that it reads; empty for none.
        [1.., null 1..] subscribed_topic_regex: Option<Text>,
        /// The assignor that it asks for.
        [0.., null 0..] server_assignor: Option<Text>,
        /// The partitions that it has.
        [0.., null 0..] topic_partitions: Option<Vec<HeartbeatTopicPartitions>>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct HeartbeatTopicPartitions {
        /// The topic's id.
        [0..] topic_id: TopicId,
        /// The partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}

message! {
    /// What the group says to the member.
    pub struct ConsumerGroupHeartbeatResponse for ConsumerGroupHeartbeat {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [0.., null 0..] error_message: Option<Text>,
        /// The member.
        [0.., null 0..] member_id: Option<Text>,
        /// Its epoch.
        [0..] member_epoch: i32,
        /// When the next heartbeat is due, in ms.
        [0..] heartbeat_interval_ms: i32,
        /// All that it has from here on; null if that has not changed.
        [0.., null 0..] assignment: Option<HeartbeatAssignment>,
    }
}

message! {
    /// What a member has.
    pub struct HeartbeatAssignment {
        /// By topic.
        [0..] topic_partitions: Vec<HeartbeatTopicPartitions>,
    }
}
