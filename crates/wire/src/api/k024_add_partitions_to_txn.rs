//! AddPartitionsToTxn (key 24): partitions join a transaction (KIP-98), or are checked to be in it (KIP-890).
//!
//! Versions: 2 may answer 90. 3 is flexible. 4 and 5 are for brokers: several transactions at once, verify-only.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Partitions to add.
    pub struct AddPartitionsToTxnRequest for AddPartitionsToTxn {
        /// By transaction, from version 4.
        [4..] transactions: Vec<AddPartitionsToTxnTransaction>,
        /// The transactional id, below version 4.
        [..=3] transactional_id: Text,
        /// The producer id, below version 4.
        [..=3] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch, below version 4.
        [..=3] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// By topic, below version 4.
        [..=3] topics: Vec<AddPartitionsToTxnTopic>,
    }
}

message! {
    /// Partitions of one transaction.
    pub struct AddPartitionsToTxnTransaction {
        /// The transactional id.
        [4..] transactional_id: Text,
        /// The producer id.
        [4..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [4..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// Only check that they are in the transaction?
        [4..] verify_only: bool,
        /// By topic.
        [4..] topics: Vec<AddPartitionsToTxnTopic>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct AddPartitionsToTxnTopic {
        /// The topic's name.
        [0..] name: Text,
        /// Its partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}

message! {
    /// What became of each partition.
    pub struct AddPartitionsToTxnResponse for AddPartitionsToTxn {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong with the request as a whole.
        [4..] error_code: WireCode,
        /// By transaction, from version 4.
        [4..] results_by_transaction: Vec<AddPartitionsToTxnResult>,
        /// By topic, below version 4.
        [..=3] results_by_topic: Vec<AddPartitionsToTxnTopicResult>,
    }
}

message! {
    /// Results of one transaction.
    pub struct AddPartitionsToTxnResult {
        /// The transactional id.
        [4..] transactional_id: Text,
        /// By topic.
        [4..] topic_results: Vec<AddPartitionsToTxnTopicResult>,
    }
}

message! {
    /// Results of one topic.
    pub struct AddPartitionsToTxnTopicResult {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
    }
}

message! {
    /// The result of one partition.
    pub struct AddPartitionsToTxnPartitionResult {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] partition_error_code: WireCode,
    }
}
