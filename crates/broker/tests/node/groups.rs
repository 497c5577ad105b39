//! Groups with members, classic protocol.

use semel_wire::{
    Text,
    api::{
        delete_groups::*, describe_groups::*, join_group::JoinGroupResponse, list_groups::*,
        offset_delete::*, txn_offset_commit::TxnOffsetCommitRequest,
    },
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker.topic("u", 1);
    broker
}

fn describe(broker: &mut Broker, group: &str) -> (String, Vec<String>) {
    let request = DescribeGroupsRequest { groups: vec![Text::from(group)], ..Default::default() };
    let on = broker.connect();
    let answer: DescribeGroupsResponse = broker.ask(on, 5, &request).answer();
    let group = &answer.groups[0];
    let members = group.members.iter().map(|member| member.member_id.as_str().to_owned());
    (group.group_state.as_str().to_owned(), members.collect())
}

fn txn_commit(broker: &mut Broker, version: i16, who: &Someone, offset: i64) -> i16 {
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    if version < 5 {
        assert_eq!(broker.add_offsets(on, 3, "tx", stamp, who.group), 0);
    }
    let request = TxnOffsetCommitRequest {
        generation_id_or_member_epoch: who.generation,
        member_id: Text::from(who.id.as_str()),
        group_instance_id: who.instance.map(Text::from),
        ..txn_offset_commit_request("tx", stamp, who.group, &[(T, offset)])
    };
    only(broker.ask_txn_offset_commit(on, version, &request))
}

#[test]
fn two_members_join_and_get_their_parts() {
    let mut broker = broker();
    let (a, b) = (broker.connect(), broker.connect());
    let (mut first, mut second) = (Someone::new("g"), Someone::new("g"));
    let join_a = broker.enter(a, &mut first);
    let join_b = broker.enter(b, &mut second);
    assert_eq!(broker.late::<JoinGroupResponse>(join_a), None, "the first rebalance waits for more members");
    assert_eq!(describe(&mut broker, "g").0, "PreparingRebalance");
    broker.pass(3000);
    broker.pass(3000);
    let leader = broker.joined(join_a, &mut first);
    let follower = broker.joined(join_b, &mut second);
    assert_eq!((leader.generation_id, follower.generation_id), (1, 1));
    assert_eq!(leader.leader.as_str(), first.id);
    assert_eq!(follower.leader.as_str(), first.id);
    assert_eq!(leader.protocol_name, Some(Text::from("range")));
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
    assert_eq!(&leader.members[0].metadata[..], &subscription(&["t"])[..]);
    let waits = broker.sync(b, &second, &[]);
    assert_eq!(broker.commit_as(&second, T, 1), 27, "nothing is assigned yet");
    let brings = broker.sync(a, &first, &[(&first.id, "left"), (&second.id, "right")]);
    assert_eq!(broker.synced_part(brings), (0, "left".to_owned()));
    assert_eq!(broker.synced_part(waits), (0, "right".to_owned()));
    assert_eq!(describe(&mut broker, "g").0, "Stable");
    assert_eq!(broker.heartbeat(&first), 0);
    assert_eq!(broker.commit_as(&second, T, 7), 0);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 7));
}

#[test]
fn a_third_member_makes_the_others_join_again() {
    let mut broker = broker();
    let mut members = broker.stable_group("g", 2);
    let third = broker.connect();
    let mut newcomer = Someone::new("g");
    let join = broker.enter(third, &mut newcomer);
    assert_eq!(broker.late::<JoinGroupResponse>(join), None);
    for (_, who) in &members {
        assert_eq!(broker.heartbeat(who), 27);
        assert_eq!(broker.commit_as(who, T, 5), 0, "what was read before may still be committed");
    }
    let again: Vec<_> = members.iter().map(|(on, who)| broker.join(*on, who)).collect();
    for (ticket, (_, who)) in again.into_iter().zip(&mut members) {
        let before = who.clone();
        let answer = broker.joined(ticket, who);
        assert_eq!(answer.generation_id, 2);
        assert_eq!(broker.heartbeat(&before), 22, "the old generation is over");
        assert_eq!(broker.commit_as(&before, T, 9), 22);
    }
    assert_eq!(broker.joined(join, &mut newcomer).generation_id, 2);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5));
}

