//! Area `fencing`: from the moment its successor is answered, the older producer is shut out.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use semel_wire::ApiKey;

use crate::{
    Actor, Failure, Marker,
    Outcome::{self, Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept},
    session::{Isolation, Place, Versions},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B15, &B15_2, &B17, &B19, &B20, &B21, &B22, &B23, &F1];

const B15: Scenario = Scenario {
    id: "B15",
    title: "the older producer is shut out on every request",
    promise: "Two instances of an application never write under one transactional id at the same time.",
    source: "aio-libs/aiokafka PR #434; apache/kafka PR #8549 (KAFKA-9911); KIP-98",
    basis: &[Basis::Reference, Basis::Protocol],
    ..Scenario::kafka(Area::Fencing, b15)
};

fn b15(probe: &mut Probe) -> Kept {
    let (t, id, g) = (probe.topic()?, probe.id("x"), probe.group("g"));
    let mut a = probe.actor("A")?;
    let old = a.open(&t, &id, "A's")?;
    let mut b = probe.actor("B")?;
    let new = b.init(&id)?;
    a.produce(&t, &old, 1, &["late"]).is(47)?;
    a.try_add(&old, &[&t]).is(90)?;
    a.try_add_offsets(&old, &g).is(90)?;
    a.commit_offset(&old, &g, (&t, 7)).is_any(&[47, 90])?;
    a.end(&old, Commit).is(90)?;
    a.end(&old, Abort).is(90)?;
    b.transact(&t, &new, (0, "B's"), Commit)?;
    b.reads(&t, &["B's"])?;
    b.group_stands_at(&g, &t, -1)
}

const B15_2: Scenario = Scenario {
    id: "B15v2",
    title: "the older producer is shut out, version 2",
    promise: "Two instances of an application never write under one transactional id at the same time.",
    source: "KIP-890; KIP-98",
    basis: &[Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Fencing, b15_2)
};

fn b15_2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, id, g) = (probe.topic()?, probe.id("x"), probe.group("g"));
    let mut a = probe.actor("A")?.version_2();
    let old = a.open(&t, &id, "A's")?;
    let mut b = probe.actor("B")?.version_2();
    let new = b.init(&id)?;
    a.produce(&t, &old, 1, &["late"]).is(47)?;
    a.commit_offset(&old, &g, (&t, 7)).is_any(&[47, 90])?;
    a.end(&old, Commit).is(90)?;
    a.end(&old, Abort).is(90)?;
    b.transact(&t, &new, (0, "B's"), Commit)?;
    b.reads(&t, &["B's"])?;
    b.group_stands_at(&g, &t, -1)
}

const B17: Scenario = Scenario {
    id: "B17",
    title: "a producer whose transaction timed out",
    promise: "A producer that was silent for too long is told so: its commit is not acknowledged over nothing.",
    source: "redpanda-data/redpanda PR #23131; apache/kafka PR #4137 (KAFKA-6119); confluentinc/librdkafka#3928",
    basis: &[Basis::Reference, Basis::Thread],
    ..Scenario::kafka(Area::Fencing, b17)
};

fn b17(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init_within(&id, 1000)?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 0, &["too late"]).is_stored_at(0)?;
    a.settles(&t)?;
    a.produce(&t, &me, 1, &["later"]).is(47)?;
    a.end(&me, Commit).is(90)?;
    a.using(|versions| versions.end_txn = 1).end(&me, Commit).is(47)?;
    let last = a.dump(&t)?.pop();
    let is_marker = last.is_some_and(|batch| batch.attributes().is_control());
    probe.holds(is_marker, "the last batch of the log", "a marker")?;
    a.reads(&t, &[])
}

const B19: Scenario = Scenario {
    id: "B19",
    title: "two live owners of one transactional id",
    promise: "Two instances started by mistake take turns; neither hangs, no record is lost or doubled.",
    source: "spring-projects/spring-kafka#1091; confluentinc/confluent-kafka-go#722",
    basis: &[Basis::Kip],
    versions: "those of librdkafka and of franz-go",
    left_out: "librdkafka and franz-go themselves: the suite sends what they send",
    ..Scenario::kafka(Area::Fencing, b19)
};

/// What two owners know of their transactions.
#[derive(Default)]
struct Fight {
    committed: Vec<String>,
    refused: Vec<String>,
    longest_init: Duration,
}

