//! Consumer groups (KIP-848): members, epochs, what they get, and commits.

use semel_wire::{
    Text,
    api::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, HeartbeatTopicPartitions},
        describe_groups::*,
        list_groups::*,
        offset_fetch::*,
        txn_offset_commit::TxnOffsetCommitRequest,
    },
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 4);
    broker
}

/// Two settled members.
fn pair(broker: &mut Broker) -> (Consumer, Consumer) {
    let (mut a, mut b) = (Consumer::new("g", "a"), Consumer::new("g", "b"));
    broker.settle_consumers(&mut [&mut a, &mut b]);
    (a, b)
}

fn roster(broker: &Broker) -> &semel_groups::consumer::Roster {
    broker.state().groups.group(&"g".into()).unwrap().consumer().unwrap()
}

#[test]
fn a_member_gets_all_and_gives_up_half_before_another_one_gets_it() {
    let mut broker = broker();
    let mut a = Consumer::new("g", "a");
    assert_eq!(broker.beat(&mut a), 0);
    assert_eq!((a.epoch, a.indexes()), (1, vec![0, 1, 2, 3]));
    let mut b = Consumer::new("g", "b");
    assert_eq!(broker.beat(&mut b), 0);
    assert_eq!((b.epoch, b.indexes()), (2, vec![]), "what it shall get is not free yet");
    assert_eq!(broker.describe_consumers("g").group_state.as_str(), "Reconciling");
    let before = a.clone();
    assert_eq!(broker.beat(&mut a), 0);
    assert_eq!((a.epoch, a.indexes()), (1, vec![0, 1]), "it is asked to give up, in its epoch");
    broker.beat(&mut b);
    assert_eq!(b.indexes(), vec![], "it has not said yet that it has");
    assert_eq!(broker.beat(&mut a), 0);
    assert_eq!((a.epoch, a.indexes()), (2, vec![0, 1]));
    broker.beat(&mut b);
    assert_eq!((b.epoch, b.indexes()), (2, vec![2, 3]));
    assert_eq!(broker.describe_consumers("g").group_state.as_str(), "Stable");
    assert_ne!(before.indexes(), a.indexes());
}

#[test]
fn heartbeats_without_news_make_no_event_and_the_group_carries_on_after_a_restart() {
    let mut broker = broker();
    let (mut a, mut b) = pair(&mut broker);
    let (epoch, last) = (a.epoch, broker.event_count());
    for _ in 0..5 {
        broker.pass(5000);
        broker.settle_consumers(&mut [&mut a, &mut b]);
    }
    assert_eq!(broker.event_count(), last, "heartbeats are no events");
    broker.restart();
    let last = broker.event_count();
    broker.settle_consumers(&mut [&mut a, &mut b]);
    assert_eq!((a.epoch, b.epoch), (epoch, epoch));
    assert_eq!(broker.event_count(), last, "nobody joins again after a restart");
    broker.pass(44_000);
    broker.settle_consumers(&mut [&mut a, &mut b]);
}

#[test]
fn a_silent_member_is_removed_and_the_other_gets_what_it_had() {
    let mut broker = broker();
    let (mut a, mut zombie) = pair(&mut broker);
    for _ in 0..5 {
        broker.pass(10_000);
        assert_eq!(broker.beat(&mut a), 0);
    }
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!(a.indexes(), vec![0, 1, 2, 3]);
    assert_eq!(broker.commit_of(9, &zombie, T, 9), 25);
    assert_eq!(broker.beat(&mut zombie), 25);
    broker.settle_consumers(&mut [&mut a, &mut zombie]);
    assert_eq!((a.indexes().len(), zombie.indexes().len()), (2, 2));
}

#[test]
fn a_member_that_does_not_give_up_in_time_is_removed() {
    let mut broker = broker();
    let mut a = Consumer::new("g", "a");
    broker.settle_consumers(&mut [&mut a]);
    let mut b = Consumer::new("g", "b");
    broker.beat(&mut b);
    let stuck = a.idle_request();
    for _ in 0..7 {
        broker.pass(10_000);
        let answer = broker.heartbeat_raw(&stuck);
        assert!([0, 25].contains(&answer.error_code.get()), "{answer:?}");
        broker.beat(&mut b);
    }
    assert_eq!(broker.heartbeat_raw(&stuck).error_code.get(), 25);
    assert_eq!(b.indexes(), vec![0, 1, 2, 3]);
}

