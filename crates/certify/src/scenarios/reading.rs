//! Area `reading`: readers of committed records are given all of them, and none that was aborted.

use std::{
    thread,
    time::{Duration, Instant},
};

use semel_types::WallTime;
use semel_wire::batch::{BatchBuilder, NewRecord};

use crate::{
    Actor, Look, Outcome,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept, Needs},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] =
    &[&B58, &B59, &B61, &B61V2, &B62, &B63, &B64, &B66, &B67, &B97, &K85_DELAYED];

const B58: Scenario = Scenario {
    id: "B58",
    title: "aborted records and the list of aborted transactions",
    promise: "A record of an aborted transaction is never delivered to a reader of committed records.",
    source: "streamnative/kop#1283; confluentinc/librdkafka#3020; nisshi-io/nisshi PR #698 and #716; redpanda-data/redpanda PR #10671",
    versions: "Fetch 12",
    left_out: "librdkafka, kafka-python, franz-go and kafkajs as readers: the suite filters as they do",
    ..Scenario::kafka(Area::Reading, b58)
};

fn b58(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let (mut a, mut reader) = (probe.actor("A")?, probe.actor("reader")?);
    let mut me = a.init(&probe.id("x"))?;
    for number in 0..20 {
        a.add(&me, &[&t])?;
        a.produce(&t, &me, number, &["aborted"]).is(0)?;
        reader.reads_now(&t, Isolation::Committed, &[])?;
        me = a.end(&me, Abort).is(0)?;
        reader.reads_now(&t, Isolation::Committed, &[])?;
    }
    reader.settles(&t)?;
    let seen = probe.actor("late reader")?.look_all(&t, Look::committed(0))?;
    let due = (0..20).map(|number| (me.producer_id(), number * 2)).collect();
    probe.same("the list of aborted transactions", seen.aborted, Some(due))?;
    probe.same("what is delivered", seen.values, Vec::new())
}

const B59: Scenario = Scenario {
    id: "B59",
    title: "readers of everything are given everything",
    promise: "A reader of uncommitted records has aborted and open ones, too: nothing is hidden from it.",
    source: "redpanda-data/redpanda#6630 and PR #18852; twmb/franz-go PR #758",
    basis: &[Basis::Thread],
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, b59)
};

fn b59(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.transact(&t, &me, (0, "committed"), Commit)?;
    a.transact(&t, &me, (1, "aborted"), Abort)?;
    a.add(&me, &[&t])?;
    a.produce_when_free(&t, &me, 2, &["open"]).is_stored_at(4)?;
    let seen = a.look_all(&t, Look::uncommitted(0))?;
    probe.same("markers among the batches", (seen.markers(), seen.batches.len()), (2, 5))?;
    probe.same(
        "what is delivered",
        seen.values,
        ["committed", "aborted", "open"].map(str::to_owned).to_vec(),
    )?;
    let is_bare = seen.aborted.is_none_or(|list| list.is_empty());
    probe.holds(is_bare, "the list of aborted transactions", "null or empty: some clients apply it here, too")
}

const B61: Scenario = Scenario {
    id: "B61",
    title: "one producer commits, aborts and commits within one answer",
    promise: "An aborted transaction takes nothing of its neighbours with it.",
    source: "kafka4beam/brod PR #659",
    ..Scenario::kafka(Area::Reading, b61)
};

fn b61(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    triple(&mut a, &t, me.clone(), 0)?;
    a.settles(&t)?;
    let seen = a.look_all(&t, Look::committed(0))?;
    probe.same("the list of aborted transactions", seen.aborted, Some(vec![(me.producer_id(), 2)]))?;
    probe.same("what is delivered", seen.values, ["0 first", "0 third"].map(str::to_owned).to_vec())?;
    many_triples(probe, [a, probe.actor("B")?], probe.rounds(40, 1000))
}

const B61V2: Scenario = Scenario {
    id: "B61v2",
    title: "one producer commits, aborts and commits within one answer, version 2",
    promise: "An aborted transaction takes nothing of its neighbours with it.",
    source: "kafka4beam/brod PR #659; KIP-890",
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Reading, b61_v2)
};

