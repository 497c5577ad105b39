//! Area `groups`: a group's position is that of the transactions that were committed, and only members move it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, WireCode,
    api::{
        offset_fetch::OffsetFetchRequest,
        txn_offset_commit::{TxnOffsetCommitPartition, TxnOffsetCommitRequest, TxnOffsetCommitTopic},
    },
};

use crate::{
    Actor, Failure, GroupOffset, Member,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::offset_commit_request,
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

use super::markers::QUICK_SWEEP;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B68, &B69, &B69K, &B71, &B71S, &B72, &B75, &B76, &B76V2];

const B68: Scenario = Scenario {
    id: "B68",
    title: "offsets of an open transaction: who sees what",
    promise: "A position that is not committed yet is not given to anybody, and the one before it is never lost.",
    source: "confluentinc/confluent-kafka-go#1093; confluentinc/librdkafka#3265; apache/kafka PR #7878 (KAFKA-9346); KIP-447",
    basis: &[Basis::Thread, Basis::Kip],
    versions: "OffsetFetch 7",
    needs: Needs::Settings(QUICK_SWEEP),
    ..Scenario::kafka(Area::Groups, b68)
};

fn b68(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    let mut a = probe.actor("A")?;
    a.commit_group_offset(&g, (&t[0], 100)).is(0)?;
    let me = a.init_within(&probe.id("x"), 2000)?;
    a.add_offsets(&me, &g)?;
    for place in &t {
        a.commit_offset(&me, &g, (place, 200)).is(0)?;
    }
    let mut reader = probe.actor("reader")?;
    for (place, before) in [(&t[0], 100), (&t[1], -1)] {
        let seen = reader.group_offset(&g, place, false)?;
        probe.same("a fetch of any offset", seen, GroupOffset { code: 0, offset: before })?;
        let seen = reader.group_offset(&g, place, true)?;
        probe.same("a fetch of a stable offset", seen, GroupOffset { code: 88, offset: -1 })?;
    }
    let all = all_offsets(&mut reader, &g)?;
    probe.same("all offsets that are not -1", all, vec![(0, 100)])?;
    drop(a);
    // Its timeout is over.
    for (place, before) in [(&t[0], 100), (&t[1], -1)] {
        reader.group_stands_at(&g, place, before)?;
        let seen = reader.group_offset(&g, place, false)?;
        probe.same("a fetch of any offset", seen, GroupOffset { code: 0, offset: before })?;
    }
    Ok(())
}

/// OffsetFetch of everything a group has, in whatever state: partition and offset.
fn all_offsets(a: &mut Actor, group: &str) -> Kept<Vec<(i32, i64)>> {
    let request = OffsetFetchRequest { group_id: group.into(), topics: None, ..Default::default() };
    let answer = a.ask("OffsetFetch of everything", &request, 7, |response| response.error_code).is(0)?;
    let partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let known = partitions.filter(|partition| partition.committed_offset.get() >= 0);
    Ok(known.map(|partition| (partition.partition_index.get(), partition.committed_offset.get())).collect())
}

const B69: Scenario = Scenario {
    id: "B69",
    title: "clients that die with offsets in an open transaction",
    promise: "A group whose consumers crash again and again gets its position within a transaction's timeout.",
    source: "redpanda-data/redpanda#6423; twmb/franz-go#581",
    basis: &[Basis::Thread],
    needs: Needs::Settings(QUICK_SWEEP),
    ..Scenario::kafka(Area::Groups, b69)
};

fn b69(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    for round in 0..probe.rounds(5, 20) {
        die_with_offsets(probe, &g, &t, round)?;
        let died = Instant::now();
        probe.actor("next")?.group_stands_at(&g, &t, -1)?;
        probe.holds(
            died.elapsed() < Duration::from_secs(8),
            "the time until the group is free",
            "soon after 500 ms",
        )?;
    }
    Ok(())
}

/// A client under a new transactional id commits offsets in a transaction and is gone.
fn die_with_offsets(probe: &Probe, g: &str, t: &Place, round: i64) -> Kept {
    let mut a = probe.actor("A")?;
    let me = a.init_within(&probe.id("x"), 500)?;
    a.add_offsets(&me, g)?;
    a.commit_offset(&me, g, (t, round)).is(0)
}

