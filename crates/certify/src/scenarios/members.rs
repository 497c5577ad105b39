//! Area `groups`: codes by which members of both protocols learn where they stand.

use semel_wire::{
    ApiKey, WireCode,
    api::{
        consumer_group_heartbeat::ConsumerGroupHeartbeatRequest, delete_groups::DeleteGroupsRequest,
        join_group::JoinGroupRequest,
    },
};

use crate::{
    Actor, Consumer, Member,
    Outcome::Commit,
    Probe, Scenario,
    actor::members::join_request,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[
    &JOIN,
    &KEPT_ID,
    &GENERATION,
    &REBALANCING,
    &STATIC,
    &EMPTY,
    &EPOCHS,
    &JOINING,
    &LOST_ANSWER,
    &STATIC_CONSUMER,
    &OFFSETS,
    &SHARED,
];

const JOIN: Scenario = Scenario {
    id: "G1-join",
    title: "JoinGroup that cannot be",
    promise: "A consumer that is set up wrongly is told what is wrong, and nobody else is disturbed.",
    source: "apache/kafka GroupMetadataManager; KIP-394",
    versions: "JoinGroup 3, 4",
    ..Scenario::kafka(Area::Groups, join)
};

fn join(probe: &mut Probe) -> Kept {
    let g = probe.group("g");
    let mut a = probe.actor("A")?;
    let good = join_request(&Member::new(&g));
    a.try_join("an empty group id", &JoinGroupRequest { group_id: "".into(), ..good.clone() }, 3).is(24)?;
    a.try_join("a short session", &JoinGroupRequest { session_timeout_ms: 1, ..good.clone() }, 3).is(26)?;
    a.try_join("an unknown member", &JoinGroupRequest { member_id: "who".into(), ..good.clone() }, 3)
        .is(25)?;
    a.try_join("no protocols", &JoinGroupRequest { protocols: Vec::new(), ..good.clone() }, 3).is(23)?;
    let member = a.join_alone(&Member::new(&g))?;
    let mut odd = good;
    odd.protocols[0].name = "nobody's".into();
    a.try_join("a protocol that nobody else has", &odd, 3).is(23)?;
    a.try_join("another kind of group", &JoinGroupRequest { protocol_type: "connect".into(), ..odd }, 3)
        .is(23)?;
    a.beat(&member).is(0)
}

impl Actor {
    /// Any JoinGroup, asked again while the coordinator is busy; gives the member id.
    fn try_join(&mut self, said: &str, request: &JoinGroupRequest, version: i16) -> crate::Answer<String> {
        let said = format!("JoinGroup: {said}");
        self.until_free(|actor| actor.ask(&said, request, version, |response| response.error_code))
            .map(|response| response.member_id.as_str().to_owned())
    }
}

const KEPT_ID: Scenario = Scenario {
    id: "G1-id",
    title: "a member id is given before it counts",
    promise: "A consumer whose first request is lost leaves no ghost in its group.",
    source: "KIP-394",
    basis: &[Basis::Kip],
    versions: "JoinGroup 4",
    ..Scenario::kafka(Area::Groups, kept_id)
};

fn kept_id(probe: &mut Probe) -> Kept {
    let g = probe.group("g");
    let mut a = probe.actor("A")?;
    let first = join_request(&Member::new(&g));
    let given = a.try_join("the first request", &first, 4).is(79)?;
    probe.holds(!given.is_empty(), "the member id of the answer", "one to come back with")?;
    let again = JoinGroupRequest { member_id: given.as_str().into(), ..first };
    let kept = a.try_join("with the id that was given", &again, 4).is(0)?;
    probe.same("the member id", kept, given)
}

const GENERATION: Scenario = Scenario {
    id: "G2-generation",
    title: "requests of another generation, or of nobody",
    promise: "A consumer that missed a rebalance is told so by every request, and moves no position.",
    source: "apache/kafka GroupMetadataManager, OffsetMetadataManager",
    versions: "Heartbeat 3, SyncGroup 3, LeaveGroup 3, OffsetCommit 7",
    ..Scenario::kafka(Area::Groups, generation)
};

fn generation(probe: &mut Probe) -> Kept {
    let (t, g, nowhere) = (probe.topic()?, probe.group("g"), probe.group("none"));
    let mut a = probe.actor("A")?;
    let member = a.join_alone(&Member::new(&g))?;
    for (who, code) in [
        (member.in_generation(member.generation + 1), 22),
        (member.in_generation(member.generation - 1), 22),
        (member.under("who"), 25),
        (Member { group: nowhere.clone(), ..member.clone() }, 25),
    ] {
        a.beat(&who).is(code)?;
        a.sync(&who, &[]).is(code)?;
        // A group that is not there has no generations.
        a.commit_as(&who, (&t, 7)).is(if who.group == nowhere { 22 } else { code })?;
    }
    // Without membership: only where there are no members.
    a.commit_as(&Member::new(&g), (&t, 7)).is(25)?;
    a.leave(&member.under("who")).is(25)?;
    a.group_stands_at(&g, &t, -1)?;
    a.commit_as(&member, (&t, 8)).is(0)?;
    a.group_stands_at(&g, &t, 8)?;
    a.leave(&member).is(0)?;
    a.beat(&member).is(25)?;
    a.commit_as(&Member::new(&g), (&t, 9)).is(0)?;
    a.group_stands_at(&g, &t, 9)
}

const REBALANCING: Scenario = Scenario {
    id: "G3-rebalancing",
    title: "requests while the group rebalances",
    promise: "A member may commit what it has done until its partitions are handed out anew.",
    source: "apache/kafka GroupMetadataManager, OffsetMetadataManager",
    versions: "Heartbeat 3, SyncGroup 3, OffsetCommit 7, TxnOffsetCommit 3",
    ..Scenario::kafka(Area::Groups, rebalancing)
};

fn rebalancing(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let (mut one, mut two, mut a) = (probe.actor("M1")?, probe.actor("M2")?, probe.actor("A")?);
    let me = a.init(&probe.id("x"))?;
    let old = one.join_alone(&Member::new(&g))?;
    let newcomer = Member::new(&g);
    two.send_join(&newcomer)?;
    one.until_not(&[0], |actor| actor.beat(&old)).is(27)?;
    // Joining: whoever had partitions still has them.
    one.sync(&old, &[]).is(27)?;
    one.commit_as(&old, (&t, 1)).is(0)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset_as(&me, &old, (&t, 2)).is(0)?;
    a.end(&me, Commit).is(0)?;
    let first = one.join(&old).is(0)?;
    let second = two.next_joined(&newcomer).is(0)?;
    // All have joined, nothing is handed out: the old generation is over, the new one has nothing to commit yet.
    one.commit_as(&old, (&t, 3)).is(22)?;
    one.commit_as(&first.member, (&t, 4)).is(27)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset_as(&me, &first.member, (&t, 5)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 5)?;
    let leader = if first.is_leader { &first } else { &second };
    let follower = if first.is_leader { &second } else { &first };
    let (leading, following) = if first.is_leader { (&mut one, &mut two) } else { (&mut two, &mut one) };
    let shares: Vec<_> = leader.all.iter().map(|id| (id.clone(), id.clone().into_bytes().into())).collect();
    let own = leading.sync(&leader.member, &shares).is(0)?;
    probe.same("the leader's share", own, leader.member.id.clone().into_bytes().into())?;
    let own = following.sync(&follower.member, &[]).is(0)?;
    probe.same("the other one's share", own, follower.member.id.clone().into_bytes().into())?;
    leading.beat(&leader.member).is(0)?;
    following.beat(&follower.member).is(0)
}

const STATIC: Scenario = Scenario {
    id: "G4-static",
    title: "a static member that comes back",
    promise: "An instance that restarts under its name takes its place without a rebalance; the one before is out.",
    source: "KIP-345",
    basis: &[Basis::Kip],
    versions: "JoinGroup 5, Heartbeat 3",
    ..Scenario::kafka(Area::Groups, comes_back)
};

fn comes_back(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut one = probe.actor("before")?;
    let before = one.join_alone(&Member::new(&g).named("i-1"))?;
    let mut two = probe.actor("after")?;
    let after = two.join(&Member::new(&g).named("i-1")).is(0)?.member;
    probe.same("the generation", after.generation, before.generation)?;
    probe.holds(after.id != before.id, "the member id", "a new one")?;
    let share = two.sync(&after, &[]).is(0)?;
    probe.same("its share", share, bytes::Bytes::from_static(b"all"))?;
    one.beat(&before).is(82)?;
    one.commit_as(&before, (&t, 1)).is(82)?;
    one.join(&before).is(82).map(|_| ())?;
    two.beat(&after).is(0)?;
    two.commit_as(&after, (&t, 2)).is(0)?;
    two.group_stands_at(&g, &t, 2)
}

const EMPTY: Scenario = Scenario {
    id: "G5-delete",
    title: "a group is deleted only when nobody is in it",
    promise: "An operator cannot delete the position of a group that is at work.",
    source: "apache/kafka GroupCoordinatorService.deleteGroups",
    versions: "DeleteGroups 2",
    ..Scenario::kafka(Area::Groups, empty)
};

fn empty(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    a.delete_group(&g).is(69)?;
    let member = a.join_alone(&Member::new(&g))?;
    a.commit_as(&member, (&t, 7)).is(0)?;
    a.delete_group(&g).is(68)?;
    a.group_stands_at(&g, &t, 7)?;
    a.leave(&member).is(0)?;
    a.delete_group(&g).is(0)?;
    a.group_stands_at(&g, &t, -1)
}

impl Actor {
    fn delete_group(&mut self, group: &str) -> crate::Answer<()> {
        let request = DeleteGroupsRequest { groups_names: vec![group.into()] };
        let answer = self.ask(&format!("DeleteGroups {group}"), &request, 2, |response| {
            response.results.first().map_or(WireCode(-1), |result| result.error_code)
        });
        answer.map(|_| ())
    }
}

const EPOCHS: Scenario = Scenario {
    id: "G6-epochs",
    title: "member epochs of a consumer group",
    promise: "A member that is not where its group is, learns it with its next heartbeat.",
    source: "KIP-848; apache/kafka GroupMetadataManager",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    ..Scenario::kafka(Area::Groups, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let joining = Consumer::new(&g, "member-1", &t);
    a.beat_consumer(&joining.at(1)).is(69)?;
    let joined = a.beat_consumer(&joining).is(0)?;
    probe.holds(joined.epoch > 0, &format!("the epoch {}", joined.epoch), "above 0")?;
    let me = joining.at(joined.epoch);
    a.beat_consumer(&me).is(0)?;
    a.beat_consumer(&me.at(joined.epoch + 1)).is(110)?;
    a.beat_consumer(&me.at(joined.epoch + 100)).is(110)?;
    a.beat_consumer(&me.under("member-2")).is(25)?;
    let left = a.beat_consumer(&me.at(-1)).is(0)?;
    probe.same("the epoch of who left", left.epoch, -1)?;
    a.beat_consumer(&me).is(25)?;
    a.beat_consumer(&me.at(-1)).is(25).map(|_| ())
}

const JOINING: Scenario = Scenario {
    id: "G6-joining",
    title: "a heartbeat that cannot be",
    promise: "A consumer that is set up wrongly is told what is wrong.",
    source: "KIP-848; apache/kafka GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    ..Scenario::kafka(Area::Groups, joining_wrongly)
};

fn joining_wrongly(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let whole = || Consumer::new(&g, "member-1", &t).whole_beat();
    let wrong: [(&str, i16, ConsumerGroupHeartbeatRequest); 9] = [
        ("no group id", 42, ConsumerGroupHeartbeatRequest { group_id: "".into(), ..whole() }),
        ("no member id", 42, ConsumerGroupHeartbeatRequest { member_id: "".into(), ..whole() }),
        ("no time to rebalance", 42, ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..whole() }),
        ("no partitions", 42, ConsumerGroupHeartbeatRequest { topic_partitions: None, ..whole() }),
        ("no topics", 42, ConsumerGroupHeartbeatRequest { subscribed_topic_names: None, ..whole() }),
        ("an empty rack", 42, ConsumerGroupHeartbeatRequest { rack_id: Some("".into()), ..whole() }),
        ("an empty instance", 42, ConsumerGroupHeartbeatRequest { instance_id: Some("".into()), ..whole() }),
        (
            "an unknown assignor",
            112,
            ConsumerGroupHeartbeatRequest { server_assignor: Some("mine".into()), ..whole() },
        ),
        (
            "a bad pattern",
            128,
            ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some("[".into()), ..whole() },
        ),
    ];
    for (what, code, request) in wrong {
        a.beat_as(what, &request).is(code)?;
    }
    let leaving = ConsumerGroupHeartbeatRequest { member_epoch: -2, ..whole() };
    a.beat_as("-2 without an instance id", &leaving).is(42)?;
    a.beat_as("all right", &whole()).is(0).map(|_| ())
}

