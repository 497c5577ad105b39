//! Consumers that copy in transactions while their group rebalances: area `groups` and `clients`.
//!
//! A worker is what a consume-transform-produce loop of a library sends: it joins, takes its share, reads from the
//! group's stable offset, writes and commits its position in one transaction with its membership (KIP-447). Workers die
//! in the midst of a transaction and come back, so the group never rests.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    Actor, Failure, Look, Member,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario, Trace,
    scenario::{Area, Basis, Kept},
    session::{Isolation, Place},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B77, &B88];

const B77: Scenario = Scenario {
    id: "B77",
    title: "copying in transactions under rebalances",
    promise: "A consume-transform-produce loop copies each record once, whoever dies or joins meanwhile.",
    source: "akka/alpakka-kafka#756 and #758; zio/zio-kafka#590; aio-libs/aiokafka#844; confluentinc/librdkafka#3400; KIP-447",
    basis: &[Basis::Kip],
    left_out: "librdkafka, franz-go and Java as workers: the suite sends what they send",
    ..Scenario::kafka(Area::Groups, b77)
};

fn b77(probe: &mut Probe) -> Kept {
    let amount = Amount { partitions: 4, batches: 12, batch: 1, life: 10, limit_s: 40 };
    let whole = Amount { partitions: 8, batches: 125, batch: 100, life: 60, limit_s: 1200 };
    copy(probe, probe.rounds(amount, whole)).map(|_| ())
}

const B88: Scenario = Scenario {
    id: "B88",
    title: "offsets in transactions while the group rebalances all the time",
    promise: "A rebalance makes a client abort and go on; it never ends its life.",
    source: "redpanda-data/redpanda#7072 and #6284; confluentinc/confluent-kafka-dotnet#2008",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Clients, b88)
};

fn b88(probe: &mut Probe) -> Kept {
    // Each death stops everybody for a session of six seconds; there are about six at the most.
    let amount = Amount { partitions: 4, batches: 12, batch: 1, life: 8, limit_s: 55 };
    let whole = Amount { batches: 500, limit_s: 1200, ..amount };
    let codes = copy(probe, probe.rounds(amount, whole))?;
    // Retriable, or an abort and a new join: nothing that clients call fatal.
    let strange: Vec<_> =
        codes.into_iter().filter(|code| ![0, 14, 15, 16, 22, 25, 27, 51].contains(code)).collect();
    probe.same("codes of TxnOffsetCommit that end a client", strange, Vec::new())
}

/// What is to be copied, and how.
#[derive(Clone, Copy)]
struct Amount {
    partitions: i32,
    /// Of each partition; a transaction copies one.
    batches: usize,
    /// Records of a batch.
    batch: usize,
    /// After so many transactions a worker dies in the next one.
    life: usize,
    limit_s: u64,
}

impl Amount {
    /// Records of a partition.
    const fn records(self) -> usize {
        self.batches * self.batch
    }
}

/// What the workers share.
struct Work<'a> {
    address: &'a str,
    group: &'a str,
    input: &'a [Place],
    output: &'a [Place],
    amount: Amount,
    copied: AtomicUsize,
    codes: Mutex<BTreeSet<i16>>,
    deadline: Instant,
}

