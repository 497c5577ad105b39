//! StreamsGroupDescribe (key 89), versions 0 and 1 (KIP-1071).
//!
//! Behaviour: topology, members and tasks of each group, from a copy of the state. The topology is told with its
//! numbers of partitions once they are decided. An empty group id is 24; a group that does not exist, or speaks another
//! protocol, 69. A member's offsets are those that it told since the start.
//! Version notes: 1 has the assignor's name, and a description of the topology, of which none is ever stored (1), as
//! in a Kafka without a plugin.

use std::{collections::BTreeMap, sync::Arc};

use semel_events::{StreamsInternalTopic, StreamsPair, StreamsSubtopology, StreamsTopology};
use semel_groups::streams::{ASSIGNOR, Live, Offsets, Roster, Seat, TaskId};
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    RawOffset, Text,
    api::{
        streams_group_describe::{
            DescribedStreamsGroup, DescribedStreamsMember, DescribedStreamsSubtopology,
            DescribedStreamsTopology, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse,
            StreamsTasks,
        },
        streams_group_heartbeat::{StreamsEndpoint, StreamsKeyValue, StreamsTaskOffset, StreamsTopicInfo},
    },
};

use super::Reply;
use crate::{call::Asked, inquiry::Cut, streams::task_ids};

/// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, as bits (upstream `AclOperation`).
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// The description of a topology was asked for, and there is none.
const NOT_STORED: i8 = 1;

pub(super) fn answer(cut: &Cut, asked: &Asked<StreamsGroupDescribeRequest>) -> Reply {
    let groups = asked.body.group_ids.iter().map(|id| {
        let mut group = describe(cut, id);
        if group.topology.is_some() {
            if asked.body.include_authorized_operations {
                group.authorized_operations = ALL_OPERATIONS;
            }
            if asked.body.include_topology_description {
                group.topology_description_status = NOT_STORED;
            }
        }
        group
    });
    StreamsGroupDescribeResponse { groups: groups.collect(), ..Default::default() }.into()
}

fn describe(cut: &Cut, id: &Text) -> DescribedStreamsGroup {
    if id.is_empty() {
        let error_code = ErrorCode::InvalidGroupId.into();
        return DescribedStreamsGroup { error_code, ..Default::default() };
    }
    let key = GroupId::new(id);
    let group = cut.state.groups.group(&key);
    match group.and_then(|group| group.streams()) {
        Some(roster) => described(id, roster, cut.groups.streams(&key).map(|live| &**live)),
        None => {
            let what = if group.is_none() { "not found" } else { "is not a streams group" };
            DescribedStreamsGroup {
                error_code: ErrorCode::GroupIdNotFound.into(),
                error_message: Some(Text::from(&*format!("Group {id} {what}."))),
                group_id: id.clone(),
                ..Default::default()
            }
        }
    }
}

fn described(id: &Text, roster: &Roster, live: Option<&Live>) -> DescribedStreamsGroup {
    let none = Offsets::default();
    let offsets = |member: &str| live.and_then(|live| live.offsets(member)).unwrap_or(&none);
    DescribedStreamsGroup {
        group_id: id.clone(),
        group_state: Text::from(roster.phase().name()),
        group_epoch: roster.group_epoch(),
        assignment_epoch: roster.assignment_epoch(),
        topology: roster.topology().map(|known| topology(known, roster)),
        members: roster.seats().map(|(id, seat)| member(seat, offsets(id))).collect(),
        assignor_name: Some(Text::from(ASSIGNOR)),
        ..Default::default()
    }
}

fn topology(topology: &StreamsTopology, roster: &Roster) -> DescribedStreamsTopology {
    let nothing = BTreeMap::new();
    let configured = roster.configured().filter(|configured| configured.is_ready());
    let decided = configured.map_or(&nothing, |configured| &configured.internal);
    let subtopologies = topology.subtopologies.iter().map(|part| subtopology(part, decided)).collect();
    DescribedStreamsTopology { epoch: topology.epoch, subtopologies: Some(subtopologies) }
}

fn subtopology(part: &StreamsSubtopology, decided: &BTreeMap<Arc<str>, u32>) -> DescribedStreamsSubtopology {
    let names = |names: &[Arc<str>]| {
        let mut names: Vec<_> = names.iter().map(|name| Text::from(&**name)).collect();
        names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        names
    };
    let topics = |topics: &[StreamsInternalTopic]| {
        let mut topics: Vec<_> = topics.iter().map(|topic| internal(topic, decided)).collect();
        topics.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        topics
    };
    DescribedStreamsSubtopology {
        subtopology_id: Text::from(&*part.id),
        source_topics: names(&part.sources),
        repartition_sink_topics: names(&part.repartition_sinks),
        state_changelog_topics: topics(&part.changelogs),
        repartition_source_topics: topics(&part.repartition_sources),
    }
}

fn internal(topic: &StreamsInternalTopic, decided: &BTreeMap<Arc<str>, u32>) -> StreamsTopicInfo {
    let decided = decided.get(&topic.name).and_then(|count| i32::try_from(*count).ok());
    StreamsTopicInfo {
        name: Text::from(&*topic.name),
        partitions: decided.unwrap_or(topic.partitions),
        replication_factor: topic.copies,
        topic_configs: topic.settings.iter().map(pair).collect(),
    }
}

fn pair(pair: &StreamsPair) -> StreamsKeyValue {
    StreamsKeyValue { key: Text::from(&*pair.key), value: Text::from(&*pair.value) }
}

fn member(seat: &Seat, offsets: &Offsets) -> DescribedStreamsMember {
    let (member, has, shall) = (&seat.member, &seat.position.assigned, &seat.target);
    let optional = |text: &Option<Arc<str>>| text.as_deref().map(Text::from);
    let endpoint = member.endpoint.as_ref();
    DescribedStreamsMember {
        member_id: Text::from(&*member.id),
        member_epoch: seat.position.member_epoch,
        instance_id: optional(&member.instance),
        rack_id: optional(&member.rack),
        client_id: Text::from(&*member.client_id),
        client_host: Text::from(&*member.client_host),
        topology_epoch: member.topology_epoch,
        process_id: Text::from(&*member.process),
        user_endpoint: endpoint.map(|at| StreamsEndpoint { host: Text::from(&*at.host), port: at.port }),
        client_tags: member.tags.iter().map(pair).collect(),
        task_offsets: task_offsets(&offsets.read),
        task_end_offsets: task_offsets(&offsets.end),
        assignment: StreamsTasks {
            active_tasks: task_ids(has.active.keys()),
            standby_tasks: task_ids(&has.standby),
            warmup_tasks: task_ids(&has.warmup),
        },
        target_assignment: StreamsTasks {
            active_tasks: task_ids(&shall.active),
            standby_tasks: task_ids(&shall.standby),
            warmup_tasks: task_ids(&shall.warmup),
        },
        is_classic: false,
    }
}

fn task_offsets(offsets: &BTreeMap<TaskId, i64>) -> Vec<StreamsTaskOffset> {
    let offset = |(task, offset): (&TaskId, &i64)| StreamsTaskOffset {
        subtopology_id: Text::from(&*task.subtopology),
        partition: task.partition,
        offset: RawOffset(*offset),
    };
    offsets.iter().map(offset).collect()
}
