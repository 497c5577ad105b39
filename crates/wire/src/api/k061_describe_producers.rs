//! DescribeProducers (key 61): who writes to a partition, and where their open transactions start (KIP-664).
//!
//! Versions: 0 is flexible.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawOffset, RawProducerId, Text, WireCode, message::message};

message! {
    /// Which partitions are asked about.
    pub struct DescribeProducersRequest for DescribeProducers {
        /// By topic.
        [0..] topics: Vec<DescribeProducersTopic>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct DescribeProducersTopic {
        /// The topic's name.
        [0..] name: Text,
        /// Its partitions.
        [0..] partition_indexes: Vec<PartitionIndex>,
    }
}

message! {
    /// The producers.
    pub struct DescribeProducersResponse for DescribeProducers {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<DescribeProducersTopicResponse>,
    }
}

message! {
    /// Producers of one topic.
    pub struct DescribeProducersTopicResponse {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<DescribeProducersPartitionResponse>,
    }
}

message! {
    /// Producers of one partition.
    pub struct DescribeProducersPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [0.., null 0..] error_message: Option<Text>,
        /// Everybody who is known to have written.
        [0..] active_producers: Vec<ProducerDescription>,
    }
}

message! {
    /// One producer. Epochs are wider here than elsewhere.
    pub struct ProducerDescription {
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// The epoch of its last batch.
        [0..] producer_epoch: i32,
        /// The sequence of its last record, or -1.
        [0..] last_sequence: i32 = -1,
        /// When it wrote last, in ms, or -1.
        [0..] last_timestamp: i64 = -1,
        /// The epoch of the coordinator that ended a transaction here last, or -1.
        [0..] coordinator_epoch: i32,
        /// First offset of its open transaction, or -1.
        [0..] current_txn_start_offset: RawOffset,
    }
}
