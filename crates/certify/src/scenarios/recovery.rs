//! Area `recovery`: what was acknowledged survives a kill of the broker, and live producers go on.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    Actor, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario, Trace,
    scenario::{Area, Basis, Kept, Needs, Settings},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B78, &B78W, &B79, &B81, &B83];

const B78: Scenario = Scenario {
    id: "B78",
    title: "kills under idempotent load",
    promise: "What was acknowledged is there once and in order after a crash, and the producers go on.",
    source: "redpanda-data/redpanda#3039; AutoMQ/automq#437, #369, #509; confluentinc/librdkafka#3584 and #4401",
    basis: &[Basis::Kip, Basis::Thread],
    needs: Needs::Restart(&[]),
    left_out: "librdkafka, franz-go and kafka-python themselves: the suite sends what they send",
    ..Scenario::kafka(Area::Recovery, b78)
};

fn b78(probe: &mut Probe) -> Kept {
    write_through_kills(probe, 1, probe.rounds(2, 20))
}

const B78W: Scenario = Scenario {
    id: "B78w",
    title: "kills under idempotent load, five batches in flight",
    promise: "A producer with five batches in flight loses and doubles none of them in a crash of the broker.",
    source: "redpanda-data/redpanda#3039; found on Apache Kafka 4.4",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter_at_times(
        Area::Recovery,
        "45 for every retry but the newest that was stored: clients write those again under a new epoch",
        b78w,
    )
};

fn b78w(probe: &mut Probe) -> Kept {
    write_through_kills(probe, 5, probe.rounds(1, 20))
}

const WRITERS: i32 = 3;

/// Three producers write numbers, each to its partition, while the broker is killed.
fn write_through_kills(probe: &mut Probe, in_flight: usize, kills: u32) -> Kept {
    let t = probe.partitions(WRITERS)?;
    let mut owners = Vec::new();
    for _ in &t {
        owners.push(probe.actor("setup")?.init_plain()?);
    }
    let is_over = AtomicBool::new(false);
    let address = probe.address().to_owned();
    let written = thread::scope(|scope| {
        let write = |number: usize| {
            let (address, place, me, is_over) = (&address, &t[number], &owners[number], &is_over);
            scope.spawn(move || write_until(address, place, me, in_flight, is_over))
        };
        let writers: Vec<_> = (0..t.len()).map(write).collect();
        let killed = (0..kills).try_for_each(|kill| {
            let whole_ms = 3000 + 1000 * u64::from(kill % 6);
            thread::sleep(Duration::from_millis(probe.rounds(400, whole_ms)));
            probe.kill()?;
            probe.restart()
        });
        thread::sleep(Duration::from_millis(200));
        is_over.store(true, Ordering::Relaxed);
        let written: Kept<Vec<i32>> =
            writers.into_iter().map(|writer| writer.join().expect("a writer does not break off")).collect();
        killed.and(written)
    })?;
    let mut reader = probe.actor("reader")?;
    for (place, count) in t.iter().zip(written) {
        let due: Vec<_> = (0..count).map(|number| number.to_string()).collect();
        let stored = reader.values(place, Isolation::Uncommitted)?;
        let said = format!("{} stored of {count} acknowledged", stored.len());
        probe.holds(stored == due, &said, "each once, in order")?;
    }
    Ok(())
}

