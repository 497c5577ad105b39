//! Tables 1.6 and 3.8: how a marker that somebody else than the coordinator sends is answered.
//!
//! Semel ends the whole transaction where Kafka ends one partition, and stores no coordinator epoch of strangers (S8, S9);
//! the rows that follow from that are stricter ones.

use semel_types::PartitionIndex;
use semel_wire::{
    ApiKey, RawCoordinatorEpoch,
    api::write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest},
};

use super::offered;
use crate::{
    Actor, Failure,
    Outcome::{self, Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&EPOCHS, &NOTHING, &EACH, &OFFSETS, &AHEAD, &BY_HAND];

/// A marker as it goes over the wire.
struct Order<'a> {
    producer: &'a Producer,
    outcome: Outcome,
    places: Vec<&'a Place>,
    coordinator_epoch: i32,
    /// 0 for what an administrator sends, 2 for what a coordinator sends for a transaction of version 2.
    transaction_version: i8,
}

impl<'a> Order<'a> {
    /// What an administrator sends.
    fn abort(producer: &'a Producer, places: &[&'a Place]) -> Self {
        Self {
            producer,
            outcome: Abort,
            places: places.to_vec(),
            coordinator_epoch: 0,
            transaction_version: 0,
        }
    }

    fn marker(&self) -> WritableTxnMarker {
        let topics = self.places.iter().map(|place| WritableTxnMarkerTopic {
            name: place.topic.as_str().into(),
            partition_indexes: vec![PartitionIndex::new(place.index)],
        });
        WritableTxnMarker {
            producer_id: self.producer.stamp.id.into(),
            producer_epoch: self.producer.stamp.epoch.into(),
            transaction_result: self.outcome == Commit,
            topics: topics.collect(),
            coordinator_epoch: RawCoordinatorEpoch(self.coordinator_epoch),
            transaction_version: self.transaction_version,
        }
    }
}

/// Sends markers in one request; the codes have to be these, by marker, topic and partition.
fn order(a: &mut Actor, orders: &[Order<'_>], version: i16, due: &[&[i16]]) -> Kept {
    let request = WriteTxnMarkersRequest { markers: orders.iter().map(Order::marker).collect() };
    let said: Vec<_> = orders
        .iter()
        .map(|one| {
            let names: Vec<_> =
                one.places.iter().map(|place| format!("{}-{}", place.topic, place.index)).collect();
            format!(
                "{:?} {:?}, transaction version {}, to {}",
                one.outcome,
                one.producer,
                one.transaction_version,
                names.join(", ")
            )
        })
        .collect();
    let said = format!("WriteTxnMarkers({})", said.join("; "));
    let answer = a.ask(&said, &request, version, |response| {
        let topics = response.markers.iter().flat_map(|marker| &marker.topics);
        let mut partitions = topics.flat_map(|topic| &topic.partitions);
        partitions.next().map_or(semel_wire::WireCode(-1), |partition| partition.error_code)
    });
    let (_, response) = answer.is_any(due[0])?;
    let codes = orders.iter().map(|one| {
        let own =
            response.markers.iter().find(|marker| marker.producer_id.get() == one.producer.producer_id());
        let topics: Vec<_> = own.map(|own| own.topics.iter().collect()).unwrap_or_default();
        let code = |place: &&Place| {
            let topic = topics.iter().find(|topic| topic.name.as_str() == place.topic);
            let mut partitions = topic.into_iter().flat_map(|topic| &topic.partitions);
            let own = partitions.find(|partition| partition.partition_index.get() == place.index);
            own.map_or(-1, |partition| partition.error_code.get())
        };
        one.places.iter().map(code).collect::<Vec<_>>()
    });
    let codes: Vec<_> = codes.collect();
    if codes.iter().map(Vec::as_slice).eq(due.iter().copied()) {
        return Ok(());
    }
    Err(Failure::broken(said, format!("{codes:?}"), format!("{due:?}")))
}

const EPOCHS: Scenario = Scenario {
    id: "T3.8-abort",
    title: "abort markers by epoch",
    promise: "An old order to abort does not end the transaction of today.",
    source: "KIP-664; apache/kafka ProducerAppendInfo.checkProducerEpoch",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::kafka(Area::Markers, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        let (t, id) = (probe.topic()?, probe.id("x"));
        let mut a = probe.actor("A")?;
        let first = a.init(&id)?;
        a.transact(&t, &first, (0, "1"), Commit)?;
        let me = a.open(&t, &id, "2")?;
        let mut admin = probe.actor("admin")?;
        // As an admin client does, which takes it from DescribeProducers.
        let seen = admin.describe_producers(&t).is(0)?;
        let own = seen.iter().find(|seen| seen.producer_id.get() == me.producer_id());
        let coordinator_epoch = own.map_or(0, |own| own.coordinator_epoch.max(0));
        let mut abort = |producer: &Producer, place: &Place, due| {
            let abort = Order { coordinator_epoch, ..Order::abort(producer, &[place]) };
            order(&mut admin, &[abort], version, &[&[due]])
        };
        abort(&first, &t, 47)?;
        let missing = Place::of(&format!("{}-missing", t.topic), 0);
        abort(&me, &missing, 3)?;
        probe.same("what is stable meanwhile", a.ends(&t)?.last_stable, 2)?;
        abort(&me, &t, 0)?;
        a.reads(&t, &["1"])?;
        abort(&first, &t, 47)?;
        a.reads(&t, &["1"])?;
    }
    Ok(())
}

const NOTHING: Scenario = Scenario {
    id: "T3.8-nothing",
    title: "a marker where nothing is open",
    promise: "An order that comes twice, or too late, is confirmed, and changes nothing of what was decided.",
    source: "KAFKA-19999; KIP-1228",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::kafka(Area::Markers, nothing)
};

fn nothing(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        // Version 2 says of which version the transaction is.
        for transaction_version in [0, 2].into_iter().filter(|kind| version >= 2 || *kind == 0) {
            let (t, id) = (probe.topic()?, probe.id("x"));
            let mut a = probe.actor("A")?;
            let old = a.init(&id)?;
            let me = a.init(&id)?;
            a.transact(&t, &me, (0, "1"), Commit)?;
            a.comes_to(&id, &["CompleteCommit"])?;
            let again = |producer| Order { transaction_version, ..Order::abort(producer, &[&t]) };
            order(&mut a, &[again(&me)], version, &[&[0]])?;
            order(&mut a, &[again(&old)], version, &[&[47]])?;
            a.transact(&t, &me, (1, "2"), Commit)?;
            a.reads(&t, &["1", "2"])?;
        }
    }
    Ok(())
}