const LOST_ANSWER: Scenario = Scenario {
    id: "G6-lost",
    title: "a heartbeat whose answer was lost",
    promise: "A member that did not hear of its new epoch is given it again, not fenced.",
    source: "KIP-848; apache/kafka GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    ..Scenario::kafka(Area::Groups, lost_answer)
};

fn lost_answer(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let joining = Consumer::new(&g, "member-1", &t[0]);
    let joined = a.beat_consumer(&joining).is(0)?;
    // The first answer was lost: joins again.
    let again = a.beat_consumer(&joining).is(0)?;
    probe.holds(again.epoch >= joined.epoch, "the epoch of the second answer", "not lower")?;
    let mut me = joining.at(again.epoch);
    let all = settle(probe, &mut a, &mut me, 2)?;
    // A second member makes a new epoch, in which the first one has to give a partition up.
    let mut b = probe.actor("B")?;
    let newcomer = Consumer::new(&g, "member-2", &t[0]);
    let second = b.beat_consumer(&newcomer).is(0)?;
    let mut told = Vec::new();
    probe.eventually("the first member is asked to give a partition up", || {
        let beaten = a.beat_with(&me, &all).is(0)?;
        told = beaten.assigned.unwrap_or_default();
        Ok(told.len() == 1)
    })?;
    let after = a.beat_with(&me, &told).is(0)?;
    probe.holds(after.epoch > me.epoch, "the epoch after it has given it up", "a higher one")?;
    // That answer was lost: the same again, in the epoch before.
    let repeated = a.beat_with(&me, &told).is(0)?;
    probe.same("the epoch of the repeated answer", repeated.epoch, after.epoch)?;
    // Whoever claims what it gave up, is out.
    a.beat_with(&me, &all).is(110)?;
    settle(probe, &mut b, &mut newcomer.at(second.epoch), 1).map(|_| ())
}