fn b61_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    many_triples(
        probe,
        [probe.actor("A")?.version_2(), probe.actor("B")?.version_2()],
        probe.rounds(40, 1000),
    )
}

/// Two producers write triples one after the other; readers have the first and third of each.
fn many_triples(probe: &Probe, actors: [Actor; 2], count: i32) -> Kept {
    let t = probe.topic()?;
    let mut due = Vec::new();
    let mut owners = Vec::new();
    for mut actor in actors {
        let me = actor.init(&probe.id("x"))?;
        owners.push((actor, me, 0));
    }
    for round in 0..count {
        for (actor, me, sequence) in &mut owners {
            *me = triple(actor, &t, me.clone(), *sequence)?;
            due.extend([format!("{sequence} first"), format!("{sequence} third")]);
            // Each transaction of version 2 has an epoch of its own and starts at 0.
            *sequence = if actor.is_version_2() { 0 } else { (round + 1) * 3 };
        }
    }
    let due: Vec<_> = due.iter().map(String::as_str).collect();
    probe.actor("reader")?.reads(&t, &due)
}

/// Three transactions of one record each, the middle one aborted.
fn triple(a: &mut Actor, t: &Place, mut me: Producer, first: i32) -> Kept<Producer> {
    for (number, (word, outcome)) in (0..).zip([("first", Commit), ("second", Abort), ("third", Commit)]) {
        let sequence = if a.is_version_2() { 0 } else { first + number };
        me = a.transact(t, &me, (sequence, &format!("{first} {word}")), outcome)?;
    }
    Ok(me)
}

const B62: Scenario = Scenario {
    id: "B62",
    title: "a small fetch size and a long run of aborted transactions",
    promise: "A reader with little memory gets past aborted records: every answer moves it on.",
    source: "tulios/kafkajs PR #1256; apache/pinot PR #18337 and #19267; knative-extensions/eventing-kafka-broker#4451",
    basis: &[Basis::Protocol],
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, b62)
};

fn b62(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let mut me = a.init(&probe.id("x"))?;
    let large = "x".repeat(1024);
    let count = probe.rounds(100, 500);
    for number in 0..count {
        me = a.transact(&t, &me, (number, &large), Abort)?;
    }
    a.transact(&t, &me, (count, "at last"), Commit)?;
    a.settles(&t)?;
    let seen = probe.actor("reader")?.walk(&t, Look::committed(0).within(2048))?;
    probe.same("what is delivered", seen, vec!["at last".to_owned()])
}

const B63: Scenario = Scenario {
    id: "B63",
    title: "ListOffsets by isolation",
    promise: "A tool that asks where committed records end, or when they started, is told of no open ones.",
    source: "segmentio/kafka-go#407; confluentinc/librdkafka#3423 and PR #3428; apache/kafka PR #3456 (KAFKA-5522); softwaremill/klag-exporter#104",
    basis: &[Basis::Thread],
    versions: "ListOffsets 7",
    ..Scenario::kafka(Area::Reading, b63)
};

fn b63(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let now = i64::try_from(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |at| at.as_millis()),
    );
    let start = now.unwrap_or_default() - 10_000;
    a.produce_dated(&t, None, ("plain", start + 1000)).is(0)?;
    let me = a.init(&probe.id("x"))?;
    a.add(&me, &[&t])?;
    a.produce_dated(&t, Some(&me), ("open", start + 2000)).is(0)?;
    let mut found =
        |timestamp, isolation| -> Kept<i64> { Ok(a.list_offsets(&t, timestamp, isolation).is(0)?.offset) };
    probe.same("the end of everything", found(-1, Isolation::Uncommitted)?, 2)?;
    probe.same("the end of what is committed", found(-1, Isolation::Committed)?, 1)?;
    probe.same("the first at 1500 of everything", found(start + 1500, Isolation::Uncommitted)?, 1)?;
    probe.same("the first at 1500 of what is committed", found(start + 1500, Isolation::Committed)?, -1)?;
    probe.same("the first at 500 of what is committed", found(start + 500, Isolation::Committed)?, 0)?;
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    for isolation in [Isolation::Uncommitted, Isolation::Committed] {
        probe.same("the end after the abort", a.list_offsets(&t, -1, isolation).is(0)?.offset, 3)?;
    }
    Ok(())
}

