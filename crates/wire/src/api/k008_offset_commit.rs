//! OffsetCommit (key 8): store a group's offsets.
//!
//! Versions: 5 drops the retention time. 6 has leader epochs. 7 has static members. 8 is flexible. 9 allows KIP-848
//! groups. 10 has topic ids in place of names.

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, RawOffset, Text, WireCode, message::message};

message! {
    /// Offsets to store.
    pub struct OffsetCommitRequest for OffsetCommit {
        /// The group.
        [0..] group_id: Text,
        /// Generation (classic) or member epoch (KIP-848); -1 from outside of the group.
        [1..] generation_id_or_member_epoch: i32 = -1,
        /// The member; empty from outside of the group.
        [1..] member_id: Text,
        /// The static member's name.
        [7.., null 7..] group_instance_id: Option<Text>,
        /// How long to keep the offsets, or -1.
        [2..=4] retention_time_ms: i64 = -1,
        /// By topic.
        [0..] topics: Vec<OffsetCommitTopic>,
    }
}

message! {
    /// Offsets of one topic.
    pub struct OffsetCommitTopic {
        /// The topic's name.
        [..=9] name: Text,
        /// The topic's id.
        [10..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<OffsetCommitPartition>,
    }
}

message! {
    /// The offset of one partition.
    pub struct OffsetCommitPartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The next offset to read.
        [0..] committed_offset: RawOffset = RawOffset(0),
        /// Leader epoch of the last record read, or -1.
        [6..] committed_leader_epoch: RawLeaderEpoch,
        /// Whatever the client wants to keep with it.
        [0.., null 0..] committed_metadata: Option<Text> = Some(Text::EMPTY),
    }
}

message! {
    /// What became of each offset.
    pub struct OffsetCommitResponse for OffsetCommit {
        /// How long the client was or should be held back, for a quota.
        [3..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<OffsetCommitTopicResponse>,
    }
}

message! {
    /// Results of one topic.
    pub struct OffsetCommitTopicResponse {
        /// The topic's name.
        [..=9] name: Text,
        /// The topic's id.
        [10..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<OffsetCommitPartitionResponse>,
    }
}

message! {
    /// The result of one partition.
    pub struct OffsetCommitPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
