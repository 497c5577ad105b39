//! Many of everything: ids, transactions, producers; areas `init` and `coordinator`.
//!
//! By hundreds, so that it fits into a run, and in a thorough one by as many as the sources say. What these do not do:
//! measure a broker. Each compares what it sees at the end with what it saw at the start, so that a slow machine is not a
//! broken promise.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Actor, Filter,
    Outcome::Commit,
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept, Needs},
    session::{Isolation, Place},
    stricter::SHORT_EXPIRY,
};

use super::coordinator::QUICK_EXPIRY;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B94, &B94E, &B94K, &B95, &B95E, &B96];

const B94: Scenario = Scenario {
    id: "B94",
    title: "many producer ids on one partition",
    promise: "Short-lived producers, however many, do not slow a partition down, and none of them is forgotten.",
    source: "redpanda-data/redpanda#10238, PR #11597 and #28233; apache/kafka PR #16075",
    basis: &[Basis::Thread],
    left_out: "the memory for each id: it cannot be seen from outside",
    ..Scenario::kafka(Area::Init, b94)
};

fn b94(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let (made, took) = beside_many(probe, &t, probe.rounds(250, 200_000))?;
    is_steady(probe, "a steady producer's batch", &took)?;
    let mut a = probe.actor("A")?;
    let end = a.ends(&t)?.high_watermark;
    let (first, offset) = &made[0];
    a.produce(&t, first, 0, &["one"]).is_stored_at(*offset)?;
    a.produce(&t, first, 1, &["two"]).is_stored_at(end)
}

/// Producers that have written one record each, and where it stands.
type Made = Vec<(Producer, i64)>;

/// Such producers, and how long a steady one's batches took meanwhile.
fn beside_many(probe: &Probe, t: &Place, count: usize) -> Kept<(Made, Vec<Duration>)> {
    let mut steady = probe.actor("steady")?;
    let owner = steady.init_plain()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_steadily(&mut steady, t, &owner, &is_over));
        let made = write_once_each(probe, t, count);
        is_over.store(true, Ordering::Relaxed);
        let took = writer.join().expect("the writer does not break off");
        Ok((made?, took?))
    })
}

const B94E: Scenario = Scenario {
    id: "B94e",
    title: "many producer ids on one partition, and their expiry",
    promise: "Forgetting producers that are idle neither slows down nor breaks one that is not.",
    source: "redpanda-data/redpanda#10238, PR #11597 and #28233; apache/kafka PR #16075",
    basis: &[Basis::Thread],
    needs: Needs::Settings(SHORT_EXPIRY),
    left_out: "that the memory falls: it cannot be seen from outside",
    ..Scenario::kafka(Area::Init, b94e)
};

fn b94e(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let took = beside_many(probe, &t, probe.rounds(250, 200_000))?.1;
    is_steady(probe, "a steady producer's batch", &took)?;
    let stored = probe.actor("reader")?.values(&t, Isolation::Uncommitted)?;
    let steady = stored.iter().filter(|value| *value == "steady").count();
    probe.same("records of the steady producer", steady, took.len())
}

/// Connections that work side by side where much is to be made.
const MAKERS: usize = 4;

/// Makes so many, numbered from 0, over several connections at once.
fn side_by_side<T: Send>(
    probe: &Probe,
    count: usize,
    make: impl Fn(&mut Actor, usize) -> Kept<T> + Sync,
) -> Kept<Vec<T>> {
    let share = |maker: usize| -> Kept<Vec<T>> {
        let mut a = probe.actor("maker")?;
        (maker..count).step_by(MAKERS).map(|number| make(&mut a, number)).collect()
    };
    let share = &share;
    thread::scope(|scope| {
        let makers: Vec<_> = (0..MAKERS).map(|maker| scope.spawn(move || share(maker))).collect();
        let mut all = Vec::new();
        for maker in makers {
            all.extend(maker.join().expect("a maker does not break off")?);
        }
        Ok(all)
    })
}

/// Makes so many over several connections.
fn write_once_each(probe: &Probe, t: &Place, count: usize) -> Kept<Made> {
    side_by_side(probe, count, |a, _| {
        let me = a.init_plain()?;
        let offset = a.produce(t, &me, 0, &["one"]).is(0)?.base_offset.get();
        Ok((me, offset))
    })
}

