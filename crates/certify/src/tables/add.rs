//! Tables 3.4 to 3.6: how a transaction takes in partitions and groups, by version.

use semel_wire::{ApiKey, RawOffset, Text, WireCode, api::add_partitions_to_txn::AddPartitionsToTxnRequest};

use super::State;
use crate::{
    Answer,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::{add_request, offset_commit_request},
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] =
    &[&IDENTITY, &TOGETHER, &UNADDED, &OFFSETS, &OFFSETS_UNADDED, &OFFSETS_GROUP];

const IDENTITY: Scenario = Scenario {
    id: "T3.4-identity",
    title: "AddPartitionsToTxn and AddOffsetsToTxn of somebody else",
    promise: "Nobody but its owner takes partitions or groups into a transaction.",
    source: "apache/kafka TransactionCoordinator.handleAddPartitionsToTransaction; KIP-588",
    versions: "AddPartitionsToTxn 0 to 3, AddOffsetsToTxn 0 to 3",
    ..Scenario::kafka(Area::Coordinator, identity)
};

fn identity(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    let unknown = Producer { id: Some(probe.id("unknown")), stamp: me.stamp };
    let nameless = Producer { id: Some(String::new()), stamp: me.stamp };
    let another = me.with_producer_id(me.producer_id() + 1_000_000);
    for version in 0..=3 {
        a.using(|versions| versions.add = version);
        let fenced = if version < 2 { 47 } else { 90 };
        let later = me.at_epoch(me.epoch() + 1);
        for (who, due) in [(&another, 49), (&unknown, 49), (&nameless, 42), (&later, fenced), (&me, 0)] {
            a.until_free(|a| a.try_add(who, &[&t])).is(due)?;
            a.until_free(|a| a.try_add_offsets(who, &g)).is(due)?;
        }
    }
    Ok(())
}

const TOGETHER: Scenario = Scenario {
    id: "T3.4-together",
    title: "one bad partition keeps the others out",
    promise: "A request to take in several partitions is taken as a whole or not at all.",
    source: "apache/kafka KafkaApis.handleAddPartitionsToTxnRequest",
    versions: "AddPartitionsToTxn 0 to 3",
    ..Scenario::kafka(Area::Coordinator, together)
};

fn together(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let missing = Place::of(&format!("{}-missing", t.topic), 0);
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for version in 0..=3 {
        let request = add_request(&me, &[&t, &missing]);
        let code_of = |response: &<AddPartitionsToTxnRequest as semel_wire::Request>::Response,
                       topic: &str| {
            let own = response.results_by_topic.iter().find(|own| own.name.as_str() == topic);
            let own = own.and_then(|own| own.results_by_partition.first());
            own.map_or(WireCode(-1), |own| own.partition_error_code)
        };
        let said = "AddPartitionsToTxn of one that exists and one that does not";
        let answer = a.ask(said, &request, version, |response| code_of(response, &missing.topic)).is(3)?;
        probe.same("the code of the one that exists", code_of(&answer, &t.topic).get(), 55)?;
    }
    a.produce(&t, &me, 0, &["not added"]).is(48).map(|_| ())?;
    a.end(&me, Commit).is(48).map(|_| ())
}

const UNADDED: Scenario = Scenario {
    id: "T3.4-produce",
    title: "a transactional write to a partition that was not added",
    promise: "A write outside of the transaction never opens one that nobody will close.",
    source: "KIP-890",
    basis: &[Basis::Kip],
    versions: "Produce 3 to 12",
    ..Scenario::kafka(Area::Coordinator, unadded)
};

fn unadded(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let mut a = probe.actor("A")?;
    let (me, _) = State::Ongoing.reach(probe, &mut a, &t[0])?;
    for version in (3..=11).filter(|version| probe.offers().has(ApiKey::Produce, *version)) {
        let due = if version < 11 { 48 } else { 120 };
        a.using(|versions| versions.produce = version);
        a.until_own_version(due, |actor| actor.produce_when_free(&t[1], &me, 0, &["outside"])).is(due)?;
    }
    a.end(&me, Commit).is(0)?;
    a.reads(&t[0], &["a"])?;
    a.reads(&t[1], &[])?;
    if probe.needs_version_2().is_ok() {
        let mut b = probe.actor("B")?.version_2();
        let me = b.init(&probe.id("y"))?;
        b.transact(&t[1], &me, (0, "inside"), Commit)?;
        b.reads(&t[1], &["inside"])?;
    }
    Ok(())
}

