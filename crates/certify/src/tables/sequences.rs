//! Tables 1.5 and 1.6: what becomes of a batch, by its epoch and first sequence; and the four founding rules.

use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&RULES, &EPOCHS, &MARKER_ONLY, &PLAIN_IN_OPEN];

const RULES: Scenario = Scenario {
    id: "T1.5-rules",
    title: "the founding rules through Produce",
    promise: "What is accepted is stored once and in order; everything else changes nothing.",
    source: "founding rules 1 to 4; apache/kafka ProducerAppendInfo",
    versions: "Produce 3 to 11",
    ..Scenario::kafka(Area::Dedup, rules)
};

fn rules(probe: &mut Probe) -> Kept {
    let versions = (3..=11).filter(|version| probe.offers().has(semel_wire::ApiKey::Produce, *version));
    for version in versions {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        a.using(|versions| versions.produce = version);
        let me = a.init_plain()?;
        a.produce(&t, &me, 0, &["0", "1"]).is_stored_at(0)?;
        a.produce(&t, &me, 2, &["2"]).is_stored_at(2)?;
        a.produce(&t, &me, 0, &["0", "1"]).is_stored_at(0)?;
        a.produce(&t, &me, 2, &["2"]).is_stored_at(2)?;
        a.produce(&t, &me, 4, &["gap"]).is(45)?;
        a.produce(&t, &me, 2, &["2", "and more"]).is(45)?;
        a.produce(&t, &me, 3, &["3"]).is_stored_at(3)?;
        a.stores(&t, &["0", "1", "2", "3"])?;
    }
    Ok(())
}

const EPOCHS: Scenario = Scenario {
    id: "T1.6-epochs",
    title: "an epoch starts at zero, and an older one is refused",
    promise: "A producer that was replaced writes nothing any more; its successor starts anew.",
    source: "founding rules 2 and 3; apache/kafka ProducerAppendInfo.checkProducerEpoch",
    versions: "Produce 3 to 11",
    ..Scenario::kafka(Area::Fencing, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    let versions = (3..=11).filter(|version| probe.offers().has(semel_wire::ApiKey::Produce, *version));
    for version in versions {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        a.using(|versions| versions.produce = version);
        let me = a.init_plain()?;
        a.produce(&t, &me, 0, &["a"]).is_stored_at(0)?;
        a.produce(&t, &me.at_epoch(5), 1, &["x"]).is(45)?;
        a.produce(&t, &me.at_epoch(5), 0, &["b"]).is_stored_at(1)?;
        for older in 0..5 {
            a.produce(&t, &me.at_epoch(older), 0, &["x"]).is(47)?;
            a.produce(&t, &me.at_epoch(older), 1, &["x"]).is(47)?;
        }
        a.stores(&t, &["a", "b"])?;
    }
    Ok(())
}

const MARKER_ONLY: Scenario = Scenario {
    id: "T1.5-marker",
    title: "the first batch after a marker of the same epoch",
    promise: "The first record of a transaction is known by its number, so a lost one is noticed.",
    source: "apache/kafka ProducerAppendInfo; KIP-890",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Dedup, marker_only)
};

fn marker_only(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let me = a.open(&t, &probe.id("x"), "aborted")?;
    let me = a.end(&me, Abort).is(0)?;
    a.produce_when_free(&t, &me, 1, &["gap"]).is(45)?;
    a.produce_when_free(&t, &me, 0, &["first"]).is_stored_at(2)?;
    a.produce(&t, &me, 0, &["first"]).is_stored_at(2)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["first"])
}

const PLAIN_IN_OPEN: Scenario = Scenario {
    id: "T1.4-plain",
    title: "a plain batch while a transaction of the same producer is open",
    promise: "A record outside of the transaction is not smuggled into it.",
    source: "apache/kafka ProducerAppendInfo; apache/kafka PR #13607 (KAFKA-14916)",
    ..Scenario::kafka(Area::Coordinator, plain_in_open)
};

fn plain_in_open(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &probe.id("x"), "a")?;
    a.produce(&t, &me.plain(), 1, &["plain"]).is(48)?;
    a.produce(&t, &me, 1, &["b"]).is_stored_at(1)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["a", "b"])
}
