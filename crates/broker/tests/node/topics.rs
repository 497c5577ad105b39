//! Topics: made, deleted, described, made by first use.

use semel_types::{PartitionIndex, TopicId};
use semel_wire::{
    RawLeaderEpoch, Text,
    api::{
        create_topics::*, delete_topics::*, describe_cluster::*, describe_configs::*, fetch::FetchResponse,
        metadata::*, offset_for_leader_epoch::*,
    },
};

use crate::support::*;

fn creatable(name: &str, partitions: i32, factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: Text::from(name),
        num_partitions: partitions,
        replication_factor: factor,
        ..Default::default()
    }
}

fn create(broker: &mut Broker, topics: Vec<CreatableTopic>, validate_only: bool) -> Vec<CreatedTopic> {
    let on = broker.connect();
    let request = CreateTopicsRequest { topics, validate_only, ..Default::default() };
    broker.ask::<_, CreateTopicsResponse>(on, 7, &request).answer().topics
}

#[track_caller]
fn code_of(broker: &mut Broker, topic: CreatableTopic) -> i16 {
    let created = create(broker, vec![topic], false).remove(0);
    assert_eq!(created.error_code.is_error(), created.error_message.is_some());
    created.error_code.get()
}

#[test]
fn create_topics_judges_names_counts_and_settings_as_kafka_does() {
    let mut broker = Broker::new();
    broker.topic("there", 1);
    broker.topic("with.dot", 1);
    for (name, partitions, factor, code) in [
        ("good", 3, 1, 0),
        ("default", -1, -1, 0),
        ("", 1, 1, 17),
        ("bad name", 1, 1, 17),
        ("..", 1, 1, 17),
        ("__consumer_offsets", 1, 1, 17),
        ("with_dot", 1, 1, 17),
        ("there", 1, 1, 36),
        ("x", 0, 1, 37),
        ("x", -2, 1, 37),
        ("x", 1, 0, 38),
        ("x", 1, 3, 38),
        ("x", 1, -2, 38),
        ("x", 10_001, 1, 44),
    ] {
        assert_eq!(
            code_of(&mut broker, creatable(name, partitions, factor)),
            code,
            "{name} {partitions} {factor}"
        );
    }
    let with = |name: &str, value: Option<&str>| CreatableTopic {
        configs: vec![CreatableConfig { name: Text::from(name), value: value.map(Text::from) }],
        ..creatable("configured", 1, 1)
    };
    assert_eq!(code_of(&mut broker, with("no.such", Some("1"))), 40);
    assert_eq!(code_of(&mut broker, with("retention.ms", None)), 40);
    assert_eq!(code_of(&mut broker, with("retention.ms", Some("soon"))), 40);
    assert_eq!(code_of(&mut broker, with("retention.ms", Some("1000"))), 0);
    assert!(broker.state().catalog.topic("x").is_none());
}

#[test]
fn assignments_by_hand_are_to_this_node_only() {
    let mut broker = Broker::new();
    let assigned = |partitions: &[(i32, i32)], count, factor| CreatableTopic {
        assignments: partitions
            .iter()
            .map(|(index, node)| CreatableAssignment {
                partition_index: PartitionIndex::new(*index),
                broker_ids: vec![*node],
            })
            .collect(),
        ..creatable("hand", count, factor)
    };
    assert_eq!(code_of(&mut broker, assigned(&[(0, 1)], 1, -1)), 42);
    assert_eq!(code_of(&mut broker, assigned(&[(0, 1)], -1, 1)), 42);
    assert_eq!(code_of(&mut broker, assigned(&[(0, 1), (2, 1)], -1, -1)), 39);
    assert_eq!(code_of(&mut broker, assigned(&[(0, 2)], -1, -1)), 39);
    assert_eq!(code_of(&mut broker, assigned(&[(1, 1), (0, 1)], -1, -1)), 0);
    assert_eq!(broker.state().catalog.topic("hand").unwrap().partitions().len(), 2);
}

