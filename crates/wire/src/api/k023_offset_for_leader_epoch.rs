//! OffsetForLeaderEpoch (key 23): where an epoch ended (KIP-101, KIP-320).
//!
//! Versions: 3 has the replica's id. 4 is flexible.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawLeaderEpoch, RawOffset, Text, WireCode, message::message};

message! {
    /// Which epochs are meant.
    pub struct OffsetForLeaderEpochRequest for OffsetForLeaderEpoch {
        /// A follower's node id; -1 for consumers, -2 if it did not say.
        [3..] replica_id: i32 = -2,
        /// By topic.
        [0..] topics: Vec<OffsetForLeaderTopic>,
    }
}

message! {
    /// Epochs of one topic.
    pub struct OffsetForLeaderTopic {
        /// The topic's name.
        [0..] topic: Text,
        /// By partition.
        [0..] partitions: Vec<OffsetForLeaderPartition>,
    }
}

message! {
    /// The epoch of one partition.
    pub struct OffsetForLeaderPartition {
        /// The partition.
        [0..] partition: PartitionIndex,
        /// The leader epoch the client knows, or -1.
        [2..] current_leader_epoch: RawLeaderEpoch,
        /// The epoch whose end is wanted.
        [0..] leader_epoch: RawLeaderEpoch = RawLeaderEpoch(0),
    }
}

message! {
    /// Where the epochs ended.
    pub struct OffsetForLeaderEpochResponse for OffsetForLeaderEpoch {
        /// How long the client was or should be held back, for a quota.
        [2..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<OffsetForLeaderTopicResponse>,
    }
}

message! {
    /// Ends in one topic.
    pub struct OffsetForLeaderTopicResponse {
        /// The topic's name.
        [0..] topic: Text,
        /// By partition.
        [0..] partitions: Vec<EpochEndOffset>,
    }
}

message! {
    /// The end in one partition.
    pub struct EpochEndOffset {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The partition.
        [0..] partition: PartitionIndex,
        /// The largest epoch at or below the one asked for, or -1.
        [1..] leader_epoch: RawLeaderEpoch,
        /// The offset after its last record, or -1.
        [0..] end_offset: RawOffset,
    }
}
