//! Promises that nobody else's scenario holds a broker to, found by faults that the suite did not notice
//! (`docs/certify/mutations.md`).

use bytes::Bytes;
use semel_types::PartitionIndex;
use semel_wire::{
    ApiKey, RawLeaderEpoch, RawOffset, WireCode,
    api::{
        consumer_group_describe::ConsumerGroupDescribeRequest,
        describe_groups::DescribeGroupsRequest,
        fetch::{FetchPartition, FetchRequest, FetchTopic},
        join_group::JoinGroupRequest,
    },
};

use super::members::settle;
use crate::{
    Actor, Consumer, Member,
    Outcome::{Abort, Commit},
    Probe, Scenario,
    actor::members::join_request,
    scenario::{Area, Basis, Kept, Needs},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&M1, &M2, &M3, &M4, &M5, &M6, &M7, &M8, &M9, &M10, &M11, &M12, &M13];

const M1: Scenario = Scenario {
    id: "M1",
    title: "the epoch in a marker, version 2",
    promise: "Whoever reads a log can tell which batches of a producer came before a marker and which after it.",
    source: "KIP-890; KIP-1228",
    basis: &[Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Markers, m1)
};

fn m1(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let mut me = a.init(&probe.id("x"))?;
    for outcome in [Commit, Abort] {
        a.produce_when_free(&t, &me, 0, &["a"]).is(0)?;
        let next = a.end(&me, outcome).is(0)?;
        a.settles(&t)?;
        let marker = a.dump(&t)?.pop();
        let seen = marker.map(|marker| (marker.attributes().is_control(), marker.raw_producer_epoch().0));
        probe.same("the last batch: a marker, and its epoch", seen, Some((true, me.epoch() + 1)))?;
        me = next;
    }
    Ok(())
}

const M2: Scenario = Scenario {
    id: "M2",
    title: "a generation has one leader",
    promise: "Two consumers never read one partition for one group because both divided it up.",
    source: "kafka.coordinator.group",
    versions: "JoinGroup 3",
    ..Scenario::kafka(Area::Groups, m2)
};

fn m2(probe: &mut Probe) -> Kept {
    let g = probe.group("g");
    let (mut one, mut two) = (probe.actor("M1")?, probe.actor("M2")?);
    let old = one.join_alone(&Member::new(&g))?;
    two.send_join(&Member::new(&g))?;
    one.until_not(&[0], |actor| actor.beat(&old)).is(27)?;
    let joined = [one.join(&old).is(0)?, two.next_joined(&Member::new(&g)).is(0)?];
    let leaders = joined.iter().filter(|one| one.is_leader).count();
    probe.same("members that are told to lead", leaders, 1)
}

/// Sessions may be short; those of the protocols whose members do not say how long are.
pub(super) const SHORT_SESSIONS: &[(&str, &str)] = &[
    ("group.min.session.timeout.ms", "500"),
    ("group.consumer.min.heartbeat.interval.ms", "100"),
    ("group.consumer.heartbeat.interval.ms", "100"),
    ("group.consumer.min.session.timeout.ms", "500"),
    ("group.consumer.session.timeout.ms", "500"),
    ("group.streams.min.heartbeat.interval.ms", "100"),
    ("group.streams.heartbeat.interval.ms", "100"),
    ("group.streams.min.session.timeout.ms", "500"),
    ("group.streams.session.timeout.ms", "500"),
];

const M3: Scenario = Scenario {
    id: "M3",
    title: "a member that is silent for longer than its session",
    promise: "The partitions of a consumer that hangs are given to others.",
    source: "kafka.coordinator.group",
    versions: "JoinGroup 3",
    needs: Needs::Settings(SHORT_SESSIONS),
    ..Scenario::kafka(Area::Groups, m3)
};

fn m3(probe: &mut Probe) -> Kept {
    let g = probe.group("g");
    let mut silent = probe.actor("silent")?;
    let request = JoinGroupRequest { session_timeout_ms: 500, ..join_request(&Member::new(&g)) };
    let answer = silent.until_free(|actor| {
        actor.ask("JoinGroup with a session of 500 ms", &request, 3, |response| response.error_code)
    });
    let joined = answer.is(0)?;
    let id = joined.member_id.as_str().to_owned();
    let member = Member { generation: joined.generation_id, id, ..Member::new(&g) };
    silent.sync(&member, &[(member.id.clone(), Bytes::from_static(b"all"))]).is(0)?;
    let mut other = probe.actor("other")?;
    let request = DescribeGroupsRequest { groups: vec![g.as_str().into()], ..Default::default() };
    probe.eventually("no members", || {
        let answer = other.ask("DescribeGroups", &request, 4, |response| {
            response.groups.first().map_or(WireCode(-1), |group| group.error_code)
        });
        Ok(answer.is(0)?.groups.iter().all(|group| group.members.is_empty()))
    })?;
    silent.beat(&member).is(25)
}