#[test]
fn validate_only_makes_nothing_and_repeated_names_are_42() {
    let mut broker = Broker::new();
    let only = create(&mut broker, vec![creatable("v", 2, 1)], true).remove(0);
    assert_eq!((only.error_code.get(), only.num_partitions, only.topic_id), (0, 2, TopicId::ZERO));
    assert!(only.configs.unwrap().iter().any(|config| config.name == "retention.ms"));
    assert!(broker.state().catalog.is_empty());
    let twice = vec![creatable("a", 1, 1), creatable("b", 1, 1), creatable("a", 1, 1)];
    let created = create(&mut broker, twice, false);
    let codes: Vec<_> = created.iter().map(|topic| (topic.name.as_str(), topic.error_code.get())).collect();
    assert_eq!(codes, [("a", 42), ("b", 0)]);
}

#[test]
fn topics_are_deleted_by_name_and_by_id() {
    let mut broker = Broker::new();
    for name in ["a", "b"] {
        broker.topic(name, 2);
    }
    let id = broker.state().catalog.topic("b").unwrap().id();
    let by_name = |name: &str| DeleteTopic { name: Some(Text::from(name)), topic_id: TopicId::ZERO };
    let by_id = |topic_id| DeleteTopic { name: None, topic_id };
    let unknown = TopicId::new([9; 16]);
    let both = DeleteTopic { name: Some(Text::from("a")), topic_id: id };
    let topics = vec![both, by_name("a"), by_id(id), by_name("a"), by_name("nowhere"), by_id(unknown)];
    let on = broker.connect();
    let request = DeleteTopicsRequest { topics, ..Default::default() };
    let response: DeleteTopicsResponse = broker.ask(on, 6, &request).answer();
    let codes: Vec<_> = response.responses.iter().map(|topic| topic.error_code.get()).collect();
    assert_eq!(codes, [42, 0, 0, 3, 3, 100]);
    assert_eq!(response.responses[2].name, Some(Text::from("b")));
    assert!(broker.state().catalog.is_empty());
    broker.restart();
}

#[test]
fn deletion_can_be_switched_off() {
    let mut broker = Broker::with(&[("delete.topic.enable", "false")]);
    broker.topic("a", 1);
    let on = broker.connect();
    let request = DeleteTopicsRequest { topic_names: vec![Text::from("a")], ..Default::default() };
    let response: DeleteTopicsResponse = broker.ask(on, 5, &request).answer();
    assert_eq!(response.responses[0].error_code.get(), 73);
}

fn metadata(broker: &mut Broker, version: i16, names: Option<&[&str]>, may_create: bool) -> MetadataResponse {
    let topic = |name: &&str| MetadataRequestTopic { name: Some(Text::from(*name)), ..Default::default() };
    let request = MetadataRequest {
        topics: names.map(|names| names.iter().map(topic).collect()),
        allow_auto_topic_creation: may_create,
        ..Default::default()
    };
    let on = broker.connect();
    broker.ask(on, version, &request).answer()
}

#[test]
fn metadata_makes_a_missing_topic_and_has_it_in_the_same_answer() {
    let mut broker = Broker::with(&[("num.partitions", "3")]);
    let answer = metadata(&mut broker, 12, Some(&["new", "bad name", "new"]), true);
    assert_eq!(answer.topics.len(), 2);
    let made = &answer.topics[0];
    assert_eq!((made.error_code.get(), made.partitions.len()), (0, 3));
    assert_eq!((made.partitions[0].leader_id, made.partitions[0].leader_epoch.get()), (1, 1));
    assert_eq!(answer.topics[1].error_code.get(), 17);
    assert_eq!(answer.brokers[0].host, "broker.test");
    assert_eq!(answer.cluster_id, Some(Text::from("test-cluster")));
    let again = metadata(&mut broker, 12, Some(&["new"]), true);
    assert_eq!(again.topics[0].topic_id, made.topic_id);
}

