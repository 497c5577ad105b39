//! TxnOffsetCommit (key 28): store a group's offsets with a transaction (KIP-98).
//!
//! Versions: 2 has leader epochs. 3 is flexible and names the member (KIP-447). 4 may answer 120. 5 also adds the group
//! to the transaction (KIP-890, `transaction.version` 2). 6 has topic ids in place of names (KIP-1319).

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Offsets to store when the transaction commits.
    pub struct TxnOffsetCommitRequest for TxnOffsetCommit {
        /// The transactional id.
        [0..] transactional_id: Text,
        /// The group.
        [0..] group_id: Text,
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// Generation (classic) or member epoch (KIP-848); -1 from outside of the group.
        [3..] generation_id_or_member_epoch: i32 = -1,
        /// The member; empty from outside of the group.
        [3..] member_id: Text,
        /// The static member's name.
        [3.., null 3..] group_instance_id: Option<Text>,
        /// By topic.
        [0..] topics: Vec<TxnOffsetCommitTopic>,
    }
}

message! {
    /// Offsets of one topic.
    pub struct TxnOffsetCommitTopic {
        /// The topic's name.
        [..=5] name: Text,
        /// The topic's id.
        [6..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<TxnOffsetCommitPartition>,
    }
}

message! {
    /// The offset of one partition.
    pub struct TxnOffsetCommitPartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The next offset to read.
        [0..] committed_offset: RawOffset = RawOffset(0),
        /// Leader epoch of the last record read, or -1.
        [2..] committed_leader_epoch: RawLeaderEpoch,
        /// Whatever the client wants to keep with it.
        [0.., null 0..] committed_metadata: Option<Text> = Some(Text::EMPTY),
    }
}

message! {
    /// What became of each offset.
    pub struct TxnOffsetCommitResponse for TxnOffsetCommit {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<TxnOffsetCommitTopicResponse>,
    }
}

message! {
    /// Results of one topic.
    pub struct TxnOffsetCommitTopicResponse {
        /// The topic's name.
        [..=5] name: Text,
        /// The topic's id.
        [6..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<TxnOffsetCommitPartitionResponse>,
    }
}

message! {
    /// The result of one partition.
    pub struct TxnOffsetCommitPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