/// Three workers copy everything; what is read must be the input. Gives the codes of TxnOffsetCommit.
fn copy(probe: &Probe, amount: Amount) -> Kept<BTreeSet<i16>> {
    let (input, output, group) =
        (probe.partitions(amount.partitions)?, probe.partitions(amount.partitions)?, probe.group("g"));
    let mut setup = probe.actor("setup")?;
    for place in &input {
        for batch in numbers(place, amount).chunks(amount.batch) {
            setup.produce_plain(place, &batch.iter().map(String::as_str).collect::<Vec<_>>()).is(0)?;
        }
    }
    let ids: Vec<_> = (0..3).map(|_| probe.id("x")).collect();
    let work = Work {
        address: probe.address(),
        group: &group,
        input: &input,
        output: &output,
        amount,
        copied: AtomicUsize::new(0),
        codes: Mutex::default(),
        deadline: Instant::now() + Duration::from_secs(amount.limit_s),
    };
    thread::scope(|scope| {
        let workers: Vec<_> = ids.iter().map(|id| scope.spawn(|| work.live_and_die(id))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not break off"))
    })?;
    let mut reader = probe.actor("reader")?;
    for (place, source) in output.iter().zip(&input) {
        reader.settles(place)?;
        let (read, count) = (reader.values(place, Isolation::Committed)?, amount.records());
        let said = format!("{} copied of {count}", read.len());
        probe.holds(read == numbers(place, amount), &said, "each once, in order")?;
        reader.group_stands_at(&group, source, i64::try_from(count).unwrap_or(i64::MAX))?;
    }
    Ok(work.codes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The records of a partition.
fn numbers(place: &Place, amount: Amount) -> Vec<String> {
    (0..amount.records()).map(|number| format!("{}.{number}", place.index)).collect()
}

/// How a worker's share of a generation ended.
enum Ended {
    /// The group rebalances, or the member is no longer known.
    Rebalance,
    /// It is dead.
    Death,
}

impl Work<'_> {
    fn is_done(&self) -> bool {
        self.copied.load(Ordering::Relaxed) >= self.amount.records() * self.input.len()
    }

    /// One life after the other until everything is copied.
    fn live_and_die(&self, id: &str) -> Kept {
        while !self.is_done() {
            if Instant::now() > self.deadline {
                return Err(Failure::broken("copying", format!("{:?} records", self.copied), "all in time"));
            }
            let mut a = Actor::connect(id, self.address, &Trace::default())?;
            let me = a.init(id)?;
            let mut member = Member::new(self.group);
            let mut sequences = vec![0; self.output.len()];
            let mut left = self.amount.life;
            loop {
                let share = self.join(&mut a, &mut member)?;
                match self.copy_share(&mut a, &me, &member, &share, &mut sequences, &mut left)? {
                    Ended::Rebalance if !self.is_done() => {}
                    Ended::Rebalance | Ended::Death => break,
                }
            }
            // A process that is gone, seen by the broker at once; its transaction stays open.
            drop(a.leave(&member));
        }
        Ok(())
    }

    /// Joins until the group agrees; gives the partitions that are this member's.
    fn join(&self, a: &mut Actor, member: &mut Member) -> Kept<Vec<usize>> {
        loop {
            let answer = a.until_free(|actor| actor.join(member));
            if answer.code() == Some(25) {
                *member = Member::new(self.group);
                continue;
            }
            let joined = answer.is(0)?;
            *member = joined.member;
            let shares = if joined.is_leader { self.shares(&joined.all) } else { Vec::new() };
            let (code, share) = a.sync(member, &shares).is_any(&[0, 16, 22, 25, 27])?;
            if code == 0 {
                return Ok(share.iter().map(|index| usize::from(*index)).collect());
            }
        }
    }

    /// Every partition is one member's.
    fn shares(&self, all: &[String]) -> Vec<(String, Bytes)> {
        let of = |turn: usize| {
            (0_u8..).take(self.input.len()).filter(move |index| usize::from(*index) % all.len() == turn)
        };
        all.iter().enumerate().map(|(turn, id)| (id.clone(), of(turn).collect::<Vec<_>>().into())).collect()
    }

    fn copy_share(
        &self,
        a: &mut Actor,
        me: &Producer,
        member: &Member,
        share: &[usize],
        sequences: &mut [i32],
        left: &mut usize,
    ) -> Kept<Ended> {
        loop {
            if self.is_done() || Instant::now() > self.deadline || a.beat(member).code() != Some(0) {
                return Ok(Ended::Rebalance);
            }
            for index in share {
                let (from, to) = (&self.input[*index], &self.output[*index]);
                let position = self.position(a, from)?;
                let seen = a.look(from, Look::uncommitted(position).within(1)).is(0)?;
                // One byte at most: one whole batch.
                let values: Vec<_> = seen.values.iter().map(String::as_str).collect();
                if values.is_empty() {
                    continue;
                }
                a.add(me, &[to])?;
                a.produce_when_free(to, me, sequences[*index], &values).is(0)?;
                sequences[*index] += i32::try_from(values.len()).expect("a hundred or less");
                if *left == 0 {
                    return Ok(Ended::Death);
                }
                *left -= 1;
                a.add_offsets(me, &member.group)?;
                let next = seen.next_offset().expect("there are values");
                let committed = a.commit_offset_as(me, member, (from, next));
                let code = committed.code().unwrap_or(-1);
                self.codes.lock().unwrap_or_else(PoisonError::into_inner).insert(code);
                if code != 0 {
                    a.end(me, Abort).is(0)?;
                    return Ok(Ended::Rebalance);
                }
                a.end(me, Commit).is(0)?;
                self.copied.fetch_add(values.len(), Ordering::Relaxed);
            }
        }
    }

    /// Where the group stands, once no transaction holds it.
    fn position(&self, a: &mut Actor, place: &Place) -> Kept<i64> {
        let deadline = Instant::now() + Duration::from_secs(12);
        loop {
            let seen = a.group_offset(self.group, place, true)?;
            if seen.code == 0 {
                return Ok(seen.offset.max(0));
            }
            if Instant::now() > deadline {
                return Err(Failure::broken("OffsetFetch, stable", seen.code, "0"));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
