//! Table 3.6: how a transaction moves a group's position, by version and kind of group.

use semel_wire::{ApiKey, RawOffset, Text};

use super::{offered, outside};
use crate::{
    Actor, Answer, Consumer, Member,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::offset_commit_request,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&VERSIONS, &IDENTITY, &UNADDED, &GROUP, &TOPIC, &MEMBERS, &CONSUMERS];

/// The versions of TxnOffsetCommit; from 5 on only where `transaction.version` 2 goes with it.
fn versions(probe: &Probe, first: i16) -> Kept<Vec<i16>> {
    let last = if probe.needs_version_2().is_ok() { 6 } else { 4 };
    offered(probe, ApiKey::TxnOffsetCommit, first..=last)
}

/// Somebody who speaks this version of TxnOffsetCommit, and what goes with it.
fn committing(probe: &Probe, version: i16) -> Kept<Actor> {
    let actor = probe.actor("A")?;
    let mut actor = if version >= 5 { actor.version_2() } else { actor };
    actor.using(|versions| versions.txn_offset_commit = version);
    Ok(actor)
}

/// The group is taken in, where the version does not do so by itself.
fn take_in(a: &mut Actor, me: &Producer, g: &str) -> Kept {
    if a.is_version_2() { Ok(()) } else { a.add_offsets(me, g) }
}

const VERSIONS: Scenario = Scenario {
    id: "T3.6-versions",
    title: "TxnOffsetCommit in every version",
    promise: "Clients of every age move their group's position with their transaction, and only with it.",
    source: "KIP-98; KIP-447; KIP-890; KIP-1319",
    versions: "TxnOffsetCommit 0 to 6",
    ..Scenario::kafka(Area::Groups, every_version)
};

fn every_version(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    for version in versions(probe, 0)? {
        let mut a = committing(probe, version)?;
        let (mut me, g) = (a.init(&probe.id("x"))?, probe.group("g"));
        for (outcome, offset, due) in [(Commit, 42, 42), (Abort, 50, 42)] {
            take_in(&mut a, &me, &g)?;
            a.commit_offset(&me, &g, (&t, offset)).is(0)?;
            me = a.end(&me, outcome).is(0)?;
            a.group_stands_at(&g, &t, due)?;
        }
    }
    Ok(())
}

const IDENTITY: Scenario = Scenario {
    id: "T3.6-identity",
    title: "TxnOffsetCommit of somebody else",
    promise: "Nobody but its owner moves a group's position with a transaction.",
    source: "KIP-890; apache/kafka AddPartitionsToTxnManager",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "TxnOffsetCommit 0 to 6",
    ..Scenario::kafka(Area::Groups, identity)
};

fn identity(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    for version in versions(probe, 0)? {
        let mut a = committing(probe, version)?;
        let (id, g) = (probe.id("x"), probe.group("g"));
        a.init(&id)?;
        let me = a.init(&id)?;
        take_in(&mut a, &me, &g)?;
        let unknown = Producer { id: Some(probe.id("unknown")), stamp: me.stamp };
        let others = [
            (me.with_producer_id(me.producer_id() + 1_000_000), 49),
            (unknown, 49),
            // 47 in every version.
            (me.at_epoch(me.epoch() + 1), 47),
            (me.at_epoch(me.epoch() - 1), 47),
        ];
        for (who, due) in &others {
            a.until_own_version(*due, |a| a.commit_offset(who, &g, (&t, 8))).is(*due)?;
        }
        a.commit_offset(&me, &g, (&t, 7)).is(0)?;
        let (older, due) = &others[3];
        a.commit_offset(older, &g, (&t, 8)).is(*due)?;
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t, 7)?;
    }
    Ok(())
}

const UNADDED: Scenario = Scenario {
    id: "T3.6-unadded",
    title: "TxnOffsetCommit to a group that was not added",
    promise: "Offsets outside of the transaction leave nothing pending that would stop the group.",
    source: "KIP-890; apache/kafka PR #14370 (KAFKA-15449)",
    basis: &[Basis::Kip, Basis::Thread],
    versions: "TxnOffsetCommit 0 to 4",
    ..Scenario::kafka(Area::Groups, unadded)
};

fn unadded(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    for version in offered(probe, ApiKey::TxnOffsetCommit, 0..=4)? {
        let mut a = committing(probe, version)?;
        let (g, me) = (probe.group("g"), a.init(&probe.id("x"))?);
        let due = outside(version, 4);
        a.until_own_version(due, |actor| actor.commit_offset(&me, &g, (&t, 7))).is(due)?;
        a.group_stands_at(&g, &t, -1)?;
    }
    Ok(())
}

const GROUP: Scenario = Scenario {
    id: "T3.6-group",
    title: "TxnOffsetCommit to groups that are not there, and too long a note",
    promise: "A bad position is refused by itself; the others of the request are taken.",
    source: "apache/kafka OffsetMetadataManager",
    versions: "TxnOffsetCommit 0 to 6",
    ..Scenario::kafka(Area::Groups, group)
};

fn group(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    for version in versions(probe, 0)? {
        let mut a = committing(probe, version)?;
        let (me, g) = (a.init(&probe.id("x"))?, probe.group("g"));
        take_in(&mut a, &me, &g)?;
        // Below version 3 nobody names a generation.
        if version >= 3 {
            let unknown = Member { generation: 3, ..Member::new(&g).under("nobody") };
            let due = if version < 6 { 22 } else { 69 };
            a.commit_offset_as(&me, &unknown, (&t[0], 1)).is(due)?;
        }
        a.with_a_long_note(&me, &g, &t).is(12)?;
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t[1], 9)?;
        a.group_stands_at(&g, &t[0], -1)?;
    }
    Ok(())
}

