//! DescribeTransactions (key 65): where the transactions of some transactional ids stand (KIP-664).
//!
//! Versions: 0 is flexible.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Which transactional ids are asked about.
    pub struct DescribeTransactionsRequest for DescribeTransactions {
        /// The ids.
        [0..] transactional_ids: Vec<Text>,
    }
}

message! {
    /// Where they stand.
    pub struct DescribeTransactionsResponse for DescribeTransactions {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By id.
        [0..] transaction_states: Vec<TransactionDescription>,
    }
}

message! {
    /// Where one stands.
    pub struct TransactionDescription {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The id.
        [0..] transactional_id: Text,
        /// The state's name.
        [0..] transaction_state: Text,
        /// The timeout of its transactions.
        [0..] transaction_timeout_ms: i32,
        /// When the open transaction started, in ms, or -1.
        [0..] transaction_start_time_ms: i64,
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// What the open transaction holds, by topic.
        [0..] topics: Vec<TransactionTopic>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct TransactionTopic {
        /// The topic's name.
        [0..] topic: Text,
        /// Its partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}