const OFFSETS: Scenario = Scenario {
    id: "T3.6-versions",
    title: "TxnOffsetCommit in every version",
    promise: "Clients of every age move their group's position with their transaction, and only with it.",
    source: "KIP-98; KIP-447",
    versions: "TxnOffsetCommit 0 to 5",
    ..Scenario::kafka(Area::Groups, offsets)
};

fn offsets(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for version in 0..=4_i16 {
        let g = probe.group("g");
        a.using(|versions| versions.txn_offset_commit = version);
        for (outcome, offset, due) in [(Commit, 42, 42), (Abort, 50, 42)] {
            a.add_offsets(&me, &g)?;
            a.commit_offset(&me, &g, (&t, offset)).is(0)?;
            a.end(&me, outcome).is(0)?;
            a.group_stands_at(&g, &t, due)?;
        }
    }
    Ok(())
}

const OFFSETS_UNADDED: Scenario = Scenario {
    id: "T3.6-unadded",
    title: "TxnOffsetCommit to a group that was not added",
    promise: "Offsets outside of the transaction leave nothing pending that would stop the group.",
    source: "KIP-890; apache/kafka PR #14370 (KAFKA-15449)",
    basis: &[Basis::Kip, Basis::Thread],
    versions: "TxnOffsetCommit 0 to 5",
    ..Scenario::kafka(Area::Groups, offsets_unadded)
};

fn offsets_unadded(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    for version in 0..=4_i16 {
        let (g, me) = (probe.group("g"), a.init(&probe.id("x"))?);
        a.using(|versions| versions.txn_offset_commit = version);
        let due = if version < 4 { 48 } else { 120 };
        a.until_own_version(due, |actor| actor.commit_offset(&me, &g, (&t, 7))).is(due)?;
        a.group_stands_at(&g, &t, -1)?;
    }
    if probe.needs_version_2().is_ok() {
        let mut b = probe.actor("B")?.version_2();
        let (g, me) = (probe.group("g"), b.init(&probe.id("y"))?);
        b.commit_offset(&me, &g, (&t, 7)).is(0)?;
        b.end(&me, Commit).is(0)?;
        b.group_stands_at(&g, &t, 7)?;
    }
    Ok(())
}

const OFFSETS_GROUP: Scenario = Scenario {
    id: "T3.6-group",
    title: "TxnOffsetCommit to groups that are not there, and too long a note",
    promise: "A bad position is refused by itself; the others of the request are taken.",
    source: "apache/kafka OffsetMetadataManager",
    versions: "TxnOffsetCommit 3",
    ..Scenario::kafka(Area::Groups, offsets_group)
};

fn offsets_group(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add_offsets(&me, &g)?;
    let mut request = offset_commit_request(&me, &g, (&t[0], 1));
    request.generation_id_or_member_epoch = 3;
    request.member_id = "nobody".into();
    a.until_free(|a| {
        a.send_offsets("TxnOffsetCommit of generation 3 of a group that is not there", &request)
    })
    .is(22)?;
    let mut request = offset_commit_request(&me, &g, (&t[0], 1));
    request.topics[0].partitions[0].committed_metadata = Some(Text::from("m".repeat(5000).as_str()));
    let mut other = request.topics[0].partitions[0].clone();
    other.partition_index = semel_types::PartitionIndex::new(1);
    other.committed_offset = RawOffset(9);
    other.committed_metadata = None;
    request.topics[0].partitions.push(other);
    let answer: Answer<()> =
        a.until_free(|a| a.send_offsets("TxnOffsetCommit with a note of 5000 bytes", &request));
    answer.is(12)?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t[1], 9)?;
    a.group_stands_at(&g, &t[0], -1)
}