const EACH: Scenario = Scenario {
    id: "T3.8-each",
    title: "several markers in one request",
    promise: "Whoever ends several transactions at once is told of each partition what became of it.",
    source: "apache/kafka KafkaApis.handleWriteTxnMarkersRequest",
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::kafka(Area::Markers, each)
};

fn each(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        let t = probe.partitions(2)?;
        let mut a = probe.actor("A")?;
        let id = probe.id("x");
        let old = a.init(&id)?;
        let kept = a.open(&t[0], &id, "kept")?;
        let ended = a.open(&t[1], &probe.id("y"), "ended")?;
        let missing = Place::of(&format!("{}-missing", t[0].topic), 0);
        let orders = [Order::abort(&old, &[&t[0], &missing]), Order::abort(&ended, &[&t[1], &missing])];
        order(&mut a, &orders, version, &[&[47, 3], &[0, 3]])?;
        a.reads(&t[1], &[])?;
        a.end(&kept, Commit).is(0)?;
        a.reads(&t[0], &["kept"])?;
    }
    Ok(())
}

const OFFSETS: Scenario = Scenario {
    id: "T3.8-offsets",
    title: "an administrator's abort of a group's offsets",
    promise: "A group that a hanging transaction holds can be set free by hand.",
    source: "KIP-664; KAFKA-17507",
    basis: &[Basis::Kip, Basis::Reference],
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::kafka(Area::Markers, offsets)
};

fn offsets(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        let mut a = probe.actor("A")?;
        let (me, g) = (a.init(&probe.id("x"))?, probe.group("g"));
        a.add_offsets(&me, &g)?;
        a.commit_offset(&me, &g, (&t, 7)).is(0)?;
        probe.same("a fetch of a stable offset", a.group_offset(&g, &t, true)?.code, 88)?;
        let seen = a.describe(me.id_or_empty()).is(0)?;
        let Some(topic) = seen.topics.first() else {
            return probe.holds(false, "DescribeTransactions", "the partition of the group's offsets");
        };
        let index = topic.partitions.first().map_or(-1, |index| index.get());
        let place = Place::of(topic.topic.as_str(), index);
        order(&mut a, &[Order::abort(&me, &[&place])], version, &[&[0]])?;
        // At once, not in the end: the answer waits until the group is free.
        let seen = a.group_offset(&g, &t, true)?;
        probe.same("a stable offset once it is answered", (seen.code, seen.offset), (0, -1))?;
    }
    Ok(())
}

const AHEAD: Scenario = Scenario {
    id: "T1.6-ahead",
    title: "a marker with an epoch that nobody has",
    promise: "Nobody can shut a producer out of its partition by an order for an epoch to come.",
    source: "apache/kafka ProducerAppendInfo.checkProducerEpoch; KIP-1228",
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::stricter(
        Area::Fencing,
        "0: the record is aborted, and the owner is shut out of that partition",
        ahead,
    )
};

fn ahead(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        let me = a.open(&t, &probe.id("x"), "a")?;
        let mut other = probe.actor("other")?;
        let transaction_version = if version >= 2 { 2 } else { 0 };
        let later = me.at_epoch(me.epoch() + 1);
        let ahead = Order { transaction_version, ..Order::abort(&later, &[&t]) };
        order(&mut other, &[ahead], version, &[&[47]])?;
        a.produce(&t, &me, 1, &["b"]).is_stored_at(1)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["a", "b"])?;
    }
    Ok(())
}

const BY_HAND: Scenario = Scenario {
    id: "T3.8-commit",
    title: "a commit marker of somebody else",
    promise: "Nobody but its owner commits a transaction, not even one partition of it.",
    source: "apache/kafka KafkaApis.handleWriteTxnMarkersRequest; KIP-664",
    versions: "WriteTxnMarkers 1, 2",
    ..Scenario::stricter(
        Area::Coordinator,
        "0: one partition is committed, and the owner's abort comes too late for it",
        by_hand,
    )
};

fn by_hand(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::WriteTxnMarkers, 1..=2)? {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        let me = a.open(&t, &probe.id("x"), "aborted")?;
        let mut other = probe.actor("other")?;
        let commit = Order { outcome: Commit, ..Order::abort(&me, &[&t]) };
        order(&mut other, &[commit], version, &[&[48]])?;
        a.end(&me, Abort).is(0)?;
        a.reads(&t, &[])?;
    }
    Ok(())
}
