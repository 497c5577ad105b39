//! Settings that are altered, and topics that grow.

use semel_types::PartitionIndex;
use semel_wire::{
    Text,
    api::{
        alter_configs::*, create_partitions::*, describe_configs::*, incremental_alter_configs::*,
        list_config_resources::*, metadata::*,
    },
};

use crate::support::*;

const TOPIC: i8 = RESOURCE_TOPIC;
const GROUP: i8 = RESOURCE_GROUP;

type Op<'a> = (i8, &'a str, Option<&'a str>);

fn alter_with(broker: &mut Broker, of: (i8, &str), ops: &[Op<'_>], validate_only: bool) -> i16 {
    let config = |(operation, name, value): &Op<'_>| IncrementallyAlterableConfig {
        name: Text::from(*name),
        config_operation: *operation,
        value: value.map(Text::from),
    };
    let resource = IncrementalAlterConfigsResource {
        resource_type: of.0,
        resource_name: Text::from(of.1),
        configs: ops.iter().map(config).collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    let on = broker.connect();
    let response: IncrementalAlterConfigsResponse = broker.ask(on, 1, &request).answer();
    let response = &response.responses[0];
    assert_eq!(response.error_code.is_error(), response.error_message.is_some());
    response.error_code.get()
}

fn alter(broker: &mut Broker, of: (i8, &str), ops: &[Op<'_>]) -> i16 {
    alter_with(broker, of, ops, false)
}

/// Value and source of one setting.
fn told(broker: &mut Broker, of: (i8, &str), name: &str) -> (String, i8) {
    let resource = DescribeConfigsResource {
        resource_type: of.0,
        resource_name: Text::from(of.1),
        configuration_keys: Some(vec![Text::from(name)]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let on = broker.connect();
    let response: DescribeConfigsResponse = broker.ask(on, 4, &request).answer();
    let config = &response.results[0].configs[0];
    assert!(!config.read_only);
    (config.value.as_ref().unwrap().to_string(), config.config_source)
}

#[test]
fn single_settings_of_a_topic_are_altered_and_told_with_their_source() {
    let mut broker = Broker::new();
    broker.topic_with("t", 1, &[("retention.ms", "5"), ("segment.bytes", "2000000")]);
    let t = (TOPIC, "t");
    assert_eq!(told(&mut broker, t, "retention.ms"), ("5".to_owned(), 1));
    let ops: &[Op<'_>] = &[
        (OPERATION_SET, "retention.ms", Some("7")),
        (OPERATION_DELETE, "segment.bytes", None),
        (OPERATION_APPEND, "cleanup.policy", Some("compact")),
    ];
    assert_eq!(alter_with(&mut broker, t, ops, true), 0);
    assert_eq!(told(&mut broker, t, "retention.ms"), ("5".to_owned(), 1), "it was only checked");
    assert_eq!(alter(&mut broker, t, ops), 0);
    for _ in 0..2 {
        assert_eq!(told(&mut broker, t, "retention.ms"), ("7".to_owned(), 1));
        assert_eq!(told(&mut broker, t, "segment.bytes"), ("1073741824".to_owned(), 5));
        assert_eq!(told(&mut broker, t, "cleanup.policy"), ("delete,compact".to_owned(), 1));
        broker.restart();
    }
    assert_eq!(alter(&mut broker, t, &[(OPERATION_SUBTRACT, "cleanup.policy", Some("delete"))]), 0);
    assert_eq!(told(&mut broker, t, "cleanup.policy").0, "compact");
    let on = broker.connect();
    assert_eq!(fate(&broker.send(on, ("t", 0), anonymous(&["keyless"]))).0, 87, "Produce heeds it at once");
}

#[test]
fn what_there_is_not_is_deleted_a_policy_may_be_empty_and_the_lags_of_compaction_agree() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let t = (TOPIC, "t");
    assert_eq!(alter(&mut broker, t, &[(OPERATION_DELETE, "no.such", None)]), 0);
    assert_eq!(alter(&mut broker, (GROUP, "g"), &[(OPERATION_DELETE, "no.such", None)]), 0);
    assert_eq!(alter(&mut broker, t, &[(OPERATION_SUBTRACT, "cleanup.policy", Some("delete"))]), 0);
    assert_eq!(told(&mut broker, t, "cleanup.policy"), (String::new(), 1));
    assert_eq!(alter(&mut broker, t, &[(OPERATION_APPEND, "cleanup.policy", Some("compact"))]), 0);
    assert_eq!(told(&mut broker, t, "cleanup.policy").0, "compact");
    let lag = |name, value| (OPERATION_SET, name, Some(value));
    assert_eq!(alter(&mut broker, t, &[lag("max.compaction.lag.ms", "5")]), 0);
    assert_eq!(alter(&mut broker, t, &[lag("min.compaction.lag.ms", "6")]), 40, "above the one that it has");
    assert_eq!(alter(&mut broker, t, &[lag("min.compaction.lag.ms", "5")]), 0);
}

#[test]
fn what_cannot_be_altered_is_refused_and_changes_nothing() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let set = |name, value| (OPERATION_SET, name, value);
    for (of, ops, code) in [
        ((TOPIC, "no"), vec![set("retention.ms", Some("1"))], 3),
        ((TOPIC, "no/name"), vec![set("retention.ms", Some("1"))], 17),
        ((TOPIC, "t"), vec![set("retention.ms", Some("1")), set("no.such", Some("1"))], 40),
        ((TOPIC, "t"), vec![set("retention.ms", Some("soon"))], 40),
        ((TOPIC, "t"), vec![set("retention.ms", None)], 42),
        ((TOPIC, "t"), vec![set("retention.ms", Some("1")), (OPERATION_DELETE, "retention.ms", None)], 42),
        ((TOPIC, "t"), vec![(OPERATION_APPEND, "retention.ms", Some("1"))], 40),
        (
            (TOPIC, "t"),
            vec![set("min.compaction.lag.ms", Some("6")), set("max.compaction.lag.ms", Some("5"))],
            40,
        ),
        ((TOPIC, "t"), vec![(OPERATION_APPEND, "no.such", Some("1"))], 40),
        ((TOPIC, "t"), vec![(9, "retention.ms", Some("1"))], 42),
        ((RESOURCE_BROKER, "1"), vec![set("num.partitions", Some("3"))], 42),
        ((RESOURCE_BROKER, ""), vec![set("num.partitions", Some("3"))], 42),
        ((RESOURCE_CLIENT_METRICS, "m"), vec![set("interval.ms", Some("3"))], 42),
        ((GROUP, ""), vec![set("consumer.session.timeout.ms", Some("45000"))], 42),
        ((GROUP, "g"), vec![set("consumer.session.timeout.ms", Some("1"))], 40),
        ((GROUP, "g"), vec![set("foo", Some("1"))], 40),
    ] {
        assert_eq!(alter(&mut broker, of, &ops), code, "{of:?} {ops:?}");
    }
    let before = broker.state().catalog.topic("t").unwrap().settings().len();
    assert_eq!((before, broker.state().group_settings.of(&"g".into()).len()), (0, 0));
}

#[test]
fn a_resource_named_twice_is_refused_both_times() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let resource = |value| AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: Text::from("t"),
        configs: vec![AlterableConfig { name: Text::from("retention.ms"), value: Some(Text::from(value)) }],
    };
    let request = AlterConfigsRequest { resources: vec![resource("1"), resource("2")], validate_only: false };
    let on = broker.connect();
    let response: AlterConfigsResponse = broker.ask(on, 2, &request).answer();
    assert!(response.responses.iter().all(|response| response.error_code.get() == 42));
}