fn b19(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let fight = Mutex::new(Fight::default());
    let until = Instant::now() + Duration::from_secs(probe.rounds(3, 60));
    let live = |name: &str, versions: Versions| -> Kept {
        for round in 0.. {
            if Instant::now() > until {
                break;
            }
            let mut a = probe.actor(name)?.speaking(versions);
            own_for_one_transaction(&mut a, &t, &id, &format!("{name}{round}"), &fight)?;
        }
        Ok(())
    };
    let newer = if probe.needs_version_2().is_ok() { Versions::VERSION_2 } else { Versions::CLASSIC };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| live("B", newer));
        live("A", Versions::LIBRDKAFKA)?;
        other.join().expect("an owner does not break off")
    })?;
    let fight = fight.into_inner().expect("nobody broke off");
    let mut reader = probe.actor("reader")?;
    reader.init(&id)?;
    reader.settles(&t)?;
    let read = reader.values(&t, Isolation::Committed)?;
    let mut once = read.clone();
    once.sort_unstable();
    once.dedup();
    probe.same("values that stand twice", read.len() - once.len(), 0)?;
    let missing: Vec<_> = fight.committed.iter().filter(|value| !read.contains(value)).collect();
    probe.same("acknowledged and not there", missing, Vec::new())?;
    let undead: Vec<_> = fight.refused.iter().filter(|value| read.contains(value)).collect();
    probe.same("fenced and there", undead, Vec::new())?;
    probe.holds(!fight.committed.is_empty(), "acknowledged commits", "some: no livelock")?;
    probe.holds(fight.longest_init < Duration::from_secs(10), "the longest InitProducerId", "under 10 s")
}

/// Takes the id and tries one transaction; a closed connection or a fencing code ends it.
fn own_for_one_transaction(a: &mut Actor, t: &Place, id: &str, value: &str, fight: &Mutex<Fight>) -> Kept {
    let asked = Instant::now();
    let Ok(me) = a.init(id) else { return Ok(()) };
    let outcome = a.try_transaction(t, &me, value);
    let mut fight = fight.lock().expect("nobody broke off");
    fight.longest_init = fight.longest_init.max(asked.elapsed());
    match outcome {
        Some(0) => fight.committed.push(value.to_owned()),
        // 48: what Apache Kafka answers to EndTxn 5 while the other one's takeover aborts the transaction.
        Some(47 | 48 | 90) => fight.refused.push(value.to_owned()),
        // Apache Kafka answers -1 now and then where two take turns: what became of it is unknown.
        Some(-1) | None => {}
        Some(code) => {
            return Err(Failure::broken(
                "a transaction of an owner that may be fenced",
                code,
                "47, 48 or 90",
            ));
        }
    }
    Ok(())
}

impl Actor {
    /// A transaction of one record: the first code that is not 0, or the commit's; `None` if that is unknown.
    fn try_transaction(&mut self, t: &Place, me: &Producer, value: &str) -> Option<i16> {
        if !self.is_version_2() {
            let added = self.until_free(|actor| actor.try_add(me, &[t])).code()?;
            if added != 0 {
                return Some(added);
            }
        }
        let written = self.produce_when_free(t, me, 0, &[value]).code()?;
        if written != 0 {
            return Some(written);
        }
        self.end(me, Commit).code()
    }
}

const B20: Scenario = Scenario {
    id: "B20",
    title: "which fencing code goes with which version",
    promise: "A fenced client of any age gets the code by which its library knows that it is fenced.",
    source: "apache/kafka PR #8549 (KAFKA-9911); streamnative/kop PR #1443; dpkp/kafka-python PR #2885; KIP-588",
    basis: &[Basis::Thread, Basis::Kip],
    versions: "all",
    ..Scenario::kafka(Area::Fencing, b20)
};

fn b20(probe: &mut Probe) -> Kept {
    let (t, id, g) = (probe.topic()?, probe.id("x"), probe.group("g"));
    let mut a = probe.actor("A")?;
    let old = a.init(&id)?;
    probe.actor("B")?.init(&id)?;
    for (version, code) in [(0, 47), (1, 47), (2, 90), (3, 90)] {
        a.using(|versions| versions.end_txn = version).end(&old, Commit).is(code)?;
        a.using(|versions| versions.add = version).try_add(&old, &[&t]).is(code)?;
        a.try_add_offsets(&old, &g).is(code)?;
    }
    a.using(|versions| versions.end_txn = 4).end(&old, Commit).is(90)?;
    for (version, code) in [(3, 47), (4, 90)] {
        a.using(|versions| versions.init_producer_id = version).renew(&old).is(code)?;
    }
    for version in (3..=13).filter(|version| probe.offers().has(ApiKey::Produce, *version)) {
        a.using(|versions| versions.produce = version).produce(&t, &old, 0, &["late"]).is(47)?;
    }
    Ok(())
}

