//! Metadata (key 3), versions 0 to 13.
//!
//! Behaviour: one broker, which leads every partition and is the controller. Answered from the published view; a
//! missing topic that may be made (`auto.create.topics.enable`, and the request allows it) is made by the node first,
//! and the answer then has it: clients need not ask twice, as they do with Kafka (5, LEADER_NOT_AVAILABLE). A bad name
//! is 17, an unknown one 3, an unknown id 100.
//! Version notes: 0 asks for all topics with an empty list, later ones with null; 4 may forbid to make topics; 8 to 10
//! tell authorized operations (all of them, while there are no ACLs); 10 has topic ids; 12 asks by id, and a
//! name beside the id does not count.

use std::collections::BTreeSet;

use semel_log::{Catalog, RoomClass, TopicView};
use semel_types::{ErrorCode, TopicName};
use semel_wire::{
    RawLeaderEpoch, Text,
    api::metadata::{
        MetadataBroker, MetadataPartition, MetadataRequest, MetadataRequestTopic, MetadataResponse,
        MetadataTopic, OPERATIONS_NOT_ASKED,
    },
};

use super::{ViewAnswer, ViewCall, k019_create_topics::create, k060_describe_cluster::CLUSTER_OPERATIONS};
use crate::{
    call::{Asked, Call},
    common::{COORDINATOR_BYTES, NoRoom, room},
    facts::Facts,
    node::{Handled, Step},
    topic_name::{self, NameError},
};

/// Read, write, create, delete, alter, describe, describe and alter configs: the bits of Kafka's `AclOperation` codes
/// that a topic has.
const TOPIC_OPERATIONS: i32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;

/// Most topics that one request makes; the others are told as unknown, and the client asks again.
const MADE_AT_ONCE_MAX: usize = 1_000;

pub(super) fn answer(facts: &Facts, catalog: &Catalog, asked: &Asked<MetadataRequest>) -> ViewAnswer {
    let names = missing(facts, catalog, asked);
    if !names.is_empty() {
        let mut metadata = asked.clone();
        metadata.body.allow_auto_topic_creation = false;
        return ViewAnswer::Node(Call::CreateMissing { names, metadata });
    }
    let request = &asked.body;
    let node_id = facts.settings.node_id();
    let operations =
        if request.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { OPERATIONS_NOT_ASKED };
    let response = MetadataResponse {
        brokers: vec![MetadataBroker {
            node_id,
            host: Text::from(&*facts.advertised.host),
            port: i32::from(facts.advertised.port),
            rack: None,
        }],
        cluster_id: Some(Text::from(&*facts.cluster_id)),
        controller_id: node_id,
        topics: topics(facts, catalog, asked),
        cluster_authorized_operations: operations,
        ..Default::default()
    };
    ViewAnswer::Reply(response.into())
}

/// The topics asked for by name or id; `None` for all.
fn wanted(asked: &Asked<MetadataRequest>) -> Option<&[MetadataRequestTopic]> {
    let topics = asked.body.topics.as_deref()?;
    if asked.version == 0 && topics.is_empty() { None } else { Some(topics) }
}

/// Names that do not exist and may be made.
fn missing(facts: &Facts, catalog: &Catalog, asked: &Asked<MetadataRequest>) -> Vec<TopicName> {
    if !(asked.body.allow_auto_topic_creation && facts.settings.auto_create_topics()) {
        return Vec::new();
    }
    let names = wanted(asked).unwrap_or_default().iter().filter_map(name_of);
    let good = names.filter(|name| topic_name::check(name).is_ok()).map(TopicName::new);
    let missing: BTreeSet<_> = good.filter(|name| catalog.topic(name).is_none()).collect();
    missing.into_iter().take(MADE_AT_ONCE_MAX).collect()
}

