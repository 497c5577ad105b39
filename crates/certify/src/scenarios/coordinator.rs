//! Area `coordinator`: a transaction is decided once, its outcome reaches every partition, and the next one can start.

use std::{
    thread,
    time::{Duration, Instant},
};

use semel_wire::ApiKey;

use crate::{
    Actor,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    relay::Action,
    scenario::{Area, Basis, Kept, Needs, Settings},
    session::{Isolation, Place},
};

use super::markers::QUICK_SWEEP;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[
    &B32, &B32V2, &B32K, &B33, &B33C, &B34, &B34V2, &B36, &B37, &B39, &B40, &B42, &B44, &B45, &B46, &B46R,
    &B47,
];

const B32: Scenario = Scenario {
    id: "B32",
    title: "a retry of a commit whose answer was lost",
    promise: "A producer that did not hear of its commit and asks again is told that it is committed.",
    source: "redpanda-data/redpanda PR #3501 and PR #22937; apache/pulsar#19629",
    basis: &[Basis::Reference, Basis::Thread],
    ..Scenario::kafka(Area::Coordinator, b32)
};

fn b32(probe: &mut Probe) -> Kept {
    let (t, me) = commit_unheard(probe, false)?;
    let mut a = probe.actor("A again")?;
    for _ in 0..5 {
        a.end(&me, Commit).is(0)?;
    }
    visible_once(&mut a, &t)
}

const B32V2: Scenario = Scenario {
    id: "B32v2",
    title: "a retry of a commit whose answer was lost, version 2",
    promise: "A producer that did not hear of its commit and asks again is given its next identity.",
    source: "redpanda-data/redpanda PR #3501; KIP-890",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Coordinator, b32_v2)
};

fn b32_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, me) = commit_unheard(probe, true)?;
    let mut a = probe.actor("A again")?.version_2();
    let mut next = me.clone();
    for _ in 0..5 {
        next = a.end(&me, Commit).is(0)?;
        probe.same("producer id", next.producer_id(), me.producer_id())?;
        probe.same("epoch", next.epoch(), me.epoch() + 1)?;
    }
    visible_once(&mut a, &t)?;
    a.produce_when_free(&t[0], &next, 0, &["next"]).is(0)?;
    a.end(&next, Commit).is(0)?;
    a.reads(&t[0], &["once", "next"])
}

const B32K: Scenario = Scenario {
    id: "B32k",
    title: "a retry of a commit whose answer was lost, after a kill of the broker",
    promise: "A commit is remembered across a restart: its retry is told so, and nothing is committed twice.",
    source: "redpanda-data/redpanda PR #3501 and PR #22937",
    basis: &[Basis::Reference, Basis::Thread],
    versions: "classic, and version 2",
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Coordinator, b32k)
};

fn b32k(probe: &mut Probe) -> Kept {
    let newer = probe.needs_version_2().is_ok().then(|| commit_unheard(probe, true)).transpose()?;
    let (t, me) = commit_unheard(probe, false)?;
    for (_, me) in newer.iter().chain([&(t.clone(), me.clone())]) {
        probe.actor("A")?.comes_to(me.id_or_empty(), &["CompleteCommit"])?;
    }
    probe.kill()?;
    probe.restart()?;
    let mut a = probe.actor("A again")?;
    a.end(&me, Commit).is(0)?;
    visible_once(&mut a, &t)?;
    let Some((t, me)) = newer else { return Ok(()) };
    let mut a = probe.actor("A again")?.version_2();
    for _ in 0..2 {
        let next = a.end(&me, Commit).is(0)?;
        probe.same("the epoch from here on", next.epoch(), me.epoch() + 1)?;
    }
    visible_once(&mut a, &t)
}

/// A transaction over ten partitions whose commit is done, but its answer lost with the connection.
fn commit_unheard(probe: &Probe, is_version_2: bool) -> Kept<(Vec<Place>, Producer)> {
    let (t, relay) = (probe.partitions(10)?, probe.relay()?);
    let mut a = probe.actor_behind("A", &relay)?;
    if is_version_2 {
        a = a.version_2();
    }
    let me = a.init(&probe.id("x"))?;
    write_all(&mut a, &t, &me, (0, "once"))?;
    relay.on(ApiKey::EndTxn, 1, Action::SwallowAnswer);
    a.try_end(&me, Commit).is_cut()?;
    Ok((t, me))
}

