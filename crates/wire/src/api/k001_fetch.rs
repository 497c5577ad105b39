//! Fetch (key 1): read record batches.
//!
//! Versions: 4 has the isolation level. 7 has fetch sessions (KIP-227). 10 allows zstd. 12 is flexible and reports
//! diverging epochs. 13 has topic ids in place of names. 15 moves the replica's id into a tagged field. 16 names the
//! current leaders. 17 and 18 carry fields for followers only.

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{RawLeaderEpoch, RawOffset, RawProducerId, Records, Text, WireCode, message::message};

message! {
    /// Which partitions to read, from where, and how long to wait.
    pub struct FetchRequest for Fetch {
        /// The cluster the client believes to talk to.
        [12.., null 12.., tag 0] cluster_id: Option<Text>,
        /// The follower's node id; -1 for consumers.
        [..=14] replica_id: i32 = -1,
        /// Who follows; default for consumers.
        [15.., tag 1] replica_state: FetchReplicaState,
        /// Longest wait for `min_bytes`.
        [0..] max_wait_ms: i32,
        /// Answer as soon as there is that much.
        [0..] min_bytes: i32,
        /// At most that much, except that the first batch is always whole.
        [3..] max_bytes: i32 = i32::MAX,
        /// 0 reads all records, 1 committed ones only.
        [4..] isolation_level: i8,
        /// The fetch session, 0 for none.
        [7..] session_id: i32,
        /// The session's epoch: -1 without session, 0 to begin one.
        [7..] session_epoch: i32 = -1,
        /// By topic.
        [0..] topics: Vec<FetchTopic>,
        /// Partitions to take out of the session.
        [7..] forgotten_topics: Vec<FetchForgottenTopic>,
        /// The consumer's rack.
        [11..] rack_id: Text,
    }
}

message! {
    /// A follower's identity.
    pub struct FetchReplicaState {
        /// Its node id; -1 for consumers.
        [15..] replica_id: i32 = -1,
        /// Its epoch, or -1.
        [15..] replica_epoch: i64 = -1,
    }
}

message! {
    /// What to read of one topic.
    pub struct FetchTopic {
        /// The topic's name.
        [..=12] topic: Text,
        /// The topic's id.
        [13..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<FetchPartition>,
    }
}

message! {
    /// What to read of one partition.
    pub struct FetchPartition {
        /// The partition.
        [0..] partition: PartitionIndex,
        /// The leader epoch the client knows, or -1.
        [9..] current_leader_epoch: RawLeaderEpoch,
        /// The first offset wanted.
        [0..] fetch_offset: RawOffset = RawOffset(0),
        /// Epoch of the last record that a follower has, or -1.
        [12..] last_fetched_epoch: RawLeaderEpoch,
        /// A follower's first offset; -1 for consumers.
        [5..] log_start_offset: RawOffset,
        /// At most that much of this partition.
        [0..] partition_max_bytes: i32,
        /// A follower's directory.
        [17.., tag 0] replica_directory_id: TopicId,
        /// The high watermark that a follower knows.
        [18.., tag 1] high_watermark: i64 = i64::MAX,
    }
}

message! {
    /// Partitions of one topic to take out of the session.
    pub struct FetchForgottenTopic {
        /// The topic's name.
        [7..=12] topic: Text,
        /// The topic's id.
        [13..] topic_id: TopicId,
        /// Its partitions.
        [7..] partitions: Vec<PartitionIndex>,
    }
}

message! {
    /// Batches by topic and partition.
    pub struct FetchResponse for Fetch {
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// What went wrong with the request as a whole.
        [7..] error_code: WireCode,
        /// The fetch session, 0 for none.
        [7..] session_id: i32,
        /// By topic.
        [0..] responses: Vec<FetchTopicResponse>,
        /// Addresses of the leaders named in the partitions.
        [16.., tag 0] node_endpoints: Vec<FetchNodeEndpoint>,
    }
}

message! {
    /// What was read of one topic.
    pub struct FetchTopicResponse {
        /// The topic's name.
        [..=12] topic: Text,
        /// The topic's id.
        [13..] topic_id: TopicId,
        /// By partition.
        [0..] partitions: Vec<FetchPartitionResponse>,
    }
}

message! {
    /// What was read of one partition.
    pub struct FetchPartitionResponse {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The high watermark.
        [0..] high_watermark: RawOffset = RawOffset(0),
        /// The last stable offset, at both isolation levels; -1 if unknown.
        [4..] last_stable_offset: RawOffset,
        /// The partition's first offset, or -1.
        [5..] log_start_offset: RawOffset,
        /// For followers: where their log leaves ours.
        [12.., tag 0] diverging_epoch: FetchEpochEndOffset,
        /// The leader to turn to, after an error that says we are not.
        [12.., tag 1] current_leader: FetchLeader,
        /// For followers: the snapshot to load.
        [12.., tag 2] snapshot_id: FetchSnapshotId,
        /// Aborted transactions that reach into the batches: null at isolation level 0.
        [4.., null 4..] aborted_transactions: Option<Vec<FetchAbortedTransaction>>,
        /// Where a consumer had better read, or -1.
        [11..] preferred_read_replica: i32 = -1,
        /// The batches.
        [0.., null 0..] records: Option<Records>,
    }
}

message! {
    /// The end of an epoch.
    pub struct FetchEpochEndOffset {
        /// The epoch, or -1.
        [12..] epoch: RawLeaderEpoch,
        /// The offset after its last record, or -1.
        [12..] end_offset: RawOffset,
    }
}

message! {
    /// A partition's leader.
    pub struct FetchLeader {
        /// The leader's node id, or -1.
        [12..] leader_id: i32 = -1,
        /// Its epoch, or -1.
        [12..] leader_epoch: RawLeaderEpoch,
    }
}

message! {
    /// A snapshot of a metadata log.
    pub struct FetchSnapshotId {
        /// The offset after its last record, or -1.
        [0..] end_offset: RawOffset,
        /// Its epoch, or -1.
        [0..] epoch: RawLeaderEpoch,
    }
}

message! {
    /// An aborted transaction: its records from here to its marker are to be skipped.
    pub struct FetchAbortedTransaction {
        /// Who wrote them.
        [4..] producer_id: RawProducerId,
        /// Offset of the first of them in this partition.
        [4..] first_offset: RawOffset,
    }
}

message! {
    /// Where a node listens.
    pub struct FetchNodeEndpoint {
        /// Its node id.
        [16..] node_id: i32,
        /// Its host name.
        [16..] host: Text,
        /// Its port.
        [16..] port: i32,
        /// Its rack.
        [16.., null 16..] rack: Option<Text>,
    }
}
