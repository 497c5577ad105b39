//! Area `dedup`: offsets that clients were told, held against what stands there in the end and all along.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use semel_wire::ApiKey;

use crate::{
    Actor, Answer, Failure, Look,
    Outcome::Commit,
    Probe, Producer, Relay, Scenario, Trace,
    relay::Action,
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

/// Stands among the other scenarios of its area.
pub(super) const B100: Scenario = Scenario {
    id: "B100",
    title: "acknowledged offsets are those that readers see, through losses and kills",
    promise: "An offset that a client was told holds exactly its record, also where the answer came to a retry.",
    source: "redpanda-data/redpanda#3003; Jepsen Redpanda 21.10.1; Jepsen Bufstream 0.1.0; twmb/franz-go PR #846",
    basis: &[Basis::Kip, Basis::Thread],
    needs: Needs::Restart(&[]),
    left_out: "franz-go and librdkafka themselves: the suite sends what they send",
    ..Scenario::kafka(Area::Dedup, b100)
};

/// What stands where: partition and offset to value.
type Told = BTreeMap<(i32, i64), String>;

/// Records of one transaction of a writer with a transactional id.
const PER_TRANSACTION: i32 = 5;

/// A writer, and how far it has come.
struct Writer<'a> {
    name: String,
    place: &'a Place,
    me: Producer,
    sequence: i32,
    is_open: bool,
}

fn b100(probe: &mut Probe) -> Kept {
    let (t, relay, told) = (probe.partitions(3)?, probe.relay()?, Mutex::<Told>::default());
    // Every ninth answer is lost on the way, in a thorough run every twentieth.
    let nth = probe.rounds(9, 20);
    (1..probe.rounds(200, 10_000)).for_each(|n| relay.on(ApiKey::Produce, nth * n, Action::SwallowAnswer));
    let mut writers = Vec::new();
    for place in &t {
        let mut setup = probe.actor("init")?;
        for (kind, me) in [("plain", setup.init_plain()?), ("transactional", setup.init(&probe.id("x"))?)] {
            let name = format!("{kind} {}", place.index);
            writers.push(Writer { name, place, me, sequence: 0, is_open: false });
        }
    }
    let is_over = AtomicBool::new(false);
    let address = probe.address().to_owned();
    let seen = thread::scope(|scope| -> Kept<Told> {
        let reader = scope.spawn(|| read_throughout(&address, &t, &is_over));
        let kills = probe.rounds(2, 24);
        let written =
            (0..kills).try_for_each(|round| write_through_a_kill(probe, &mut writers, &relay, &told, round));
        is_over.store(true, Ordering::Relaxed);
        let seen = reader.join().expect("the reader does not break off");
        written.and(seen)
    })?;
    let written: i32 = writers.iter().map(|writer| writer.sequence).sum();
    let stands = all_by_now(probe, &t, seen)?;
    let stands_once: BTreeSet<_> = stands.values().collect();
    probe.same("records that stand twice", stands.len() - stands_once.len(), 0)?;
    probe.same("records", stands.len(), usize::try_from(written).expect("they are counted from 0"))?;
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    told.iter().try_for_each(|(place, value)| {
        probe.same(&format!("what stands at {place:?}"), stands.get(place), Some(value))
    })
}

/// Everybody writes for a while, in the midst of which the broker is killed.
fn write_through_a_kill(
    probe: &mut Probe,
    writers: &mut [Writer<'_>],
    relay: &Relay,
    told: &Mutex<Told>,
    round: u32,
) -> Kept {
    let until = Instant::now() + Duration::from_millis(probe.rounds(800, 5000));
    thread::scope(|scope| {
        let work = writers.iter_mut().map(|writer| scope.spawn(move || writer.write(relay, told, until)));
        let work: Vec<_> = work.collect();
        thread::sleep(Duration::from_millis(probe.rounds(500, 3500)));
        probe.kill()?;
        probe.restart()?;
        work.into_iter().try_for_each(|one| one.join().expect("a writer does not break off"))
    })
    .map_err(|failure| Failure::broken(format!("round {round}"), failure, "every record is taken in the end"))
}

impl Writer<'_> {
    /// Writes the next numbers one after another, each again and again until it is acknowledged.
    fn write(&mut self, relay: &Relay, told: &Mutex<Told>, until: Instant) -> Kept {
        let mut a = None;
        while Instant::now() < until || self.is_open {
            let (place, me, sequence) = (self.place, self.me.clone(), self.sequence);
            if me.id.is_some() && !self.is_open {
                surely(&mut a, relay, |actor| actor.try_add(&me, &[place]))?;
                self.is_open = true;
            }
            let value = format!("{} {sequence}", self.name);
            let written = surely(&mut a, relay, |actor| actor.produce(place, &me, sequence, &[&value]))?;
            note(told, (place.index, written.base_offset.get()), &value)?;
            self.sequence += 1;
            if self.is_open && self.sequence % PER_TRANSACTION == 0 {
                surely(&mut a, relay, |actor| actor.try_end(&me, Commit))?;
                self.is_open = false;
            }
        }
        Ok(())
    }
}

