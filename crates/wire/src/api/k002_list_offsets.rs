//! ListOffsets (key 2): the offset at a time, or at one of a partition's ends.
//!
//! Versions: 2 has the isolation level. 4 has leader epochs. 6 is flexible. 7 allows the largest timestamp (-3), 8 the
//! first local offset (-4), 9 the last tiered one (-5), 11 the first one pending upload (-6). 10 has a timeout.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawLeaderEpoch, RawOffset, Text, WireCode, message::message};

message! {
    /// Which offsets are wanted.
    pub struct ListOffsetsRequest for ListOffsets {
        /// -1 for consumers.
        [0..] replica_id: i32,
        /// 0 reads all records, 1 committed ones only.
        [2..] isolation_level: i8,
        /// By topic.
        [0..] topics: Vec<ListOffsetsTopic>,
        /// How long a look-up in remote storage may take.
        [10..] timeout_ms: i32,
    }
}

message! {
    /// Wanted offsets of one topic.
    pub struct ListOffsetsTopic {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<ListOffsetsPartition>,
    }
}

message! {
    /// The wanted offset of one partition.
    pub struct ListOffsetsPartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The leader epoch the client knows, or -1.
        [4..] current_leader_epoch: RawLeaderEpoch,
        /// A time in ms, or a negative number for one of the special places (-1 end, -2 start, ...).
        [0..] timestamp: i64,
    }
}

message! {
    /// The offsets found.
    pub struct ListOffsetsResponse for ListOffsets {
        /// How long the client was or should be held back, for a quota.
        [2..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<ListOffsetsTopicResponse>,
    }
}

message! {
    /// Offsets found in one topic.
    pub struct ListOffsetsTopicResponse {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<ListOffsetsPartitionResponse>,
    }
}

message! {
    /// The offset found in one partition.
    pub struct ListOffsetsPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The record's time in ms, or -1.
        [1..] timestamp: i64 = -1,
        /// The offset, or -1 if nothing was found.
        [1..] offset: RawOffset,
        /// The leader epoch of that record, or -1.
        [4..] leader_epoch: RawLeaderEpoch,
    }
}
