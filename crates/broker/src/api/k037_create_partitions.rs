//! CreatePartitions (key 37), versions 0 to 3.
//!
//! Behaviour: each topic is judged by itself: named twice in the request (42), unknown (3), a count that is not above
//! the present one (37), new partitions placed by hand with another number or on another node (39),
//! too many for one request (44). The timeout is ignored: when the answer comes, they are there. Without room 56.

use std::{collections::BTreeMap, sync::Arc};

use semel_log::RoomClass;
use semel_types::ErrorCode;
use semel_wire::api::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};

use super::k019_create_topics::PARTITIONS_PER_REQUEST_MAX;
use crate::{
    call::Asked,
    catalog::Topic,
    common::{COORDINATOR_BYTES, ITEM_BYTES, message, no_room_or, room},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<CreatePartitionsRequest>) -> Handled {
    let request = &asked.body;
    let bytes = (1 + request.topics.len() as u64) * COORDINATOR_BYTES
        + u64::from(PARTITIONS_PER_REQUEST_MAX) * ITEM_BYTES / 32;
    if let Err(no_room) = room(step, bytes, RoomClass::Identity, ErrorCode::KafkaStorageError) {
        return no_room_or(no_room, |code| {
            let full = |topic| result(topic, Err((code, "no room on the disk".to_owned())));
            CreatePartitionsResponse {
                results: request.topics.iter().map(full).collect(),
                ..Default::default()
            }
            .into()
        });
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *counts.entry(&topic.name).or_default() += 1;
    }
    let mut left = PARTITIONS_PER_REQUEST_MAX;
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        // A name that stands there several times is answered once.
        let Some(count) = counts.remove(topic.name.as_str()) else { continue };
        let grown = plan(step, topic, count > 1, left).map(|(found, by)| {
            left -= by;
            if !request.validate_only {
                let event = step.state().catalog.grow(&found, by, step.context.now);
                step.apply(event.into());
            }
        });
        results.push(result(topic, grown));
    }
    CreatePartitionsResponse { results, ..Default::default() }.into()
}

/// By how many partitions the topic is to grow.
fn plan(
    step: &Step<'_>,
    topic: &CreatePartitionsTopic,
    repeated: bool,
    left: u32,
) -> Result<(Arc<Topic>, u32), (ErrorCode, String)> {
    if repeated {
        return Err((ErrorCode::InvalidRequest, "the topic stands twice in the request".to_owned()));
    }
    let catalog = &step.state().catalog;
    let unknown = || (ErrorCode::UnknownTopicOrPartition, format!("there is no topic {}", topic.name));
    let found = catalog.topic(&topic.name).ok_or_else(unknown)?;
    let present = found.partitions().len();
    let by = usize::try_from(topic.count).ok().and_then(|count| count.checked_sub(present));
    let by = by.filter(|by| *by > 0).and_then(|by| u32::try_from(by).ok());
    let Some(by) = by else {
        let text = format!("the topic has {present} partitions, and {} is not more", topic.count);
        return Err((ErrorCode::InvalidPartitions, text));
    };
    if by > left || by > catalog.handles_left() {
        let text = format!("a request makes at most {PARTITIONS_PER_REQUEST_MAX} partitions");
        return Err((ErrorCode::PolicyViolation, text));
    }
    check_assignments(topic, by, step.settings.node_id())?;
    Ok((Arc::clone(found), by))
}

fn check_assignments(
    topic: &CreatePartitionsTopic,
    by: u32,
    node_id: i32,
) -> Result<(), (ErrorCode, String)> {
    let Some(assignments) = &topic.assignments else { return Ok(()) };
    if assignments.len() != by as usize {
        let text = format!("{by} partitions are new, and {} are assigned", assignments.len());
        return Err((ErrorCode::InvalidReplicaAssignment, text));
    }
    if assignments.iter().any(|one| one.broker_ids != [node_id]) {
        let text = format!("a partition can only be on broker {node_id}");
        return Err((ErrorCode::InvalidReplicaAssignment, text));
    }
    Ok(())
}

fn result(
    topic: &CreatePartitionsTopic,
    outcome: Result<(), (ErrorCode, String)>,
) -> CreatePartitionsTopicResult {
    let (code, error_message) = match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err((code, text)) => (code, Some(message(&text))),
    };
    CreatePartitionsTopicResult { name: topic.name.clone(), error_code: code.into(), error_message }
}
