//! CreateTopics (key 19).
//!
//! Versions: 4 allows -1 for the default number of partitions and replicas. 5 is flexible and returns the settings. 7
//! returns the topic's id.

use alloc::vec::Vec;

use semel_types::{PartitionIndex, TopicId};

use crate::{Text, WireCode, message::message};

message! {
    /// Topics to create.
    pub struct CreateTopicsRequest for CreateTopics {
        /// The topics.
        [0..] topics: Vec<CreatableTopic>,
        /// How long the broker may wait for the topics to be there.
        [0..] timeout_ms: i32 = 60_000,
        /// Only check?
        [1..] validate_only: bool,
    }
}

message! {
    /// One topic.
    pub struct CreatableTopic {
        /// Its name.
        [0..] name: Text,
        /// Partitions; -1 for the default or with assignments.
        [0..] num_partitions: i32,
        /// Replicas; -1 for the default or with assignments.
        [0..] replication_factor: i16,
        /// Brokers chosen by hand.
        [0..] assignments: Vec<CreatableAssignment>,
        /// Settings.
        [0..] configs: Vec<CreatableConfig>,
    }
}

message! {
    /// Brokers chosen for one partition.
    pub struct CreatableAssignment {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// Node ids of its replicas.
        [0..] broker_ids: Vec<i32>,
    }
}

message! {
    /// One setting.
    pub struct CreatableConfig {
        /// Its name.
        [0..] name: Text,
        /// Its value.
        [0.., null 0..] value: Option<Text> = Some(Text::EMPTY),
    }
}

message! {
    /// What became of each topic.
    pub struct CreateTopicsResponse for CreateTopics {
        /// How long the client was or should be held back, for a quota.
        [2..] throttle_time_ms: i32,
        /// By topic.
        [0..] topics: Vec<CreatedTopic>,
    }
}

message! {
    /// The result for one topic.
    pub struct CreatedTopic {
        /// Its name.
        [0..] name: Text,
        /// Its id.
        [7..] topic_id: TopicId,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [1.., null 0..] error_message: Option<Text>,
        /// Why the settings are not shown, if they are not.
        [5.., tag 0] topic_config_error_code: WireCode,
        /// Partitions, or -1.
        [5..] num_partitions: i32 = -1,
        /// Replicas, or -1.
        [5..] replication_factor: i16 = -1,
        /// Settings; null if the client may not see them.
        [5.., null 5..] configs: Option<Vec<CreatedConfig>> = Some(Vec::new()),
    }
}

message! {
    /// One setting of a new topic.
    pub struct CreatedConfig {
        /// Its name.
        [5..] name: Text,
        /// Its value.
        [5.., null 5..] value: Option<Text> = Some(Text::EMPTY),
        /// Can it not be changed?
        [5..] read_only: bool,
        /// Where the value comes from, see DescribeConfigs; or -1.
        [5..] config_source: i8 = -1,
        /// Is the value secret?
        [5..] is_sensitive: bool,
    }
}
