//! Area `markers`: where a transaction starts and ends in the log, and how far readers of committed records may go.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    Actor, Ends, Failure, Look,
    Outcome::{Abort, Commit},
    Probe, Scenario,
    scenario::{Area, Basis, Kept, Needs, Settings},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B49, &B50, &B51, &B52, &B53, &B53R, &B54, &B56, &B57];

/// Looks for timed out transactions often, so that nobody waits for the sweep; and for what can be compacted. One set of
/// settings for both: a broker is restarted for each set.
pub(super) const QUICK_SWEEP: Settings = &[
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500"),
    ("log.cleaner.backoff.ms", "200"),
];

const B49: Scenario = Scenario {
    id: "B49",
    title: "where the last stable offset stands beside an open transaction",
    promise: "A reader of committed records never sees a record of a transaction that is still open.",
    source: "redpanda-data/redpanda PR #3036; streamnative/kop PR #1856; nisshi-io/nisshi PR #689",
    versions: "Fetch 12",
    ..Scenario::kafka(Area::Markers, b49)
};

fn b49(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    a.produce_plain(&t, &["plain"]).is_stored_at(0)?;
    let me = a.open(&t, &probe.id("x"), "open")?;
    let mut reader = probe.actor("reader")?;
    let seen = reader.look(&t, Look::committed(0)).is(0)?;
    probe.same("what the reader has from 0", seen.values, vec!["plain".to_owned()])?;
    let seen = reader.look(&t, Look::committed(1)).is(0)?;
    probe.same("batches from 1", seen.batches.len(), 0)?;
    probe.same("last stable offset and high watermark", (seen.last_stable, seen.high_watermark), (1, 2))?;
    a.end(&me, Abort).is(0)?;
    probe.same("the ends", reader.settles(&t)?, Ends { high_watermark: 3, last_stable: 3 })?;
    reader.reads(&t, &["plain"])?;
    let seen = reader.look(&t, Look::committed(1)).is(0)?;
    probe.same("last stable offset and high watermark", (seen.last_stable, seen.high_watermark), (3, 3))
}

const B50: Scenario = Scenario {
    id: "B50",
    title: "the oldest open transaction holds everybody",
    promise: "Readers of committed records get records in the order of the log, whoever ends first.",
    source: "KIP-98; apache/pulsar#19786; apache/flink PR #4239",
    ..Scenario::kafka(Area::Markers, b50)
};

fn b50(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let (mut a, mut b, mut c) = (probe.actor("A")?, probe.actor("B")?, probe.actor("C")?);
    let mut reader = probe.actor("reader")?;
    let first = a.open(&t, &probe.id("a"), "A's")?;
    let second = b.open(&t, &probe.id("b"), "B's")?;
    c.produce_plain(&t, &["plain"]).is_stored_at(2)?;
    b.end(&second, Commit).is(0)?;
    reader.ends_with(&t, 4)?;
    reader.reads_now(&t, Isolation::Committed, &[])?;
    probe.same("the ends", reader.ends(&t)?, Ends { high_watermark: 4, last_stable: 0 })?;
    let third = c.open(&t, &probe.id("c"), "C's")?;
    a.end(&first, Abort).is(0)?;
    reader.ends_with(&t, 6)?;
    probe.eventually("the last stable offset is C's first", || Ok(reader.ends(&t)?.last_stable == 4))?;
    reader.reads_now(&t, Isolation::Committed, &["B's", "plain"])?;
    c.end(&third, Commit).is(0)?;
    reader.reads(&t, &["B's", "plain", "C's"])
}

