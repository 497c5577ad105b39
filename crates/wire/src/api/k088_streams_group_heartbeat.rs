//! StreamsGroupHeartbeat (key 88): join a streams group, report tasks, learn one's tasks (KIP-1071).
//!
//! Versions: 1 adds to the answer the acceptable lag as a wide number, whether the topology's description is wanted
//! (KIP-1331), and the status MISSING_CLIENT_TAGS.

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawOffset, Text, WireCode, message::message};

message! {
    /// What a member says of itself; what is null is as it was.
    pub struct StreamsGroupHeartbeatRequest for StreamsGroupHeartbeat {
        /// The group.
        [0..] group_id: Text,
        /// The member, named by itself.
        [0..] member_id: Text,
        /// The member's epoch: 0 to join, -1 to leave, -2 for a static member that will come back.
        [0..] member_epoch: i32,
        /// The newest endpoint information that it has.
        [0..] endpoint_information_epoch: i32,
        /// The static member's name.
        [0.., null 0..] instance_id: Option<Text>,
        /// The rack it stands in.
        [0.., null 0..] rack_id: Option<Text>,
        /// How long the group waits for it to give tasks up; -1: as before.
        [0..] rebalance_timeout_ms: i32 = -1,
        /// The application's topology; when joining only.
        [0.., null 0..] topology: Option<StreamsTopology>,
        /// Active tasks that it has.
        [0.., null 0..] active_tasks: Option<Vec<StreamsTaskIds>>,
        /// Standby tasks that it has.
        [0.., null 0..] standby_tasks: Option<Vec<StreamsTaskIds>>,
        /// Warm-up tasks that it has.
        [0.., null 0..] warmup_tasks: Option<Vec<StreamsTaskIds>>,
        /// The instance of the application, which may have several members.
        [0.., null 0..] process_id: Option<Text>,
        /// Where its state can be asked (interactive queries).
        [0.., null 0..] user_endpoint: Option<StreamsEndpoint>,
        /// What it says about its place, for the assignor.
        [0.., null 0..] client_tags: Option<Vec<StreamsKeyValue>>,
        /// How far it has read the changelogs of each task, summed up.
        [0.., null 0..] task_offsets: Option<Vec<StreamsTaskOffset>>,
        /// Where these changelogs end, summed up.
        [0.., null 0..] task_end_offsets: Option<Vec<StreamsTaskOffset>>,
        /// All members shall shut down.
        [0..] shutdown_application: bool,
    }
}

message! {
    /// A topology.
    pub struct StreamsTopology {
        /// Which one: a later application has a higher number.
        [0..] epoch: i32,
        /// Its parts.
        [0..] subtopologies: Vec<StreamsSubtopology>,
    }
}

message! {
    /// A part of a topology whose tasks are one per partition of its sources.
    pub struct StreamsSubtopology {
        /// Its name.
        [0..] subtopology_id: Text,
        /// Topics that it reads.
        [0..] source_topics: Vec<Text>,
        /// Topics that it reads, by pattern.
        [0..] source_topic_regex: Vec<Text>,
        /// Changelogs of its stores.
        [0..] state_changelog_topics: Vec<StreamsTopicInfo>,
        /// Repartition topics that it writes.
        [0..] repartition_sink_topics: Vec<Text>,
        /// Repartition topics that it reads.
        [0..] repartition_source_topics: Vec<StreamsTopicInfo>,
        /// Sources that need the same number of partitions.
        [0..] copartition_groups: Vec<StreamsCopartitionGroup>,
    }
}

message! {
    /// Sources that need the same number of partitions, as indices of the subtopology's lists.
    pub struct StreamsCopartitionGroup {
        /// Of its source topics.
        [0..] source_topics: Vec<i16>,
        /// Of its patterns.
        [0..] source_topic_regex: Vec<i16>,
        /// Of its repartition sources.
        [0..] repartition_source_topics: Vec<i16>,
    }
}