/// Ids of one transaction each, whose record is the id's number.
fn transact_once_each(probe: &Probe, t: &Place, count: usize) -> Kept<Vec<String>> {
    let ids = probe.id("x");
    side_by_side(probe, count, |a, number| {
        let id = format!("{ids}-{number}");
        let me = a.init(&id)?;
        a.transact(t, &me, (0, &number.to_string()), Commit)?;
        Ok(id)
    })
}

/// Batches at an even pace until the others are done; how long each took.
fn write_steadily(a: &mut Actor, t: &Place, me: &Producer, is_over: &AtomicBool) -> Kept<Vec<Duration>> {
    let mut took = Vec::new();
    for sequence in 0.. {
        let asked = Instant::now();
        a.produce(t, me, sequence, &["steady"]).is(0)?;
        took.push(asked.elapsed());
        if is_over.load(Ordering::Relaxed) && took.len() >= 20 {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(took)
}

/// The last fifth takes no longer than three times the first one, by its median.
fn is_steady(probe: &Probe, what: &str, took: &[Duration]) -> Kept {
    let median = |part: &[Duration]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part[part.len() / 2]
    };
    let fifth = took.len() / 5;
    let (before, after) = (median(&took[..fifth]), median(&took[took.len() - fifth..]));
    // What is small is noise of the machine.
    let is_slower = after > before * 3 && after > Duration::from_millis(40);
    probe.holds(!is_slower, &format!("{what}: {before:?} at first, {after:?} in the end"), "no decay")
}

const B94K: Scenario = Scenario {
    id: "B94k",
    title: "many producers and transactional ids across a kill of the broker",
    promise: "After a crash every one of many producers is known: a retry is not stored twice, no id is lost.",
    source: "redpanda-data/redpanda#10238; IBM/sarama#2915",
    basis: &[Basis::Thread],
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Recovery, b94k)
};

fn b94k(probe: &mut Probe) -> Kept {
    let (t, u) = (probe.topic()?, probe.topic()?);
    let producers = write_once_each(probe, &t, probe.rounds(150, 200_000))?;
    let ids = transact_once_each(probe, &u, probe.rounds(50, 50_000))?;
    probe.actor("A")?.settles(&u)?;
    probe.kill()?;
    let asked = Instant::now();
    probe.restart()?;
    let said = format!("{:?} until it serves again", asked.elapsed());
    probe.holds(asked.elapsed() < Duration::from_secs(probe.rounds(60, 10)), &said, "soon")?;
    let mut a = probe.actor("A again")?;
    probe.same("ids that are not listed as committed", missing(&mut a, &ids, Some("CompleteCommit"))?, 0)?;
    for (me, offset) in producers.iter().step_by(probe.rounds(1, 100)) {
        a.until_not(&[3, 6], |actor| actor.produce(&t, me, 0, &["one"])).is_stored_at(*offset)?;
    }
    probe.same("records", a.values(&t, Isolation::Uncommitted)?.len(), producers.len())?;
    probe.same("committed records", a.values(&u, Isolation::Committed)?.len(), ids.len())
}

/// How many ids ListTransactions does not have, or not in this state.
fn missing(a: &mut Actor, ids: &[String], state: Option<&str>) -> Kept<usize> {
    let listing = a.list_transactions(Filter::default()).is(0)?;
    let fits = |listed: &str| state.is_none_or(|state| state == listed);
    let found = listing.found.iter().filter(|(_, _, listed)| fits(listed));
    let found: BTreeSet<_> = found.map(|(id, _, _)| id.as_str()).collect();
    Ok(ids.iter().filter(|id| !found.contains(id.as_str())).count())
}

const B95: Scenario = Scenario {
    id: "B95",
    title: "a new transactional id for every transaction",
    promise: "An application that takes a new id each time does not slow the broker down.",
    source: "IBM/sarama#2915; redpanda-data/docs PR #243 and #1425; corda/corda-runtime-os PR #6390",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Coordinator, b95)
};

