//! DeleteTopics (key 20), versions 1 to 6.
//!
//! Behaviour: the topic, its records, its producers' entries and the offsets of groups on it go in one event. A name or
//! id that is unknown is 3 or 100; named twice, or by name and id at once, is 42; with `delete.topic.enable` off 73.
//! The timeout is ignored: when the answer comes, the topic is gone. An open transaction loses the partition and ends
//! as it would. It draws on the reserve, so that a full disk can be emptied.
//! Version notes: 5 carries a text; 6 names topics by name or id.

use std::{collections::BTreeSet, sync::Arc};

use semel_events::TopicDeleted;
use semel_log::RoomClass;
use semel_types::{ErrorCode, TopicId};
use semel_wire::{
    Text,
    api::delete_topics::{DeleteTopic, DeleteTopicsRequest, DeleteTopicsResponse, DeletedTopic},
};

use crate::common::{COORDINATOR_BYTES, ITEM_BYTES, no_room_or, room};
use crate::{
    call::Asked,
    catalog::Topic,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<DeleteTopicsRequest>) -> Handled {
    let wanted = wanted(asked);
    let full = ErrorCode::KafkaStorageError;
    if let Err(no_room) = room(step, worst_case_bytes(step, &wanted), RoomClass::Reserve, full) {
        return no_room_or(no_room, |code| {
            let responses = wanted.iter().map(|topic| failed(topic, code, "no room on the disk")).collect();
            DeleteTopicsResponse { responses, ..Default::default() }.into()
        });
    }
    let mut seen = BTreeSet::new();
    let responses = wanted.iter().map(|topic| match find(step, topic, &mut seen) {
        Ok(found) => delete(step, topic, &found),
        Err((code, message)) => failed(topic, code, message),
    });
    let responses = responses.collect();
    DeleteTopicsResponse { responses, ..Default::default() }.into()
}

/// The topics named, in the form of version 6.
fn wanted(asked: &Asked<DeleteTopicsRequest>) -> Vec<DeleteTopic> {
    if asked.version >= 6 {
        return asked.body.topics.clone();
    }
    let by_name = |name: &Text| DeleteTopic { name: Some(name.clone()), topic_id: TopicId::ZERO };
    asked.body.topic_names.iter().map(by_name).collect()
}

fn lookup<'a>(step: &'a Step<'_>, topic: &DeleteTopic) -> Option<&'a Arc<Topic>> {
    let catalog = &step.state().catalog;
    topic.name.as_deref().map_or_else(|| catalog.topic_by_id(topic.topic_id), |name| catalog.topic(name))
}

fn worst_case_bytes(step: &Step<'_>, wanted: &[DeleteTopic]) -> u64 {
    let partitions =
        wanted.iter().filter_map(|topic| lookup(step, topic)).map(|topic| topic.partitions().len());
    COORDINATOR_BYTES * (1 + wanted.len() as u64) + partitions.sum::<usize>() as u64 * ITEM_BYTES / 32
}

fn find(
    step: &Step<'_>,
    topic: &DeleteTopic,
    seen: &mut BTreeSet<TopicId>,
) -> Result<Arc<Topic>, (ErrorCode, &'static str)> {
    if topic.name.is_some() != topic.topic_id.is_zero() {
        return Err((ErrorCode::InvalidRequest, "a topic is named either by name or by id"));
    }
    if !step.settings.delete_topics() {
        return Err((ErrorCode::TopicDeletionDisabled, "delete.topic.enable is false"));
    }
    let unknown =
        if topic.name.is_some() { ErrorCode::UnknownTopicOrPartition } else { ErrorCode::UnknownTopicId };
    let found = lookup(step, topic).ok_or((unknown, "there is no such topic"))?;
    if !seen.insert(found.id()) {
        return Err((ErrorCode::InvalidRequest, "the topic stands twice in the request"));
    }
    Ok(Arc::clone(found))
}

fn failed(topic: &DeleteTopic, code: ErrorCode, message: &str) -> DeletedTopic {
    let (name, topic_id) = (topic.name.clone(), topic.topic_id);
    DeletedTopic { name, topic_id, error_code: code.into(), error_message: Some(Text::from(message)) }
}

fn delete(step: &mut Step<'_>, topic: &DeleteTopic, found: &Topic) -> DeletedTopic {
    let event = TopicDeleted {
        id: found.id(),
        partitions: found.partitions().to_vec(),
        next_unissued: step.next_unissued_id(),
        now: step.context.now,
    };
    step.apply(event.into());
    let name = topic.name.clone().or_else(|| Some(Text::from(found.name().as_str())));
    DeletedTopic { name, topic_id: found.id(), ..Default::default() }
}