#[test]
fn a_leader_that_falls_silent_is_removed_and_its_late_commit_refused() {
    let mut broker = broker();
    let mut members = broker.stable_group("g", 2);
    let (_, zombie) = members.remove(0);
    let (on, mut survivor) = members.remove(0);
    for _ in 0..4 {
        broker.pass(i64::from(SESSION_MS) / 3);
        broker.heartbeat(&survivor);
    }
    assert_eq!(broker.heartbeat(&survivor), 27);
    assert_eq!(broker.commit_as(&zombie, T, 100), 25);
    assert_eq!(txn_commit(&mut broker, 3, &zombie, 100), 25);
    let ticket = broker.join(on, &survivor);
    let answer = broker.joined(ticket, &mut survivor);
    assert_eq!((answer.generation_id, answer.leader.as_str()), (2, survivor.id.as_str()));
    assert_eq!(broker.heartbeat(&zombie), 25);
    assert_eq!(broker.offset_fetch("g", T, true), (0, -1));
}

#[test]
fn a_member_that_does_not_join_again_is_left_behind_at_the_rebalance_timeout() {
    let mut broker = broker();
    let mut members = broker.stable_group("g", 2);
    let (_, lazy) = members.remove(1);
    let (on, mut keen) = members.remove(0);
    let mut newcomer = Someone::new("g");
    let third = broker.connect();
    let join = broker.enter(third, &mut newcomer);
    let again = broker.join(on, &keen);
    for _ in 0..20 {
        broker.pass(i64::from(REBALANCE_MS) / 20);
        broker.heartbeat(&lazy);
    }
    assert_eq!(broker.joined(again, &mut keen).members.len(), 2);
    assert_eq!(broker.joined(join, &mut newcomer).generation_id, 2);
    assert_eq!(broker.heartbeat(&lazy), 25);
}

#[test]
fn a_member_that_never_asks_for_its_part_is_removed() {
    let mut broker = broker();
    let on = broker.connect();
    let mut who = Someone::new("g");
    let join = broker.enter(on, &mut who);
    broker.pass(3000);
    broker.joined(join, &mut who);
    for _ in 0..13 {
        broker.heartbeat(&who);
        broker.pass(i64::from(REBALANCE_MS) / 12);
    }
    assert_eq!(broker.heartbeat(&who), 25);
    assert_eq!(describe(&mut broker, "g"), ("Empty".to_owned(), vec![]));
}

#[test]
fn a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() {
    let mut broker = broker();
    let mut members =
        vec![(broker.connect(), Someone::named("g", "one")), (broker.connect(), Someone::named("g", "two"))];
    broker.settle_group(&mut members);
    for (at, version) in [(0, 5), (1, 5), (0, 9)] {
        let old = members[at].1.clone();
        let on = broker.connect();
        let mut new = Someone::named("g", old.instance.unwrap());
        let ticket = broker.join_in(on, version, &new);
        let answer = broker.joined(ticket, &mut new);
        assert_eq!(answer.generation_id, old.generation);
        assert_ne!(new.id, old.id);
        assert_eq!(answer.skip_assignment, version == 9 && at == 0);
        if version < 9 {
            assert_ne!(answer.leader.as_str(), new.id, "it has nothing to assign");
        }
        let ticket = broker.sync(on, &new, &[]);
        assert_eq!(broker.synced_part(ticket), (0, format!("p{at}")));
        assert_eq!(broker.heartbeat(&old), 82);
        assert_eq!(broker.commit_as(&old, T, 1), 82);
        assert_eq!(txn_commit(&mut broker, 3, &old, 1), 82);
        let ticket = broker.join(on, &old);
        assert_eq!(broker.late::<JoinGroupResponse>(ticket).unwrap().error_code.get(), 82);
        members[at] = (on, new);
    }
    for (_, who) in &members {
        assert_eq!(broker.heartbeat(who), 0);
    }
    broker.restart();
    for (_, who) in &members {
        assert_eq!(broker.heartbeat(who), 0);
    }
}