/// Asks over one connection after the other until there is an answer that is none of a busy broker's, or of one that
/// has just come up; it has to be 0.
fn surely<T>(a: &mut Option<Actor>, relay: &Relay, mut ask: impl FnMut(&mut Actor) -> Answer<T>) -> Kept<T> {
    // A broker of somebody else's may take half a minute to come up on a busy machine.
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut last = None;
    while Instant::now() < deadline {
        let Some(actor) = a.as_mut() else {
            thread::sleep(Duration::from_millis(10));
            *a = Actor::connect("writer", &relay.address(), &Trace::default()).ok();
            continue;
        };
        let answer = ask(actor);
        last = answer.code();
        match last {
            None => *a = None,
            Some(3 | 5 | 6 | 7 | 14 | 15 | 16 | 19 | 51 | 56) => thread::sleep(Duration::from_millis(10)),
            Some(_) => return answer.is(0),
        }
    }
    Err(Failure::broken("the same request, again and again", format!("at last {last:?}"), "0"))
}

/// One offset never has two values; -1 says that the broker no longer knows it.
fn note(told: &Mutex<Told>, (index, offset): (i32, i64), value: &str) -> Kept {
    if offset < 0 {
        return Ok(());
    }
    let before =
        told.lock().unwrap_or_else(PoisonError::into_inner).insert((index, offset), value.to_owned());
    before.map_or(Ok(()), |before| {
        let came = format!("offset {offset} of partition {index} again, as of {before}");
        Err(Failure::broken(format!("Produce {value}"), came, "its own"))
    })
}

/// Reads everything from the start on while the broker dies and comes back; what it saw where.
fn read_throughout(address: &str, t: &[Place], is_over: &AtomicBool) -> Kept<Told> {
    let (mut seen, mut next) = (Told::new(), vec![0; t.len()]);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
        // Nobody listens, or the connection breaks: again.
        let Ok(mut reader) = Actor::connect("reader", address, &Trace::default()) else { continue };
        while !is_over.load(Ordering::Relaxed) && read_on(&mut reader, t, &mut next, &mut seen)? {}
    }
    Ok(seen)
}

/// One look at each partition; false once the connection is gone.
fn read_on(reader: &mut Actor, t: &[Place], next: &mut [i64], seen: &mut Told) -> Kept<bool> {
    for (place, next) in t.iter().zip(next.iter_mut()) {
        let answer = reader.look(place, Look::uncommitted(*next).within(1 << 20));
        match answer.code() {
            None => return Ok(false),
            Some(3 | 5 | 6 | 9 | 78) => continue,
            Some(_) => {}
        }
        let answer = answer.is(0)?;
        *next = answer.next_offset().unwrap_or(*next);
        take_over(place, &answer, seen)?;
    }
    thread::sleep(Duration::from_millis(5));
    Ok(true)
}

/// Adds what an answer has; a place never has another value than before.
fn take_over(place: &Place, answer: &crate::Fetched, seen: &mut Told) -> Kept {
    let data = answer.batches.iter().filter(|batch| !batch.attributes().is_control());
    for (batch, value) in data.zip(&answer.values) {
        let offset = batch.base_offset().get();
        match seen.entry((place.index, offset)) {
            Entry::Vacant(free) => drop(free.insert(value.clone())),
            Entry::Occupied(before) if before.get() == value => {}
            Entry::Occupied(before) => {
                let sent = format!("Fetch of offset {offset} of partition {}", place.index);
                return Err(Failure::broken(sent, value, format!("{}, as before", before.get())));
            }
        }
    }
    Ok(())
}

/// What stands in the end, which is what was seen before and more.
fn all_by_now(probe: &Probe, t: &[Place], seen: Told) -> Kept<Told> {
    let mut stands = seen;
    let mut reader = probe.actor("late reader")?;
    for place in t {
        let mut look = Look::uncommitted(0).within(1 << 20);
        loop {
            let answer = reader.look(place, look).is(0)?;
            take_over(place, &answer, &mut stands)?;
            let Some(next) = answer.next_offset() else { break };
            look.offset = next;
        }
    }
    Ok(stands)
}
