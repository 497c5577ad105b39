//! Stricter promises about writes: acknowledged is stored, stored is stored once.

use std::thread;

use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Kept, Needs},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S1, &S2, &S5, &B07, &S10, &S11, &S16, &S17];

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

const B07: Scenario = Scenario {
    id: "B07",
    title: "the first batch of a never-written partition arrives second",
    promise: "Two batches that overtake each other on the way to a new partition are both stored, in order.",
    source: "apache/kafka PR #23234 (KAFKA-15591, KAFKA-14312, KAFKA-19880); twmb/franz-go PR #1417",
    ..Scenario::stricter(
        Area::Dedup,
        "0: accepted; the first batch is then answered 45 for ever and lost",
        b07,
    )
};

fn b07(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let values: Vec<_> = (0..22).map(|number| number.to_string()).collect();
    let values: Vec<_> = values.iter().map(String::as_str).collect();
    a.produce(&t, &me, 17, &values[17..]).is(45)?;
    a.produce(&t, &me, 0, &values[..17]).is_stored_at(0)?;
    a.produce(&t, &me, 17, &values[17..]).is_stored_at(17)?;
    a.stores(&t, &values)?;
    (0..probe.rounds(20, 200)).try_for_each(|_| b07_race(probe, &values))
}

/// Both batches at once on two connections, each a first one. Whatever came (45, or a connection closed for the newer
/// one), its client sends what was not acknowledged again, in order.
fn b07_race(probe: &Probe, values: &[&str]) -> Kept {
    let t = probe.topic()?;
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let me = a.init_plain()?;
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(|| b.produce(&t, &me, 17, &values[17..]).code());
        (a.produce(&t, &me, 0, &values[..17]).code(), other.join().expect("nobody breaks off"))
    });
    let said = format!("the first batch: {first:?}, the second: {second:?}");
    let is_fine = matches!(first, Some(0) | None) && matches!(second, Some(0 | 45) | None);
    probe.holds(is_fine, &said, "0 or a closed connection; 45 for the second alone")?;
    let mut again = probe.actor("A again")?;
    again.produce(&t, &me, 0, &values[..17]).is_stored_at(0)?;
    again.produce(&t, &me, 17, &values[17..]).is_stored_at(17)?;
    again.stores(&t, values)
}

const S10: Scenario = Scenario {
    id: "S10",
    title: "the second record of a new producer arrives first",
    promise: "Two records that overtake each other on the way to a new partition are both stored, in order.",
    source: "found on Apache Kafka 4.4; founding rule 1",
    ..Scenario::stricter(
        Area::Dedup,
        "0: accepted; the first batch is then answered 45 for ever and lost",
        s10,
    )
};

fn s10(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 1, &["b"]).is(45)?;
    a.produce(&t, &me, 0, &["a"]).is_stored_at(0)?;
    a.produce(&t, &me, 1, &["b"]).is_stored_at(1)?;
    a.stores(&t, &["a", "b"])
}

const S11: Scenario = Scenario {
    id: "S11",
    title: "a retry older than the window is known",
    promise: "A client is told of a very late retry that it is stored, so it does not write it a second time.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter(Area::Dedup, "45: the Java client bumps its epoch and writes the record again", s11)
};

fn s11(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let values = ["0", "1", "2", "3", "4", "5", "6"];
    for (sequence, value) in (0..).zip(values) {
        a.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    a.produce(&t, &me, 0, &["0"]).is(46)?;
    a.stores(&t, &values)
}

const S16: Scenario = Scenario {
    id: "S16",
    title: "a retry after the producer's expiry",
    promise: "A producer that was idle for long and sends again what it got no answer for does not double it.",
    source: "found on Apache Kafka 4.4; KIP-854",
    needs: Needs::Settings(SHORT_EXPIRY),
    ..Scenario::stricter(Area::Dedup, "0 at a new offset: the retry is appended again", s16)
};

/// Producers are forgotten after a second.
pub(crate) const SHORT_EXPIRY: crate::scenario::Settings =
    &[("producer.id.expiration.ms", "1000"), ("producer.id.expiration.check.interval.ms", "500")];

fn s16(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["a"]).is_stored_at(0)?;
    a.produce(&t, &me, 1, &["b"]).is_stored_at(1)?;
    // What is tried is the passing of time: there is nothing to wait for.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    a.produce(&t, &me, 1, &["b"]).is_any(&[0, 46])?;
    a.produce(&t, &me, 2, &["c"]).is(0)?;
    a.stores(&t, &["a", "b", "c"])
}

const S17: Scenario = Scenario {
    id: "S17",
    title: "a topic made anew under a live producer",
    promise: "A producer learns that the topic it wrote to is gone; its records are not taken as if nothing was.",
    source: "found on Apache Kafka 4.4; KIP-360",
    ..Scenario::stricter(Area::Dedup, "0: accepted in the middle of a sequence", s17)
};

fn s17(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    a.produce(&t, &me, 0, &["a"]).is_stored_at(0)?;
    probe.delete_topic(&t.topic)?;
    probe.make_topic(&t.topic, 1, &[])?;
    a.produce(&t, &me, 1, &["b"]).is(59)?;
    a.produce(&t, &me.at_epoch(1), 0, &["b"]).is_stored_at(0)?;
    a.stores(&t, &["b"])
}
