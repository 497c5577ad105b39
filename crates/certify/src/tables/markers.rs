//! Tables 1.6 and 3.8: how a marker that an administrator sends is answered.
//!
//! Only what is the same for every broker: that Semel ends the whole transaction where Kafka ends one partition, and
//! stores no coordinator epoch of strangers, are stricter promises (S8, S9).

use crate::{
    Marker,
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&EPOCHS];

const EPOCHS: Scenario = Scenario {
    id: "T3.8-abort",
    title: "abort markers by epoch",
    promise: "An old order to abort does not end the transaction of today.",
    source: "KIP-664; apache/kafka ProducerAppendInfo.checkProducerEpoch",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "WriteTxnMarkers 1",
    ..Scenario::kafka(Area::Markers, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
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
    let marker = |producer| Marker { producer, outcome: Abort, coordinator_epoch };
    admin.write_marker(&t, marker(&first), 1).is(47)?;
    let missing = Place::of(&format!("{}-missing", t.topic), 0);
    admin.write_marker(&missing, marker(&me), 1).is(3)?;
    probe.same("what is stable meanwhile", admin.ends(&t)?.last_stable, 2)?;
    admin.write_marker(&t, marker(&me), 1).is(0)?;
    admin.reads(&t, &["1"])
}
