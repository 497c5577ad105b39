//! Tables 1.5 and 1.6: what becomes of a batch, by its epoch and first sequence; and the four founding rules.

use semel_wire::ApiKey;

use super::{offered, outside, speaking, transactional_versions};
use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[
    &RULES,
    &IN_TRANSACTION,
    &FIRST,
    &FIRST_V2,
    &MIDDLE,
    &VERIFIED,
    &AHEAD,
    &EPOCHS,
    &MARKER_ONLY,
    &MARKER_CLASSIC,
    &PLAIN_IN_OPEN,
];

/// A partition of its own for each version.
fn places(probe: &Probe, versions: Vec<i16>) -> Kept<impl Iterator<Item = (i16, Place)>> {
    let count = i32::try_from(versions.len()).expect("a few versions");
    Ok(versions.into_iter().zip(probe.partitions(count)?))
}

const RULES: Scenario = Scenario {
    id: "T1.5-rules",
    title: "the founding rules through Produce",
    promise: "What is accepted is stored once and in order; everything else changes nothing.",
    source: "founding rules 1 to 4; apache/kafka ProducerAppendInfo",
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Dedup, rules)
};

fn rules(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=13)?)? {
        let mut a = speaking(probe, version)?;
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

const IN_TRANSACTION: Scenario = Scenario {
    id: "T1.5-transaction",
    title: "the founding rules inside of a transaction",
    promise: "A retry within a transaction is stored once, and nothing is left out of it unnoticed.",
    source: "founding rules 1 to 4; apache/kafka ProducerAppendInfo; KIP-890",
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Dedup, in_transaction)
};

fn in_transaction(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, transactional_versions(probe)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.init(&probe.id("x"))?;
        if !a.is_version_2() {
            a.add(&me, &[&t])?;
        }
        a.produce_when_free(&t, &me, 0, &["0", "1"]).is_stored_at(0)?;
        a.produce(&t, &me, 2, &["2"]).is_stored_at(2)?;
        a.produce(&t, &me, 0, &["0", "1"]).is_stored_at(0)?;
        a.produce(&t, &me, 2, &["2"]).is_stored_at(2)?;
        a.produce(&t, &me, 4, &["gap"]).is(45)?;
        a.produce(&t, &me, 2, &["2", "and more"]).is(45)?;
        a.produce(&t, &me, 3, &["3"]).is_stored_at(3)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["0", "1", "2", "3"])?;
    }
    Ok(())
}

const FIRST: Scenario = Scenario {
    id: "T1.5-first",
    title: "the first batch of a producer in a partition of others",
    promise: "A producer starts at zero wherever it has not written yet, in whatever epoch it is by now.",
    source: "founding rule 1; apache/kafka ProducerAppendInfo; KIP-360",
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Dedup, first)
};

fn first(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=13)?)? {
        let mut a = speaking(probe, version)?;
        a.produce_plain(&t, &["theirs"]).is_stored_at(0)?;
        let fresh = a.init_plain()?;
        a.produce(&t, &fresh, 0, &["fresh"]).is_stored_at(1)?;
        a.produce(&t, &fresh, 0, &["fresh"]).is_stored_at(1)?;
        let bumped = a.init_plain()?.at_epoch(3);
        a.produce(&t, &bumped, 0, &["bumped"]).is_stored_at(2)?;
        a.produce(&t, &bumped.at_epoch(2), 0, &["before"]).is(47)?;
        a.stores(&t, &["theirs", "fresh", "bumped"])?;
    }
    Ok(())
}

const FIRST_V2: Scenario = Scenario {
    id: "T1.5-first-v2",
    title: "a transaction's first batch in a partition of others is not the first one sent",
    promise: "Of two batches in flight the later one cannot overtake the first: nothing is lost or reordered.",
    source: "KAFKA-18202; KIP-890",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "Produce 12, 13",
    ..Scenario::kafka(Area::Dedup, first_v2)
};

fn first_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 12..=13)?)? {
        let mut a = speaking(probe, version)?;
        a.produce_plain(&t, &["theirs"]).is_stored_at(0)?;
        let me = a.init(&probe.id("x"))?;
        a.produce_when_free(&t, &me, 1, &["1"]).is(45)?;
        a.produce_when_free(&t, &me, 0, &["0"]).is_stored_at(1)?;
        a.produce(&t, &me, 1, &["1"]).is_stored_at(2)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["theirs", "0", "1"])?;
    }
    Ok(())
}

const MIDDLE: Scenario = Scenario {
    id: "T1.5-middle",
    title: "a producer begins in the middle of its sequence, in a partition of others",
    promise: "A partition that does not know what came before says so; nothing is missing unnoticed.",
    source: "founding rule 1; KAFKA-15591",
    versions: "Produce 3 to 13",
    ..Scenario::stricter(
        Area::Dedup,
        "0: accepted; the batches before it are answered 45 for ever and lost",
        middle,
    )
};