#[test]
fn members_carry_on_with_their_generation_after_a_restart() {
    let mut broker = broker();
    let members = broker.stable_group("g", 2);
    broker.pass(i64::from(SESSION_MS) - 1);
    broker.restart();
    broker.pass(i64::from(SESSION_MS) - 1);
    for (at, (on, who)) in members.iter().enumerate() {
        assert_eq!(broker.heartbeat(who), 0, "the session's time started anew");
        assert_eq!(broker.commit_as(who, T, 3), 0);
        let ticket = broker.sync(*on, who, &[]);
        assert_eq!(broker.synced_part(ticket), (0, format!("p{at}")));
    }
    assert_eq!(members[0].1.generation, 1);
    broker.pass(i64::from(SESSION_MS) / 2);
    assert_eq!(broker.heartbeat(&members[0].1), 0);
    broker.pass(i64::from(SESSION_MS) / 2 + 1);
    assert_eq!(broker.heartbeat(&members[0].1), 27, "the silent one is gone");
    assert_eq!(broker.commit_as(&members[1].1, T, 4), 25);
    broker.restart();
    assert_eq!(broker.commit_as(&members[1].1, T, 4), 25, "and stays so");
    assert_eq!(broker.heartbeat(&members[0].1), 27, "its part still belongs to nobody");
}

#[test]
fn a_restart_between_join_and_sync_keeps_the_generation() {
    let mut broker = broker();
    let on = broker.connect();
    let mut who = Someone::new("g");
    let join = broker.enter(on, &mut who);
    broker.pass(3000);
    broker.joined(join, &mut who);
    broker.restart();
    let on = broker.connect();
    let ticket = broker.sync(on, &who, &[(&who.id, "all")]);
    assert_eq!(broker.synced_part(ticket), (0, "all".to_owned()));
}

#[test]
fn b71_what_a_zombie_sends_with_a_transaction_is_refused() {
    let mut broker = broker();
    let mut members = broker.stable_group("g", 1);
    let old = members[0].1.clone();
    let on = broker.connect();
    let mut newcomer = Someone::new("g");
    let join = broker.enter(on, &mut newcomer);
    let again = broker.join(members[0].0, &members[0].1);
    broker.joined(again, &mut members[0].1);
    broker.joined(join, &mut newcomer);
    for version in 3..=5 {
        assert_eq!(txn_commit(&mut broker, version, &old, 50), 22, "an old generation");
        let nobody = Someone { id: "nobody".to_owned(), ..newcomer.clone() };
        assert_eq!(txn_commit(&mut broker, version, &nobody, 50), 25);
        assert_eq!(txn_commit(&mut broker, version, &newcomer, 7), 0, "taken while assignments are awaited");
        assert_eq!(txn_commit(&mut broker, version, &Someone::new("g"), 8), 0, "no group metadata at all");
    }
    broker.pass(60_001);
    assert_eq!(broker.offset_fetch("g", T, true), (0, -1), "nothing of it is pending");
}

#[test]
fn kip_394_by_version() {
    for (version, comes_back) in [(0, false), (3, false), (4, true), (9, true)] {
        let mut broker = broker();
        let on = broker.connect();
        let ticket = broker.join_in(on, version, &Someone::new("g"));
        let answer: Option<JoinGroupResponse> = broker.late(ticket);
        assert_eq!(answer.map(|answer| answer.error_code.get()), comes_back.then_some(79), "{version}");
        broker.pass(3000);
        let is_in = broker.late::<JoinGroupResponse>(ticket).is_some();
        assert_eq!(is_in, !comes_back, "{version}");
    }
}

