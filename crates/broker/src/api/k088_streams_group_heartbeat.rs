//! StreamsGroupHeartbeat (key 88), versions 0 and 1 (KIP-1071).
//!
//! Behaviour: joins, reports and leaves; the answer tells the member its tasks when they changed. Refused are, in
//! Kafka's order: a topology with topics that cannot be (130), with patterns or with what a heartbeat must not lack or
//! have (42), a group that is none or speaks another protocol (69), that is full (81), an unknown member (25), a
//! static name that is taken (111) or was (82), an epoch that is not the member's (110), another topology of the same
//! epoch and tasks that do not exist (42), a topology that cannot be worked on (130). Without room 15.
//! Internal topics that are missing are made in the same step, so that the answer that finds them missing has them;
//! one that cannot be made is told in the status MISSING_INTERNAL_TOPICS with its reason.
//! Version notes: 1 has the acceptable lag and the status MISSING_CLIENT_TAGS.
//! Unlike Kafka: a topology that Kafka answers with -1 (a subtopology without sources, an index that leads nowhere) is
//! 130; a member that is none cannot ask for a shutdown. A topology's description is never asked for: there is no plugin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use semel_events::{
    StreamsCopartition, StreamsEndpoint as Endpoint, StreamsInternalTopic, StreamsPair,
    StreamsSubtopology as Subtopology, StreamsTopology as Topology,
};
use semel_groups::streams::{
    Command, Denied, Heartbeat, HeldTasks, Leave, MissingTopic, Request, Served, Settings, Status, TaskId,
    Tasks, Told, TopicPartitions,
};
use semel_log::RoomClass;
use semel_types::{DurationMs, ErrorCode, GroupId, PartitionIndex};
use semel_wire::{
    Text,
    api::{
        create_topics::{CreatableConfig, CreatableTopic},
        streams_group_heartbeat::{
            StreamsEndpoint, StreamsEndpointToPartitions, StreamsGroupHeartbeatRequest,
            StreamsGroupHeartbeatResponse, StreamsKeyValue, StreamsStatus, StreamsSubtopology,
            StreamsTaskIds, StreamsTaskOffset, StreamsTopicInfo, StreamsTopicPartitions, StreamsTopology,
        },
    },
};

use super::{answer::group_code, k019_create_topics};
use crate::{
    call::Asked,
    common::{message, no_room_or, room},
    groups::{host, shared},
    node::{Handled, Step},
    streams, topic_name,
};

/// Epoch with which a member joins.
const JOINS: i32 = 0;
/// Epoch with which a member leaves.
const LEAVES: i32 = -1;
/// Epoch with which a static member leaves to come back.
const WILL_RETURN: i32 = -2;

/// Creation errors that a status names, at most.
const ERRORS_SHOWN: usize = 3;

/// Why a request is refused before any group is asked.
type Invalid = (ErrorCode, String);

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<StreamsGroupHeartbeatRequest>) -> Handled {
    let request = &asked.body;
    if let Err((code, text)) = check_topics(request).and_then(|()| check(request)) {
        return refused(code, &text);
    }
    let group = GroupId::new(&request.group_id);
    let bytes = streams::bytes(step, &group, request);
    if let Err(no_room) = room(step, bytes, RoomClass::Identity, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| refused(code, "no room on the disk"));
    }
    let command = match command(step, asked) {
        Ok(command) => command,
        Err((code, text)) => return refused(code, &text),
    };
    let creation_errors = match &command {
        Command::Heartbeat(beat) => make_topics(step, &group, beat),
        Command::Leave(_) | Command::Tick => String::new(),
    };
    let asks = Request { group: &group, command: &command, creation_errors: &creation_errors };
    match step.decide_streams(asks).expect("a request is answered") {
        Ok(told) => Box::new(told_response(told, &step.streams_settings(&group), &command)).into(),
        Err(denied) => denied_response(denied),
    }
}

fn refused(code: ErrorCode, text: &str) -> Handled {
    Box::new(StreamsGroupHeartbeatResponse {
        error_code: code.into(),
        error_message: Some(message(text)),
        ..Default::default()
    })
    .into()
}

fn denied_response((refusal, detail): Denied) -> Handled {
    let text = detail.unwrap_or_else(|| refusal.to_string());
    refused(group_code(refusal), &text)
}