/// Heartbeats until the member has so many partitions; it joins with the first if it is in no epoch yet.
pub(super) fn settle(
    probe: &Probe,
    a: &mut Actor,
    me: &mut Consumer,
    count: usize,
) -> Kept<Vec<(semel_types::TopicId, i32)>> {
    let mut has = Vec::new();
    probe.eventually("the member has its share", || {
        let beaten = a.beat_with(me, &has).is(0)?;
        me.epoch = beaten.epoch;
        has = beaten.assigned.unwrap_or(std::mem::take(&mut has));
        Ok(has.len() == count)
    })?;
    Ok(has)
}

const STATIC_CONSUMER: Scenario = Scenario {
    id: "G6-static",
    title: "a static member of a consumer group that is away",
    promise: "An instance that restarts finds its share waiting; nobody takes a name that is in use.",
    source: "KIP-848; KIP-345",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    ..Scenario::kafka(Area::Groups, static_consumer)
};

fn static_consumer(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let joining = Consumer::new(&g, "member-1", &t[0]).named("i-1");
    let joined = a.beat_consumer(&joining).is(0)?;
    let mut me = joining.at(joined.epoch);
    let all = settle(probe, &mut a, &mut me, 2)?;
    let other = joining.under("member-2");
    a.beat_consumer(&other).is(111)?;
    let away = a.beat_consumer(&me.at(-2)).is(0)?;
    probe.same("the epoch of who will be back", away.epoch, -2)?;
    let back = a.beat_consumer(&other).is(0)?;
    probe.same("the epoch of who is back", back.epoch, me.epoch)?;
    probe.same("its share", back.assigned, Some(all))?;
    a.beat_consumer(&me).is_any(&[25, 82]).map(|_| ())
}