impl Actor {
    /// TxnOffsetCommit of two partitions, the first with too long a note; the first one's code.
    fn with_a_long_note(&mut self, me: &Producer, g: &str, t: &[Place]) -> Answer<()> {
        let mut request = offset_commit_request(me, g, (&t[0], 1));
        let partitions = &mut request.topics[0].partitions;
        partitions[0].committed_metadata = Some(Text::from("m".repeat(5000).as_str()));
        let mut other = partitions[0].clone();
        other.partition_index = semel_types::PartitionIndex::new(t[1].index);
        other.committed_offset = RawOffset(9);
        other.committed_metadata = None;
        partitions.push(other);
        self.until_free(|a| a.send_offsets("TxnOffsetCommit with a note of 5000 bytes", &request))
    }
}

const TOPIC: Scenario = Scenario {
    id: "T3.6-topic",
    title: "TxnOffsetCommit for a topic that is not there, or for no group",
    promise: "A position in a topic that was deleted is refused by the code that the client's version knows.",
    source: "apache/kafka KafkaApis.handleTxnOffsetCommitRequest; KIP-1319",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "TxnOffsetCommit 0 to 6",
    ..Scenario::kafka(Area::Groups, topic)
};

fn topic(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let missing = Place::of(&format!("{}-missing", t.topic), 0);
    for version in versions(probe, 0)? {
        let mut a = committing(probe, version)?;
        let (me, g) = (a.init(&probe.id("x"))?, probe.group("g"));
        take_in(&mut a, &me, &g)?;
        let due = if version < 6 { 3 } else { 100 };
        a.commit_offset(&me, &g, (&missing, 1)).is(due)?;
        a.commit_offset(&me, "", (&t, 1)).is(24)?;
        a.commit_offset(&me, &g, (&t, 2)).is(0)?;
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t, 2)?;
    }
    Ok(())
}

const MEMBERS: Scenario = Scenario {
    id: "T3.6-members",
    title: "TxnOffsetCommit by members of a classic group",
    promise: "A consumer whose partitions are somebody else's by now moves no position with its transaction.",
    source: "KIP-447; apache/kafka OffsetMetadataManager",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "TxnOffsetCommit 0 to 6",
    ..Scenario::kafka(Area::Groups, members)
};

fn members(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let own = probe.actor("member")?.join_alone(&Member::new(&g).named("instance"))?;
    for version in versions(probe, 0)? {
        let mut a = committing(probe, version)?;
        let (me, offset) = (a.init(&probe.id("x"))?, i64::from(version));
        take_in(&mut a, &me, &g)?;
        if version < 3 {
            // These versions name no member: there is nothing to refuse them by.
            a.commit_offset(&me, &g, (&t, offset)).is(0)?;
        } else {
            a.commit_offset_as(&me, &own.under("nobody"), (&t, 91)).is(82)?;
            let unnamed = Member { instance: None, ..own.under("nobody") };
            a.commit_offset_as(&me, &unnamed, (&t, 92)).is(25)?;
            a.commit_offset_as(&me, &own.clone().named("another"), (&t, 93)).is(25)?;
            for generation in [own.generation - 1, own.generation + 1] {
                a.commit_offset_as(&me, &own.in_generation(generation), (&t, 94)).is(22)?;
            }
            a.commit_offset_as(&me, &own, (&t, offset)).is(0)?;
        }
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t, offset)?;
    }
    probe.actor("member")?.leave(&own).is(0)
}

const CONSUMERS: Scenario = Scenario {
    id: "T3.6-consumers",
    title: "TxnOffsetCommit by members of a consumer group",
    promise: "A consumer whose partitions are somebody else's by now moves no position with its transaction.",
    source: "KIP-848; KIP-447; KIP-1319; apache/kafka OffsetMetadataManager",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "TxnOffsetCommit 3 to 6",
    ..Scenario::kafka(Area::Groups, consumers)
};

fn consumers(probe: &mut Probe) -> Kept {
    probe.needs(ApiKey::ConsumerGroupHeartbeat, 1)?;
    let t = probe.topic()?;
    for version in versions(probe, 3)? {
        let mut a = committing(probe, version)?;
        let (me, g) = (a.init(&probe.id("x"))?, probe.group("g"));
        let joining = Consumer::new(&g, "member-1", &t);
        let epoch = a.beat_consumer(&joining).is(0)?.epoch;
        let own = Member { generation: epoch, ..Member::new(&g).under("member-1") };
        take_in(&mut a, &me, &g)?;
        let stale = if version < 6 { 22 } else { 113 };
        a.commit_offset_as(&me, &own.in_generation(epoch + 1), (&t, 1)).is(stale)?;
        a.commit_offset_as(&me, &own.under("nobody"), (&t, 2)).is(25)?;
        a.commit_offset_as(&me, &own, (&t, 3)).is(0)?;
        a.end(&me, Commit).is(0)?;
        a.group_stands_at(&g, &t, 3)?;
        a.beat_consumer(&joining.at(-1)).is(0)?;
    }
    Ok(())
}