#[test]
fn joins_are_refused_as_kafka_refuses_them() {
    let mut broker = Broker::with(&[("group.max.size", "2")]);
    broker.topic("t", 1);
    let members = broker.stable_group("g", 2);
    let on = broker.connect();
    let range: &[u8] = &subscription(&["t"]);
    let mut code = |change: &dyn Fn(&mut semel_wire::api::join_group::JoinGroupRequest)| {
        let mut request = join_request(&Someone::new("g"), &[("range", range)]);
        change(&mut request);
        let ticket = broker.park(on, 9, &request);
        broker.late::<JoinGroupResponse>(ticket).map(|answer| answer.error_code.get())
    };
    assert_eq!(code(&|request| request.group_id = Text::EMPTY), Some(24));
    assert_eq!(code(&|request| request.session_timeout_ms = 5999), Some(26));
    assert_eq!(code(&|request| request.session_timeout_ms = 1_800_001), Some(26));
    assert_eq!(code(&|_| ()), Some(81), "group.max.size");
    let known = Text::from(members[0].1.id.as_str());
    let other = |request: &mut semel_wire::api::join_group::JoinGroupRequest| {
        request.member_id = known.clone();
        request.protocols[0].name = Text::from("mine");
    };
    assert_eq!(code(&other), Some(23));
    let connect = |request: &mut semel_wire::api::join_group::JoinGroupRequest| {
        request.member_id = known.clone();
        request.protocol_type = Text::from("connect");
    };
    assert_eq!(code(&connect), Some(23));
    assert_eq!(code(&|request| request.group_id = Text::from("h")), Some(79));
    let unknown = |request: &mut semel_wire::api::join_group::JoinGroupRequest| {
        request.group_id = Text::from("h");
        request.member_id = Text::from("who");
    };
    assert_eq!(code(&unknown), Some(25));
    let large = |request: &mut semel_wire::api::join_group::JoinGroupRequest| {
        request.group_id = Text::from("h");
        request.protocols[0].metadata = vec![0; 3 << 20].into();
    };
    assert_eq!(code(&large), Some(81), "a generation's bytes");
}

#[test]
fn the_protocol_that_most_members_like_best_is_chosen() {
    let mut broker = broker();
    let likes: [&[&str]; 3] = [&["range", "sticky"], &["sticky", "range"], &["sticky", "other", "range"]];
    let tickets = likes.map(|names| {
        let on = broker.connect();
        let protocols: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, &b""[..])).collect();
        broker.park(on, 3, &join_request(&Someone::new("g"), &protocols))
    });
    broker.pass(6000);
    for ticket in tickets {
        let answer: JoinGroupResponse = broker.late(ticket).unwrap();
        assert_eq!(answer.protocol_name.unwrap().as_str(), "sticky");
    }
}

#[test]
fn the_first_rebalance_is_put_off_while_members_come() {
    let mut broker = broker();
    let tickets: Vec<_> = (0..4)
        .map(|_| {
            broker.pass(2000);
            let on = broker.connect();
            broker.join_in(on, 3, &Someone::new("g"))
        })
        .collect();
    for ticket in &tickets {
        assert_eq!(broker.late::<JoinGroupResponse>(*ticket), None);
    }
    broker.pass(6000);
    let answers = tickets.iter().map(|ticket| broker.late::<JoinGroupResponse>(*ticket).unwrap());
    assert!(answers.into_iter().all(|answer| answer.generation_id == 1));
}