const B21: Scenario = Scenario {
    id: "B21",
    title: "a zombie writes where its successor never wrote",
    promise: "A fenced producer cannot leave a record that no marker will ever close: readers would wait for ever.",
    source: "KIP-890; twmb/kcl#10; twmb/franz-go#451; KAFKA-12671",
    basis: &[Basis::Kip, Basis::Reference],
    ..Scenario::kafka(Area::Fencing, b21)
};

fn b21(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.partitions(2)?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let old = a.init_within(&id, 5000)?;
    a.add(&old, &[&t[0]])?;
    let mut b = probe.actor("B")?;
    b.init(&id)?;
    for version in (9..=12).filter(|version| probe.offers().has(ApiKey::Produce, *version)) {
        a.using(|versions| versions.produce = version);
        a.produce_when_free(&t[1], &old, 0, &["zombie"]).is_any(&[47, 48, 120])?;
    }
    // What its timeout would set right is given its time.
    std::thread::sleep(Duration::from_secs(probe.rounds(0, 20)));
    b.produce_plain(&t[1], &["plain"]).is_stored_at(0)?;
    b.reads(&t[1], &["plain"])
}

const B22: Scenario = Scenario {
    id: "B22",
    title: "a commit after the coordinator's own abort, classic",
    promise: "A client that was timed out learns that it is fenced, not that its own state is broken.",
    source: "apache/kafka PR #23204 (KAFKA-20785)",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Fencing, b22)
};

fn b22(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    commit_after_timeout(&mut a, &t, &id)?.is(90)?;
    let seen = a.describe(&id).is(0)?.transaction_state;
    probe.holds(
        ["CompleteAbort", "Empty"].contains(&seen.as_str()),
        "the state",
        "CompleteAbort or Empty",
    )?;
    let me = a.init(&id)?;
    a.transact(&t, &me, (0, "again"), Commit)?;
    a.reads(&t, &["again"])
}

/// Writes, waits for the timeout's abort, commits with what it held.
pub(crate) fn commit_after_timeout(a: &mut Actor, t: &Place, id: &str) -> Kept<crate::Answer<Producer>> {
    let me = a.init_within(id, 1000)?;
    if !a.is_version_2() {
        a.add(&me, &[t])?;
    }
    a.produce(t, &me, 0, &["too late"]).is_stored_at(0)?;
    a.comes_to(id, &["CompleteAbort", "Empty"])?;
    Ok(a.end(&me, Commit))
}

const B23: Scenario = Scenario {
    id: "B23",
    title: "an administrator fences right after a commit",
    promise: "Fencing a producer works every time and at once, also while its last transaction is completed.",
    source: "apache/kafka PR #16229 (KAFKA-16570); KIP-618; apache/kafka PR #10907",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Fencing, b23)
};

fn b23(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    for round in 0..probe.rounds(100, 200) {
        let mut a = probe.actor("A")?;
        let me = a.init(&id)?;
        a.transact(&t, &me, (0, &format!("{round}")), Commit)?;
        let asked = Instant::now();
        // What an admin client's fenceProducers sends.
        let mut admin = probe.actor("admin")?;
        admin.until_free(|admin| admin.try_init(Some(&id), 1, None)).is(0)?;
        probe.holds(asked.elapsed() < Duration::from_secs(2), "the time that fencing took", "under 2 s")?;
        a.try_add(&me, &[&t]).is_any(&[47, 90])?;
        a.produce(&t, &me, 1, &["late"]).is(47)?;
    }
    Ok(())
}

const F1: Scenario = Scenario {
    id: "F1",
    title: "an administrator's abort marker ends the open transaction of a partition",
    promise: "A transaction that hangs can be ended by hand, and readers go on.",
    source: "KIP-664",
    basis: &[Basis::Kip],
    versions: "WriteTxnMarkers 1",
    ..Scenario::kafka(Area::Fencing, f1)
};

fn f1(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &id, "hanging")?;
    let mut admin = probe.actor("admin")?;
    let seen = admin.describe_producers(&t).is(0)?;
    let open = seen.iter().find(|seen| seen.producer_id.get() == me.producer_id());
    let Some(open) = open else { return probe.holds(false, "DescribeProducers", "the open producer") };
    probe.same("where its transaction starts", open.current_txn_start_offset.get(), 0)?;
    let outcome: Outcome = Abort;
    let marker = Marker { producer: &me, outcome, coordinator_epoch: open.coordinator_epoch.max(0) };
    admin.write_marker(&t, marker, 1).is(0)?;
    admin.reads(&t, &[])
}