/// Are these topics that a topology may have?
fn check_topics(request: &StreamsGroupHeartbeatRequest) -> Result<(), Invalid> {
    let Some(topology) = &request.topology else { return Ok(()) };
    let mut names = BTreeSet::new();
    for part in &topology.subtopologies {
        let inner = part.repartition_source_topics.iter().chain(&part.state_changelog_topics);
        let plain = part.source_topics.iter().chain(&part.repartition_sink_topics);
        names.extend(plain.chain(inner.map(|topic| &topic.name)).map(Text::as_str));
    }
    let list = |bad: &[&str]| bad.join(",");
    let internal: Vec<_> = names.iter().copied().filter(|name| topic_name::is_internal(name)).collect();
    if !internal.is_empty() {
        let names = list(&internal);
        let text = format!("Use of Kafka internal topics {names} in a Kafka Streams topology is prohibited.");
        return Err((ErrorCode::StreamsInvalidTopology, text));
    }
    let bad: Vec<_> = names.iter().copied().filter(|name| topic_name::check(name).is_err()).collect();
    if !bad.is_empty() {
        let text = format!("Topic names {} are not valid topic names.", list(&bad));
        return Err((ErrorCode::StreamsInvalidTopology, text));
    }
    Ok(())
}

fn ensure(holds: bool, text: &str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err((ErrorCode::InvalidRequest, text.to_owned())) }
}

/// Does it have what a heartbeat must have, and nothing that it must not?
fn check(request: &StreamsGroupHeartbeatRequest) -> Result<(), Invalid> {
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let plain = parts.clone().all(|part| part.source_topic_regex.is_empty());
    ensure(plain, "Regular expressions for source topics are not supported yet.")?;
    let filled = |text: &Option<Text>| text.as_ref().is_none_or(|text| !text.is_empty());
    ensure(!request.member_id.is_empty(), "MemberId can't be empty.")?;
    ensure(!request.group_id.is_empty(), "GroupId can't be empty.")?;
    ensure(filled(&request.instance_id), "InstanceId can't be empty.")?;
    ensure(filled(&request.rack_id), "RackId can't be empty.")?;
    match request.member_epoch {
        JOINS => check_join(request)?,
        WILL_RETURN => ensure(request.instance_id.is_some(), "InstanceId can't be null.")?,
        member_epoch => ensure(
            member_epoch > WILL_RETURN,
            &format!("MemberEpoch is {member_epoch}, but must be greater than or equal to -2."),
        )?,
    }
    let kinds = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    let given = kinds.iter().filter(|tasks| tasks.is_some()).count();
    ensure(given == 0 || given == kinds.len(), "If one task-type is non-null, all must be non-null.")?;
    let joins = request.member_epoch == JOINS;
    ensure(joins || request.topology.is_none(), "Topology can only be provided when (re-)joining.")
}

