//! Stricter promises about transactions: nobody's old request touches what is new.

use std::time::{Duration, Instant};

use crate::{
    Marker,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Kept},
    session::Isolation,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S3, &S4, &S8, &S9, &S13, &S14, &S19, &S22];

const S3: Scenario = Scenario {
    id: "S3",
    title: "a zombie's recovery request",
    promise: "An instance that was replaced long ago cannot end the transaction of the living one.",
    source: "found on Apache Kafka 4.4; KIP-360",
    ..Scenario::stricter(
        Area::Fencing,
        "51: the live transaction is aborted, the live producer fenced, then 90",
        s3,
    )
};

fn s3(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut zombie = probe.actor("zombie")?;
    let first = zombie.init(&id)?;
    zombie.init(&id)?;
    let mut live = probe.actor("live")?;
    let me = live.open(&t, &id, "kept")?;
    zombie.try_init(Some(&id), 60_000, Some(first.stamp)).is(90)?;
    live.end(&me, Commit).is(0)?;
    live.reads(&t, &["kept"])
}

const S4: Scenario = Scenario {
    id: "S4",
    title: "a late copy of the owner's own recovery request",
    promise: "A producer that recovered and went on is not fenced by a copy of its own request.",
    source: "found on Apache Kafka 4.4; KIP-360",
    ..Scenario::stricter(Area::Fencing, "51: the owner's transaction is aborted and the owner fenced", s4)
};

fn s4(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let first = a.init(&id)?;
    let second = a.renew(&first).is(0)?;
    probe.same("the identity that a copy before any use gets", a.renew(&first).is(0)?, second.clone())?;
    a.add(&second, &[&t])?;
    a.produce(&t, &second, 0, &["kept"]).is_stored_at(0)?;
    a.try_init(Some(&id), 60_000, Some(first.stamp)).is(90)?;
    a.end(&second, Commit).is(0)?;
    a.reads(&t, &["kept"])
}

const S8: Scenario = Scenario {
    id: "S8",
    title: "an administrator aborts one partition of a transaction",
    promise: "A transaction is never torn: what an administrator ends is ended on all its partitions, for good.",
    source: "found on Apache Kafka 4.4; KIP-664",
    versions: "classic, WriteTxnMarkers 1",
    ..Scenario::stricter(Area::Coordinator, "record 1 is aborted, record 2 accepted and committed", s8)
};

fn s8(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &id, "1")?;
    abort_by_hand(probe, &t, &me, 0)?;
    a.produce(&t, &me, 1, &["2"]).is(47)?;
    a.end(&me, Commit).is(90)?;
    a.reads(&t, &[])
}

/// What an admin client's abortTransaction sends.
fn abort_by_hand(
    probe: &Probe,
    t: &crate::session::Place,
    producer: &Producer,
    coordinator_epoch: i32,
) -> Kept {
    let marker = Marker { producer, outcome: Abort, coordinator_epoch };
    probe.actor("admin")?.write_marker(t, marker, 1).is(0)
}

const S9: Scenario = Scenario {
    id: "S9",
    title: "an administrator's abort with a high coordinator epoch",
    promise: "A mistake in an administrator's request does not stop a partition's readers for ever.",
    source: "found on Apache Kafka 4.4; KIP-664",
    versions: "classic, WriteTxnMarkers 1",
    ..Scenario::stricter(
        Area::Markers,
        "the coordinator's own markers are refused for ever: the last stable offset stands still",
        s9,
    )
};

fn s9(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &id, "1")?;
    abort_by_hand(probe, &t, &me, 1000)?;
    let again = a.init(&id)?;
    a.transact(&t, &again, (0, "2"), Commit)?;
    a.reads(&t, &["2"])
}

const S13: Scenario = Scenario {
    id: "S13",
    title: "a takeover of an open transaction is answered once",
    promise: "A restarted instance goes on at once; it is not sent away to ask again while the old one is cleared up.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter(Area::Init, "51 for half a second, the client asks again and again", s13)
};

fn s13(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    a.open(&t, &id, "gone")?;
    let mut b = probe.actor("B")?;
    let asked = Instant::now();
    b.try_init(Some(&id), 60_000, None).is(0)?;
    probe.holds(asked.elapsed() < Duration::from_secs(1), "the time until the answer", "under a second")?;
    let ends = b.ends(&t)?;
    probe.same("the last stable offset when it is answered", ends.last_stable, ends.high_watermark)
}

const S14: Scenario = Scenario {
    id: "S14",
    title: "a commit is seen on all its partitions once it is answered",
    promise: "Whoever was told that a transaction is committed and asks a reader finds it, on every partition.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter_at_times(
        Area::Reading,
        "0 before the markers are written: readers see nothing yet",
        s14,
    )
};

fn s14(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.partitions(3)?, probe.id("x"));
    let all: Vec<_> = t.iter().collect();
    let mut a = probe.actor("A")?;
    let me = a.init(&id)?;
    for round in 0..20 {
        let value = format!("{round}");
        a.add(&me, &all)?;
        for place in &t {
            a.produce(place, &me, round, &[&value]).is(0)?;
        }
        a.end(&me, Commit).is(0)?;
        for place in &t {
            let ends = a.ends(place)?;
            probe.same("the last stable offset", ends.last_stable, 2 * i64::from(round) + 2)?;
            let seen = a.values(place, Isolation::Committed)?;
            probe.same("the last value that is read", seen.last(), Some(&value))?;
        }
    }
    Ok(())
}

const S19: Scenario = Scenario {
    id: "S19",
    title: "an old owner's EndTxn is not answered with its successor's identity",
    promise: "Two instances never hold one identity, and none believes in a commit that another one made.",
    source: "found on Apache Kafka 4.4; KIP-890",
    versions: "EndTxn 5 against classic",
    ..Scenario::stricter(Area::Fencing, "0 with the successor's identity", s19)
};

fn s19(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    for outcome in [Commit, Abort] {
        let (t, id) = (probe.topic()?, probe.id("x"));
        let mut a = probe.actor("A")?.version_2();
        let old = a.init(&id)?;
        let mut b = probe.actor("B")?;
        let new = b.open(&t, &id, "B's")?;
        b.end(&new, outcome).is(0)?;
        a.end(&old, outcome).is_any(&[47, 90])?;
        b.transact(&t, &new, (1, "again"), Commit)?;
    }
    Ok(())
}

const S22: Scenario = Scenario {
    id: "S22",
    title: "a commit after the coordinator's own abort, version 2",
    promise: "A client that was timed out learns that it is fenced, not that its own state is broken.",
    source: "apache/kafka PR #23204 (KAFKA-20785)",
    versions: "transaction.version 2",
    ..Scenario::stricter(
        Area::Fencing,
        "48, which clients take for a mistake of their own; fixed after 4.4",
        s22,
    )
};

fn s22(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?.version_2();
    // 120: abort and go on, which the same client may.
    crate::scenarios::commit_after_timeout(&mut a, &t, &id)?.is_any(&[90, 120])?;
    let me = a.init(&id)?;
    a.transact(&t, &me, (0, "again"), Commit)?;
    a.reads(&t, &["again"])
}