/// Writes 0, 1, 2, ... with some batches in flight until told to stop, over as many connections as it takes; gives how
/// many were acknowledged, which are all by then.
fn write_until(
    address: &str,
    place: &Place,
    me: &Producer,
    in_flight: usize,
    is_over: &AtomicBool,
) -> Kept<i32> {
    let (mut acknowledged, mut waiting) = (0, VecDeque::new());
    let mut next = 0;
    loop {
        let Ok(mut a) = Actor::connect("writer", address, &Trace::default()) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        // What had no answer goes out again, as it was and in its order.
        let mut is_broken = waiting.iter().any(|number| a.send_number(place, me, *number).is_err());
        while !is_broken {
            while waiting.len() < in_flight && !is_over.load(Ordering::Relaxed) && !is_broken {
                waiting.push_back(next);
                is_broken = a.send_number(place, me, next).is_err();
                next += 1;
            }
            let Some(oldest) = waiting.front() else { return Ok(acknowledged) };
            let answer = a.next_produced(&format!("Produce {oldest}"));
            match answer.code() {
                Some(0) => {
                    acknowledged += 1;
                    waiting.pop_front();
                }
                // The leader is not there yet: the rest of what is in flight comes to nothing as well.
                Some(3 | 5 | 6 | 7) | None => is_broken = true,
                Some(_) => return answer.is(0).map(|_| acknowledged),
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Actor {
    fn send_number(&mut self, place: &Place, me: &Producer, number: i32) -> Kept {
        Ok(self.send_produce(place, me, number, &[&number.to_string()])?)
    }
}

const B79: Scenario = Scenario {
    id: "B79",
    title: "an open transaction goes on after a kill of the broker",
    promise: "A restart of the broker does not cost a producer its open transaction.",
    source: "streamnative/kop PR #1700 and #1610; redpanda-data/redpanda PR #30003",
    basis: &[Basis::Thread, Basis::Protocol],
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Recovery, b79)
};

fn b79(probe: &mut Probe) -> Kept {
    let (lost, kept) = (probe.partitions(2)?, probe.partitions(2)?);
    let mut a = probe.actor("A")?;
    let (mine, theirs) = (a.init(&probe.id("x"))?, a.init(&probe.id("y"))?);
    for (t, me) in [(&lost, &mine), (&kept, &theirs)] {
        a.add(me, &[&t[0], &t[1]])?;
        for sequence in 0..5 {
            for place in t {
                a.produce(place, me, sequence, &[&sequence.to_string()]).is_stored_at(sequence.into())?;
            }
        }
    }
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    for (t, me) in [(&lost, &mine), (&kept, &theirs)] {
        for place in t {
            a.until_not(&[3, 6], |actor| actor.produce(place, me, 4, &["4"])).is_stored_at(4)?;
            a.produce_when_free(place, me, 5, &["5"]).is_stored_at(5)?;
        }
    }
    for (t, me, outcome) in [(&lost, &mine, Abort), (&kept, &theirs, Commit)] {
        a.end(me, outcome).is(0)?;
        let due: &[&str] = if outcome == Commit { &["0", "1", "2", "3", "4", "5"] } else { &[] };
        t.iter().try_for_each(|place| a.reads(place, due))?;
    }
    Ok(())
}

const B81: Scenario = Scenario {
    id: "B81",
    title: "acknowledged commits and kills at random",
    promise: "A commit that was acknowledged is read after any crash, once; one without an answer whole or not at all.",
    source: "redpanda-data/redpanda#17921, #17827",
    needs: Needs::Restart(&[]),
    left_out: "a loss of power: from outside a broker can only be killed",
    ..Scenario::stricter_at_times(
        Area::Recovery,
        "killed between the decision and its markers it completes the transaction without them at times: S18",
        b81,
    )
};

fn b81(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.partitions(2)?, probe.id("x"));
    let (mut committed, mut unknown) = (Vec::new(), Vec::new());
    for kill in 0..probe.rounds(2, 300) {
        let address = probe.address().to_owned();
        thread::scope(|scope| -> Kept {
            let writer = scope.spawn(|| commit_until_killed(&address, &t, &id, kill));
            // A different moment of the writer's loop each time.
            thread::sleep(Duration::from_millis(300 + 170 * u64::from(kill % 5)));
            probe.kill()?;
            let (known, last) = writer.join().expect("the writer does not break off");
            committed.extend(known);
            unknown.extend(last);
            Ok(())
        })?;
        probe.restart()?;
    }
    let mut reader = probe.actor("reader")?;
    reader.init(&id)?;
    let mut all = Vec::new();
    for place in &t {
        reader.settles(place)?;
        all.push(reader.values(place, Isolation::Committed)?);
    }
    probe.holds(all[0] == all[1], "the two partitions", "the same committed records in both")?;
    let mut read = all.swap_remove(0);
    read.retain(|value| !unknown.contains(value));
    probe.holds(
        read == committed,
        &format!("{} read of {} acknowledged", read.len(), committed.len()),
        "each once",
    )
}

/// One-record transactions over all partitions until the broker is gone; gives the acknowledged ones and the one
/// that has no answer.
fn commit_until_killed(address: &str, t: &[Place], id: &str, kill: u32) -> (Vec<String>, Option<String>) {
    let mut committed = Vec::new();
    let mut current = None;
    let mut run = || -> Kept {
        let mut a = Actor::connect("writer", address, &Trace::default())?;
        let me = a.init(id)?;
        for round in 0.. {
            let value = format!("{kill}.{round}");
            current = Some(value.clone());
            a.add(&me, &t.iter().collect::<Vec<_>>())?;
            for place in t {
                a.produce_when_free(place, &me, round, &[&value]).is(0)?;
            }
            a.end(&me, Commit).is(0)?;
            committed.push(value);
            current = None;
        }
        Ok(())
    };
    // It ends with the broker.
    let _: Result<(), Failure> = run();
    (committed, current)
}

/// A short life for producers by the age of their records, and often looked at.
const SHORT_LIFE: Settings = &[
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),
    ("producer.id.expiration.ms", "120000"),
    ("producer.id.expiration.check.interval.ms", "500"),
];

const B83: Scenario = Scenario {
    id: "B83",
    title: "a producer that is known only through a marker",
    promise: "A producer that was timed out stays shut out, however old its records call themselves.",
    source: "apache/kafka PR #7687 and #8960 (KAFKA-9144)",
    basis: &[Basis::Thread],
    needs: Needs::Restart(SHORT_LIFE),
    ..Scenario::kafka(Area::Recovery, b83)
};

fn b83(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init_within(&id, 1000)?;
    a.add(&me, &[&t])?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_millis());
    let hour_ago = i64::try_from(now).unwrap_or_default() - 3_600_000;
    a.produce_dated(&t, Some(&me), ("old", hour_ago)).is_stored_at(0)?;
    a.comes_to(&id, &["CompleteAbort", "Empty"])?;
    a.settles(&t)?;
    for is_restarted in [false, true] {
        if is_restarted {
            probe.kill()?;
            probe.restart()?;
        } else {
            // Longer than the broker's pause between two looks at the age of producers.
            thread::sleep(Duration::from_millis(1200));
        }
        let mut a = probe.actor("A")?;
        a.until_not(&[3, 6, 19], |actor| actor.produce(&t, &me, 1, &["late"])).is(47)?;
        a.end(&me, Commit).is(90)?;
        let known = a.describe_producers(&t).is(0)?;
        let epoch =
            known.iter().find(|one| one.producer_id.get() == me.producer_id()).map(|one| one.producer_epoch);
        probe.same("the epoch that the partition knows", epoch, Some(i32::from(me.epoch()) + 1))?;
        a.reads(&t, &[])?;
    }
    Ok(())
}