#[test]
fn a_member_that_missed_an_answer_may_ask_again_and_others_epochs_are_fenced() {
    let mut broker = broker();
    let mut a = Consumer::new("g", "a");
    broker.settle_consumers(&mut [&mut a]);
    let mut b = Consumer::new("g", "b");
    broker.beat(&mut b);
    broker.beat(&mut a);
    let lost = a.clone();
    broker.beat(&mut a);
    assert_eq!((lost.epoch, a.epoch), (1, 2));
    let mut again = lost.clone();
    assert_eq!(broker.beat(&mut again), 0, "it has nothing that it lost");
    assert_eq!(again.epoch, 2);
    let silent = ConsumerGroupHeartbeatRequest { member_epoch: 1, ..a.idle_request() };
    assert_eq!(broker.heartbeat_raw(&silent).error_code.get(), 110, "it does not say what it has");
    let ahead = ConsumerGroupHeartbeatRequest { member_epoch: 3, ..a.idle_request() };
    assert_eq!(broker.heartbeat_raw(&ahead).error_code.get(), 110);
}

#[test]
fn what_a_heartbeat_may_say_is_checked() {
    let mut broker = broker();
    let (a, _) = pair(&mut broker);
    let join = Consumer::new("g", "c").join_request();
    type Request = ConsumerGroupHeartbeatRequest;
    let cases: Vec<(Request, i16)> = vec![
        (Request { group_id: Text::from(""), ..join.clone() }, 42),
        (Request { member_id: Text::from(""), ..join.clone() }, 42),
        (Request { instance_id: Some(Text::from("")), ..join.clone() }, 42),
        (Request { rack_id: Some(Text::from("")), ..join.clone() }, 42),
        (Request { rebalance_timeout_ms: -1, ..join.clone() }, 42),
        (Request { topic_partitions: None, ..join.clone() }, 42),
        (Request { subscribed_topic_names: None, ..join.clone() }, 42),
        (Request { member_epoch: -3, ..join.clone() }, 42),
        (Request { member_epoch: -2, ..a.idle_request() }, 42),
        (Request { server_assignor: Some(Text::from("mine")), ..join.clone() }, 112),
        (Request { subscribed_topic_regex: Some(Text::from("(")), ..join.clone() }, 128),
        (Request { group_id: Text::from("none"), ..a.idle_request() }, 69),
        (Request { member_id: Text::from("none"), ..a.idle_request() }, 25),
        (Request { member_id: Text::from("none"), member_epoch: -1, ..a.idle_request() }, 25),
        (Request { instance_id: Some(Text::from("none")), ..a.idle_request() }, 25),
    ];
    let last = broker.event_count();
    for (request, due) in cases {
        assert_eq!(broker.heartbeat_raw(&request).error_code.get(), due, "{request:?}");
    }
    assert_eq!(broker.event_count(), last, "a refused request changes nothing");
}

#[test]
fn a_join_that_names_partitions_is_refused_even_if_they_are_gone() {
    let mut broker = broker();
    let gone = HeartbeatTopicPartitions {
        topic_id: semel_types::TopicId::new([9; 16]),
        partitions: vec![semel_types::PartitionIndex::new(0)],
    };
    let join = Consumer::new("g", "c").join_request();
    let request = ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![gone]), ..join };
    assert_eq!(broker.heartbeat_raw(&request).error_code.get(), 42);
}

