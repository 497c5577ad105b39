//! Produce (key 0): append record batches.
//!
//! Versions: 7 allows zstd. 8 adds errors per record. 9 is flexible. 10 names the current leader. 12 is the first that
//! also adds partitions to the transaction (KIP-890, `transaction.version` 2). 13 has topic ids in place of names.

use alloc::vec::Vec;

use bytes::Bytes;
use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, RawOffset, Text, WireCode, message::message};

message! {
    /// Batches to append, by topic and partition.
    pub struct ProduceRequest for Produce {
        /// The producer's transactional id, if it has one.
        [3.., null 3..] transactional_id: Option<Text>,
        /// Replicas that must have the records before the answer: -1 (all), 1, or 0 (no answer at all).
        [0..] acks: i16,
        /// How long the broker may wait for replicas.
        [0..] timeout_ms: i32,
        /// The topics.
        [0..] topics: Vec<ProduceTopic>,
    }
}

message! {
    /// The batches for one topic.
    pub struct ProduceTopic {
        /// The topic's name.
        [..=12] name: Text,
        /// The topic's id.
        [13..] topic_id: TopicId,
        /// Its partitions.
        [0..] partitions: Vec<ProducePartition>,
    }
}

message! {
    /// The batches for one partition.
    pub struct ProducePartition {
        /// The partition.
        [0..] index: PartitionIndex,
        /// Record batches, a slice of the frame.
        [0.., null 0..] records: Option<Bytes>,
    }
}

message! {
    /// What became of each partition's batches.
    pub struct ProduceResponse for Produce {
        /// By topic.
        [0..] responses: Vec<ProduceTopicResponse>,
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// Addresses of the leaders named in the partitions.
        [10.., tag 0] node_endpoints: Vec<ProduceNodeEndpoint>,
    }
}

message! {
    /// Results of one topic.
    pub struct ProduceTopicResponse {
        /// The topic's name.
        [..=12] name: Text,
        /// The topic's id.
        [13..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<ProducePartitionResponse>,
    }
}

message! {
    /// The result of one partition.
    pub struct ProducePartitionResponse {
        /// The partition.
        [0..] index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Offset of the first record; -1 after an error.
        [0..] base_offset: RawOffset,
        /// Time stamped by the broker, in ms; -1 where the records keep the client's time.
        [2..] log_append_time_ms: i64 = -1,
        /// The partition's first offset, or -1.
        [5..] log_start_offset: RawOffset,
        /// Which records caused the refusal.
        [8..] record_errors: Vec<ProduceRecordError>,
        /// Why the batch was refused, for people.
        [8.., null 8..] error_message: Option<Text>,
        /// The leader to turn to, after an error that says we are not.
        [10.., tag 0] current_leader: ProduceLeader,
    }
}

message! {
    /// One record that caused a refusal.
    pub struct ProduceRecordError {
        /// The record's place in its batch, from 0.
        [8..] batch_index: i32,
        /// Why, for people.
        [8.., null 8..] message: Option<Text>,
    }
}

message! {
    /// A partition's leader.
    pub struct ProduceLeader {
        /// The leader's node id, or -1.
        [10..] leader_id: i32 = -1,
        /// Its epoch, or -1.
        [10..] leader_epoch: RawLeaderEpoch,
    }
}

message! {
    /// Where a node listens.
    pub struct ProduceNodeEndpoint {
        /// Its node id.
        [10..] node_id: i32,
        /// Its host name.
        [10..] host: Text,
        /// Its port.
        [10..] port: i32,
        /// Its rack.
        [10.., null 10..] rack: Option<Text>,
    }
}