const M4: Scenario = Scenario {
    id: "M4",
    title: "the members of a group after a kill of the broker",
    promise: "Consumers go on after a restart of the broker with the partitions they had.",
    source: "kafka.coordinator.group",
    versions: "SyncGroup 3",
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Groups, m4)
};

fn m4(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let member = probe.actor("M1")?.join_alone(&Member::new(&g))?;
    probe.kill()?;
    probe.restart()?;
    let mut again = probe.actor("M1 again")?;
    let share = again.until_free(|actor| actor.sync(&member, &[])).is(0)?;
    probe.same("what it has", share, Bytes::from_static(b"all"))?;
    again.commit_as(&member, (&t, 3)).is(0)?;
    again.group_stands_at(&g, &t, 3)
}

const M5: Scenario = Scenario {
    id: "M5",
    title: "a position committed while a transaction holds an older one",
    promise: "A position that was set by hand is not undone by a transaction that sent its own before.",
    source: "KAFKA-8569; kafka.coordinator.group.OffsetMetadataManager",
    ..Scenario::kafka(Area::Groups, m5)
};

fn m5(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 5)).is(0)?;
    probe.actor("operator")?.commit_group_offset(&g, (&t, 9)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 9)
}

const M6: Scenario = Scenario {
    id: "M6",
    title: "offsets of an open transaction across a kill of the broker",
    promise: "Input is neither read twice nor skipped because the broker was killed before the commit.",
    source: "KIP-98",
    basis: &[Basis::Kip],
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Recovery, m6)
};

fn m6(probe: &mut Probe) -> Kept {
    let (t, g, h) = (probe.topic()?, probe.group("g"), probe.group("h"));
    let mut a = probe.actor("A")?;
    let (me, other) = (a.init(&probe.id("x"))?, a.init(&probe.id("y"))?);
    for (who, group) in [(&me, &g), (&other, &h)] {
        a.add_offsets(who, group)?;
        a.commit_offset(who, group, (&t, 5)).is(0)?;
    }
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    let open = a.until_seen(&g, &t)?;
    probe.same("a stable position of an open transaction", open, 88)?;
    a.end(&me, Commit).is(0)?;
    a.end(&other, Abort).is(0)?;
    a.group_stands_at(&g, &t, 5)?;
    a.group_stands_at(&h, &t, -1)
}

impl Actor {
    /// The code of a stable OffsetFetch, once the group is loaded.
    fn until_seen(&mut self, group: &str, place: &Place) -> Kept<i16> {
        loop {
            let seen = self.group_offset(group, place, true)?;
            if !matches!(seen.code, 14..=16) {
                return Ok(seen.code);
            }
        }
    }
}

const M7: Scenario = Scenario {
    id: "M7",
    title: "a reader with the leader epoch of another time",
    promise: "A consumer that knows another leader than the broker asks again before it reads what may be gone.",
    source: "KIP-320",
    basis: &[Basis::Kip],
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, m7)
};

fn m7(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    a.produce_plain(&t, &["a"]).is_stored_at(0)?;
    let partition = FetchPartition {
        partition: PartitionIndex::new(t.index),
        current_leader_epoch: RawLeaderEpoch(1_000_000),
        fetch_offset: RawOffset(0),
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topics = vec![FetchTopic {
        topic: t.topic.as_str().into(),
        partitions: vec![partition],
        ..Default::default()
    }];
    let request = FetchRequest { topics, ..Default::default() };
    let answer = a.ask("Fetch with leader epoch 1000000", &request, 12, |response| {
        let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
        partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
    });
    answer.is(75).map(|_| ())
}

const M8: Scenario = Scenario {
    id: "M8",
    title: "records that were deleted are gone",
    promise: "What an application deleted, say for the sake of somebody's rights, nobody reads any more.",
    source: "KIP-107",
    basis: &[Basis::Kip],
    versions: "DeleteRecords 1, Fetch 12",
    ..Scenario::kafka(Area::Admin, m8)
};

fn m8(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    for (offset, value) in [(0, "a"), (1, "b"), (2, "c")] {
        a.produce_plain(&t, &[value]).is_stored_at(offset)?;
    }
    let start = a.delete_records(&t, 2).is(0)?;
    probe.same("where the log starts", start, 2)?;
    let seen = a.fetch(&t, 1, Isolation::Uncommitted)?.error_code.get();
    probe.same("Fetch of a deleted record", seen, 1)?;
    a.produce_plain(&t, &["d"]).is_stored_at(3)
}

const M9: Scenario = Scenario {
    id: "M9",
    title: "a late copy of Produce",
    promise: "A record of an aborted transaction that the network held back does not land in the next one.",
    source: "the connection rule: Produce (S6 and S7 for the coordinator)",
    ..Scenario::stricter(Area::Coordinator, "0, and the record is committed with the next transaction", m9)
};

fn m9(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let mut left = probe.actor("the connection that was left")?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for (sequence, outcome) in [(0, Abort), (1, Commit)] {
        a.add(&me, &[&t[0], &t[1]])?;
        a.produce_when_free(&t[0], &me, sequence, &["a"]).is(0)?;
        if outcome == Commit {
            left.produce(&t[1], &me, 0, &["late"]).is_cut()?;
        }
        a.end(&me, outcome).is(0)?;
    }
    a.reads(&t[0], &["a"])?;
    a.reads(&t[1], &[])
}

const M10: Scenario = Scenario {
    id: "M10",
    title: "a retry of EndTxn after somebody else has taken the id, version 2",
    promise: "An instance that lost the answer to its commit does not go on under its successor's identity.",
    source: "KIP-890",
    basis: &[Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Fencing, m10)
};

fn m10(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?.version_2();
    let me = a.init(&id)?;
    a.produce_when_free(&t, &me, 0, &["a"]).is(0)?;
    a.end(&me, Commit).is(0)?;
    probe.actor("B")?.version_2().init(&id)?;
    a.end(&me, Commit).is(90)?;
    a.reads(&t, &["a"])
}

const M11: Scenario = Scenario {
    id: "M11",
    title: "a member of a consumer group that is silent for longer than its session",
    promise: "The partitions of a consumer that hangs are given to others.",
    source: "KIP-848",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    needs: Needs::Settings(SHORT_SESSIONS),
    ..Scenario::kafka(Area::Groups, m11)
};

fn m11(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let (mut silent, mut other) = (probe.actor("silent")?, probe.actor("other")?);
    let joining = Consumer::new(&g, "member-1", &t);
    let me = joining.at(silent.beat_consumer(&joining).is(0)?.epoch);
    probe.eventually("no members", || Ok(other.members_of(&g)?.is_empty()))?;
    silent.beat_consumer(&me).is(25).map(|_| ())
}

const M12: Scenario = Scenario {
    id: "M12",
    title: "the members of a consumer group after a kill of the broker",
    promise: "Consumers go on after a restart of the broker in the epoch and with the partitions they had.",
    source: "KIP-848",
    basis: &[Basis::Kip],
    versions: "ConsumerGroupHeartbeat 1",
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Groups, m12)
};

