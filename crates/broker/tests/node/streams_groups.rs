//! Streams groups (KIP-1071) over the wire: internal topics, tasks, codes, offsets, descriptions, restarts.

use semel_types::PartitionIndex;
use semel_wire::{
    Text,
    api::{
        delete_groups::*, describe_configs::RESOURCE_GROUP, incremental_alter_configs::*, list_groups::*,
        streams_group_describe::*, streams_group_heartbeat::*,
    },
};

use crate::support::*;

const FENCED_MEMBER_EPOCH: i16 = 110;
const INVALID_REQUEST: i16 = 42;
const INVALID_TOPOLOGY: i16 = 130;
const UNKNOWN_MEMBER: i16 = 25;

fn text(text: &str) -> Text {
    Text::from(text)
}

fn internal(name: &str, policy: &str) -> StreamsTopicInfo {
    StreamsTopicInfo {
        name: text(name),
        topic_configs: vec![StreamsKeyValue { key: text("cleanup.policy"), value: text(policy) }],
        ..Default::default()
    }
}

/// A count per key: `t` through a repartition topic into a store with a changelog.
fn counting() -> StreamsTopology {
    let first = StreamsSubtopology {
        subtopology_id: text("0"),
        source_topics: vec![text("t")],
        repartition_sink_topics: vec![text("app-repartition")],
        ..Default::default()
    };
    let second = StreamsSubtopology {
        subtopology_id: text("1"),
        repartition_source_topics: vec![internal("app-repartition", "delete")],
        state_changelog_topics: vec![internal("app-changelog", "compact")],
        ..Default::default()
    };
    StreamsTopology { epoch: 0, subtopologies: vec![first, second] }
}

fn joining(id: &str) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: text("app"),
        member_id: text(id),
        rebalance_timeout_ms: 60_000,
        topology: Some(counting()),
        active_tasks: Some(vec![]),
        standby_tasks: Some(vec![]),
        warmup_tasks: Some(vec![]),
        process_id: Some(text(id)),
        client_tags: Some(vec![]),
        ..Default::default()
    }
}

fn idle(id: &str, member_epoch: i32) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: text("app"),
        member_id: text(id),
        member_epoch,
        ..Default::default()
    }
}

fn beat(broker: &mut Broker, request: &StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
    let on = broker.connect();
    broker.ask(on, 1, request).answer()
}

/// Topic `t` of three partitions, and no waiting for members.
fn broker() -> Broker {
    let mut broker = Broker::with(&[
        ("group.streams.initial.rebalance.delay.ms", "0"),
        ("group.streams.assignment.interval.ms", "0"),
    ]);
    broker.topic("t", 3);
    broker
}

fn count(tasks: &Option<Vec<StreamsTaskIds>>) -> Option<usize> {
    tasks.as_ref().map(|tasks| tasks.iter().map(|ids| ids.partitions.len()).sum())
}

fn describe(broker: &mut Broker, id: &str) -> DescribedStreamsGroup {
    let request = StreamsGroupDescribeRequest {
        group_ids: vec![text(id)],
        include_authorized_operations: true,
        include_topology_description: true,
    };
    let on = broker.connect();
    let mut response: StreamsGroupDescribeResponse = broker.ask(on, 1, &request).answer();
    response.groups.remove(0)
}

#[test]
fn the_first_member_gets_all_tasks_and_the_internal_topics_are_there() {
    let mut broker = broker();
    let told = beat(&mut broker, &joining("a"));
    assert_eq!((told.error_code.get(), told.member_epoch), (0, 2));
    assert_eq!(count(&told.active_tasks), Some(6));
    assert_eq!(told.status, Some(vec![]));
    assert_eq!((told.heartbeat_interval_ms, told.acceptable_recovery_lag), (5_000, 10_000));
    let catalog = &broker.state().catalog;
    for (topic, policy) in [("app-repartition", "delete"), ("app-changelog", "compact")] {
        let topic = catalog.topic(topic).unwrap();
        assert_eq!((topic.partitions().len(), &*topic.settings()[0].value), (3, policy));
    }
}

#[test]
fn internal_topics_that_cannot_be_made_are_told_and_nobody_works() {
    let mut broker = broker();
    let mut request = joining("a");
    request.topology.as_mut().unwrap().subtopologies[1].state_changelog_topics[0].replication_factor = 3;
    let told = beat(&mut broker, &request);
    let status = told.status.unwrap();
    assert_eq!((told.error_code.get(), status[0].status_code), (0, 3));
    let detail = status[0].status_detail.as_str();
    assert!(detail.contains("Creation failed: app-changelog (replication factor 3"), "{detail}");
    assert_eq!(count(&told.active_tasks), Some(0));
    assert_eq!(describe(&mut broker, "app").group_state.as_str(), "NotReady");
}