fn visible_once(a: &mut Actor, t: &[Place]) -> Kept {
    t.iter().try_for_each(|place| a.reads(place, &["once"]))
}

/// One record to each partition, in one request.
fn write_all(a: &mut Actor, t: &[Place], me: &Producer, (sequence, value): (i32, &str)) -> Kept {
    if !a.is_version_2() {
        a.add(me, &t.iter().collect::<Vec<_>>())?;
    }
    let values = [value];
    let batches: Vec<_> = t.iter().map(|place| (place, sequence, &values as &[_])).collect();
    a.produce_many(me, &batches).into_iter().try_for_each(|answer| answer.is(0).map(|_| ()))
}

const B33: Scenario = Scenario {
    id: "B33",
    title: "a decided outcome never flips",
    promise: "A transaction that was committed cannot be aborted any more, nor the other way round.",
    source: "KIP-98; apache/flink PR #16941",
    ..Scenario::kafka(Area::Coordinator, b33)
};

fn b33(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for (sequence, outcome) in [(0, Commit), (1, Abort)] {
        a.transact(&t, &me, (sequence, &format!("{outcome:?}")), outcome)?;
        a.end(&me, outcome.other()).is(48)?;
        a.comes_to(me.id_or_empty(), &[if outcome == Commit { "CompleteCommit" } else { "CompleteAbort" }])?;
    }
    probe.same("batches, two markers among them", a.dump(&t)?.len(), 4)?;
    a.reads(&t, &["Commit"])
}

const B33C: Scenario = Scenario {
    id: "B33c",
    title: "a commit and an abort at once",
    promise: "Of a commit and an abort that race, one wins and the other is told so: never both.",
    source: "KIP-98",
    ..Scenario::kafka(Area::Coordinator, b33c)
};

fn b33c(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    for round in 0..probe.rounds(40, 200) {
        let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
        let value = format!("{round}");
        let me = a.open(&t, &id, &value)?;
        let (committed, aborted) = thread::scope(|scope| {
            let other = scope.spawn(|| b.end(&me, Abort).code());
            (a.end(&me, Commit).code(), other.join().expect("nobody breaks off"))
        });
        let mut reader = probe.actor("reader")?;
        reader.settles(&t)?;
        let is_read = reader.values(&t, Isolation::Committed)?.contains(&value);
        // A closed connection is the fate of the one that came over the older connection.
        let due = if is_read { (Some(0), Some(48)) } else { (Some(48), Some(0)) };
        let fits = |came: Option<i16>, due: Option<i16>| came == due || (came.is_none() && due != Some(0));
        let said = format!("commit: {committed:?}, abort: {aborted:?}, the record is read: {is_read}");
        probe.holds(
            fits(committed, due.0) && fits(aborted, due.1),
            &said,
            "0 for what became true, 48 for the other",
        )?;
        let markers = reader.dump(&t)?.iter().filter(|batch| batch.attributes().is_control()).count();
        probe.same("markers in all", markers, round + 1)?;
    }
    Ok(())
}

const B34: Scenario = Scenario {
    id: "B34",
    title: "EndTxn with nothing in the transaction",
    promise: "A producer that ends an empty transaction is told so and can go on.",
    source: "redpanda-data/redpanda PR #7996; fede1024/rust-rdkafka#349; confluentinc/librdkafka#3297",
    basis: &[Basis::Reference, Basis::Thread],
    ..Scenario::kafka(Area::Coordinator, b34)
};

fn b34(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.end(&me, Commit).is(48)?;
    a.end(&me, Abort).is(48)?;
    a.transact(&t, &me, (0, "after"), Commit)?;
    a.reads(&t, &["after"])
}

const B34V2: Scenario = Scenario {
    id: "B34v2",
    title: "an abort with nothing in the transaction, version 2",
    promise: "A producer that aborts before anything reached the broker is not fenced by its own abort.",
    source: "apache/kafka PR #18448 (KAFKA-18401), #18467 (KAFKA-18464); KIP-890",
    basis: &[Basis::Reference, Basis::Thread],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Coordinator, b34_v2)
};