impl Actor {
    /// In the end the log ends here: a marker has been written.
    fn ends_with(&mut self, place: &Place, due: i64) -> Kept {
        let deadline = Instant::now() + crate::actor::PATIENCE;
        loop {
            let seen = self.ends(place)?.high_watermark;
            if seen == due {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Failure::broken("ListOffsets of the end", seen, due));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

const B51: Scenario = Scenario {
    id: "B51",
    title: "how many offsets a transaction takes",
    promise: "A transaction takes its records and one marker: who counts offsets is not misled.",
    source: "confluentinc/confluent-kafka-python#1706; redpanda-data/redpanda#13364",
    basis: &[Basis::Thread],
    ..Scenario::kafka(Area::Markers, b51)
};

fn b51(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for number in 0..3_i32 {
        let offset = i64::from(number) * 2;
        a.add(&me, &[&t])?;
        a.produce(&t, &me, number, &["one"]).is_stored_at(offset)?;
        a.end(&me, Commit).is(0)?;
        let end = offset + 2;
        probe.same("the ends", a.settles(&t)?, Ends { high_watermark: end, last_stable: end })?;
    }
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 3, &["1", "2", "3", "4", "5"]).is_stored_at(6)?;
    a.end(&me, Abort).is(0)?;
    probe.same("the ends", a.settles(&t)?, Ends { high_watermark: 12, last_stable: 12 })
}

const B52: Scenario = Scenario {
    id: "B52",
    title: "a partition in the transaction that was never written",
    promise: "A reader of a partition that a transaction only named comes to its end and goes on.",
    source: "confluentinc/confluent-kafka-go#525",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Markers, b52)
};

fn b52(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    a.add(&me, &[&t[0], &t[1]])?;
    a.produce(&t[0], &me, 0, &["written"]).is_stored_at(0)?;
    a.end(&me, Commit).is(0)?;
    a.comes_to(me.id_or_empty(), &["CompleteCommit"])?;
    let end = a.settles(&t[1])?.high_watermark;
    probe.holds([0, 1].contains(&end), "the end of the unwritten partition", "0, or 1 with a marker")?;
    let mut reader = probe.actor("reader")?;
    probe.same("what is read", reader.walk(&t[1], Look::committed(0))?, Vec::<String>::new())?;
    a.produce_plain(&t[1], &["plain"]).is_stored_at(end)?;
    reader.reads(&t[1], &["plain"])?;
    reader.reads(&t[0], &["written"])
}

const B53: Scenario = Scenario {
    id: "B53",
    title: "a forgotten transaction ends by itself",
    promise: "A producer that died in a transaction does not hold readers for longer than its timeout.",
    source: "redpanda-data/redpanda#8236 and PR #8566, #14624; apache/pulsar#19200",
    basis: &[Basis::Thread],
    needs: Needs::Settings(QUICK_SWEEP),
    ..Scenario::kafka(Area::Markers, b53)
};

fn b53(probe: &mut Probe) -> Kept {
    let (t, other, id) = (probe.topic()?, probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init_within(&id, 2000)?;
    a.add(&me, &[&t, &other])?;
    a.produce(&t, &me, 0, &["forgotten"]).is_stored_at(0)?;
    a.produce(&other, &me, 0, &["forgotten"]).is_stored_at(0)?;
    drop(a);
    // A topic of the transaction is made anew meanwhile.
    probe.delete_topic(&other.topic)?;
    probe.make_topic(&other.topic, 1, &[])?;
    ended_by_itself(probe, &t, &id)
}

/// The coordinator has aborted, and the partition goes on.
fn ended_by_itself(probe: &Probe, t: &Place, id: &str) -> Kept {
    let mut reader = probe.actor("reader")?;
    reader.comes_to(id, &["CompleteAbort", "Empty"])?;
    reader.produce_plain(t, &["plain"]).is(0)?;
    reader.reads(t, &["plain"])
}

const B53R: Scenario = Scenario {
    id: "B53r",
    title: "a forgotten transaction ends by itself, across a kill of the broker",
    promise: "A timeout is not forgotten by a restart: readers go on although producer and broker died.",
    source: "redpanda-data/redpanda#8236 and PR #8566, #14624; apache/pulsar#19200",
    basis: &[Basis::Thread],
    needs: Needs::Restart(QUICK_SWEEP),
    ..Scenario::stricter_at_times(
        Area::Markers,
        "if the timeout is over before its partitions have a leader, the abort is completed without a marker: the last \
         stable offset stands still for ever",
        b53r,
    )
};

fn b53r(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let me = a.init_within(&id, 2000)?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 0, &["forgotten"]).is_stored_at(0)?;
    drop(a);
    probe.kill()?;
    // In a thorough run its timeout is over before anybody is there again.
    thread::sleep(Duration::from_secs(probe.rounds(0, 5)));
    probe.restart()?;
    ended_by_itself(probe, &t, &id)
}

const B54: Scenario = Scenario {
    id: "B54",
    title: "the position behind the last marker",
    promise: "Lag on a transactional topic comes to zero: a reader can step over the last marker.",
    source: "spring-projects/spring-kafka#1587; confluentinc/librdkafka#2539 and #3918; UltimateSoftware/surge PR #91",
    basis: &[Basis::Protocol],
    left_out: "librdkafka's own position: the suite sends the commit of it",
    ..Scenario::kafka(Area::Markers, b54)
};

fn b54(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    let mut me = a.init(&probe.id("x"))?;
    for number in 0..10 {
        me = a.transact(&t, &me, (number, "one"), Commit)?;
    }
    let end = a.settles(&t)?.last_stable;
    probe.same("the last stable offset", end, 20)?;
    // The last record is at 18.
    let seen = a.look(&t, Look::committed(19)).is(0)?;
    probe.same("markers, and the offset behind them", (seen.markers(), seen.next_offset()), (1, Some(20)))?;
    a.commit_group_offset(&g, (&t, 20)).is(0)?;
    a.group_stands_at(&g, &t, end)
}

const B56: Scenario = Scenario {
    id: "B56",
    title: "the last stable offset after a kill of the broker",
    promise: "A reader at the end is not thrown back to the start because the broker restarted.",
    source: "redpanda-data/redpanda#11130 and #11131, #17966",
    basis: &[Basis::Thread],
    needs: Needs::Restart(&[]),
    left_out: "a librdkafka group that reads throughout: the suite sends a reader's requests",
    ..Scenario::kafka(Area::Markers, b56)
};

fn b56(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let mut me = a.init(&probe.id("x"))?;
    for number in 0..probe.rounds(100, 500) {
        me = a.transact(&t, &me, (number, "one"), if number % 3 == 0 { Abort } else { Commit })?;
    }
    let stable = a.settles(&t)?.last_stable;
    probe.kill()?;
    let (address, trace, place) = (probe.address().to_owned(), probe.trace(), t.clone());
    let due = Watched { times: 30, longer: Duration::from_secs(probe.rounds(0, 20)) };
    let watcher = thread::spawn(move || watch_from_the_start(&address, &place, stable, due, &trace));
    probe.restart()?;
    watcher.join().expect("the watcher does not break off")?;
    probe.same("the ends", probe.actor("A")?.ends(&t)?, Ends { high_watermark: stable, last_stable: stable })
}

/// How long one watches a broker that comes up: until it was told so often, and so long after the first answer.
#[derive(Clone, Copy)]
struct Watched {
    times: u32,
    longer: Duration,
}

/// Asks from the first accepted connection on for the end and for what stands there.
fn watch_from_the_start(address: &str, t: &Place, stable: i64, due: Watched, trace: &crate::Trace) -> Kept {
    let deadline = Instant::now() + Duration::from_secs(50);
    let (mut told, mut first) = (0, None);
    while Instant::now() < deadline {
        if told >= due.times && first.is_some_and(|first: Instant| first.elapsed() >= due.longer) {
            return Ok(());
        }
        // Nobody listens yet, or the connection broke: again.
        let Ok(mut a) = Actor::connect("watcher", address, trace) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let listed = a.list_offsets(t, -1, Isolation::Committed);
        if listed.code() == Some(0) {
            let came = listed.is(0)?.offset;
            if came != stable {
                return Err(Failure::broken(
                    "ListOffsets of the end, committed, after a restart",
                    came,
                    stable,
                ));
            }
            told += 1;
            first.get_or_insert_with(Instant::now);
        }
        let looked = a.look(t, Look::committed(stable));
        if looked.code() == Some(1) {
            looked.is(0)?;
        }
    }
    Err(Failure::broken("ListOffsets after a restart", format!("{told} answers 0"), due.times))
}

const B57: Scenario = Scenario {
    id: "B57",
    title: "an open transaction elsewhere, and a reader that waits for it",
    promise: "An open transaction holds nobody but the readers of its partition, and those no longer than it is open.",
    source: "nisshi-io/nisshi PR #713",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Markers, b57)
};

