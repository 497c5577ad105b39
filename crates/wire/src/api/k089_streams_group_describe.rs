//! StreamsGroupDescribe (key 89): streams groups, their topology, members and tasks (KIP-1071).
//!
//! Versions: 1 has the topology's description (KIP-1331) and the assignor's name (KIP-1357).

use alloc::vec::Vec;

use crate::{
    Text, WireCode,
    api::streams_group_heartbeat::{
        StreamsEndpoint, StreamsKeyValue, StreamsTaskIds, StreamsTaskOffset, StreamsTopicInfo,
    },
    message::message,
};

message! {
    /// Which groups are asked about.
    pub struct StreamsGroupDescribeRequest for StreamsGroupDescribe {
        /// The groups.
        [0..] group_ids: Vec<Text>,
        /// Tell what the client may do with them.
        [0..] include_authorized_operations: bool,
        /// Tell the whole description of the topology.
        [1..] include_topology_description: bool,
    }
}

message! {
    /// What is known of them.
    pub struct StreamsGroupDescribeResponse for StreamsGroupDescribe {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By group.
        [0..] groups: Vec<DescribedStreamsGroup>,
    }
}

message! {
    /// One group.
    pub struct DescribedStreamsGroup {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The same for people.
        [0.., null 0..] error_message: Option<Text>,
        /// The group.
        [0..] group_id: Text,
        /// The state's name.
        [0..] group_state: Text,
        /// The group's epoch.
        [0..] group_epoch: i32,
        /// The epoch of the target assignment.
        [0..] assignment_epoch: i32,
        /// The topology.
        [0.., null 0..] topology: Option<DescribedStreamsTopology>,
        /// Its members.
        [0..] members: Vec<DescribedStreamsMember>,
        /// What the client may do, as bits; the lowest number if not asked.
        [0..] authorized_operations: i32 = i32::MIN,
        /// The whole description of the topology.
        [1.., null 1..] topology_description: Option<StreamsTopologyDescription>,
        /// What became of the wish for it: 0 none, 1 nothing stored, 2 an error, 3 there it is.
        [1..] topology_description_status: i8,
        /// The assignor.
        [1.., null 1..] assignor_name: Option<Text>,
    }
}

message! {
    /// A topology, its numbers of partitions decided.
    pub struct DescribedStreamsTopology {
        /// Which one.
        [0..] epoch: i32,
        /// Its parts.
        [0.., null 0..] subtopologies: Option<Vec<DescribedStreamsSubtopology>>,
    }
}

message! {
    /// A part of a topology.
    pub struct DescribedStreamsSubtopology {
        /// Its name.
        [0..] subtopology_id: Text,
        /// Topics that it reads.
        [0..] source_topics: Vec<Text>,
        /// Repartition topics that it writes.
        [0..] repartition_sink_topics: Vec<Text>,
        /// Changelogs of its stores.
        [0..] state_changelog_topics: Vec<StreamsTopicInfo>,
        /// Repartition topics that it reads.
        [0..] repartition_source_topics: Vec<StreamsTopicInfo>,
    }
}

message! {
    /// One member.
    pub struct DescribedStreamsMember {
        /// Its id.
        [0..] member_id: Text,
        /// Its epoch.
        [0..] member_epoch: i32,
        /// The static member's name.
        [0.., null 0..] instance_id: Option<Text>,
        /// The rack it stands in.
        [0.., null 0..] rack_id: Option<Text>,
        /// `client.id`.
        [0..] client_id: Text,
        /// Its address.
        [0..] client_host: Text,
        /// Epoch of its topology.
        [0..] topology_epoch: i32,
        /// The instance of the application.
        [0..] process_id: Text,
        /// Where its state can be asked.
        [0.., null 0..] user_endpoint: Option<StreamsEndpoint>,
        /// What it says about its place.
        [0..] client_tags: Vec<StreamsKeyValue>,
        /// How far it has read the changelogs of each task.
        [0..] task_offsets: Vec<StreamsTaskOffset>,
        /// Where these changelogs end.
        [0..] task_end_offsets: Vec<StreamsTaskOffset>,
        /// The tasks that it has.
        [0..] assignment: StreamsTasks,
        /// The tasks that it shall have.
        [0..] target_assignment: StreamsTasks,
        /// It uses the classic protocol.
        [0..] is_classic: bool,
    }
}

message! {
    /// Tasks of a member.
    pub struct StreamsTasks {
        /// Those that it works on.
        [0..] active_tasks: Vec<StreamsTaskIds>,
        /// Those whose state it keeps a copy of.
        [0..] standby_tasks: Vec<StreamsTaskIds>,
        /// Those whose state it restores, to work on them later.
        [0..] warmup_tasks: Vec<StreamsTaskIds>,
    }
}

message! {
    /// The whole description of a topology.
    pub struct StreamsTopologyDescription {
        /// Its parts.
        [1..] subtopologies: Vec<StreamsSubtopologyDescription>,
        /// Stores that every instance has whole.
        [1..] global_stores: Vec<StreamsGlobalStore>,
    }
}

message! {
    /// A part of a topology.
    pub struct StreamsSubtopologyDescription {
        /// Its name.
        [1..] subtopology_id: Text,
        /// Its nodes.
        [1..] nodes: Vec<StreamsTopologyNode>,
    }
}

message! {
    /// A node of a topology.
    pub struct StreamsTopologyNode {
        /// Its name.
        [1..] name: Text,
        /// What it is: 1 source, 2 processor, 3 sink.
        [1..] node_type: i8,
        /// Topics that a source reads.
        [1..] source_topics: Vec<Text>,
        /// The topic that a sink writes.
        [1.., null 1..] sink_topic: Option<Text>,
        /// Stores that a processor uses.
        [1..] stores: Vec<Text>,
        /// Nodes that follow.
        [1..] successors: Vec<Text>,
    }
}

message! {
    /// A store that every instance has whole.
    pub struct StreamsGlobalStore {
        /// The node that reads it.
        [1..] source: StreamsTopologyNode,
        /// The node that fills it.
        [1..] processor: StreamsTopologyNode,
    }
}
