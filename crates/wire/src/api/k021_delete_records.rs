//! DeleteRecords (key 21): move the start of partitions (KIP-107).
//!
//! Versions: 2 is flexible.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawOffset, Text, WireCode, message::message};

message! {
    /// What may be forgotten.
    pub struct DeleteRecordsRequest for DeleteRecords {
        /// By topic.
        [0..] topics: Vec<DeleteRecordsTopic>,
        /// How long the broker may wait for the records to be gone.
        [0..] timeout_ms: i32,
    }
}

message! {
    /// Partitions of one topic.
    pub struct DeleteRecordsTopic {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<DeleteRecordsPartition>,
    }
}

message! {
    /// One partition.
    pub struct DeleteRecordsPartition {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The oldest offset to keep; -1 for the high watermark: nothing is kept.
        [0..] offset: RawOffset,
    }
}

message! {
    /// Where the partitions start now.
    pub struct DeleteRecordsResponse for DeleteRecords {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<DeleteRecordsTopicResult>,
    }
}

message! {
    /// Results of one topic.
    pub struct DeleteRecordsTopicResult {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<DeleteRecordsPartitionResult>,
    }
}

message! {
    /// The result of one partition.
    pub struct DeleteRecordsPartitionResult {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The oldest offset still there; -1 after an error.
        [0..] low_watermark: RawOffset,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