#[test]
fn members_leave_one_by_one_and_together() {
    let mut broker = broker();
    let members = broker.stable_group("g", 3);
    let nobody = Someone { id: "nobody".to_owned(), ..Someone::new("g") };
    assert_eq!(broker.leave("g", &[&members[0].1, &nobody, &members[0].1]), [0, 25, 25]);
    assert_eq!(broker.commit_as(&members[0].1, T, 1), 25);
    assert_eq!(broker.heartbeat(&members[1].1), 27);
    assert_eq!(broker.leave("g", &[&members[1].1, &members[2].1]), [0, 0]);
    assert_eq!(describe(&mut broker, "g"), ("Empty".to_owned(), vec![]));
    assert_eq!(broker.leave("unknown", &[&nobody]), [25]);
    let again = broker.stable_group("g", 1);
    assert_eq!(again[0].1.generation, 3, "the generation rises over an empty group");
}

#[test]
fn a_join_whose_connection_closes_waits_no_more() {
    let mut broker = broker();
    let members = broker.stable_group("g", 1);
    let gone = broker.connect();
    broker.enter(gone, &mut Someone::new("g"));
    broker.close(gone);
    let (on, mut who) = members.into_iter().next().unwrap();
    let ticket = broker.join(on, &who);
    let answer = broker.joined(ticket, &mut who);
    assert_eq!(answer.members.len(), 1, "the group does not wait for, or name, a member that nobody is");
}

#[test]
fn groups_are_listed_deleted_and_their_offsets_too() {
    let mut broker = broker();
    let members = broker.stable_group("g", 1);
    let on = broker.connect();
    for (group, place) in [("plain", T), ("plain", ("u", 0))] {
        assert_eq!(broker.offset_commit(on, group, place, 4), 0);
    }
    assert_eq!(broker.commit_as(&members[0].1, ("u", 0), 4), 0);
    let list = |broker: &mut Broker, states: &[&str]| {
        let states_filter = states.iter().map(|state| Text::from(*state)).collect();
        let request = ListGroupsRequest { states_filter, ..Default::default() };
        let answer: ListGroupsResponse = broker.ask(on, 5, &request).answer();
        let groups = answer.groups.iter().map(|group| group.group_id.as_str().to_owned());
        groups.collect::<Vec<_>>()
    };
    assert_eq!(list(&mut broker, &[]), ["g", "plain"]);
    assert_eq!(list(&mut broker, &["stable"]), ["g"]);
    assert_eq!(list(&mut broker, &["Empty", "Dead"]), ["plain"]);

    let mut forget = |group: &str, topic: &str| {
        let partitions = vec![OffsetDeleteRequestPartition::default()];
        let topics = vec![OffsetDeleteRequestTopic { name: Text::from(topic), partitions }];
        let request = OffsetDeleteRequest { group_id: Text::from(group), topics };
        let answer: OffsetDeleteResponse = broker.ask(on, 0, &request).answer();
        let of_one = answer.topics.first().map(|topic| topic.partitions[0].error_code.get());
        (answer.error_code.get(), of_one)
    };
    assert_eq!(forget("g", "t"), (0, Some(86)), "a member reads it");
    assert_eq!(forget("g", "u"), (0, Some(0)));
    assert_eq!(forget("plain", "nowhere"), (0, Some(3)));
    assert_eq!(forget("plain", "t"), (0, Some(0)));
    assert_eq!(forget("unknown", "t"), (69, None));
    assert_eq!(broker.offset_fetch("g", ("u", 0), true), (0, -1));
    assert_eq!(broker.offset_fetch("plain", T, true), (0, -1));
    assert_eq!(broker.offset_fetch("plain", ("u", 0), true), (0, 4));

    let groups_names = ["g", "plain", "unknown"].map(Text::from).to_vec();
    let answer: DeleteGroupsResponse = broker.ask(on, 2, &DeleteGroupsRequest { groups_names }).answer();
    let codes: Vec<_> = answer.results.iter().map(|result| result.error_code.get()).collect();
    assert_eq!(codes, [68, 0, 69]);
    broker.restart();
    assert_eq!(list(&mut broker, &[]), ["g"]);
    assert_eq!(broker.offset_fetch("plain", ("u", 0), true), (0, -1));
}