#[test]
fn alter_configs_puts_what_it_does_not_name_back_to_the_default() {
    let mut broker = Broker::new();
    broker.topic_with("t", 1, &[("retention.ms", "5"), ("segment.bytes", "2000000")]);
    let config = AlterableConfig { name: Text::from("segment.bytes"), value: Some(Text::from("3000000")) };
    let resource =
        AlterConfigsResource { resource_type: TOPIC, resource_name: Text::from("t"), configs: vec![config] };
    let request = AlterConfigsRequest { resources: vec![resource], validate_only: false };
    let on = broker.connect();
    let response: AlterConfigsResponse = broker.ask(on, 0, &request).answer();
    assert_eq!(response.responses[0].error_code.get(), 0);
    assert_eq!(told(&mut broker, (TOPIC, "t"), "segment.bytes"), ("3000000".to_owned(), 1));
    assert_eq!(told(&mut broker, (TOPIC, "t"), "retention.ms"), ("604800000".to_owned(), 5));
}

fn listed(broker: &mut Broker, version: i16, types: &[i8]) -> (i16, Vec<(String, i8)>) {
    let request = ListConfigResourcesRequest { resource_types: types.to_vec() };
    let on = broker.connect();
    let response: ListConfigResourcesResponse = broker.ask(on, version, &request).answer();
    let resources = response.config_resources.iter();
    let resources = resources.map(|one| (one.resource_name.to_string(), one.resource_type)).collect();
    (response.error_code.get(), resources)
}

#[test]
fn a_group_has_settings_whether_it_exists_or_not() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let g = (GROUP, "g");
    assert_eq!(told(&mut broker, g, "consumer.session.timeout.ms"), ("45000".to_owned(), 5));
    assert_eq!(alter(&mut broker, g, &[(OPERATION_SET, "consumer.session.timeout.ms", Some("50000"))]), 0);
    for _ in 0..2 {
        assert_eq!(told(&mut broker, g, "consumer.session.timeout.ms"), ("50000".to_owned(), 8));
        assert_eq!(listed(&mut broker, 1, &[GROUP]), (0, vec![("g".to_owned(), GROUP)]));
        broker.restart();
    }
    let all = vec![("t".into(), 2), ("1".into(), 4), ("1".into(), 8), ("g".into(), 32)];
    assert_eq!(listed(&mut broker, 1, &[]), (0, all));
    assert_eq!(listed(&mut broker, 0, &[]), (0, vec![]));
    assert_eq!(listed(&mut broker, 1, &[77]).0, 35);
    assert_eq!(alter(&mut broker, g, &[(OPERATION_DELETE, "consumer.session.timeout.ms", None)]), 0);
    assert_eq!(listed(&mut broker, 1, &[GROUP]), (0, vec![]));
}

