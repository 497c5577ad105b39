//! OffsetFetch (key 9): read a group's offsets.
//!
//! Versions: 2 allows null for all topics. 5 has leader epochs. 6 is flexible. 7 can insist on stable offsets. 8 asks for
//! several groups at once. 9 allows KIP-848 groups. 10 has topic ids in place of names.

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, RawOffset, Text, WireCode, message::message};

message! {
    /// Whose offsets of what are wanted.
    pub struct OffsetFetchRequest for OffsetFetch {
        /// The group.
        [..=7] group_id: Text,
        /// The topics; null for all.
        [..=7, null 2..] topics: Option<Vec<OffsetFetchTopic>> = Some(Vec::new()),
        /// The groups.
        [8..] groups: Vec<OffsetFetchGroup>,
        /// Refuse (88) while a transaction has offsets pending?
        [7..] require_stable: bool,
    }
}

message! {
    /// Wanted partitions of one topic, below version 8.
    pub struct OffsetFetchTopic {
        /// The topic's name.
        [..=7] name: Text,
        /// Its partitions.
        [..=7] partition_indexes: Vec<PartitionIndex>,
    }
}

message! {
    /// One group.
    pub struct OffsetFetchGroup {
        /// The group.
        [8..] group_id: Text,
        /// The member that asks (KIP-848), or null.
        [9.., null 9..] member_id: Option<Text>,
        /// Its epoch, or -1.
        [9..] member_epoch: i32 = -1,
        /// The topics; null for all.
        [8.., null 8..] topics: Option<Vec<OffsetFetchGroupTopic>> = Some(Vec::new()),
    }
}

message! {
    /// Wanted partitions of one topic, from version 8.
    pub struct OffsetFetchGroupTopic {
        /// The topic's name.
        [8..=9] name: Text,
        /// The topic's id.
        [10..] topic_id: TopicId,
        /// Its partitions.
        [8..] partition_indexes: Vec<PartitionIndex>,
    }
}

message! {
    /// The offsets.
    pub struct OffsetFetchResponse for OffsetFetch {
        /// How long the client was or should be held back, for a quota.
        [3..] throttle_time_ms: i32,
        /// By topic, below version 8.
        [..=7] topics: Vec<OffsetFetchTopicResponse>,
        /// What went wrong with the group as a whole, below version 8.
        [2..=7] error_code: WireCode,
        /// By group, from version 8.
        [8..] groups: Vec<OffsetFetchGroupResponse>,
    }
}

message! {
    /// Offsets of one topic, below version 8.
    pub struct OffsetFetchTopicResponse {
        /// The topic's name.
        [..=7] name: Text,
        /// By partition.
        [..=7] partitions: Vec<OffsetFetchPartitionResponse>,
    }
}

message! {
    /// The offset of one partition.
    pub struct OffsetFetchPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The next offset to read, or -1 if none is stored.
        [0..] committed_offset: RawOffset,
        /// Leader epoch of the last record read, or -1.
        [5..] committed_leader_epoch: RawLeaderEpoch,
        /// Whatever the client keeps with it.
        [0.., null 0..] metadata: Option<Text> = Some(Text::EMPTY),
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}

message! {
    /// Offsets of one group.
    pub struct OffsetFetchGroupResponse {
        /// The group.
        [8..] group_id: Text,
        /// By topic.
        [8..] topics: Vec<OffsetFetchGroupTopicResponse>,
        /// What went wrong with the group as a whole.
        [8..] error_code: WireCode,
    }
}

message! {
    /// Offsets of one topic, from version 8.
    pub struct OffsetFetchGroupTopicResponse {
        /// The topic's name.
        [8..=9] name: Text,
        /// The topic's id.
        [10..] topic_id: TopicId,
        /// By partition.
        [8..] partitions: Vec<OffsetFetchPartitionResponse>,
    }
}
