//! CreatePartitions (key 37): let topics grow (KIP-195).
//!
//! Versions: 2 is flexible. 3 may be answered with THROTTLING_QUOTA_EXCEEDED.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Topics that are to grow.
    pub struct CreatePartitionsRequest for CreatePartitions {
        /// By topic.
        [0..] topics: Vec<CreatePartitionsTopic>,
        /// How long the broker may wait for the partitions to be there.
        [0..] timeout_ms: i32,
        /// Only check?
        [0..] validate_only: bool,
    }
}

message! {
    /// One topic.
    pub struct CreatePartitionsTopic {
        /// Its name.
        [0..] name: Text,
        /// Number of partitions that it is to have.
        [0..] count: i32,
        /// Where each new partition is to be; null leaves it to the broker.
        [0.., null 0..] assignments: Option<Vec<CreatePartitionsAssignment>> = Some(Vec::new()),
    }
}

message! {
    /// One new partition.
    pub struct CreatePartitionsAssignment {
        /// The brokers that are to hold it.
        [0..] broker_ids: Vec<i32>,
    }
}

message! {
    /// What became of each topic.
    pub struct CreatePartitionsResponse for CreatePartitions {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic.
        [0..] results: Vec<CreatePartitionsTopicResult>,
    }
}

message! {
    /// The result for one topic.
    pub struct CreatePartitionsTopicResult {
        /// Its name.
        [0..] name: Text,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [0.., null 0..] error_message: Option<Text>,
    }
}
