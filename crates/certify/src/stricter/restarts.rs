//! Stricter promises across a kill of the broker.

use crate::{
    Probe, Scenario,
    scenario::{Area, Kept, Needs},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S12];

const S12: Scenario = Scenario {
    id: "S12",
    title: "five retries after a kill",
    promise: "A producer whose five answers died with the broker can send all five again, each is stored once.",
    source: "found on Apache Kafka 4.4",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter(
        Area::Recovery,
        "only the last batch is known after the restart, the others: 45",
        s12,
    )
};

fn s12(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let values = ["0", "1", "2", "3", "4"];
    for (sequence, value) in (0..).zip(values) {
        a.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    for (sequence, value) in (0..).zip(values) {
        a.produce(&t, &me, sequence, &[value]).is_stored_at(i64::from(sequence))?;
    }
    a.stores(&t, &values)
}