fn middle(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=13)?)? {
        let mut a = speaking(probe, version)?;
        a.produce_plain(&t, &["theirs"]).is_stored_at(0)?;
        let me = a.init_plain()?;
        a.produce(&t, &me, 1, &["1"]).is_any(&[45, 59])?;
        a.produce(&t, &me, 0, &["0"]).is_stored_at(1)?;
        a.produce(&t, &me, 1, &["1"]).is_stored_at(2)?;
        a.stores(&t, &["theirs", "0", "1"])?;
    }
    Ok(())
}

const VERIFIED: Scenario = Scenario {
    id: "T1.5-verified",
    title: "a batch overtakes one that was refused because its partition was not added yet",
    promise: "The batch that was sent first is stored first: the client sends it again, and nothing is lost.",
    source: "KAFKA-14920",
    basis: &[Basis::Reference, Basis::Thread],
    versions: "Produce 3 to 11",
    ..Scenario::kafka(Area::Dedup, verified)
};

fn verified(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=11)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.init(&probe.id("x"))?;
        let due = outside(version, 11);
        a.until_own_version(due, |a| a.produce_when_free(&t, &me, 0, &["0"])).is(due)?;
        a.add(&me, &[&t])?;
        a.produce_when_free(&t, &me, 1, &["1"]).is(45)?;
        a.produce_when_free(&t, &me, 0, &["0"]).is_stored_at(0)?;
        a.produce(&t, &me, 1, &["1"]).is_stored_at(1)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["0", "1"])?;
    }
    Ok(())
}

const AHEAD: Scenario = Scenario {
    id: "T1.5-ahead",
    title: "a batch of an epoch to come, amid an open transaction",
    promise: "Nobody can stop a producer's transaction by a batch that is refused anyway.",
    source: "found on Apache Kafka 4.4; KIP-890",
    versions: "Produce 3 to 13",
    ..Scenario::stricter(
        Area::Coordinator,
        "47 to the batch, and 45 to the next one of the owner, which is in sequence",
        ahead,
    )
};

fn ahead(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, transactional_versions(probe)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.open(&t, &probe.id("x"), "0")?;
        let mut other = speaking(probe, version)?;
        other.produce_when_free(&t, &me.at_epoch(me.epoch() + 1), 0, &["ahead"]).is(47)?;
        a.produce(&t, &me, 1, &["1"]).is_stored_at(1)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["0", "1"])?;
    }
    Ok(())
}

const EPOCHS: Scenario = Scenario {
    id: "T1.6-epochs",
    title: "an epoch starts at zero, and an older one is refused",
    promise: "A producer that was replaced writes nothing any more; its successor starts anew.",
    source: "founding rules 2 and 3; apache/kafka ProducerAppendInfo.checkProducerEpoch",
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Fencing, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=13)?)? {
        let mut a = speaking(probe, version)?;
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
    versions: "Produce 12, 13",
    ..Scenario::kafka(Area::Dedup, marker_only)
};

fn marker_only(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 12..=13)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.open(&t, &probe.id("x"), "aborted")?;
        let me = a.end(&me, Abort).is(0)?;
        a.produce_when_free(&t, &me, 1, &["gap"]).is(45)?;
        a.produce_when_free(&t, &me, 0, &["first"]).is_stored_at(2)?;
        a.produce(&t, &me, 0, &["first"]).is_stored_at(2)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["first"])?;
    }
    Ok(())
}

const MARKER_CLASSIC: Scenario = Scenario {
    id: "T1.5-unwritten",
    title: "the first batch in a partition that the last transaction only named",
    promise: "The first record that a producer writes to a partition is known by its number, so a lost one is noticed.",
    source: "apache/kafka ProducerAppendInfo; founding rule 1",
    versions: "Produce 3 to 11",
    ..Scenario::kafka(Area::Dedup, marker_classic)
};

fn marker_classic(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, offered(probe, ApiKey::Produce, 3..=11)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.init(&probe.id("x"))?;
        a.add(&me, &[&t])?;
        a.end(&me, Commit).is(0)?;
        a.comes_to(me.id_or_empty(), &["CompleteCommit"])?;
        a.add(&me, &[&t])?;
        a.produce_when_free(&t, &me, 1, &["gap"]).is(45)?;
        a.produce_when_free(&t, &me, 0, &["first"]).is(0)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["first"])?;
    }
    Ok(())
}

const PLAIN_IN_OPEN: Scenario = Scenario {
    id: "T1.4-plain",
    title: "a plain batch while a transaction of the same producer is open",
    promise: "A record outside of the transaction is not smuggled into it.",
    source: "apache/kafka ProducerAppendInfo; apache/kafka PR #13607 (KAFKA-14916)",
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Coordinator, plain_in_open)
};

fn plain_in_open(probe: &mut Probe) -> Kept {
    for (version, t) in places(probe, transactional_versions(probe)?)? {
        let mut a = speaking(probe, version)?;
        let me = a.open(&t, &probe.id("x"), "a")?;
        a.produce(&t, &me.plain(), 1, &["plain"]).is(48)?;
        a.produce(&t, &me, 1, &["b"]).is_stored_at(1)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["a", "b"])?;
    }
    Ok(())
}