const OFFSETS: Scenario = Scenario {
    id: "G7-offsets",
    title: "positions under a member epoch",
    promise: "A consumer whose partitions are somebody else's by now moves no position, and reads none.",
    source: "KIP-848; KIP-447; apache/kafka OffsetMetadataManager",
    basis: &[Basis::Kip],
    versions: "OffsetCommit 9, OffsetFetch 9, TxnOffsetCommit 3",
    ..Scenario::kafka(Area::Groups, offsets)
};

fn offsets(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let joining = Consumer::new(&g, "member-1", &t);
    let joined = a.beat_consumer(&joining).is(0)?;
    let me = joining.at(joined.epoch);
    a.commit_in_epoch(&me, (&t, 1)).is(0)?;
    a.commit_in_epoch(&me.at(joined.epoch + 1), (&t, 2)).is(113)?;
    a.commit_in_epoch(&me.under("who"), (&t, 3)).is(25)?;
    probe.same("the position", a.fetch_in_epoch(&me, &t).is(0)?, 1)?;
    a.fetch_in_epoch(&me.at(joined.epoch + 1), &t).is(113)?;
    a.fetch_in_epoch(&me.under("who"), &t).is(25)?;
    let writer = a.init(&probe.id("x"))?;
    a.add_offsets(&writer, &g)?;
    let as_member = |epoch: i32, id: &str| Member { generation: epoch, ..Member::new(&g).under(id) };
    a.commit_offset_as(&writer, &as_member(joined.epoch + 1, "member-1"), (&t, 4)).is(22)?;
    a.commit_offset_as(&writer, &as_member(joined.epoch, "who"), (&t, 5)).is(25)?;
    a.commit_offset_as(&writer, &as_member(joined.epoch, "member-1"), (&t, 6)).is(0)?;
    a.end(&writer, Commit).is(0)?;
    a.group_stands_at(&g, &t, 6)
}

