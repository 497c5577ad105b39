//! Stricter promises across a kill of the broker.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{
    Actor, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Kept, Needs},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S12, &S15, &S18, &S20];

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

const S15: Scenario = Scenario {
    id: "S15",
    title: "a live producer over a wiped broker",
    promise: "A broker that lost its data does not take one producer's records for another's.",
    source: "found on Apache Kafka 4.4",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter(
        Area::Recovery,
        "0: the new producer has the same id, the old one's record is taken for its next and the next one lost",
        s15,
    )
};

fn s15(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("old")?;
    let old = a.init_plain()?;
    a.produce(&t, &old, 0, &["old 0"]).is_stored_at(0)?;
    probe.wipe()?;
    probe.make_topic(&t.topic, 1, &[])?;
    let mut b = probe.actor("new")?;
    let mut new = b.init_plain()?;
    // Ids that are counted from 0 come round to the old one's soon.
    while new.producer_id() < old.producer_id() && old.producer_id() - new.producer_id() < 20_000 {
        new = b.init_plain()?;
    }
    b.produce(&t, &new, 0, &["new 0"]).is_stored_at(0)?;
    let mut a = probe.actor("old again")?;
    a.produce(&t, &old, 1, &["old 1"]).is(59)?;
    b.produce(&t, &new, 1, &["new 1"]).is_stored_at(1)?;
    b.stores(&t, &["new 0", "new 1"])
}

const S18: Scenario = Scenario {
    id: "S18",
    title: "kills in the midst of transactions over several partitions",
    promise: "A transaction that was aborted is never read, one that was committed is read whole, none hangs.",
    source: "found on Apache Kafka 4.4",
    versions: "transaction.version 2",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter_at_times(
        Area::Recovery,
        "at times the coordinator completes an abort without a marker, and the next commit covers its records",
        s18,
    )
};

/// What became known of transactions.
#[derive(Default)]
struct Known {
    committed: BTreeSet<String>,
    aborted: BTreeSet<String>,
}

const KILLS: u64 = 3;
const CLIENTS: usize = 2;

fn s18(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.partitions(3)?;
    let ids: Vec<_> = (0..CLIENTS).map(|_| probe.id("x")).collect();
    let g = probe.group("g");
    let known = Mutex::new(Known::default());
    for kill in 0..KILLS {
        let address = probe.address().to_owned();
        let trace = probe.trace();
        thread::scope(|scope| {
            for id in &ids {
                let (address, trace, t, g, known) = (&address, &trace, &t, &g, &known);
                scope.spawn(move || {
                    // Ends with the broker.
                    let _ =
                        transact_until_killed(&mut Actor::connect(id, address, trace)?, t, (id, g), known);
                    Ok::<(), Failure>(())
                });
            }
            thread::sleep(Duration::from_millis(400 + 130 * kill));
            probe.kill()
        })?;
        probe.restart()?;
    }
    let mut reader = probe.actor("reader")?;
    for id in &ids {
        reader.init(id)?;
    }
    judge_reads(probe, &mut reader, &t, &known.into_inner().unwrap_or_else(PoisonError::into_inner))?;
    let stands = reader.group_offset(&g, &t[0], true)?;
    probe.same("the code of a stable OffsetFetch", stands.code, 0)
}

/// Transactions over all partitions and a group's offset, committed and aborted in turns, until something fails.
fn transact_until_killed(a: &mut Actor, t: &[Place], (id, g): (&str, &str), known: &Mutex<Known>) -> Kept {
    a.session.versions = crate::session::Versions::VERSION_2;
    let mut me: Producer = a.init(id)?;
    for round in 0.. {
        let value = format!("{} {} {round}", me.producer_id(), me.epoch());
        for place in t {
            a.produce_when_free(place, &me, 0, &[&value]).is(0)?;
        }
        a.commit_offset(&me, g, (&t[0], round)).is(0)?;
        let outcome = if round % 2 == 0 { Commit } else { Abort };
        let ended = a.end(&me, outcome).is(0)?;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome == Commit {
            known.committed.insert(value)
        } else {
            known.aborted.insert(value)
        };
        me = ended;
    }
    Ok(())
}

fn judge_reads(probe: &Probe, reader: &mut Actor, t: &[Place], known: &Known) -> Kept {
    let mut all = Vec::new();
    for place in t {
        reader.settles(place)?;
        all.push(reader.values(place, Isolation::Committed)?.into_iter().collect::<BTreeSet<_>>());
    }
    let torn = all.iter().any(|one| one != &all[0]);
    probe.holds(!torn, "committed records of the three partitions", "the same transactions on each")?;
    let lost: Vec<_> = known.committed.difference(&all[0]).collect();
    probe.same("acknowledged commits that are not read", lost, Vec::new())?;
    let undead: Vec<_> = known.aborted.intersection(&all[0]).collect();
    probe.same("acknowledged aborts that are read", undead, Vec::new())
}

const S20: Scenario = Scenario {
    id: "S20",
    title: "a retry that is too large by now",
    promise: "A retry of a stored batch is known, also after the largest size was lowered: nothing is stored twice.",
    source: "read in Apache Kafka's source, confirmed on 4.4",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter(
        Area::Dedup,
        "10; the client splits the batch, is answered 45 and writes it again",
        s20,
    )
};

fn s20(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let (x, y) = ("x".repeat(500), "y".repeat(500));
    a.produce(&t, &me, 0, &[&x, &y]).is_stored_at(0)?;
    probe.set(&[("message.max.bytes", "700")])?;
    let judged = judge_large_retry(probe, &t, &me, &[&x, &y]);
    probe.set(&[("message.max.bytes", "1048588")])?;
    judged
}

fn judge_large_retry(probe: &Probe, t: &Place, me: &Producer, values: &[&str; 2]) -> Kept {
    let mut a = probe.actor("A again")?;
    a.produce(t, me, 0, values).is_stored_at(0)?;
    a.produce(t, me, 0, &values[..1]).is(46)?;
    a.produce(t, me, 1, &values[1..]).is(46)?;
    let large = "z".repeat(900);
    a.produce(t, me, 2, &[&large]).is(10)?;
    a.stores(t, values)
}
