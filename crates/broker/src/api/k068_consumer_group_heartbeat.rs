//! ConsumerGroupHeartbeat (key 68), versions 0 and 1.
//!
//! Behaviour: a member joins (epoch 0), stays, or leaves (-1; -2 for a static member that will be back). It is told its
//! epoch, and what it has whenever that changed or it said everything. Refused are: what it must not say (42), an
//! unknown assignor (112), a wrong pattern (128), a full group (81), a group that is none or cannot change over from the
//! classic protocol (69), an unknown member (25), another epoch than its own (110), a static name that is in use
//! (111) or was taken (82). Without room 15. A classic group of consumers changes over with the first member that joins
//! so, if `group.consumer.migration.policy` allows it.
//! Version notes: in 0 the server may make the member's id; 1 has patterns.

use std::{collections::BTreeSet, sync::Arc};

use semel_groups::{
    Refusal,
    consumer::{Heartbeat, OwnedSet, Told},
};
use semel_log::RoomClass;
use semel_types::{DurationMs, ErrorCode, GroupId, PartitionHandle};
use semel_wire::{
    Text,
    api::consumer_group_heartbeat::{
        ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatAssignment,
        HeartbeatTopicPartitions,
    },
};

use super::answer::group_code;
use crate::{
    call::Asked,
    common::{message, no_room_or, room},
    groups::{self, shared},
    node::{Handled, Step},
    pattern,
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<ConsumerGroupHeartbeatRequest>) -> Handled {
    let request = &asked.body;
    let group = GroupId::new(&request.group_id);
    let bytes = bytes(step, &group, request);
    if let Err(no_room) = room(step, bytes, RoomClass::Identity, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| refused(code, &code));
    }
    let beat = heartbeat(step, request, asked.version);
    match step.decide_consumer(group.clone(), beat) {
        Ok(told) => respond(step, &group, told),
        Err(refusal) => refused(group_code(refusal), &why(step, request, refusal)),
    }
}

/// Why it is refused, with what the request said where that helps.
fn why(step: &Step<'_>, request: &ConsumerGroupHeartbeatRequest, refusal: Refusal) -> String {
    let (assignor, pattern) = (request.server_assignor.as_deref(), request.subscribed_topic_regex.as_deref());
    match (refusal, assignor, pattern) {
        (Refusal::UnsupportedAssignor, Some(assignor), _) => {
            let supported = step.settings.get("group.consumer.assignors").map(|(names, _)| names);
            format!("there is no assignor {assignor:?}; supported are {}", supported.unwrap_or_default())
        }
        (Refusal::InvalidPattern, _, Some(pattern)) => {
            let reason = pattern::whole(pattern).err().unwrap_or_default();
            format!("the pattern of topics {pattern:?} is no regular expression: {reason}")
        }
        (refusal, ..) => refusal.to_string(),
    }
}

fn heartbeat(step: &Step<'_>, request: &ConsumerGroupHeartbeatRequest, version: i16) -> Heartbeat {
    let client = step.client();
    let timeout = i64::from(request.rebalance_timeout_ms);
    Heartbeat {
        member: shared(&request.member_id),
        member_epoch: request.member_epoch,
        instance: request.instance_id.as_ref().map(shared),
        rack: request.rack_id.as_ref().map(shared),
        client_id: Arc::clone(&client.client_id),
        client_host: groups::host(&client.address),
        rebalance_timeout: (timeout >= 0).then(|| DurationMs::from_ms(timeout)),
        topics: request.subscribed_topic_names.as_ref().map(|names| names.iter().map(shared).collect()),
        pattern: request.subscribed_topic_regex.as_ref().map(shared),
        assignor: request.server_assignor.as_ref().map(shared),
        names_owned: request.topic_partitions.as_ref().is_some_and(|owned| !owned.is_empty()),
        owned: request.topic_partitions.as_ref().map(|owned| handles(step, owned)),
        brings_id: version >= 1,
    }
}

/// What the member has, as far as it still exists.
fn handles(step: &Step<'_>, owned: &[HeartbeatTopicPartitions]) -> OwnedSet {
    let catalog = &step.state().catalog;
    let mut handles = BTreeSet::new();
    for topic in owned {
        let Some(found) = catalog.topic_by_id(topic.topic_id) else { continue };
        handles.extend(topic.partitions.iter().filter_map(|index| found.partition(*index)));
    }
    handles
}

/// Bytes of the events that this heartbeat may cause, at most: those of a new epoch only if it may start one.
fn bytes(step: &Step<'_>, group: &GroupId, request: &ConsumerGroupHeartbeatRequest) -> u64 {
    let said = request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some();
    if said || request.member_epoch <= 0 || step.topics_are_new_to(group) {
        let names = request.subscribed_topic_names.iter().flatten().map(|name| name.len() + 16);
        let pattern = request.subscribed_topic_regex.as_ref().map_or(0, |pattern| pattern.len());
        return groups::bytes(step, group) + (names.sum::<usize>() + pattern) as u64;
    }
    groups::seat_bytes(step, group, &request.member_id)
}

fn respond(step: &Step<'_>, group: &GroupId, told: Told) -> Handled {
    let assignment =
        told.assigned.map(|assigned| HeartbeatAssignment { topic_partitions: by_topic(step, &assigned) });
    ConsumerGroupHeartbeatResponse {
        member_id: Some(Text::from(&*told.member)),
        member_epoch: told.member_epoch,
        heartbeat_interval_ms: interval_ms(step, group),
        assignment,
        ..Default::default()
    }
    .into()
}

/// The group's own interval, else the broker's: looked up at every heartbeat, so only the former is worked out.
fn interval_ms(step: &Step<'_>, group: &GroupId) -> i32 {
    if step.state().group_settings.of(group).is_empty() {
        return step.settings.consumer_heartbeat_interval_ms();
    }
    let interval = step.group_limits(group).consumer_heartbeat_interval;
    i32::try_from(interval.as_ms()).unwrap_or(i32::MAX)
}

/// Partitions of topics that are gone are not told: the member drops them, too.
fn by_topic(step: &Step<'_>, assigned: &[PartitionHandle]) -> Vec<HeartbeatTopicPartitions> {
    let mut topics: Vec<HeartbeatTopicPartitions> = Vec::new();
    for handle in assigned {
        let Some((topic, index)) = step.state().catalog.locate(*handle) else { continue };
        match topics.last_mut().filter(|last| last.topic_id == topic.id()) {
            Some(last) => last.partitions.push(index),
            None => topics.push(HeartbeatTopicPartitions { topic_id: topic.id(), partitions: vec![index] }),
        }
    }
    topics
}

fn refused(code: ErrorCode, why: &dyn std::fmt::Display) -> Handled {
    let error_message = Some(message(&why.to_string()));
    ConsumerGroupHeartbeatResponse { error_code: code.into(), error_message, ..Default::default() }.into()
}