#[test]
fn a_group_with_offsets_of_an_open_transaction_is_not_deleted() {
    let mut broker = broker();
    assert_eq!(txn_commit(&mut broker, 3, &Someone::new("g"), 5), 0);
    let on = broker.connect();
    let request = DeleteGroupsRequest { groups_names: vec![Text::from("g")] };
    let answer: DeleteGroupsResponse = broker.ask(on, 2, &request).answer();
    assert_eq!(answer.results[0].error_code.get(), 68);
}

/// State of the group, by standing of whoever asks, by request: the whole table.
#[test]
fn every_request_in_every_state_by_everybody() {
    // Heartbeat, OffsetCommit, TxnOffsetCommit 3, SyncGroup (`None`: it waits).
    type Row = (&'static str, &'static str, [Option<i16>; 4]);
    const TABLE: &[Row] = &[
        ("Stable", "member", [Some(0), Some(0), Some(0), Some(0)]),
        ("Stable", "old generation", [Some(22), Some(22), Some(22), Some(22)]),
        ("Stable", "stranger", [Some(25), Some(25), Some(25), Some(25)]),
        ("Stable", "nobody", [Some(25), Some(25), Some(0), Some(25)]),
        ("Stable", "other instance", [Some(25), Some(25), Some(25), Some(25)]),
        ("PreparingRebalance", "member", [Some(27), Some(0), Some(0), Some(27)]),
        ("PreparingRebalance", "old generation", [Some(22), Some(22), Some(22), Some(22)]),
        ("PreparingRebalance", "stranger", [Some(25), Some(25), Some(25), Some(25)]),
        ("PreparingRebalance", "nobody", [Some(25), Some(25), Some(0), Some(25)]),
        ("CompletingRebalance", "member", [Some(0), Some(27), Some(0), None]),
        ("CompletingRebalance", "old generation", [Some(22), Some(22), Some(22), Some(22)]),
        ("CompletingRebalance", "stranger", [Some(25), Some(25), Some(25), Some(25)]),
        ("CompletingRebalance", "nobody", [Some(25), Some(25), Some(0), Some(25)]),
        ("Empty", "member", [Some(25), Some(25), Some(25), Some(25)]),
        ("Empty", "nobody", [Some(25), Some(0), Some(0), Some(25)]),
        ("Dead", "member", [Some(25), Some(22), Some(22), Some(25)]),
        ("Dead", "nobody", [Some(25), Some(0), Some(0), Some(25)]),
    ];
    for (state, standing, due) in TABLE {
        for (request, due) in due.iter().enumerate() {
            let (mut broker, member) = group_in(state);
            assert_eq!(describe(&mut broker, "g").0, *state);
            let who = match *standing {
                "member" => member,
                "old generation" => Someone { generation: member.generation - 1, ..member },
                "stranger" => Someone { id: "stranger".to_owned(), ..member },
                "other instance" => Someone { instance: Some("other"), ..member },
                _ => Someone::new("g"),
            };
            let found = match request {
                0 => Some(broker.heartbeat(&who)),
                1 => Some(broker.commit_as(&who, T, 1)),
                2 => Some(txn_commit(&mut broker, 3, &who, 1)),
                _ => {
                    let on = broker.connect();
                    let ticket = broker.sync(on, &who, &[]);
                    let answer: Option<semel_wire::api::sync_group::SyncGroupResponse> = broker.late(ticket);
                    answer.map(|answer| answer.error_code.get())
                }
            };
            assert_eq!(found, *due, "{state}, {standing}, request {request}");
        }
    }
}