fn b34_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let first = a.init(&probe.id("x"))?;
    let second = a.end(&first, Abort).is(0)?;
    probe.same("the epoch after an empty abort", second.epoch(), first.epoch() + 1)?;
    let third = a.transact(&t, &second, (0, "1"), Commit)?;
    // At once, while the markers may still be under way.
    let fourth = a.end(&third, Abort).is(0)?;
    a.end(&fourth, Commit).is(48)?;
    a.transact(&t, &fourth, (0, "2"), Commit)?;
    a.reads(&t, &["1", "2"])
}

const B36: Scenario = Scenario {
    id: "B36",
    title: "a delayed Produce and the next transaction, version 2",
    promise: "A record that its producer gave up never lands in a later transaction.",
    source: "KIP-890; Jepsen Bufstream 0.1.0; segmentio/kafka-go#1428",
    basis: &[Basis::Kip, Basis::Reference],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Coordinator, b36)
};

fn b36(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let (t, relay) = (probe.topic()?, probe.relay()?);
    let mut late = probe.actor_behind("late", &relay)?.version_2();
    let first = late.init(&probe.id("x"))?;
    relay.on(ApiKey::Produce, 1, Action::HoldRequest);
    late.send_produce(&t, &first, 0, &["given up"])?;
    relay.wait_held();
    let mut a = probe.actor("A")?.version_2();
    let second = a.end(&first, Abort).is(0)?;
    a.produce_when_free(&t, &second, 0, &["kept"]).is_stored_at(0)?;
    relay.release();
    late.next_produced("the held Produce").is(47)?;
    a.end(&second, Commit).is(0)?;
    a.reads(&t, &["kept"])?;
    a.stores(&t, &["kept"])
}

const B37: Scenario = Scenario {
    id: "B37",
    title: "the pause between two transactions of one producer",
    promise: "Small transactions follow each other without a pause that a user notices.",
    source: "confluentinc/confluent-kafka-python#967; IBM/sarama#2915; PostHog/posthog PR #100633; apache/kafka PR #3377 (KAFKA-5477) and #18810 (KAFKA-18654)",
    ..Scenario::kafka(Area::Coordinator, b37)
};

fn b37(probe: &mut Probe) -> Kept {
    for (width, count) in probe.rounds([(1, 100), (50, 8)], [(1, 500), (50, 500)]) {
        let t = probe.partitions(width)?;
        let mut a = probe.actor("A")?;
        let me = a.init(&probe.id("x"))?;
        let mut pauses = Vec::new();
        for number in 0..count {
            let asked = Instant::now();
            a.until_not(&[51], |actor| actor.try_add(&me, &t.iter().collect::<Vec<_>>())).is(0)?;
            pauses.push(asked.elapsed());
            write_all(&mut a, &t, &me, (number, "one"))?;
            a.end(&me, Commit).is(0)?;
        }
        pauses.sort_unstable();
        let (middle, longest) = (pauses[pauses.len() / 2], pauses[pauses.len() - 1]);
        let said =
            format!("{width} partitions: half of the pauses under {middle:?}, the longest {longest:?}");
        let is_short = middle < Duration::from_millis(250) && longest < Duration::from_secs(3);
        probe.holds(is_short, &said, "no pause that is noticed")?;
    }
    Ok(())
}

const B39: Scenario = Scenario {
    id: "B39",
    title: "the timeout counts from the first partition",
    promise: "A producer cannot hold readers for longer than its timeout by being busy.",
    source: "nisshi-io/nisshi PR #710",
    needs: Needs::Settings(QUICK_SWEEP),
    ..Scenario::kafka(Area::Coordinator, b39)
};

fn b39(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.partitions(30)?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let timeout_ms = probe.rounds(2000, 5000);
    let me = a.init_within(&id, timeout_ms)?;
    let started = Instant::now();
    let mut fenced_after = None;
    for place in &t {
        let added = a.until_free(|actor| actor.try_add(&me, &[place])).is_any(&[0, 47, 90])?.0;
        let code = if added == 0 { a.produce(place, &me, 0, &["one"]).is_any(&[0, 47])?.0 } else { added };
        if code != 0 {
            fenced_after = Some(started.elapsed());
            break;
        }
        // The pace of the producer: each partition comes long before the timeout would be over.
        thread::sleep(Duration::from_millis(probe.rounds(200, 1000)));
    }
    let said = format!("it was fenced after {fenced_after:?}");
    let due = probe.rounds(2..6, 5..20);
    let is_timely = fenced_after.is_some_and(|after| due.contains(&after.as_secs()));
    probe.holds(is_timely, &said, &format!("soon after {timeout_ms} ms"))?;
    t.iter().try_for_each(|place| a.reads(place, &[]))
}