fn b95(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let (mut ids, mut took, base) = (Vec::new(), Vec::new(), probe.id("x"));
    for number in 0..probe.rounds(80, 50_000) {
        let id = format!("{base}-{number}");
        let started = Instant::now();
        let me = a.init(&id)?;
        a.transact(&t, &me, (0, &number.to_string()), Commit)?;
        took.push(started.elapsed());
        ids.push(id);
    }
    is_steady(probe, "a transaction of a new id", &took)?;
    let asked = Instant::now();
    probe.same("ids that are not listed", missing(&mut a, &ids, None)?, 0)?;
    probe.holds(asked.elapsed() < Duration::from_secs(3), "the time of ListTransactions", "under 3 s")?;
    a.settles(&t)?;
    probe.same("committed records", a.values(&t, Isolation::Committed)?.len(), ids.len())
}

const B95E: Scenario = Scenario {
    id: "B95e",
    title: "a new transactional id for every transaction, and their expiry",
    promise: "Ids that an application took once and left are forgotten; what they committed is not.",
    source: "IBM/sarama#2915; redpanda-data/docs PR #243 and #1425",
    basis: &[Basis::Protocol],
    needs: Needs::Settings(QUICK_EXPIRY),
    left_out: "the room on the disk that they took: it cannot be seen from outside",
    ..Scenario::kafka(Area::Coordinator, b95e)
};

fn b95e(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let ids = transact_once_each(probe, &t, probe.rounds(60, 50_000))?;
    let mut operator = probe.actor("operator")?;
    probe.eventually_within(Duration::from_secs(60), "all ids are forgotten", || {
        Ok(missing(&mut operator, &ids, None)? == ids.len())
    })?;
    operator.settles(&t)?;
    probe.same("committed records", operator.values(&t, Isolation::Committed)?.len(), ids.len())
}

const B96: Scenario = Scenario {
    id: "B96",
    title: "the cost of small transactions",
    promise: "Transactions of one record keep their pace, alone and beside others: no pause of seconds.",
    source: "redpanda-data/redpanda#6228; confluentinc/confluent-kafka-dotnet#1818; confluentinc/confluent-kafka-python#967; PostHog/posthog PR #100633",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Coordinator, b96)
};

fn b96(probe: &mut Probe) -> Kept {
    let count = probe.rounds(60, 5000);
    let mut all = Vec::new();
    for width in [1, 2] {
        let alone = transactions(probe, count, width)?;
        is_steady(probe, &format!("a transaction over {width} partitions"), &alone)?;
        all.extend(alone);
    }
    is_steady(probe, "a record without a transaction", &plain_records(probe, count)?)?;
    let (crowd, each) = probe.rounds((6, 12), (16, 312));
    let crowd = thread::scope(|scope| {
        let others: Vec<_> = (0..crowd).map(|_| scope.spawn(|| transactions(probe, each, 1))).collect();
        others.into_iter().map(|other| other.join().expect("nobody breaks off")).collect::<Kept<Vec<_>>>()
    })?;
    let longest = crowd.into_iter().flatten().chain(all).max().unwrap_or_default();
    probe.holds(
        longest < Duration::from_secs(5),
        &format!("the longest transaction: {longest:?}"),
        "no pause",
    )
}

/// Transactions of one record to each partition back to back, and how long each took.
fn transactions(probe: &Probe, count: i32, width: i32) -> Kept<Vec<Duration>> {
    let t = probe.partitions(width)?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    let mut took = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        a.add(&me, &t.iter().collect::<Vec<_>>())?;
        for place in &t {
            a.produce_when_free(place, &me, number, &["one"]).is(0)?;
        }
        a.end(&me, Commit).is(0)?;
        took.push(started.elapsed());
    }
    for place in &t {
        a.settles(place)?;
        probe.same("committed records", a.values(place, Isolation::Committed)?.len(), took.len())?;
    }
    Ok(took)
}

/// Records of an idempotent producer one after the other, and how long each took.
fn plain_records(probe: &Probe, count: i32) -> Kept<Vec<Duration>> {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init_plain()?;
    let mut took = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        a.produce(&t, &me, number, &["one"]).is(0)?;
        took.push(started.elapsed());
    }
    Ok(took)
}