message! {
    /// An internal topic.
    pub struct StreamsTopicInfo {
        /// Its name.
        [0..] name: Text,
        /// Its partitions; 0 to have them decided.
        [0..] partitions: i32,
        /// Its copies; 0 for the default.
        [0..] replication_factor: i16,
        /// Its settings.
        [0..] topic_configs: Vec<StreamsKeyValue>,
    }
}

message! {
    /// A name and a value.
    pub struct StreamsKeyValue {
        /// The name.
        [0..] key: Text,
        /// The value.
        [0..] value: Text,
    }
}

message! {
    /// Where an application answers.
    pub struct StreamsEndpoint {
        /// The host.
        [0..] host: Text,
        /// The port.
        [0..] port: u16,
    }
}

message! {
    /// A position in the changelogs of one task, summed up.
    pub struct StreamsTaskOffset {
        /// The subtopology.
        [0..] subtopology_id: Text,
        /// The task's partition.
        [0..] partition: PartitionIndex,
        /// The sum.
        [0..] offset: RawOffset,
    }
}

message! {
    /// Tasks of one subtopology.
    pub struct StreamsTaskIds {
        /// The subtopology.
        [0..] subtopology_id: Text,
        /// The partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}

message! {
    /// What the member is to do.
    pub struct StreamsGroupHeartbeatResponse for StreamsGroupHeartbeat {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [0.., null 0..] error_message: Option<Text>,
        /// The member.
        [0..] member_id: Text,
        /// Its epoch.
        [0..] member_epoch: i32,
        /// When to come again.
        [0..] heartbeat_interval_ms: i32,
        /// Given up by version 1, and always 0.
        [0..=0] acceptable_recovery_lag_legacy: i32,
        /// How often it is to tell its tasks' offsets.
        [0..] task_offset_interval_ms: i32,
        /// How many records a task may lack and count as caught up; -1 if that is not known here.
        [1..] acceptable_recovery_lag: i64 = -1,
        /// What is to be known of the group.
        [0.., null 0..] status: Option<Vec<StreamsStatus>> = Some(Vec::new()),
        /// Its active tasks; null: as before.
        [0.., null 0..] active_tasks: Option<Vec<StreamsTaskIds>>,
        /// Its standby tasks.
        [0.., null 0..] standby_tasks: Option<Vec<StreamsTaskIds>>,
        /// Its warm-up tasks.
        [0.., null 0..] warmup_tasks: Option<Vec<StreamsTaskIds>>,
        /// The topology's description is wanted.
        [1..] topology_description_required: bool,
        /// Which endpoint information this is.
        [0..] endpoint_information_epoch: i32,
        /// Who serves what; null: as before.
        [0.., null 0..] partitions_by_user_endpoint: Option<Vec<StreamsEndpointToPartitions>>,
    }
}

message! {
    /// Something to be known of the group.
    pub struct StreamsStatus {
        /// What, as a number: 0 STALE_TOPOLOGY, 1 MISSING_SOURCE_TOPICS, 2 INCORRECTLY_PARTITIONED_TOPICS,
        /// 3 MISSING_INTERNAL_TOPICS, 4 SHUTDOWN_APPLICATION, 5 ASSIGNMENT_DELAYED, 6 MISSING_CLIENT_TAGS.
        [0..] status_code: i8,
        /// What, for people.
        [0..] status_detail: Text,
    }
}

message! {
    /// What one member serves.
    pub struct StreamsEndpointToPartitions {
        /// Where it answers.
        [0..] user_endpoint: StreamsEndpoint,
        /// Source partitions of its active tasks.
        [0..] active_partitions: Vec<StreamsTopicPartitions>,
        /// Source partitions of its standby and warm-up tasks.
        [0..] standby_partitions: Vec<StreamsTopicPartitions>,
    }
}

message! {
    /// Partitions of one topic.
    pub struct StreamsTopicPartitions {
        /// The topic.
        [0..] topic: Text,
        /// The partitions.
        [0..] partitions: Vec<PartitionIndex>,
    }
}