const B40: Scenario = Scenario {
    id: "B40",
    title: "a topic of an open transaction is deleted",
    promise: "Deleting a topic does not keep a transaction over other topics from being committed.",
    source: "redpanda-data/redpanda#3544 and #6227; apache/kafka PR #3130 (KAFKA-5202); streamnative/kop PR #1417; apache/kafka PR #21672 (KAFKA-20077)",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Coordinator, b40)
};

fn b40(probe: &mut Probe) -> Kept {
    for is_decided_first in [false, true] {
        let (gone, kept, id) = (probe.topic()?, probe.topic()?, probe.id("x"));
        let mut a = probe.actor("A")?;
        let me = a.init(&id)?;
        write_all(&mut a, &[gone.clone(), kept.clone()], &me, (0, "first"))?;
        if is_decided_first {
            a.end(&me, Commit).is(0)?;
            probe.delete_topic(&gone.topic)?;
        } else {
            probe.delete_topic(&gone.topic)?;
            a.end(&me, Commit).is(0)?;
        }
        a.comes_to(&id, &["CompleteCommit"])?;
        a.reads(&kept, &["first"])?;
        probe.make_topic(&gone.topic, 1, &[])?;
        probe.same("batches in the topic made anew", a.dump(&gone)?.len(), 0)?;
        let me = a.init(&id)?;
        write_all(&mut a, &[gone.clone(), kept.clone()], &me, (0, "second"))?;
        a.end(&me, Commit).is(0)?;
        a.reads(&gone, &["second"])?;
        a.reads(&kept, &["first", "second"])?;
    }
    Ok(())
}

/// Timed out transactions are ended at once, transactional ids forgotten soon.
pub(super) const QUICK_EXPIRY: Settings = &[
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "500"),
    ("transactional.id.expiration.ms", "4000"),
];

const B42: Scenario = Scenario {
    id: "B42",
    title: "a transactional id that the broker has forgotten",
    promise: "An application that was idle for very long is told to start anew, and can.",
    source: "redpanda-data/redpanda#15766 and PR #22943; micronaut-projects/micronaut-kafka#542; twmb/franz-go#451; apache/kafka PR #17822 (KAFKA-18019)",
    basis: &[Basis::Reference, Basis::Thread],
    needs: Needs::Settings(QUICK_EXPIRY),
    ..Scenario::kafka(Area::Coordinator, b42)
};

fn b42(probe: &mut Probe) -> Kept {
    let (t, u) = (probe.topic()?, probe.topic()?);
    let (idle, busy) = (probe.id("idle"), probe.id("busy"));
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let mine = a.init(&idle)?;
    a.transact(&t, &mine, (0, "once"), Commit)?;
    let open = b.open(&u, &busy, "long")?;
    let mut operator = probe.actor("operator")?;
    probe.eventually("the idle id is forgotten", || Ok(operator.listed_state(&idle)?.is_none()))?;
    a.try_add(&mine, &[&t]).is(49)?;
    a.end(&mine, Commit).is(49)?;
    operator.describe(&idle).is(105)?;
    let state = operator.listed_state(&busy)?;
    probe.same("the state of the id with an open transaction", state.as_deref(), Some("Ongoing"))?;
    b.end(&open, Commit).is(0)?;
    b.reads(&u, &["long"])?;
    let mine = a.init(&idle)?;
    a.transact(&t, &mine, (0, "again"), Commit)?;
    a.reads(&t, &["once", "again"])
}

const B44: Scenario = Scenario {
    id: "B44",
    title: "a very wide transaction",
    promise: "A transaction over hundreds of partitions is whole on all of them, however it ends.",
    source: "redpanda-data/redpanda#6228; confluentinc/librdkafka#3013",
    basis: &[Basis::Kip],
    ..Scenario::kafka(Area::Coordinator, b44)
};