impl Actor {
    /// A record with a timestamp of its own, as the first one of a producer or of nobody.
    pub(super) fn produce_dated(
        &mut self,
        place: &Place,
        producer: Option<&Producer>,
        (value, timestamp_ms): (&str, i64),
    ) -> crate::Answer<crate::session::Produced> {
        let timestamp = Some(WallTime::from_ms(timestamp_ms));
        let record = NewRecord { timestamp, ..NewRecord::of(value.as_bytes()) };
        let builder = producer.map_or_else(BatchBuilder::new, |producer| {
            BatchBuilder::new().stamped(producer.stamp, semel_types::Sequence::ZERO)
        });
        let id = producer.and_then(|producer| producer.id.as_deref());
        let builder = if id.is_some() { builder.transactional() } else { builder };
        let said = format!("Produce {value} of {timestamp_ms}");
        self.produce_batch(&said, place, id, builder.record(record).build())
    }
}

const B64: Scenario = Scenario {
    id: "B64",
    title: "reading a large aborted transaction piece by piece",
    promise: "Wherever a reader starts in an aborted transaction, it is told of it and delivers none of it.",
    source: "redpanda-data/redpanda PR #7081",
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, b64)
};

fn b64(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    let (lost, kept) = (a.init(&probe.id("a"))?, b.init(&probe.id("b"))?);
    a.add(&lost, &[&t])?;
    b.add(&kept, &[&t])?;
    let pad = "x".repeat(1024);
    let pairs = probe.rounds(150, 1000);
    for number in 0..pairs {
        a.produce(&t, &lost, number, &[&pad]).is_stored_at(i64::from(number) * 2)?;
        b.produce(&t, &kept, number, &[&format!("{number} {pad}")])
            .is_stored_at(i64::from(number) * 2 + 1)?;
    }
    a.end(&lost, Abort).is(0)?;
    b.end(&kept, Commit).is(0)?;
    a.settles(&t)?;
    let mut reader = probe.actor("reader")?;
    // Some of the offsets are the aborted producer's, some the other's.
    for offset in (0..i64::from(pairs) * 2).step_by(probe.rounds(15, 39)) {
        let seen = reader.walk(&t, Look::committed(offset).within(8192))?;
        let start = i32::try_from(offset / 2).expect("a few hundred");
        let due: Vec<_> = (start..pairs).map(|number| format!("{number} {pad}")).collect();
        probe.holds(
            seen == due,
            &format!("what is delivered from {offset}"),
            "B's records in order, none of A's",
        )?;
        let near = reader.look(&t, Look::committed(offset).within(8192)).is(0)?;
        probe.same("the list there", near.aborted, Some(vec![(lost.producer_id(), 0)]))?;
    }
    Ok(())
}

const B66: Scenario = Scenario {
    id: "B66",
    title: "an aborted value and the compaction of a topic",
    promise: "Compaction never drops a committed value in favour of one that was aborted or is still open.",
    source: "redpanda-data/redpanda#4824, #4826 and PR #6664",
    needs: Needs::Settings(super::markers::QUICK_SWEEP),
    left_out: "brokers that do not compact, Semel among them by now: not run there",
    ..Scenario::kafka(Area::Reading, b66)
};