const B69K: Scenario = Scenario {
    id: "B69k",
    title: "client and broker die with offsets in an open transaction",
    promise: "A group is not blocked for ever because broker and consumer crashed together.",
    source: "redpanda-data/redpanda#6423; twmb/franz-go#581",
    needs: Needs::Restart(QUICK_SWEEP),
    ..Scenario::stricter_at_times(
        Area::Groups,
        "if the timeout is over before its partitions have a leader, the abort is completed without a marker: 88 for ever",
        b69k,
    )
};

fn b69k(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    for round in 0..probe.rounds(1, 5) {
        die_with_offsets(probe, &g, &t, round)?;
        probe.kill()?;
        probe.restart()?;
        probe.actor("next")?.group_stands_at(&g, &t, -1)?;
    }
    Ok(())
}

const B71: Scenario = Scenario {
    id: "B71",
    title: "offsets of a member of an older generation in a transaction",
    promise: "A consumer that lost its partitions cannot move the position of whoever has them now.",
    source: "aio-libs/aiokafka#844; KIP-447; apache/kafka PR #7897 (KAFKA-9365); zio/zio-kafka PR #427",
    basis: &[Basis::Thread, Basis::Kip],
    versions: "TxnOffsetCommit 0 to 3",
    ..Scenario::kafka(Area::Groups, b71)
};

fn b71(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut one = probe.actor("M1")?;
    let old = one.join_alone(&Member::new(&g))?;
    let mut two = probe.actor("M2")?;
    let (first, _second) = join_second(&mut one, &mut two, &old)?;
    probe.same("the generation", first.generation, old.generation + 1)?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    a.commit_offset_as(&me, &old, (&t, 1)).is(22)?;
    a.commit_offset_as(&me, &first.under("nobody"), (&t, 2)).is(25)?;
    // The group moves on without the client's own transaction being hurt.
    a.commit_offset_as(&me, &first, (&t, 3)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 3)?;
    // Callers without membership, and those of versions that have no field for it, keep working.
    for (version, offset) in [(0, 4), (1, 5), (2, 6)] {
        a.add_offsets(&me, &g)?;
        a.using(|versions| versions.txn_offset_commit = version)
            .commit_offset(&me, &g, (&t, offset))
            .is(0)?;
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t, offset)?;
    }
    Ok(())
}

/// A second member joins: the first one is told by its heartbeat, both join, the leader hands out.
fn join_second(one: &mut Actor, two: &mut Actor, first: &Member) -> Kept<(Member, Member)> {
    let newcomer = Member::new(&first.group);
    two.send_join(&newcomer)?;
    one.until_not(&[0], |actor| actor.beat(first)).is(27)?;
    let first = one.join(first).is(0)?;
    let second = two.next_joined(&newcomer).is(0)?;
    let (leader, follower) = if first.is_leader { (&first, &second) } else { (&second, &first) };
    let shares: Vec<_> = leader.all.iter().map(|id| (id.clone(), Bytes::from_static(b"share"))).collect();
    let (leading, following) = if first.is_leader { (one, two) } else { (two, one) };
    leading.sync(&leader.member, &shares).is(0)?;
    following.sync(&follower.member, &[]).is(0)?;
    Ok((first.member, second.member))
}

const B71S: Scenario = Scenario {
    id: "B71s",
    title: "offsets of a static member that was replaced",
    promise: "Of two instances with one instance id, only the newer one moves the group's position.",
    source: "KIP-345; KIP-447",
    basis: &[Basis::Kip],
    ..Scenario::kafka(Area::Groups, b71s)
};

fn b71s(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut one = probe.actor("M1")?;
    let member = one.join_alone(&Member::new(&g).named("i-1"))?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    a.commit_offset_as(&me, &member.under("the one before"), (&t, 1)).is(82)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, -1)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset_as(&me, &member, (&t, 2)).is(0)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 2)
}

const B72: Scenario = Scenario {
    id: "B72",
    title: "repeated and conflicting offsets in one transaction",
    promise: "The last position of a transaction counts, however often a client sent it; a late one does not.",
    source: "nisshi-io/nisshi PR #716; apache/kafka PR #2970",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Groups, b72)
};

