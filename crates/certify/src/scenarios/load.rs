//! Many of everything, in a size that fits into a run: ids, transactions, producers; areas `init` and `coordinator`.
//!
//! What these do not do: measure a broker. Each compares what it sees at the end with what it saw at the start, so that
//! a slow machine is not a broken promise.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    Actor, Filter,
    Outcome::Commit,
    Probe, Scenario,
    scenario::{Area, Basis, Kept, Needs},
    session::Isolation,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B94, &B94K, &B95, &B96];

const B94: Scenario = Scenario {
    id: "B94",
    title: "many producer ids on one partition",
    promise: "Hundreds of short-lived producers do not slow a partition down, and none of them is forgotten.",
    source: "redpanda-data/redpanda#10238, PR #11597 and #28233; apache/kafka PR #16075",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Init, b94)
};

fn b94(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let (mut a, mut steady) = (probe.actor("A")?, probe.actor("steady")?);
    let owner = steady.init_plain()?;
    let (mut first, mut took, mut sequence) = (None, Vec::new(), 0);
    for number in 0..250 {
        let me = a.init_plain()?;
        a.produce(&t, &me, 0, &["one"]).is(0)?;
        first.get_or_insert(me);
        if number % 5 == 0 {
            let asked = Instant::now();
            steady.produce(&t, &owner, sequence, &["steady"]).is(0)?;
            took.push(asked.elapsed());
            sequence += 1;
        }
    }
    is_steady(probe, "a steady producer's batch", &took)?;
    let end = a.ends(&t)?.high_watermark;
    let first = first.expect("hundreds have written");
    a.produce(&t, &first, 0, &["one"]).is_stored_at(0)?;
    a.produce(&t, &first, 1, &["two"]).is_stored_at(end)
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
    let mut a = probe.actor("A")?;
    let (mut producers, mut ids) = (Vec::new(), Vec::new());
    for number in 0..150 {
        let me = a.init_plain()?;
        a.produce(&t, &me, 0, &["one"]).is_stored_at(number)?;
        producers.push(me);
        if number % 3 == 0 {
            let id = probe.id("x");
            let me = a.init(&id)?;
            a.transact(&u, &me, (0, "one"), Commit)?;
            ids.push(id);
        }
    }
    a.settles(&u)?;
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    let listing = a.list_transactions(Filter::default()).is(0)?;
    let missing = ids.iter().filter(|id| listing.state_of(id) != Some("CompleteCommit")).count();
    probe.same("ids that are not listed as committed", missing, 0)?;
    for (number, me) in (0..).zip(&producers) {
        a.until_not(&[3, 6], |actor| actor.produce(&t, me, 0, &["one"])).is_stored_at(number)?;
    }
    probe.same("records", a.values(&t, Isolation::Uncommitted)?.len(), producers.len())?;
    a.reads(&u, &vec!["one"; ids.len()])
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
    let (mut ids, mut took) = (Vec::new(), Vec::new());
    for number in 0..80 {
        let id = probe.id("x");
        let started = Instant::now();
        let me = a.init(&id)?;
        a.transact(&t, &me, (0, &number.to_string()), Commit)?;
        took.push(started.elapsed());
        ids.push(id);
    }
    is_steady(probe, "a transaction of a new id", &took)?;
    let asked = Instant::now();
    let listing = a.list_transactions(Filter::default()).is(0)?;
    probe.holds(asked.elapsed() < Duration::from_secs(3), "the time of ListTransactions", "under 3 s")?;
    let missing = ids.iter().filter(|id| listing.state_of(id).is_none()).count();
    probe.same("ids that are not listed", missing, 0)?;
    a.settles(&t)?;
    probe.same("committed records", a.values(&t, Isolation::Committed)?.len(), ids.len())
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
    let alone = transactions(probe, 60)?;
    is_steady(probe, "a transaction", &alone)?;
    let crowd = thread::scope(|scope| {
        let others: Vec<_> = (0..6).map(|_| scope.spawn(|| transactions(probe, 12))).collect();
        others.into_iter().map(|other| other.join().expect("nobody breaks off")).collect::<Kept<Vec<_>>>()
    })?;
    let longest = crowd.into_iter().flatten().chain(alone).max().unwrap_or_default();
    probe.holds(
        longest < Duration::from_secs(5),
        &format!("the longest transaction: {longest:?}"),
        "no pause",
    )
}

/// Transactions of one record back to back, and how long each took.
fn transactions(probe: &Probe, count: i32) -> Kept<Vec<Duration>> {
    let t = probe.topic()?;
    let mut a: Actor = probe.actor("A")?;
    let mut me = a.init(&probe.id("x"))?;
    let mut took = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        me = a.transact(&t, &me, (number, "one"), Commit)?;
        took.push(started.elapsed());
    }
    a.settles(&t)?;
    probe.same("committed records", a.values(&t, Isolation::Committed)?.len(), took.len())?;
    Ok(took)
}