fn m12(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let mut me = Consumer::new(&g, "member-1", &t);
    let all = settle(probe, &mut a, &mut me, 1)?;
    probe.kill()?;
    probe.restart()?;
    let mut again = probe.actor("A again")?;
    let beaten = again.beat_with(&me, &all).is(0)?;
    probe.same("its epoch", beaten.epoch, me.epoch)?;
    probe.same("its members", again.members_of(&g)?, vec!["member-1".to_owned()])?;
    again.commit_in_epoch(&me, (&t, 3)).is(0)?;
    again.group_stands_at(&g, &t, 3)
}

const M13: Scenario = Scenario {
    id: "M13",
    title: "a position of a partition that is somebody else's by now",
    promise: "A consumer that was slow does not put the position of its successor back.",
    source: "KIP-848; KIP-1251",
    basis: &[Basis::Kip],
    versions: "OffsetCommit 9, TxnOffsetCommit 3",
    ..Scenario::kafka(Area::Groups, m13)
};

fn m13(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let mut old = Consumer::new(&g, "member-1", &t[0]);
    let all = settle(probe, &mut a, &mut old, 2)?;
    let mut second = Consumer::new(&g, "member-2", &t[0]);
    second.epoch = b.beat_consumer(&second).is(0)?.epoch;
    let mut kept = Vec::new();
    probe.eventually("the first member is asked to give a partition up", || {
        kept = a.beat_with(&old, &all).is(0)?.assigned.unwrap_or_default();
        Ok(kept.len() == 1)
    })?;
    a.beat_with(&old, &kept).is(0)?;
    let given = settle(probe, &mut b, &mut second, 1)?;
    let gone = given.iter().find_map(|(_, index)| t.iter().find(|place| place.index == *index));
    let Some(gone) = gone else { return probe.holds(false, "what the second one has", "a partition") };
    b.commit_in_epoch(&second, (gone, 7)).is(0)?;
    a.commit_in_epoch(&old, (gone, 1)).is(113)?;
    let writer = a.init(&probe.id("x"))?;
    a.add_offsets(&writer, &g)?;
    let as_member = Member { generation: old.epoch, ..Member::new(&g).under(&old.id) };
    a.commit_offset_as(&writer, &as_member, (gone, 2)).is(22)?;
    a.end(&writer, Abort).is(0)?;
    a.group_stands_at(&g, gone, 7)
}

impl Actor {
    /// The ids of a consumer group's members.
    fn members_of(&mut self, group: &str) -> Kept<Vec<String>> {
        let request = ConsumerGroupDescribeRequest { group_ids: vec![group.into()], ..Default::default() };
        let answer = self.until_free(|actor| {
            actor.ask("ConsumerGroupDescribe", &request, 0, |response| {
                response.groups.first().map_or(WireCode(-1), |group| group.error_code)
            })
        });
        let members = answer.is(0)?.groups.into_iter().flat_map(|group| group.members);
        Ok(members.map(|member| member.member_id.as_str().to_owned()).collect())
    }
}