#[test]
fn requests_that_lack_something_are_refused_in_kafkas_order() {
    let mut broker = broker();
    let with = |change: fn(&mut StreamsGroupHeartbeatRequest)| {
        let mut request = joining("a");
        change(&mut request);
        request
    };
    let part = |change: fn(&mut StreamsSubtopology)| {
        let mut request = joining("a");
        change(&mut request.topology.as_mut().unwrap().subtopologies[0]);
        request
    };
    let cases = [
        (part(|part| part.source_topics = vec![text("__consumer_offsets")]), INVALID_TOPOLOGY),
        (part(|part| part.source_topics = vec![text("a b")]), INVALID_TOPOLOGY),
        (part(|part| part.source_topic_regex = vec![text("t.*")]), INVALID_REQUEST),
        (part(|part| part.source_topics = vec![]), INVALID_TOPOLOGY),
        (with(|request| request.member_id = text("")), INVALID_REQUEST),
        (with(|request| request.group_id = text("")), INVALID_REQUEST),
        (with(|request| request.instance_id = Some(text(""))), INVALID_REQUEST),
        (with(|request| request.rack_id = Some(text(""))), INVALID_REQUEST),
        (with(|request| request.rebalance_timeout_ms = -1), INVALID_REQUEST),
        (with(|request| request.topology = None), INVALID_REQUEST),
        (with(|request| request.warmup_tasks = None), INVALID_REQUEST),
        (with(|request| request.member_epoch = -3), INVALID_REQUEST),
        (with(|request| request.member_epoch = -2), INVALID_REQUEST),
        (with(|request| request.member_epoch = 1), INVALID_REQUEST),
        (idle("a", 1), 69),
        (idle("a", -1), 69),
    ];
    for (request, code) in cases {
        let told = beat(&mut broker, &request);
        assert_eq!(told.error_code.get(), code, "{request:?}");
        assert!(told.error_message.is_some());
    }
    assert!(broker.state().groups.group(&"app".into()).is_none(), "none of them made a group");
    beat(&mut broker, &joining("a"));
    assert_eq!(beat(&mut broker, &idle("a", 7)).error_code.get(), FENCED_MEMBER_EPOCH);
    assert_eq!(beat(&mut broker, &idle("b", 2)).error_code.get(), UNKNOWN_MEMBER);
}

#[test]
fn members_carry_on_after_a_restart_and_idle_heartbeats_are_no_events() {
    let mut broker = broker();
    let member_epoch = beat(&mut broker, &joining("a")).member_epoch;
    broker.restart();
    let before = broker.event_count();
    let told = beat(&mut broker, &idle("a", member_epoch));
    assert_eq!((told.error_code.get(), told.member_epoch, told.active_tasks), (0, member_epoch, None));
    assert_eq!(broker.event_count(), before);
}

#[test]
fn a_silent_member_is_gone_after_its_session() {
    let mut broker = broker();
    beat(&mut broker, &joining("a"));
    broker.pass(44_999);
    assert_eq!(describe(&mut broker, "app").members.len(), 1);
    broker.pass(1);
    let group = describe(&mut broker, "app");
    assert_eq!((group.group_state.as_str(), group.members.len()), ("Empty", 0));
}

