//! ConsumerGroupDescribe (key 69): consumer groups and their members (KIP-848).
//!
//! Versions: 0 is flexible. 1 tells which protocol a member speaks (KIP-1099).

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{Text, WireCode, message::message};

message! {
    /// Which groups are asked about.
    pub struct ConsumerGroupDescribeRequest for ConsumerGroupDescribe {
        /// The groups.
        [0..] group_ids: Vec<Text>,
        /// Tell what the client may do with them.
        [0..] include_authorized_operations: bool,
    }
}

message! {
    /// What is known of them.
    pub struct ConsumerGroupDescribeResponse for ConsumerGroupDescribe {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By group.
        [0..] groups: Vec<DescribedConsumerGroup>,
    }
}

message! {
    /// One group.
    pub struct DescribedConsumerGroup {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [0.., null 0..] error_message: Option<Text>,
        /// The group.
        [0..] group_id: Text,
        /// The state's name.
        [0..] group_state: Text,
        /// The group's epoch.
        [0..] group_epoch: i32,
        /// Epoch of the targets.
        [0..] assignment_epoch: i32,
        /// The assignor that is used.
        [0..] assignor_name: Text,
        /// Its members.
        [0..] members: Vec<DescribedConsumer>,
        /// What the client may do, as bits; the lowest number if not asked.
        [0..] authorized_operations: i32 = i32::MIN,
    }
}

message! {
    /// One member.
    pub struct DescribedConsumer {
        /// Its id.
        [0..] member_id: Text,
        /// The static member's name.
        [0.., null 0..] instance_id: Option<Text>,
        /// The rack that it is in.
        [0.., null 0..] rack_id: Option<Text>,
        /// Its epoch.
        [0..] member_epoch: i32,
        /// `client.id` of its last full heartbeat.
        [0..] client_id: Text,
        /// Where that came from.
        [0..] client_host: Text,
        /// The topics that it reads.
        [0..] subscribed_topic_names: Vec<Text>,
        /// Pattern of further topics that it reads.
        [0.., null 0..] subscribed_topic_regex: Option<Text>,
        /// What it has.
        [0..] assignment: ConsumerAssignment,
        /// What it shall get.
        [0..] target_assignment: ConsumerAssignment,
        /// 0 for one that speaks the classic protocol, 1 for KIP-848; -1 if not known.
        [1..] member_type: i8 = -1,
    }
}

message! {
    /// What a member has or shall get.
    pub struct ConsumerAssignment {
        /// By topic.
        [0..] topic_partitions: Vec<ConsumerTopicPartitions>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct ConsumerTopicPartitions {
        /// The topic's id.
        [0..] topic_id: TopicId,
        /// The topic's name.
        [0..] topic_name: Text,
        /// The partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}
