//! What the APIs of streams groups share: tasks on the wire, the room that a heartbeat may need.

use std::{collections::BTreeMap, sync::Arc};

use semel_groups::streams::TaskId;
use semel_types::{GroupId, PartitionIndex};
use semel_wire::{
    Text,
    api::streams_group_heartbeat::{
        StreamsGroupHeartbeatRequest, StreamsSubtopology, StreamsTaskIds, StreamsTopicInfo,
    },
};

use crate::{
    api::PARTITIONS_PER_REQUEST_MAX,
    common::{COORDINATOR_BYTES, ITEM_BYTES},
    node::Step,
};

/// Tasks in rising order, by subtopology.
pub(crate) fn task_ids<'a>(tasks: impl IntoIterator<Item = &'a TaskId>) -> Vec<StreamsTaskIds> {
    let mut by_part: BTreeMap<&Arc<str>, Vec<PartitionIndex>> = BTreeMap::new();
    for task in tasks {
        by_part.entry(&task.subtopology).or_default().push(task.partition);
    }
    let ids = by_part
        .into_iter()
        .map(|(part, partitions)| StreamsTaskIds { subtopology_id: Text::from(&**part), partitions });
    ids.collect()
}

/// Bytes of one task in an event: its subtopology's name, its number, the epoch in which it was given.
const TASK_BYTES: u64 = 16;

/// Bytes of the events that a heartbeat may cause, at most: what it brings, internal topics and their partitions, and
/// the targets of all members.
pub(crate) fn bytes(step: &Step<'_>, group: &GroupId, request: &StreamsGroupHeartbeatRequest) -> u64 {
    let state = step.state();
    let roster = state.groups.group(group).and_then(|group| group.streams());
    let members = roster.map_or(0, |roster| roster.len()) as u64 + 1;
    let known = roster.and_then(|roster| roster.configured()).into_iter();
    let known = known.flat_map(|configured| &configured.subtopologies);
    let known: u64 = known.map(|(id, part)| u64::from(part.tasks) * (TASK_BYTES + id.len() as u64)).sum();
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let most = parts.clone().map(|part| most_partitions(step, part)).max().unwrap_or(0);
    let new: u64 = parts.map(|part| part_bytes(part, most)).sum();
    let copies = u64::from(step.streams_settings(group).standby_replicas) + 2;
    COORDINATOR_BYTES + members * ITEM_BYTES + text_bytes(request) + 2 * copies * (known + new)
}

/// Partitions of the largest topic that a part reads.
fn most_partitions(step: &Step<'_>, part: &StreamsSubtopology) -> u64 {
    let catalog = &step.state().catalog;
    let sources = part.source_topics.iter().filter_map(|name| catalog.topic(name));
    let inner = part.repartition_source_topics.iter().map(|topic| topic.partitions.unsigned_abs() as usize);
    let most = sources.map(|topic| topic.partitions().len()).chain(inner).max().unwrap_or(0);
    most.min(PARTITIONS_PER_REQUEST_MAX as usize) as u64
}

/// Bytes of one part: its text, its tasks, its internal topics.
fn part_bytes(part: &StreamsSubtopology, tasks: u64) -> u64 {
    let topics = || part.repartition_source_topics.iter().chain(&part.state_changelog_topics);
    let settings = |topic: &StreamsTopicInfo| -> u64 {
        let pairs = topic.topic_configs.iter();
        pairs.map(|pair| (pair.key.len() + pair.value.len() + 8) as u64).sum()
    };
    let of_topic = |topic: &StreamsTopicInfo| {
        2 * (ITEM_BYTES + topic.name.len() as u64 + settings(topic)) + tasks * ITEM_BYTES / 32
    };
    let names = part.source_topics.iter().chain(&part.repartition_sink_topics);
    let names: u64 = names.map(|name| name.len() as u64 + 40).sum();
    let id = part.subtopology_id.len() as u64;
    names + topics().map(of_topic).sum::<u64>() + ITEM_BYTES + tasks * (TASK_BYTES + id)
}

/// What a member says of itself.
fn text_bytes(request: &StreamsGroupHeartbeatRequest) -> u64 {
    let texts = [&request.instance_id, &request.rack_id, &request.process_id];
    let texts: usize = texts.iter().map(|text| text.as_ref().map_or(0, |text| text.len())).sum();
    let tags = request.client_tags.iter().flatten();
    let tags: usize = tags.map(|pair| pair.key.len() + pair.value.len() + 8).sum();
    let host = request.user_endpoint.as_ref().map_or(0, |endpoint| endpoint.host.len());
    (8 * (request.member_id.len() + request.group_id.len()) + 2 * (texts + tags + host)) as u64
}