/// A group in this state, with a member that follows; in Empty and Dead one that was.
fn group_in(state: &str) -> (Broker, Someone) {
    let mut broker = broker();
    if state == "Dead" {
        let who = Someone { id: "was".to_owned(), generation: 1, ..Someone::new("g") };
        return (broker, who);
    }
    let mut members = broker.stable_group("g", 2);
    match state {
        "PreparingRebalance" => {
            let on = broker.connect();
            broker.enter(on, &mut Someone::new("g"));
        }
        "CompletingRebalance" => {
            let on = broker.connect();
            let mut third = Someone::new("g");
            broker.enter(on, &mut third);
            let again: Vec<_> = members.iter().map(|(on, who)| broker.join(*on, who)).collect();
            for (ticket, (_, who)) in again.into_iter().zip(&mut members) {
                broker.joined(ticket, who);
            }
        }
        "Empty" => {
            assert_eq!(broker.leave("g", &[&members[0].1, &members[1].1]), [0, 0]);
        }
        _ => {}
    }
    (broker, members[1].1.clone())
}

/// Two members copy with offsets in transactions while a third comes and goes: whatever they send in between gets a
/// code that ends the transaction and no more, and each goes on with its identity.
#[test]
fn b88_a_rebalance_never_turns_into_a_fatal_error() {
    for version in [3, 5] {
        let mut broker = broker();
        let mut members = broker.stable_group("g", 2);
        let on = broker.connect();
        let mut stamp = broker.init(on, "tx", 60_000);
        let mut committed = 0;
        for round in 0..6 {
            let mut third = (broker.connect(), Someone::new("g"));
            let before = members[0].1.generation;
            broker.enter(third.0, &mut third.1);
            let while_joining = send_offsets(&mut broker, version, on, &mut stamp, &members[0].1, round);
            assert!([0, 22, 25, 27].contains(&while_joining), "{while_joining}");
            members.push(third);
            broker.settle_group(&mut members);
            let zombie = Someone { generation: before, ..members[0].1.clone() };
            assert_eq!(send_offsets(&mut broker, version, on, &mut stamp, &zombie, 99), 22);
            let (_, third) = members.pop().unwrap();
            assert_eq!(broker.leave("g", &[&third]), [0]);
            assert_eq!(send_offsets(&mut broker, version, on, &mut stamp, &third, 98), 25, "it has left");
            let while_leaving = send_offsets(&mut broker, version, on, &mut stamp, &members[0].1, round);
            assert!([0, 22, 25, 27].contains(&while_leaving), "{while_leaving}");
            broker.settle_group(&mut members);
            assert_eq!(send_offsets(&mut broker, version, on, &mut stamp, &members[0].1, 10 + round), 0);
            committed = 10 + round;
        }
        assert_eq!(broker.offset_fetch("g", T, true), (0, committed));
    }
}

/// One transaction of offsets alone: committed if the group takes them, else aborted; the code of the offsets. Either
/// way the producer goes on.
#[track_caller]
fn send_offsets(
    broker: &mut Broker,
    version: i16,
    on: semel_types::ConnectionNumber,
    stamp: &mut semel_types::ProducerStamp,
    who: &Someone,
    offset: i64,
) -> i16 {
    if version < 5 {
        assert_eq!(broker.add_offsets(on, 3, "tx", *stamp, who.group), 0);
    }
    let request = TxnOffsetCommitRequest {
        generation_id_or_member_epoch: who.generation,
        member_id: Text::from(who.id.as_str()),
        ..txn_offset_commit_request("tx", *stamp, who.group, &[(T, offset)])
    };
    let code = only(broker.ask_txn_offset_commit(on, version, &request));
    if version < 5 {
        assert_eq!(broker.end_raw(on, 3, "tx", *stamp, code == 0).answer().error_code.get(), 0);
    } else if code == 0 {
        let ended = broker.end_raw(on, 5, "tx", *stamp, true).answer();
        assert_eq!(ended.error_code.get(), 0);
        *stamp = pair(ended.producer_id, ended.producer_epoch);
    }
    code
}
