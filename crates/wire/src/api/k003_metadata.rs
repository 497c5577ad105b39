//! Metadata (key 3): brokers, topics, partitions.
//!
//! Versions: 1 has racks and the controller; there null asks for all topics (before: an empty array). 4 can forbid
//! automatic creation. 5 has offline replicas. 7 has leader epochs. 8 has authorized operations. 9 is flexible. 10 has
//! topic ids, 12 asks by them. 13 has an error for the whole answer.

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, Text, WireCode, message::message};

/// The value of authorized operations when nobody asked for them.
pub const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

message! {
    /// Which topics to describe.
    pub struct MetadataRequest for Metadata {
        /// The topics: null for all (version 0: an empty array for all).
        [0.., null 1..] topics: Option<Vec<MetadataRequestTopic>> = Some(Vec::new()),
        /// May a missing topic be created?
        [4..] allow_auto_topic_creation: bool = true,
        /// Tell what the client may do with the cluster?
        [8..=10] include_cluster_authorized_operations: bool,
        /// Tell what the client may do with each topic?
        [8..] include_topic_authorized_operations: bool,
    }
}

message! {
    /// A topic asked for.
    pub struct MetadataRequestTopic {
        /// Its id; all zero if asked for by name.
        [10..] topic_id: TopicId,
        /// Its name; null if asked for by id.
        [0.., null 10..] name: Option<Text> = Some(Text::EMPTY),
    }
}

message! {
    /// The cluster as it is.
    pub struct MetadataResponse for Metadata {
        /// How long the client was or should be held back, for a quota.
        [3..] throttle_time_ms: i32,
        /// The brokers.
        [0..] brokers: Vec<MetadataBroker>,
        /// The cluster's id.
        [2.., null 2..] cluster_id: Option<Text>,
        /// The controller's node id, or -1.
        [1..] controller_id: i32 = -1,
        /// The topics.
        [0..] topics: Vec<MetadataTopic>,
        /// What the client may do with the cluster, as a bit field.
        [8..=10] cluster_authorized_operations: i32 = OPERATIONS_NOT_ASKED,
        /// What went wrong with the request as a whole.
        [13..] error_code: WireCode,
    }
}

message! {
    /// One broker.
    pub struct MetadataBroker {
        /// Its node id.
        [0..] node_id: i32,
        /// Its host name.
        [0..] host: Text,
        /// Its port.
        [0..] port: i32,
        /// Its rack.
        [1.., null 1..] rack: Option<Text>,
    }
}

message! {
    /// One topic.
    pub struct MetadataTopic {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Its name; null if it was asked for by an unknown id.
        [0.., null 12..] name: Option<Text> = Some(Text::EMPTY),
        /// Its id.
        [10..] topic_id: TopicId,
        /// One of Kafka's own?
        [1..] is_internal: bool,
        /// Its partitions.
        [0..] partitions: Vec<MetadataPartition>,
        /// What the client may do with it, as a bit field.
        [8..] topic_authorized_operations: i32 = OPERATIONS_NOT_ASKED,
    }
}

message! {
    /// One partition.
    pub struct MetadataPartition {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// The leader's node id, or -1.
        [0..] leader_id: i32,
        /// The leader's epoch, or -1.
        [7..] leader_epoch: RawLeaderEpoch,
        /// Node ids of all replicas.
        [0..] replica_nodes: Vec<i32>,
        /// Node ids of the replicas in sync.
        [0..] isr_nodes: Vec<i32>,
        /// Node ids of the replicas that are down.
        [5..] offline_replicas: Vec<i32>,
    }
}