#[test]
fn metadata_makes_nothing_where_request_or_setting_forbid_it() {
    let mut broker = Broker::new();
    assert_eq!(metadata(&mut broker, 4, Some(&["a"]), false).topics[0].error_code.get(), 3);
    assert_eq!(metadata(&mut broker, 12, Some(&["__consumer_offsets"]), true).topics[0].error_code.get(), 3);
    let mut closed = Broker::with(&[("auto.create.topics.enable", "false")]);
    assert_eq!(metadata(&mut closed, 4, Some(&["a"]), true).topics[0].error_code.get(), 3);
    assert!(broker.state().catalog.is_empty() && closed.state().catalog.is_empty());
}

#[test]
fn metadata_of_all_topics_and_by_id() {
    let mut broker = Broker::new();
    broker.topic("a", 1);
    broker.topic("b", 1);
    for (version, names) in [(0, Some(&[][..])), (1, None), (13, None)] {
        let names: Vec<_> = metadata(&mut broker, version, names, true).topics;
        let names: Vec<_> = names.iter().map(|topic| topic.name.clone().unwrap()).collect();
        assert_eq!(names, [Text::from("a"), Text::from("b")], "version {version}");
    }
    assert!(metadata(&mut broker, 1, Some(&[]), true).topics.is_empty());
    let id = broker.state().catalog.topic("b").unwrap().id();
    let by_id = |topic_id| MetadataRequestTopic { topic_id, name: None };
    let request =
        MetadataRequest { topics: Some(vec![by_id(id), by_id(TopicId::new([1; 16]))]), ..Default::default() };
    let on = broker.connect();
    let answer: MetadataResponse = broker.ask(on, 12, &request).answer();
    assert_eq!(answer.topics[0].name, Some(Text::from("b")));
    assert_eq!(answer.topics[1].error_code.get(), 100);
    // Java names a topic by its id with an empty name beside it; nothing is made for that.
    let as_java = |topic_id| MetadataRequestTopic { topic_id, name: Some(Text::from("")) };
    let topics = Some(vec![as_java(id), as_java(TopicId::new([1; 16]))]);
    let request = MetadataRequest { topics, allow_auto_topic_creation: true, ..Default::default() };
    let answer: MetadataResponse = broker.ask(on, 13, &request).answer();
    assert_eq!(answer.topics[0].name, Some(Text::from("b")));
    assert_eq!((answer.topics[1].error_code.get(), answer.topics[1].name.clone()), (100, None));
    let answer: MetadataResponse = broker.ask(on, 11, &request).answer();
    assert_eq!(answer.topics[1].error_code.get(), 100, "a version that cannot leave the name out");
}

#[test]
fn describe_configs_tells_values_and_where_they_come_from() {
    let mut broker = Broker::with(&[("message.max.bytes", "2000"), ("num.partitions", "5")]);
    broker.topic_with("t", 1, &[("retention.ms", "77")]);
    let resource = |resource_type, name: &str| DescribeConfigsResource {
        resource_type,
        resource_name: Text::from(name),
        configuration_keys: None,
    };
    let resources = vec![
        resource(RESOURCE_TOPIC, "t"),
        resource(RESOURCE_BROKER, "1"),
        resource(RESOURCE_TOPIC, "nowhere"),
        resource(RESOURCE_BROKER, "2"),
        resource(99, "x"),
    ];
    let request = DescribeConfigsRequest { resources, include_synonyms: true, include_documentation: true };
    let on = broker.connect();
    let response: DescribeConfigsResponse = broker.ask(on, 4, &request).answer();
    let codes: Vec<_> = response.results.iter().map(|result| result.error_code.get()).collect();
    assert_eq!(codes, [0, 0, 3, 42, 42]);
    let find = |result: usize, name: &str| {
        let configs = &response.results[result].configs;
        let config = configs.iter().find(|config| config.name == name).unwrap();
        (config.value.clone().unwrap().as_str().to_owned(), config.config_source, config.synonyms.len())
    };
    assert_eq!(find(0, "retention.ms"), ("77".to_owned(), 1, 2));
    assert_eq!(find(0, "max.message.bytes"), ("2000".to_owned(), 4, 2));
    assert_eq!(find(0, "cleanup.policy"), ("delete".to_owned(), 5, 1));
    assert_eq!(find(1, "num.partitions"), ("5".to_owned(), 4, 2));
    assert!(response.results[1].configs.iter().all(|config| config.documentation.is_some()));
}