fn check_join(request: &StreamsGroupHeartbeatRequest) -> Result<(), Invalid> {
    ensure(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")?;
    let none = |tasks: &Option<Vec<StreamsTaskIds>>| tasks.as_ref().is_none_or(Vec::is_empty);
    ensure(none(&request.active_tasks), "ActiveTasks must be empty when (re-)joining.")?;
    ensure(none(&request.standby_tasks), "StandbyTasks must be empty when (re-)joining.")?;
    ensure(none(&request.warmup_tasks), "WarmupTasks must be empty when (re-)joining.")?;
    ensure(request.topology.is_some(), "Topology must be non-null when (re-)joining.")?;
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let fixed = parts.flat_map(|part| &part.state_changelog_topics).find(|topic| topic.partitions != 0);
    match fixed {
        None => Ok(()),
        Some(StreamsTopicInfo { name, partitions, .. }) => {
            let text = format!(
                "Changelog topic {name} must have an undefined partition count, but it is set to {partitions}."
            );
            Err((ErrorCode::StreamsInvalidTopology, text))
        }
    }
}

fn command(step: &Step<'_>, asked: &Asked<StreamsGroupHeartbeatRequest>) -> Result<Command, Invalid> {
    let request = &asked.body;
    let instance = request.instance_id.as_ref().map(shared);
    let member = shared(&request.member_id);
    if matches!(request.member_epoch, LEAVES | WILL_RETURN) {
        let (will_return, shutdown) = (request.member_epoch == WILL_RETURN, request.shutdown_application);
        return Ok(Command::Leave(Leave { member, instance, will_return, shutdown }));
    }
    let client = step.client();
    Ok(Command::Heartbeat(Box::new(Heartbeat {
        member,
        member_epoch: request.member_epoch,
        endpoint_epoch: request.endpoint_information_epoch,
        instance,
        rack: request.rack_id.as_ref().map(shared),
        client_id: Arc::clone(&client.client_id),
        client_host: host(&client.address),
        rebalance_timeout: (request.rebalance_timeout_ms >= 0)
            .then(|| DurationMs::from_ms(request.rebalance_timeout_ms.into())),
        topology: request.topology.as_ref().map(topology),
        owned: owned(request),
        process: request.process_id.as_ref().map(shared),
        endpoint: request.user_endpoint.as_ref().map(endpoint),
        tags: request.client_tags.as_deref().map(tags),
        offsets: offsets(request.task_offsets.as_deref())?,
        end_offsets: offsets(request.task_end_offsets.as_deref())?,
        shutdown: request.shutdown_application,
        knows_missing_tags: asked.version >= 1,
    })))
}

fn topology(topology: &StreamsTopology) -> Topology {
    let mut subtopologies: Vec<_> = topology.subtopologies.iter().map(subtopology).collect();
    subtopologies.sort_by(|a, b| a.id.cmp(&b.id));
    Topology { epoch: topology.epoch, subtopologies }
}

fn subtopology(part: &StreamsSubtopology) -> Subtopology {
    let names = |names: &[Text]| names.iter().map(shared).collect();
    let topics = |topics: &[StreamsTopicInfo]| topics.iter().map(internal).collect();
    let copartitions = part.copartition_groups.iter().map(|group| StreamsCopartition {
        sources: group.source_topics.clone(),
        repartition_sources: group.repartition_source_topics.clone(),
    });
    Subtopology {
        id: shared(&part.subtopology_id),
        sources: names(&part.source_topics),
        repartition_sources: topics(&part.repartition_source_topics),
        repartition_sinks: names(&part.repartition_sink_topics),
        changelogs: topics(&part.state_changelog_topics),
        copartitions: copartitions.collect(),
    }
}

fn internal(topic: &StreamsTopicInfo) -> StreamsInternalTopic {
    StreamsInternalTopic {
        name: shared(&topic.name),
        partitions: topic.partitions,
        copies: topic.replication_factor,
        settings: topic.topic_configs.iter().map(pair).collect(),
    }
}

fn pair(pair: &StreamsKeyValue) -> StreamsPair {
    StreamsPair { key: shared(&pair.key), value: shared(&pair.value) }
}

fn endpoint(endpoint: &StreamsEndpoint) -> Endpoint {
    Endpoint { host: shared(&endpoint.host), port: endpoint.port }
}

/// Of a tag that stands there twice the last one counts.
fn tags(tags: &[StreamsKeyValue]) -> Vec<StreamsPair> {
    let tags: BTreeMap<_, _> = tags.iter().map(pair).map(|pair| (Arc::clone(&pair.key), pair)).collect();
    tags.into_values().collect()
}

fn task(subtopology: &Arc<str>, partition: PartitionIndex) -> TaskId {
    TaskId { subtopology: Arc::clone(subtopology), partition }
}

fn owned(request: &StreamsGroupHeartbeatRequest) -> Option<Tasks> {
    let set = |tasks: &[StreamsTaskIds]| -> BTreeSet<TaskId> {
        let of = |ids: &StreamsTaskIds| {
            let subtopology = shared(&ids.subtopology_id);
            ids.partitions.iter().map(|index| task(&subtopology, *index)).collect::<Vec<_>>()
        };
        tasks.iter().flat_map(of).collect()
    };
    Some(Tasks {
        active: set(request.active_tasks.as_deref()?),
        standby: set(request.standby_tasks.as_deref()?),
        warmup: set(request.warmup_tasks.as_deref()?),
    })
}

fn offsets(offsets: Option<&[StreamsTaskOffset]>) -> Result<Option<BTreeMap<TaskId, i64>>, Invalid> {
    let Some(offsets) = offsets else { return Ok(None) };
    let mut by_task = BTreeMap::new();
    for StreamsTaskOffset { subtopology_id, partition, offset } in offsets {
        let known = by_task.insert(task(&shared(subtopology_id), *partition), offset.0);
        ensure(
            known.is_none(),
            &format!(
                "Task offsets contain a duplicate entry for subtopology {subtopology_id} and partition {}.",
                partition.get()
            ),
        )?;
    }
    Ok(Some(by_task))
}

/// Makes the internal topics that this heartbeat needs; what cannot be made is named with its reason.
fn make_topics(step: &mut Step<'_>, group: &GroupId, beat: &Heartbeat) -> String {
    let mut left = k019_create_topics::PARTITIONS_PER_REQUEST_MAX;
    let mut errors = Vec::new();
    for missing in step.missing_streams_topics(group, beat) {
        match k019_create_topics::make(step, &creatable(&missing), left) {
            Ok(()) => left -= missing.partitions,
            Err(reason) => errors.push(format!("{} ({reason})", missing.topic.name)),
        }
    }
    let more = errors.len().saturating_sub(ERRORS_SHOWN);
    errors.truncate(ERRORS_SHOWN);
    let shown = errors.join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn creatable(missing: &MissingTopic) -> CreatableTopic {
    let configs = missing
        .topic
        .settings
        .iter()
        .map(|pair| CreatableConfig { name: Text::from(&*pair.key), value: Some(Text::from(&*pair.value)) });
    CreatableTopic {
        name: Text::from(&*missing.topic.name),
        num_partitions: i32::try_from(missing.partitions).unwrap_or(i32::MAX),
        replication_factor: if missing.topic.copies == 0 { -1 } else { missing.topic.copies },
        assignments: Vec::new(),
        configs: configs.collect(),
    }
}

fn told_response(told: Told, settings: &Settings, command: &Command) -> StreamsGroupHeartbeatResponse {
    let known = StreamsGroupHeartbeatResponse {
        member_id: Text::from(&*told.member),
        member_epoch: told.member_epoch,
        ..Default::default()
    };
    if !matches!(command, Command::Heartbeat(_)) {
        return known;
    }
    let ms = |duration: DurationMs| i32::try_from(duration.as_ms()).unwrap_or(i32::MAX);
    let tasks = told.tasks.as_ref();
    let served = |served: Vec<Served>| served.into_iter().map(serves).collect();
    StreamsGroupHeartbeatResponse {
        heartbeat_interval_ms: ms(settings.heartbeat_interval),
        task_offset_interval_ms: ms(settings.task_offset_interval),
        acceptable_recovery_lag: settings.recovery_lag,
        status: Some(told.status.into_iter().map(status).collect()),
        active_tasks: tasks.map(|tasks| streams::task_ids(tasks.active.keys())),
        standby_tasks: tasks.map(|tasks: &HeldTasks| streams::task_ids(&tasks.standby)),
        warmup_tasks: tasks.map(|tasks| streams::task_ids(&tasks.warmup)),
        endpoint_information_epoch: told.endpoint_epoch,
        partitions_by_user_endpoint: told.served.map(served),
        ..known
    }
}

fn status((status, detail): (Status, String)) -> StreamsStatus {
    let status_code = match status {
        Status::StaleTopology => 0,
        Status::MissingSourceTopics => 1,
        Status::IncorrectlyPartitionedTopics => 2,
        Status::MissingInternalTopics => 3,
        Status::ShutdownApplication => 4,
        Status::AssignmentDelayed => 5,
        Status::MissingClientTags => 6,
    };
    StreamsStatus { status_code, status_detail: message(&detail) }
}

fn serves(served: Served) -> StreamsEndpointToPartitions {
    let list = |topics: TopicPartitions| -> Vec<StreamsTopicPartitions> {
        let topics = topics.into_iter().map(|(topic, partitions)| StreamsTopicPartitions {
            topic: Text::from(&*topic),
            partitions: partitions.into_iter().collect(),
        });
        topics.collect()
    };
    StreamsEndpointToPartitions {
        user_endpoint: StreamsEndpoint {
            host: Text::from(&*served.endpoint.host),
            port: served.endpoint.port,
        },
        active_partitions: list(served.active),
        standby_partitions: list(served.standby),
    }
}