fn topics(facts: &Facts, catalog: &Catalog, asked: &Asked<MetadataRequest>) -> Vec<MetadataTopic> {
    let operations =
        if asked.body.include_topic_authorized_operations { TOPIC_OPERATIONS } else { OPERATIONS_NOT_ASKED };
    let described = |topic: &TopicView| describe(facts, topic, operations);
    let Some(wanted) = wanted(asked) else { return catalog.topics().map(|topic| described(topic)).collect() };
    let mut seen = BTreeSet::new();
    let once = wanted.iter().filter(|topic| seen.insert((topic.topic_id, topic.name.as_deref())));
    let not_found = |topic, code| unknown(topic, code, asked.version);
    once.map(|topic| find(catalog, topic).map_or_else(|code| not_found(topic, code), described)).collect()
}

/// The name asked for; where there is an id it counts alone: Java sends an empty name with it.
fn name_of(topic: &MetadataRequestTopic) -> Option<&str> {
    if topic.topic_id.is_zero() { topic.name.as_deref() } else { None }
}

fn find<'a>(catalog: &'a Catalog, topic: &MetadataRequestTopic) -> Result<&'a TopicView, ErrorCode> {
    match name_of(topic) {
        None => catalog.topic_by_id(topic.topic_id).map(|found| &**found).ok_or(ErrorCode::UnknownTopicId),
        Some(name) => {
            let found = catalog.topic(&TopicName::new(name)).map(|found| &**found);
            found.ok_or_else(|| match topic_name::check(name) {
                Ok(()) | Err(NameError::Internal) => ErrorCode::UnknownTopicOrPartition,
                Err(NameError::Empty | NameError::Dots | NameError::TooLong | NameError::Character) => {
                    ErrorCode::InvalidTopicException
                }
            })
        }
    }
}

/// Versions below 12 cannot say that there is no name.
fn unknown(topic: &MetadataRequestTopic, code: ErrorCode, version: i16) -> MetadataTopic {
    let name = name_of(topic).or((version < 12).then_some(""));
    let (name, topic_id) = (name.map(Text::from), topic.topic_id);
    MetadataTopic { error_code: code.into(), name, topic_id, ..Default::default() }
}

fn describe(facts: &Facts, topic: &TopicView, operations: i32) -> MetadataTopic {
    let node_id = facts.settings.node_id();
    let partition = |index| MetadataPartition {
        partition_index: semel_types::PartitionIndex::new(index),
        leader_id: node_id,
        leader_epoch: RawLeaderEpoch::from(facts.leader_epoch),
        replica_nodes: vec![node_id],
        isr_nodes: vec![node_id],
        ..Default::default()
    };
    MetadataTopic {
        name: Some(Text::from(topic.name.as_str())),
        topic_id: topic.id,
        partitions: (0..).zip(&topic.partitions).map(|(index, _)| partition(index)).collect(),
        topic_authorized_operations: operations,
        ..Default::default()
    }
}

/// Makes what is still missing; the answer is read from the view once that is visible.
pub(super) fn create_missing(
    step: &mut Step<'_>,
    names: &[TopicName],
    metadata: &Asked<MetadataRequest>,
) -> Handled {
    let count = step.settings.num_partitions();
    let bytes = names.len() as u64 * (COORDINATOR_BYTES + u64::from(count) * 16);
    match room(step, bytes, RoomClass::Identity, ErrorCode::UnknownTopicOrPartition) {
        Err(NoRoom::Defer) => return Handled::Defer,
        // Told as unknown, which clients retry.
        Err(NoRoom::Answer(_)) => return Handled::View(ViewCall::Metadata(metadata.clone())),
        Ok(()) => {}
    }
    for name in names {
        let catalog = &step.state().catalog;
        let free = catalog.topic(name.as_str()).is_none() && catalog.collision(name.as_str()).is_none();
        if free && catalog.handles_left() >= count {
            create(step, name.clone(), count, Vec::new());
        }
    }
    Handled::View(ViewCall::Metadata(metadata.clone()))
}
