//! Stricter promises about writes: acknowledged is stored, stored is stored once.

use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S1, &S2, &S5];

const S1: Scenario = Scenario {
    id: "S1",
    title: "another record under a sequence that was used",
    promise: "A record that is acknowledged is stored, also when a client counts wrongly after an error.",
    source: "found on Apache Kafka 4.4; kafkajs after a batch that was too large",
    ..Scenario::stricter(
        Area::Dedup,
        "0 at offset 0 twice: the second record is acknowledged and nowhere",
        s1,
    )
};

fn s1(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["A"]).is_stored_at(0)?;
    a.produce(&t, &me, 0, &["B"]).is(46)?;
    a.stores(&t, &["A"])
}

const S2: Scenario = Scenario {
    id: "S2",
    title: "the same sequence in the next transaction after an abort, classic",
    promise: "A committed record is not confirmed in the place of one that was aborted.",
    source: "found on Apache Kafka 4.4; redpanda-data/redpanda PR #5026",
    ..Scenario::stricter(
        Area::Dedup,
        "the second record is acknowledged, the commit succeeds, readers have nothing",
        s2,
    )
};

fn s2(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &probe.id("x"), "A")?;
    a.end(&me, Abort).is(0)?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 0, &["B"]).is(45)?;
    a.produce(&t, &me, 1, &["B"]).is_stored_at(2)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["B"])
}

const S5: Scenario = Scenario {
    id: "S5",
    title: "a plain batch with a transactional producer's id and a far epoch",
    promise: "Nobody can shut a transactional producer out of a partition by naming its producer id.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter(Area::Fencing, "0: accepted; the owner is then answered 47 on that partition", s5)
};

fn s5(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut owner = probe.actor("owner")?;
    let me = owner.init(&probe.id("x"))?;
    let mut other = probe.actor("other")?;
    other.produce(&t, &me.plain().at_epoch(99), 0, &["forged"]).is(48)?;
    other.produce(&t, &me.at_epoch(99), 0, &["forged"]).is_any(&[47, 49])?;
    owner.transact(&t, &me, (0, "mine"), Commit)?;
    owner.reads(&t, &["mine"])
}