fn b72(probe: &mut Probe) -> Kept {
    let (t, g, id) = (probe.topic()?, probe.group("g"), probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init(&id)?;
    let me = a.init(&id).map(|next| if next.epoch() > me.epoch() { next } else { me })?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 10)).is(0)?;
    a.commit_offset(&me, &g, (&t, 10)).is(0)?;
    let codes = commit_with_unknown_topic(&mut a, &me, &g, (&t, 12))?;
    probe.same("the codes of the topic and of an unknown one", codes, (0, 3))?;
    a.commit_offset(&me.at_epoch(me.epoch() - 1), &g, (&t, 13)).is_any(&[47, 90])?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 12)?;
    a.commit_offset(&me, &g, (&t, 14)).is_refused()?;
    a.group_stands_at(&g, &t, 12)
}

/// One TxnOffsetCommit for a topic and for one that does not exist; the codes of both.
fn commit_with_unknown_topic(
    a: &mut Actor,
    me: &Producer,
    g: &str,
    (t, offset): (&Place, i64),
) -> Kept<(i16, i16)> {
    let mut request = offset_commit_request(me, g, (t, offset));
    let missing = format!("{}-missing", t.topic);
    let partition = TxnOffsetCommitPartition {
        partition_index: PartitionIndex::new(0),
        committed_offset: RawOffset(1),
        ..Default::default()
    };
    request.topics.push(TxnOffsetCommitTopic {
        name: missing.as_str().into(),
        partitions: vec![partition],
        ..Default::default()
    });
    let code_of = |response: &<TxnOffsetCommitRequest as semel_wire::Request>::Response, name: &str| {
        let topics = response.topics.iter().filter(|topic| topic.name.as_str() == name);
        let mut partitions = topics.flat_map(|topic| &topic.partitions);
        partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
    };
    let answer =
        a.ask("TxnOffsetCommit with an unknown topic", &request, 3, |response| code_of(response, &t.topic));
    let response = answer.is_any(&[0, 3])?.1;
    Ok((code_of(&response, &t.topic).get(), code_of(&response, &missing).get()))
}

const B75: Scenario = Scenario {
    id: "B75",
    title: "the position right after its commit",
    promise: "After a successful commit nobody is given the position before it: no input is processed twice.",
    source: "apache/kafka PR #18168 (KAFKA-17507); robot-head/crabka PR #429",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Groups, b75)
};

fn b75(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let (mut a, mut reader) = (probe.actor("A")?, probe.actor("reader")?);
    let me = a.init(&probe.id("x"))?;
    for offset in 0..probe.rounds(150, 2000) {
        a.add_offsets(&me, &g)?;
        a.commit_offset(&me, &g, (&t, offset)).is(0)?;
        a.end(&me, Commit).is(0)?;
        let committed = Instant::now();
        loop {
            let seen = reader.group_offset(&g, &t, true)?;
            if seen == (GroupOffset { code: 0, offset }) {
                break;
            }
            if seen.code != 88 || committed.elapsed() > Duration::from_secs(2) {
                let due = format!("offset {offset}, or 88 for a moment");
                return Err(Failure::broken("OffsetFetch right after the commit", format!("{seen:?}"), due));
            }
        }
    }
    Ok(())
}

const B76: Scenario = Scenario {
    id: "B76",
    title: "TxnOffsetCommit without AddOffsetsToTxn",
    promise: "Offsets that belong to no transaction are refused in a way that lets the client abort and go on.",
    source: "apache/kafka PR #14370 (KAFKA-15449)",
    basis: &[Basis::Thread, Basis::Protocol],
    versions: "TxnOffsetCommit 3, 4",
    ..Scenario::kafka(Area::Groups, b76)
};

fn b76(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for (version, due) in [(3, 48), (4, 120)] {
        a.using(|versions| versions.txn_offset_commit = version);
        a.until_own_version(due, |actor| actor.commit_offset(&me, &g, (&t, 7))).is(due)?;
    }
    a.group_stands_at(&g, &t, -1)
}

const B76V2: Scenario = Scenario {
    id: "B76v2",
    title: "TxnOffsetCommit without AddOffsetsToTxn, version 2",
    promise: "A current client needs no extra request: its offsets join the transaction by themselves.",
    source: "KIP-890",
    basis: &[Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Groups, b76_v2)
};

fn b76_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?.version_2();
    let mut me = a.init(&probe.id("x"))?;
    for (offset, outcome, due) in [(7, Commit, 7), (8, Abort, 7)] {
        a.commit_offset(&me, &g, (&t, offset)).is(0)?;
        probe.same("a stable offset meanwhile", a.group_offset(&g, &t, true)?.code, 88)?;
        me = a.end(&me, outcome).is(0)?;
        a.group_stands_at(&g, &t, due)?;
    }
    Ok(())
}