#[test]
fn describe_cluster_lists_this_node() {
    let mut broker = Broker::with(&[("node.id", "7")]);
    let on = broker.connect();
    let answer: DescribeClusterResponse = broker.ask(on, 2, &DescribeClusterRequest::default()).answer();
    assert_eq!((answer.error_code.get(), answer.controller_id, answer.brokers[0].broker_id), (0, 7, 7));
}

#[test]
fn fetch_tells_what_is_wrong_with_each_partition() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    broker.send(on, ("t", 0), anonymous(&["v"]));
    assert_eq!(broker.fetch(("t", 0), 2, 0).error_code.get(), 1);
    assert_eq!(broker.fetch(("t", 0), -5, 0).error_code.get(), 1);
    assert_eq!(broker.fetch(("t", 9), 0, 0).error_code.get(), 3);
    assert_eq!(broker.fetch(("nowhere", 0), 0, 0).error_code.get(), 3);
    let mut request = fetch_request(("t", 0), 0, 0, 1000);
    for (epoch, code) in [(0, 74), (1, 0), (2, 75)] {
        request.topics[0].partitions[0].current_leader_epoch = RawLeaderEpoch(epoch);
        let answer: FetchResponse = broker.ask(on, 12, &request).answer();
        assert_eq!(answer.responses[0].partitions[0].error_code.get(), code, "epoch {epoch}");
    }
    request.topics[0].topic_id = TopicId::new([3; 16]);
    let answer: FetchResponse = broker.ask(on, 13, &request).answer();
    assert_eq!(answer.responses[0].partitions[0].error_code.get(), 100);
    for (session_id, session_epoch, code) in [(5, 1, 70), (0, 3, 71), (0, 0, 0), (0, -1, 0)] {
        let request = semel_wire::api::fetch::FetchRequest {
            session_id,
            session_epoch,
            ..fetch_request(("t", 0), 0, 0, 1000)
        };
        let answer: FetchResponse = broker.ask(on, 12, &request).answer();
        assert_eq!((answer.error_code.get(), answer.session_id), (code, 0));
    }
}

#[test]
fn list_offsets_knows_the_special_places() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    for time in [1000, 5000, 3000] {
        broker.send(on, ("t", 0), anonymous_at(time, &["v"]));
    }
    let mut found = |timestamp| {
        let found = broker.list_offset_raw(("t", 0), timestamp, 0);
        (found.error_code.get(), found.offset.get(), found.timestamp)
    };
    assert_eq!(found(-1), (0, 3, -1));
    assert_eq!(found(-2), (0, 0, -1));
    assert_eq!(found(-3), (0, 1, 5000));
    assert_eq!(found(2000), (0, 1, 5000));
    assert_eq!(found(9000), (0, -1, -1));
    assert_eq!(found(-4), (35, -1, -1), "version 7 has no -4");
}

#[test]
fn offset_for_leader_epoch_follows_the_starts() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    broker.send(on, ("t", 0), anonymous(&["a", "b"]));
    broker.restart();
    broker.send(on, ("t", 0), anonymous(&["c"]));
    let mut ask = |epoch| {
        let partition = OffsetForLeaderPartition {
            partition: PartitionIndex::new(0),
            leader_epoch: RawLeaderEpoch(epoch),
            ..Default::default()
        };
        let topic = OffsetForLeaderTopic { topic: Text::from("t"), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
        let answer: OffsetForLeaderEpochResponse = broker.ask(on, 4, &request).answer();
        let end = &answer.topics[0].partitions[0];
        (end.error_code.get(), end.leader_epoch.get(), end.end_offset.get())
    };
    assert_eq!(ask(1), (0, 1, 2));
    assert_eq!(ask(2), (0, 2, 3));
    assert_eq!(ask(3), (0, -1, -1));
}