#[test]
fn after_a_restart_a_silent_member_is_gone_after_the_session_of_its_group() {
    let mut broker = broker();
    beat(&mut broker, &joining("a"));
    let config = IncrementallyAlterableConfig {
        name: text("streams.session.timeout.ms"),
        config_operation: 0,
        value: Some(text("50000")),
    };
    let resource = IncrementalAlterConfigsResource {
        resource_type: RESOURCE_GROUP,
        resource_name: text("app"),
        configs: vec![config],
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let on = broker.connect();
    let answer: IncrementalAlterConfigsResponse = broker.ask(on, 1, &request).answer();
    assert_eq!(answer.responses[0].error_code.get(), 0);
    broker.restart();
    broker.pass(49_999);
    assert_eq!(describe(&mut broker, "app").members.len(), 1);
    broker.pass(1);
    assert_eq!(describe(&mut broker, "app").members.len(), 0);
}

fn commit(broker: &mut Broker, id: &str, member_epoch: i32) -> i16 {
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let mut request = txn_offset_commit_request("tx", stamp, "app", &[(("t", 0), 5)]);
    request.member_id = text(id);
    request.generation_id_or_member_epoch = member_epoch;
    broker.ask_txn_offset_commit(on, 5, &request).answer()[0]
}

#[test]
fn a_zombies_offsets_are_refused_in_transactions() {
    let mut broker = broker();
    let member_epoch = beat(&mut broker, &joining("a")).member_epoch;
    assert_eq!(commit(&mut broker, "a", member_epoch), 0);
    assert_eq!(commit(&mut broker, "a", member_epoch - 1), 22, "113 is not known to version 5");
    assert_eq!(commit(&mut broker, "b", member_epoch), UNKNOWN_MEMBER);
    let on = broker.connect();
    let code = broker.offset_commit(on, "app", ("t", 0), 5);
    assert_eq!(code, UNKNOWN_MEMBER, "from outside, while there are members");
    beat(&mut broker, &idle("a", -1));
    assert_eq!(broker.offset_commit(on, "app", ("t", 0), 5), 0);
}

#[test]
fn a_group_is_listed_described_and_deleted_once_it_is_empty() {
    let mut broker = broker();
    beat(&mut broker, &joining("a"));
    let on = broker.connect();
    let request = ListGroupsRequest { types_filter: vec![text("Streams")], ..Default::default() };
    let listed: ListGroupsResponse = broker.ask(on, 5, &request).answer();
    let group = &listed.groups[0];
    let names = [&group.group_id, &group.protocol_type, &group.group_state, &group.group_type];
    assert_eq!(names.map(|name| name.as_str()), ["app", "streams", "Stable", "streams"]);

    let group = describe(&mut broker, "app");
    assert_eq!((group.group_epoch, group.assignment_epoch, group.group_state.as_str()), (2, 2, "Stable"));
    assert_eq!(group.assignor_name.as_deref(), Some("sticky"));
    assert_eq!(group.topology_description_status, 1, "no description is stored");
    let parts = group.topology.unwrap().subtopologies.unwrap();
    assert_eq!(parts[1].state_changelog_topics[0].partitions, 3, "as decided");
    let member = &group.members[0];
    assert_eq!(member.assignment, member.target_assignment);
    assert_eq!(member.assignment.active_tasks[0].partitions, [0, 1, 2].map(PartitionIndex::new));
    assert_eq!(describe(&mut broker, "none").error_code.get(), 69);
    assert_eq!(describe(&mut broker, "").error_code.get(), 24);

    let request = DeleteGroupsRequest { groups_names: vec![text("app")] };
    let delete = |broker: &mut Broker| {
        let response: DeleteGroupsResponse = broker.ask(on, 2, &request).answer();
        response.results[0].error_code.get()
    };
    assert_eq!(delete(&mut broker), 68);
    assert_eq!(beat(&mut broker, &idle("a", -1)).member_epoch, -1);
    assert_eq!(delete(&mut broker), 0);
    assert_eq!(describe(&mut broker, "app").error_code.get(), 69);
}

#[test]
fn a_groups_own_settings_hold_from_the_next_heartbeat_on() {
    let mut broker = broker();
    let mut member_epoch = beat(&mut broker, &joining("a")).member_epoch;
    let config = IncrementallyAlterableConfig {
        name: text("streams.heartbeat.interval.ms"),
        config_operation: 0,
        value: Some(text("7000")),
    };
    let copies = IncrementallyAlterableConfig {
        name: text("streams.num.standby.replicas"),
        config_operation: 0,
        value: Some(text("1")),
    };
    let resource = IncrementalAlterConfigsResource {
        resource_type: RESOURCE_GROUP,
        resource_name: text("app"),
        configs: vec![config, copies],
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let on = broker.connect();
    let answer: IncrementalAlterConfigsResponse = broker.ask(on, 1, &request).answer();
    assert_eq!(answer.responses[0].error_code.get(), 0);
    let told = beat(&mut broker, &idle("a", member_epoch));
    assert_eq!(told.heartbeat_interval_ms, 7_000);
    assert!(told.member_epoch > member_epoch, "another number of copies is a new epoch");
    member_epoch = told.member_epoch;
    let told = beat(&mut broker, &joining("b"));
    assert_eq!(count(&told.active_tasks), Some(0), "the other one has not let go yet");
    assert!(count(&told.standby_tasks) > Some(0), "a copy on another instance waits for nobody");
    let told = beat(&mut broker, &idle("a", member_epoch));
    assert!(count(&told.standby_tasks) > Some(0), "copies of what it gives up: the store is there");
}
