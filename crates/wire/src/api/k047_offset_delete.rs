//! OffsetDelete (key 47): forget committed offsets of a group (KIP-496).
//!
//! Versions: 0 alone, not flexible.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{Text, WireCode, message::message};

message! {
    /// Which offsets are to be forgotten.
    pub struct OffsetDeleteRequest for OffsetDelete {
        /// The group.
        [0..] group_id: Text,
        /// By topic.
        [0..] topics: Vec<OffsetDeleteRequestTopic>,
    }
}

message! {
    /// Offsets of one topic.
    pub struct OffsetDeleteRequestTopic {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<OffsetDeleteRequestPartition>,
    }
}

message! {
    /// One partition.
    pub struct OffsetDeleteRequestPartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
    }
}

message! {
    /// What became of them.
    pub struct OffsetDeleteResponse for OffsetDelete {
        /// What went wrong with the whole, if anything.
        [0..] error_code: WireCode,
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<OffsetDeleteResponseTopic>,
    }
}

message! {
    /// Results of one topic.
    pub struct OffsetDeleteResponseTopic {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<OffsetDeleteResponsePartition>,
    }
}

message! {
    /// The result of one partition.
    pub struct OffsetDeleteResponsePartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