#[test]
fn a_refusal_names_the_assignor_or_the_pattern_and_the_reason() {
    let mut broker = broker();
    let join = Consumer::new("g", "c").join_request();
    let mut told = |request| broker.heartbeat_raw(&request).error_message.unwrap().as_str().to_owned();
    let mine = ConsumerGroupHeartbeatRequest { server_assignor: Some(Text::from("mine")), ..join.clone() };
    assert_eq!(told(mine), r#"there is no assignor "mine"; supported are uniform,range"#);
    let open = ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some(Text::from("t(")), ..join };
    assert_eq!(told(open), r#"the pattern of topics "t(" is no regular expression: unclosed group"#);
}

#[test]
fn a_static_member_keeps_its_place_while_it_is_away_and_its_name_is_its_own() {
    let mut broker = broker();
    let mut a = Consumer::named("g", "a", "one");
    let mut b = Consumer::new("g", "b");
    broker.settle_consumers(&mut [&mut a, &mut b]);
    let epoch = b.epoch;
    let mut thief = Consumer::named("g", "c", "one");
    assert_eq!(broker.beat(&mut thief), 111, "the name is in use");
    assert_eq!(broker.leave_consumer(&a, -2), 0);
    broker.settle_consumers(&mut [&mut b]);
    assert_eq!((b.epoch, b.indexes()), (epoch, vec![2, 3]), "no rebalance");
    let mut back = Consumer::named("g", "d", "one");
    broker.settle_consumers(&mut [&mut back, &mut b]);
    assert_eq!((back.epoch, back.indexes()), (epoch, a.indexes()), "it gets what it had");
    assert_eq!(broker.beat(&mut a), 82);
    broker.restart();
    broker.settle_consumers(&mut [&mut back, &mut b]);
    assert_eq!(broker.leave_consumer(&back, -1), 0);
    broker.settle_consumers(&mut [&mut b]);
    assert_eq!(b.indexes(), vec![0, 1, 2, 3]);
}

#[test]
fn topics_that_come_and_go_and_patterns_start_a_new_epoch() {
    let mut broker = broker();
    let mut a = Consumer { pattern: Some("logs-.*"), topics: vec![], ..Consumer::new("g", "a") };
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!(a.owned.len(), 0);
    broker.topic("logs-eu", 2);
    broker.topic("other", 2);
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!((a.epoch, a.owned.len()), (2, 2));
    broker.topic("logs-us", 1);
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!((a.epoch, a.owned.len()), (3, 3));
    broker.delete_topic("logs-eu");
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!((a.epoch, a.owned.len()), (4, 1));
    broker.restart();
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!(a.epoch, 4);
}

#[test]
fn commits_name_an_epoch_and_stale_ones_are_refused() {
    let mut broker = broker();
    let mut a = Consumer::new("g", "a");
    broker.settle_consumers(&mut [&mut a]);
    let old = a.clone();
    let mut b = Consumer::new("g", "b");
    broker.settle_consumers(&mut [&mut a, &mut b]);
    assert_eq!(broker.commit_of(9, &a, T, 5), 0);
    assert_eq!(broker.commit_of(8, &a, T, 6), 35, "the version knows no epochs");
    assert_eq!(broker.commit_of(9, &old, T, 7), 0, "it has had it since before (KIP-1251)");
    assert_eq!(broker.commit_of(9, &old, ("t", 3), 7), 113, "another one has it");
    assert_eq!(broker.commit_of(9, &Consumer { epoch: 9, ..a.clone() }, T, 7), 113);
    assert_eq!(broker.commit_of(9, &Consumer::new("g", "z"), T, 7), 25);
    let nobody = Consumer { id: String::new(), epoch: -1, ..a.clone() };
    assert_eq!(broker.commit_of(9, &nobody, T, 7), 25, "the group has members");
    assert_eq!(broker.offset_fetch("g", T, true), (0, 7));
    for (version, who, due) in [(5, &a, 0), (5, &Consumer { epoch: 9, ..a.clone() }, 22), (6, &a, 0)] {
        assert_eq!(txn_commit(&mut broker, version, who, 8), due, "version {version}");
    }
    assert_eq!(txn_commit(&mut broker, 6, &Consumer { epoch: 9, ..a.clone() }, 8), 113);
}

fn txn_commit(broker: &mut Broker, version: i16, who: &Consumer, offset: i64) -> i16 {
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let mut request = TxnOffsetCommitRequest {
        generation_id_or_member_epoch: who.epoch,
        member_id: Text::from(who.id.as_str()),
        ..txn_offset_commit_request("tx", stamp, who.group, &[(T, offset)])
    };
    for topic in &mut request.topics {
        topic.topic_id = broker.state().catalog.topic("t").unwrap().id();
    }
    only(broker.ask_txn_offset_commit(on, version, &request))
}

#[test]
fn reads_of_offsets_name_an_epoch_from_version_9_on() {
    let mut broker = broker();
    let (a, _) = pair(&mut broker);
    let mut code = |member: Option<&str>, epoch| {
        let group = OffsetFetchGroup {
            group_id: Text::from("g"),
            member_id: member.map(Text::from),
            member_epoch: epoch,
            topics: None,
        };
        let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
        let on = broker.connect();
        broker.ask::<_, OffsetFetchResponse>(on, 9, &request).answer().groups[0].error_code.get()
    };
    assert_eq!(code(None, -1), 0);
    assert_eq!(code(Some("a"), a.epoch), 0);
    assert_eq!(code(Some("a"), a.epoch - 1), 113);
    assert_eq!(code(Some("z"), a.epoch), 25);
}

#[test]
fn a_consumer_group_is_listed_and_described_as_such() {
    let mut broker = broker();
    pair(&mut broker);
    let on = broker.connect();
    let listed: ListGroupsResponse = broker.ask(on, 5, &ListGroupsRequest::default()).answer();
    let group = &listed.groups[0];
    let texts = [&group.group_type, &group.group_state, &group.protocol_type].map(|text| text.as_str());
    assert_eq!(texts, ["consumer", "Stable", "consumer"]);
    let request = DescribeGroupsRequest { groups: vec![Text::from("g")], ..Default::default() };
    let classic: DescribeGroupsResponse = broker.ask(on, 6, &request).answer();
    assert_eq!(classic.groups[0].error_code.get(), 69);
    let described = broker.describe_consumers("g");
    assert_eq!((described.group_epoch, described.assignor_name.as_str()), (2, "uniform"));
    let members: Vec<_> = (described.members.iter())
        .map(|one| (one.member_id.as_str(), one.member_epoch, one.assignment == one.target_assignment))
        .collect();
    assert_eq!(members, [("a", 2, true), ("b", 2, true)]);
    assert_eq!(broker.describe_consumers("none").error_code.get(), 69);
}

#[test]
fn members_vote_for_an_assignor() {
    let mut broker = broker();
    let mut a = Consumer { assignor: Some("range"), ..Consumer::new("g", "a") };
    broker.settle_consumers(&mut [&mut a]);
    assert_eq!(&**roster(&broker).assignor(), "range");
    let mut others = [Consumer::new("g", "b"), Consumer::new("g", "c")];
    for other in &mut others {
        other.assignor = Some("uniform");
        broker.beat(other);
    }
    assert_eq!(&**roster(&broker).assignor(), "uniform");
}

#[test]
fn a_full_group_takes_no_more_members() {
    let mut broker = Broker::with(&[("group.consumer.max.size", "1")]);
    broker.topic("t", 4);
    let mut a = Consumer::named("g", "a", "one");
    assert_eq!(broker.beat(&mut a), 0);
    assert_eq!(broker.beat(&mut Consumer::new("g", "b")), 81);
    assert_eq!(broker.leave_consumer(&a, -2), 0);
    assert_eq!(broker.beat(&mut Consumer::named("g", "c", "one")), 0, "it takes a place that is its own");
}

/// What a member says of its epoch and of what it has, against what is known of it: in epoch 2, in epoch 1 before, with
/// partitions 0 and 1.
#[test]
fn every_epoch_and_every_claim_has_its_answer() {
    let owned = |broker: &Broker, indexes: &[i32]| {
        let topic_id = broker.state().catalog.topic("t").unwrap().id();
        let partitions = indexes.iter().map(|index| semel_types::PartitionIndex::new(*index)).collect();
        Some(vec![semel_wire::api::consumer_group_heartbeat::HeartbeatTopicPartitions {
            topic_id,
            partitions,
        }])
    };
    let claims: [(&str, Option<&[i32]>); 4] =
        [("nothing said", None), ("a part", Some(&[0])), ("all", Some(&[0, 1])), ("too much", Some(&[0, 3]))];
    // By epoch: the codes for the claims in this order.
    let table: [(i32, [i16; 4]); 5] = [
        (2, [0, 0, 0, 0]),
        (1, [110, 0, 0, 110]),
        (3, [110, 110, 110, 110]),
        (0, [42, 42, 42, 42]),
        (-3, [42, 42, 42, 42]),
    ];
    for (epoch, codes) in table {
        for ((what, indexes), due) in claims.iter().zip(codes) {
            let mut broker = broker();
            let mut a = Consumer::new("g", "a");
            broker.settle_consumers(&mut [&mut a]);
            let mut b = Consumer::new("g", "b");
            broker.settle_consumers(&mut [&mut a, &mut b]);
            assert_eq!((a.epoch, a.indexes()), (2, vec![0, 1]));
            let topic_partitions = indexes.and_then(|indexes| owned(&broker, indexes));
            let request =
                ConsumerGroupHeartbeatRequest { member_epoch: epoch, topic_partitions, ..a.idle_request() };
            let answer = broker.heartbeat_raw(&request);
            assert_eq!(answer.error_code.get(), due, "epoch {epoch}, {what}");
        }
    }
}