const SHARED: Scenario = Scenario {
    id: "G7-owners",
    title: "a partition has one owner at a time",
    promise: "A partition is given to the next member only when the one before has given it up.",
    source: "KIP-848",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    ..Scenario::kafka(Area::Groups, shared)
};

fn shared(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.partitions(4)?, probe.group("g"));
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let joining = Consumer::new(&g, "member-1", &t[0]);
    let mut first = joining.at(a.beat_consumer(&joining).is(0)?.epoch);
    let all = settle(probe, &mut a, &mut first, 4)?;
    let newcomer = Consumer::new(&g, "member-2", &t[0]);
    let joined = b.beat_consumer(&newcomer).is(0)?;
    let mut second = newcomer.at(joined.epoch);
    let mut kept = Vec::new();
    probe.eventually("the first member is asked to give partitions up", || {
        kept = a.beat_with(&first, &all).is(0)?.assigned.unwrap_or_default();
        Ok(kept.len() == 2)
    })?;
    // It still has all four: the newcomer has none.
    for _ in 0..5 {
        let beaten = b.beat_with(&second, &[]).is(0)?;
        second.epoch = beaten.epoch;
        probe.same("what the newcomer has", beaten.assigned.unwrap_or_default().len(), 0)?;
    }
    a.beat_with(&first, &kept).is(0)?;
    let given = settle(probe, &mut b, &mut second, 2)?;
    probe.holds(given.iter().all(|one| !kept.contains(one)), "what both have", "nothing in common")
}
