//! CreateTopics (key 19), versions 2 to 7.
//!
//! Behaviour: each topic is judged by itself, in Kafka's order: named twice in the request (42), a bad name (17), a
//! name that differs from another topic's in `.` and `_` only (17), there already (36), an assignment by hand together
//! with counts (42) or to another node (39), counts (37, 38), settings (40). -1 means the default. The timeout is
//! ignored: when the answer comes, the topic is there. Without room 56.
//! Version notes: 5 answers counts and settings; 7 answers the topic's id.
//! Unlike Kafka: more than 10,000 partitions in one request are 44 for the topics beyond it, not for all.

use std::collections::BTreeMap;

use semel_events::Setting;
use semel_log::RoomClass;
use semel_types::{ErrorCode, TopicId, TopicName};
use semel_wire::{
    Text,
    api::create_topics::{
        CreatableAssignment, CreatableTopic, CreateTopicsRequest, CreateTopicsResponse, CreatedConfig,
        CreatedTopic,
    },
};

use super::k032_describe_configs::topic_source;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, ITEM_BYTES, message, no_room_or, room},
    node::{Handled, Step},
    settings::topic::{TOPIC, check, check_together, effective},
    topic_name,
};

/// Kafka's bound of partitions made by one request (upstream `ReplicationControlManager`).
pub(crate) const PARTITIONS_PER_REQUEST_MAX: u32 = 10_000;

/// Why a topic is not made.
struct Refused {
    code: ErrorCode,
    message: String,
}

fn refuse<T>(code: ErrorCode, message: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { code, message: message.into() })
}

/// A topic that can be made.
struct Plan {
    name: TopicName,
    partitions: u32,
    settings: Vec<Setting>,
}

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<CreateTopicsRequest>) -> Handled {
    let request = &asked.body;
    let full = ErrorCode::KafkaStorageError;
    if let Err(no_room) = room(step, worst_case_bytes(request), RoomClass::Identity, full) {
        return no_room_or(no_room, |code| {
            let refused = |topic: &CreatableTopic| failed(topic, code, "no room on the disk");
            let topics = request.topics.iter().map(refused).collect();
            CreateTopicsResponse { topics, ..Default::default() }.into()
        });
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *counts.entry(&topic.name).or_default() += 1;
    }
    let mut left = PARTITIONS_PER_REQUEST_MAX;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        // A name that stands there several times is answered once.
        let Some(count) = counts.remove(topic.name.as_str()) else { continue };
        topics.push(match plan(step, topic, count > 1, left) {
            Ok(plan) => {
                left -= plan.partitions;
                created(step, plan, request.validate_only)
            }
            Err(refused) => failed(topic, refused.code, &refused.message),
        });
    }
    CreateTopicsResponse { topics, ..Default::default() }.into()
}

fn worst_case_bytes(request: &CreateTopicsRequest) -> u64 {
    let settings = request.topics.iter().flat_map(|topic| &topic.configs);
    let settings: usize =
        settings.map(|config| config.name.len() + config.value.as_deref().map_or(0, str::len)).sum();
    (1 + request.topics.len() as u64) * COORDINATOR_BYTES
        + settings as u64 * 2
        + u64::from(PARTITIONS_PER_REQUEST_MAX) * ITEM_BYTES / 32
}

fn failed(topic: &CreatableTopic, code: ErrorCode, text: &str) -> CreatedTopic {
    let error_message = Some(message(text));
    CreatedTopic { name: topic.name.clone(), error_code: code.into(), error_message, ..Default::default() }
}

fn plan(step: &Step<'_>, topic: &CreatableTopic, repeated: bool, left: u32) -> Result<Plan, Refused> {
    if repeated {
        return refuse(ErrorCode::InvalidRequest, "the topic stands twice in the request");
    }
    check_name(step, &topic.name)?;
    let partitions = partitions(step, topic)?;
    if partitions > left || partitions > step.state().catalog.handles_left() {
        return refuse(
            ErrorCode::PolicyViolation,
            format!("a request makes at most {PARTITIONS_PER_REQUEST_MAX} partitions"),
        );
    }
    let settings = settings(step, topic)?;
    Ok(Plan { name: TopicName::new(&topic.name), partitions, settings })
}

fn check_name(step: &Step<'_>, name: &str) -> Result<(), Refused> {
    if let Err(error) = topic_name::check(name) {
        return refuse(ErrorCode::InvalidTopicException, error.to_string());
    }
    if step.state().catalog.topic(name).is_some() {
        return refuse(ErrorCode::TopicAlreadyExists, format!("topic {name} exists already"));
    }
    match step.state().catalog.collision(name) {
        None => Ok(()),
        Some(other) => refuse(
            ErrorCode::InvalidTopicException,
            format!("{name} differs from topic {other} in '.' and '_' only"),
        ),
    }
}