fn b44(probe: &mut Probe) -> Kept {
    let mut t = Vec::new();
    for _ in 0..probe.rounds(4, 10) {
        t.extend(probe.partitions(probe.rounds(25, 100))?);
    }
    let started = Instant::now();
    let (mut a, id) = (probe.actor("A")?, probe.id("x"));
    let me = a.init(&id)?;
    write_all(&mut a, &t, &me, (0, "committed"))?;
    a.end(&me, Commit).is(0)?;
    write_all(&mut a, &t, &me, (1, "aborted"))?;
    a.end(&me, Abort).is(0)?;
    a.comes_to(&id, &["CompleteAbort"])?;
    let due = Duration::from_secs(probe.rounds(10, 60));
    probe.holds(started.elapsed() < due, "the time of two transactions", &format!("under {due:?}"))?;
    let me = a.init_within(&id, 1000)?;
    write_all(&mut a, &t, &me, (0, "timed out"))?;
    a.comes_to(&id, &["CompleteAbort", "Empty"])?;
    t.iter().try_for_each(|place| a.reads(place, &["committed"]))
}

const B45: Scenario = Scenario {
    id: "B45",
    title: "a transaction made only of offsets",
    promise: "A consumer's position in a transaction without records is committed or dropped with it.",
    source: "nisshi-io/nisshi PR #716; apache/kafka PR #18448",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Coordinator, b45)
};

fn b45(probe: &mut Probe) -> Kept {
    let (t, id, g) = (probe.topic()?, probe.id("x"), probe.group("g"));
    let mut a = probe.actor("A")?;
    let me = a.init(&id)?;
    for (offset, outcome) in [(42, Commit), (50, Abort)] {
        a.add_offsets(&me, &g)?;
        a.commit_offset(&me, &g, (&t, offset)).is(0)?;
        a.end(&me, outcome).is(0)?;
        a.group_stands_at(&g, &t, 42)?;
    }
    a.transact(&t, &me, (0, "data only"), Commit)?;
    a.group_stands_at(&g, &t, 42)?;
    let me = a.init_within(&id, 1000)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 60)).is(0)?;
    a.comes_to(&id, &["CompleteAbort", "Empty"])?;
    a.group_stands_at(&g, &t, 42)
}

const B46: Scenario = Scenario {
    id: "B46",
    title: "a transactional write to a partition that was never added",
    promise: "A record that belongs to no transaction cannot be stored: nobody would ever end it.",
    source: "KIP-890 part 1 (apache/kafka PR #13231, #13787, #14088, #15486); twmb/kcl#10",
    basis: &[Basis::Thread],
    versions: "Produce 9, 11, 12",
    ..Scenario::kafka(Area::Coordinator, b46)
};

fn b46(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for (version, due) in [(9, 48), (11, 120)] {
        a.using(|versions| versions.produce = version);
        a.until_own_version(due, |actor| actor.produce(&t, &me, 0, &["never added"])).is(due)?;
    }
    a.end(&me, Abort).is(48)?;
    probe.same("the end", a.settles(&t)?.high_watermark, 0)?;
    if probe.needs_version_2().is_ok() {
        let mut a = a.version_2();
        a.produce(&t, &me, 0, &["added by the broker"]).is_stored_at(0)?;
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["added by the broker"])?;
    }
    Ok(())
}

const B46R: Scenario = Scenario {
    id: "B46r",
    title: "a transactional write that arrives after its transaction's abort",
    promise: "A late record cannot open a transaction that nobody will ever end.",
    source: "KIP-890 part 1 (apache/kafka PR #13231, #13787, #14088, #15486); twmb/kcl#10",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Coordinator, b46r)
};

fn b46r(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &probe.id("x"), "aborted")?;
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    a.until_own_version(48, |actor| actor.produce_when_free(&t, &me, 1, &["late"])).is(48)?;
    a.produce_plain(&t, &["plain"]).is_stored_at(2)?;
    a.reads(&t, &["plain"])
}

const B47: Scenario = Scenario {
    id: "B47",
    title: "a plain batch of a producer with an open transaction",
    promise: "A record outside of the transaction does not slip into it.",
    source: "apache/kafka PR #13607 (KAFKA-14916)",
    ..Scenario::kafka(Area::Coordinator, b47)
};

fn b47(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &id, "in it")?;
    a.produce(&t, &me.plain(), 1, &["plain"]).is(48)?;
    let batch = crate::actor::produce::batch_of(&me.plain(), 1, &["plain"]);
    a.produce_batch("Produce plain seq 1 with the transactional id", &t, Some(&id), batch).is(48)?;
    a.end(&me, Commit).is(0)?;
    a.reads(&t, &["in it"])?;
    a.stores(&t, &["in it"])
}