fn grow(broker: &mut Broker, name: &str, count: i32, on_nodes: Option<&[i32]>, validate_only: bool) -> i16 {
    let assignment = |node: &i32| CreatePartitionsAssignment { broker_ids: vec![*node] };
    let topic = CreatePartitionsTopic {
        name: Text::from(name),
        count,
        assignments: on_nodes.map(|nodes| nodes.iter().map(assignment).collect()),
    };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 0, validate_only };
    let on = broker.connect();
    let response: CreatePartitionsResponse = broker.ask(on, 3, &request).answer();
    response.results[0].error_code.get()
}

#[test]
fn a_topic_grows_and_its_new_partitions_are_written_at_once() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    broker.topic("u", 1);
    let on = broker.connect();
    broker.send(on, ("t", 0), anonymous(&["old"]));
    for (name, count, nodes, code) in [
        ("no", 2, None, 3),
        ("t", 1, None, 37),
        ("t", 0, None, 37),
        ("t", -1, None, 37),
        ("t", 3, Some(&[1][..]), 39),
        ("t", 2, Some(&[7][..]), 39),
        ("t", 10_002, None, 44),
    ] {
        assert_eq!(grow(&mut broker, name, count, nodes, false), code, "{name} {count} {nodes:?}");
    }
    assert_eq!(grow(&mut broker, "t", 3, None, true), 0);
    assert_eq!(fate(&broker.send(on, ("t", 2), anonymous(&["early"]))).0, 3, "it was only checked");
    assert_eq!(grow(&mut broker, "t", 3, Some(&[1, 1]), false), 0);
    assert_eq!(fate(&broker.send(on, ("t", 2), anonymous(&["new"]))), (0, 0));
    for _ in 0..2 {
        assert_eq!(
            (broker.values(("t", 0)), broker.values(("t", 2))),
            (vec!["old".into()], vec!["new".into()])
        );
        let request = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { name: Some(Text::from("t")), ..Default::default() }]),
            ..Default::default()
        };
        let on = broker.connect();
        let response: MetadataResponse = broker.ask(on, 9, &request).answer();
        let indexes: Vec<_> = response.topics[0].partitions.iter().map(|one| one.partition_index).collect();
        assert_eq!(indexes, [0, 1, 2].map(PartitionIndex::new));
        broker.restart();
    }
    // Nothing of it is the other topic's.
    assert!(broker.values(("u", 0)).is_empty());
}

#[test]
fn a_transaction_spans_old_and_new_partitions() {
    let mut broker = Broker::new();
    broker.topic("t", 1);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    broker.open_with(on, "tx", stamp, ("t", 0), "one");
    assert_eq!(grow(&mut broker, "t", 2, None, false), 0);
    assert_eq!(broker.add(on, "tx", stamp, ("t", 1)), 0);
    broker.send_in(on, "tx", ("t", 1), transactional(stamp, 0, &["two"]));
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(
        (broker.committed(("t", 0)), broker.committed(("t", 1))),
        (vec!["one".into()], vec!["two".into()])
    );
}

#[test]
fn a_consumer_groups_own_timeouts_hold_at_once() {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    let (mut slow, mut other) = (Consumer::new("g", "a"), Consumer::new("h", "b"));
    broker.settle_consumers(&mut [&mut slow]);
    broker.settle_consumers(&mut [&mut other]);
    let told = broker.heartbeat_raw(&slow.idle_request());
    assert_eq!(told.heartbeat_interval_ms, 5_000);
    let ops: &[Op<'_>] = &[
        (OPERATION_SET, "consumer.session.timeout.ms", Some("60000")),
        (OPERATION_SET, "consumer.heartbeat.interval.ms", Some("15000")),
    ];
    assert_eq!(alter(&mut broker, (GROUP, "g"), ops), 0);
    let told = broker.heartbeat_raw(&slow.idle_request());
    assert_eq!(told.heartbeat_interval_ms, 15_000);
    assert_eq!(broker.heartbeat_raw(&other.idle_request()).heartbeat_interval_ms, 5_000);
    broker.pass(50_000);
    assert_eq!(broker.heartbeat_raw(&slow.idle_request()).error_code.get(), 0, "it has 60 seconds");
    assert_eq!(broker.heartbeat_raw(&other.idle_request()).error_code.get(), 25, "it had 45");
}