fn partitions(step: &Step<'_>, topic: &CreatableTopic) -> Result<u32, Refused> {
    if !topic.assignments.is_empty() {
        if topic.num_partitions != -1 || topic.replication_factor != -1 {
            let message = "an assignment by hand goes with counts of -1";
            return refuse(ErrorCode::InvalidRequest, message);
        }
        return assigned(&topic.assignments, step.settings.node_id());
    }
    if topic.num_partitions == 0 || topic.num_partitions < -1 {
        return refuse(ErrorCode::InvalidPartitions, "the number of partitions must be positive, or -1");
    }
    match topic.replication_factor {
        -1 | 1 => {}
        factor if factor < 1 => {
            return refuse(ErrorCode::InvalidReplicationFactor, "the replication factor must be 1, or -1");
        }
        factor => {
            let message = format!("replication factor {factor}, but there is one broker");
            return refuse(ErrorCode::InvalidReplicationFactor, message);
        }
    }
    Ok(u32::try_from(topic.num_partitions).unwrap_or_else(|_| step.settings.num_partitions()))
}

/// Partitions chosen by hand: 0, 1, 2 and so on, each on this node alone.
fn assigned(assignments: &[CreatableAssignment], node_id: i32) -> Result<u32, Refused> {
    let mut indexes: Vec<_> = assignments.iter().map(|one| one.partition_index.get()).collect();
    indexes.sort_unstable();
    if (0..).zip(&indexes).any(|(expected, index)| expected != *index) {
        return refuse(
            ErrorCode::InvalidReplicaAssignment,
            "partitions must be 0, 1, 2 and so on, each once",
        );
    }
    if let Some(other) = assignments.iter().find(|one| one.broker_ids != [node_id]) {
        let message = format!("partition {} can only be on broker {node_id}", other.partition_index);
        return refuse(ErrorCode::InvalidReplicaAssignment, message);
    }
    Ok(u32::try_from(assignments.len()).unwrap_or(u32::MAX))
}

/// The settings given; of one given twice the last counts, as in Kafka.
fn settings(step: &Step<'_>, topic: &CreatableTopic) -> Result<Vec<Setting>, Refused> {
    let mut settings = BTreeMap::new();
    for config in &topic.configs {
        let Some(value) = config.value.as_deref() else {
            return refuse(ErrorCode::InvalidConfig, format!("null value for {}", config.name));
        };
        if let Err(error) = check(&config.name, value) {
            return refuse(ErrorCode::InvalidConfig, error.to_string());
        }
        settings.insert(config.name.as_str().to_owned(), value.to_owned());
    }
    let settings: Vec<_> = settings.into_iter().map(|(name, value)| Setting { name, value }).collect();
    match check_together(&settings, step.settings) {
        Ok(()) => Ok(settings),
        Err(error) => refuse(ErrorCode::InvalidConfig, error),
    }
}

fn created(step: &mut Step<'_>, plan: Plan, validate_only: bool) -> CreatedTopic {
    let configs = TOPIC.iter().map(|definition| {
        let (value, source) = effective(definition, &plan.settings, step.settings);
        CreatedConfig {
            name: Text::from(definition.definition.name),
            value: Some(Text::from(&*value)),
            config_source: topic_source(source),
            ..Default::default()
        }
    });
    let configs = Some(configs.collect());
    let name = Text::from(plan.name.as_str());
    let num_partitions = i32::try_from(plan.partitions).unwrap_or(i32::MAX);
    let topic_id =
        if validate_only { TopicId::ZERO } else { create(step, plan.name, plan.partitions, plan.settings) };
    let error_message = None;
    CreatedTopic {
        name,
        topic_id,
        error_message,
        num_partitions,
        replication_factor: 1,
        configs,
        ..Default::default()
    }
}

/// Makes a topic that another request needs, of at most `left` partitions; the error says why it is not made.
pub(super) fn make(step: &mut Step<'_>, topic: &CreatableTopic, left: u32) -> Result<(), String> {
    let plan = plan(step, topic, false, left).map_err(|refused| refused.message)?;
    create(step, plan.name, plan.partitions, plan.settings);
    Ok(())
}

/// Makes a topic whose name, count and settings are good.
pub(super) fn create(
    step: &mut Step<'_>,
    name: TopicName,
    partitions: u32,
    settings: Vec<Setting>,
) -> TopicId {
    let id = step.new_topic_id();
    let event = step.state().catalog.create(id, name, partitions, settings, step.context.now);
    step.apply(event.into());
    id
}