fn b66(probe: &mut Probe) -> Kept {
    let configs =
        [("cleanup.policy", "compact"), ("segment.ms", "50"), ("min.cleanable.dirty.ratio", "0.001")];
    let t = probe.topic_with(1, &configs)?.swap_remove(0);
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.produce_keyed(&t, None, ("canary", "stale 1"), 0).is(0)?;
    a.write_keyed(&t, &me, ("k", "v1"), 0)?;
    a.end(&me, Commit).is(0)?;
    a.write_keyed(&t, &me, ("k", "v2"), 1)?;
    a.end(&me, Abort).is(0)?;
    a.compacts(&t, "1")?;
    a.write_keyed(&t, &me, ("k", "v3"), 2)?;
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        // Segments are closed by what comes after them; nothing of the open transaction may go meanwhile.
        a.produce_keyed(&t, None, ("canary", "while open"), 0).is(0)?;
        let stored = a.values(&t, Isolation::Uncommitted)?;
        probe.holds(
            stored.iter().any(|value| value == "v3"),
            "what is stored",
            "v3 among it while it is open",
        )?;
        let read = a.values(&t, Isolation::Committed)?;
        probe.holds(read.iter().any(|value| value == "v1"), "what is committed", "v1 among it")?;
        thread::sleep(Duration::from_millis(100));
    }
    a.end(&me, Abort).is(0)?;
    a.settles(&t)?;
    a.compacts(&t, "2")?;
    let mut read = a.values(&t, Isolation::Committed)?;
    read.retain(|value| value.starts_with('v'));
    probe.same("the committed values of k", read, vec!["v1".to_owned()])
}

impl Actor {
    /// A record with a key, of a producer or of nobody.
    fn produce_keyed(
        &mut self,
        place: &Place,
        producer: Option<&Producer>,
        (key, value): (&str, &str),
        sequence: i32,
    ) -> crate::Answer<crate::session::Produced> {
        let mut builder = BatchBuilder::new();
        if let Some(producer) = producer {
            let sequence = semel_types::Sequence::from_wire(sequence).unwrap_or_default();
            builder = builder.stamped(producer.stamp, sequence).transactional();
        }
        let now = [value];
        let record = crate::actor::produce::records(&now).next().unwrap_or_default();
        let batch = builder.record(NewRecord { key: Some(key.as_bytes()), ..record }).build();
        let id = producer.and_then(|producer| producer.id.as_deref());
        self.produce_batch(&format!("Produce {key}={value}"), place, id, batch)
    }

    fn write_keyed(&mut self, place: &Place, me: &Producer, record: (&str, &str), sequence: i32) -> Kept {
        self.add(me, &[place])?;
        self.produce_keyed(place, Some(me), record, sequence).is(0).map(|_| ())
    }

    /// Writes newer values of a key until an older one of it is gone: the partition has been compacted.
    fn compacts(&mut self, place: &Place, round: &str) -> Kept {
        let stale = format!("stale {round}");
        self.produce_keyed(place, None, ("canary", &stale), 0).is(0)?;
        let deadline = Instant::now() + Duration::from_secs(8);
        while self.values(place, Isolation::Uncommitted)?.contains(&stale) {
            if Instant::now() > deadline {
                return Err(crate::Failure::NotRun("the broker compacts nothing".to_owned()));
            }
            thread::sleep(Duration::from_millis(60));
            self.produce_keyed(place, None, ("canary", "newer"), 0).is(0)?;
        }
        Ok(())
    }
}

const B67: Scenario = Scenario {
    id: "B67",
    title: "two producers interleave on the same partitions",
    promise: "Transactions that overlap do not hinder each other: each is whole on all partitions, or absent.",
    source: "Jepsen Redpanda 21.10.1",
    basis: &[Basis::Kip],
    ..Scenario::kafka(Area::Reading, b67)
};

/// The ten records of a transaction, by partition.
const SHARES: [i32; 3] = [4, 3, 3];