fn b57(probe: &mut Probe) -> Kept {
    let (x, y) = (probe.partitions(2)?, probe.topic()?);
    let mut a = probe.actor("A")?;
    let me = a.open(&x[0], &probe.id("x"), "waited for")?;
    let mut waiting = probe.actor("waiting reader")?;
    waiting.send_look(&x[0], Look::committed(0).waiting(12_000))?;
    let mut b = probe.actor("B")?;
    let mut other = b.init(&probe.id("y"))?;
    for (number, place) in [&x[1], &y].into_iter().enumerate() {
        b.produce_plain(place, &["plain"]).is_stored_at(0)?;
        b.reads_now(place, Isolation::Committed, &["plain"])?;
        other = b.transact(place, &other, (0, "theirs"), Commit)?;
        b.reads(place, &["plain", "theirs"])?;
        probe.holds(
            !waiting.session.client.has_answer()?,
            &format!("an answer to the reader, {number}"),
            "none",
        )?;
    }
    let ended = Instant::now();
    a.end(&me, Commit).is(0)?;
    let seen = waiting.next_looked("the waiting Fetch").is(0)?;
    probe.same("what it brought", seen.values, vec!["waited for".to_owned()])?;
    probe.holds(ended.elapsed() < Duration::from_secs(4), "the time from the commit", "far below 12 s")
}