fn b67(probe: &mut Probe) -> Kept {
    let t = probe.partitions(3)?;
    let rounds = probe.rounds(30, 200);
    let write = |name: &str, is_late: bool| -> Kept {
        let mut a = probe.actor(name)?;
        let me = a.init(&probe.id(name))?;
        for round in 0..rounds {
            a.add(&me, &t.iter().collect::<Vec<_>>())?;
            for (place, count) in t.iter().zip(SHARES) {
                let values: Vec<_> = (0..count).map(|number| format!("{name}{round}.{number}")).collect();
                let values: Vec<_> = values.iter().map(String::as_str).collect();
                a.produce(place, &me, round * count, &values).is(0)?;
            }
            a.end(&me, ends(round, is_late)).is(0)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| write("B", true));
        write("A", false)?;
        other.join().expect("the writer does not break off")
    })?;
    let mut reader = probe.actor("reader")?;
    for (place, count) in t.iter().zip(SHARES) {
        reader.settles(place)?;
        let read = reader.values(place, Isolation::Committed)?;
        for (name, is_late) in [("A", false), ("B", true)] {
            let own: Vec<_> = read.iter().filter(|value| value.starts_with(name)).cloned().collect();
            let committed = (0..rounds).filter(|round| ends(*round, is_late) == Commit);
            let due: Vec<_> =
                committed.flat_map(|round| (0..count).map(move |n| format!("{name}{round}.{n}"))).collect();
            probe.holds(
                own == due,
                &format!("{name}'s records"),
                "its committed ones, whole and in order",
            )?;
        }
    }
    Ok(())
}

/// Half of each producer's transactions are aborted, not the same ones.
const fn ends(round: i32, is_late: bool) -> Outcome {
    if (round % 2 == 0) == is_late { Abort } else { Commit }
}

const B97: Scenario = Scenario {
    id: "B97",
    title: "reading through very many aborted transactions",
    promise: "Reading committed records costs about what reading all of them costs; an answer lists only what overlaps it.",
    source: "apache/kafka PR #2910; redpanda-data/redpanda PR #29796",
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, b97)
};

fn b97(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let mut me = a.init(&probe.id("x"))?;
    let count = probe.rounds(400, 100_000);
    for number in 0..count {
        me = a.transact(&t, &me, (number, "one"), if number % 2 == 0 { Abort } else { Commit })?;
    }
    a.settles(&t)?;
    let mut reader = probe.actor("reader")?;
    let mut took = |look: Look| -> Kept<Duration> {
        let started = Instant::now();
        reader.walk(&t, look.within(4096))?;
        Ok(started.elapsed())
    };
    let all = took(Look::uncommitted(0))?;
    let committed = took(Look::committed(0))?;
    // A pause of the machine within the short one is not the broker's.
    let bound = all * 3 + Duration::from_millis(500);
    probe.holds(
        committed < bound,
        &format!("{committed:?} for committed records, {all:?} for all"),
        "below three times",
    )?;
    for offset in (0..i64::from(count) * 2).step_by(probe.rounds(37, 199)) {
        let seen = reader.look(&t, Look::committed(offset).within(4096)).is(0)?;
        let aborted = seen.aborted.unwrap_or_default();
        // What is listed beyond the batches may come from the broker's coarse index, but never all of it.
        let first = aborted.iter().map(|(_, first)| *first).min().unwrap_or(offset);
        probe.holds(first + 1 >= offset, &format!("the list from {offset}"), "nothing that ended before")?;
        let batches = seen.batches.len();
        probe.holds(
            aborted.len() <= batches,
            &format!("{} listed, {batches} batches", aborted.len()),
            "not more",
        )?;
    }
    Ok(())
}

const K85_DELAYED: Scenario = Scenario {
    id: "K85-delayed",
    title: "a Fetch that waits, and an abort meanwhile",
    promise: "A reader that waited is told of the transaction that was aborted while it waited.",
    source: "TransactionsTest.testDelayedFetchIncludesAbortedTransaction of Apache Kafka",
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Reading, k85_delayed)
};

fn k85_delayed(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.open(&t, &probe.id("x"), "aborted")?;
    let mut waiting = probe.actor("waiting reader")?;
    waiting.send_look(&t, Look::committed(0).waiting(12_000))?;
    probe.actor("B")?.reads_now(&t, Isolation::Committed, &[])?;
    probe.holds(!waiting.session.client.has_answer()?, "an answer before the abort", "none")?;
    a.end(&me, Abort).is(0)?;
    let seen = waiting.next_looked("the waiting Fetch").is(0)?;
    probe.same("the list of aborted transactions", seen.aborted, Some(vec![(me.producer_id(), 0)]))?;
    probe.same("what is delivered", seen.values, Vec::new())
}
