//! Batches of any size against a plain model that keeps everything and counts without wrap.

use std::collections::{BTreeMap, HashMap};

use semel_eos::{BatchStamp, Judgement};
use semel_types::{PayloadChecksum, ProducerId};

use crate::{
    random::Random,
    shard::{Shard, batch, code, duplicate_at, id},
};

/// All batches of one producer on one partition in its current epoch, numbered without wrap.
#[derive(Clone, Default)]
struct Session {
    epoch: i16,
    batches: Vec<Stored>,
}

#[derive(Clone, Copy)]
struct Stored {
    first: u64,
    count: u32,
    payload: u32,
    offset: i64,
    at: i64,
}

const FEW: Pairs = Pairs { producers: 3, partitions: 3 };

const MODULUS: u64 = 1 << 31;

impl Session {
    fn end(&self) -> u64 {
        self.batches.last().map_or(0, |last| last.first + u64::from(last.count))
    }

    /// What Produce is told of a batch of the current epoch.
    fn judge(&self, first: u64, count: u32, payload: u32) -> Expected {
        if first == self.end() % MODULUS {
            return Expected::Append;
        }
        // The newest number that this sequence can stand for, if it is not too long ago.
        let behind = (self.end() - 1).wrapping_sub(first) % MODULUS;
        if behind >= self.end() || behind >= 1 << 30 {
            return Expected::Code(45);
        }
        let first = self.end() - 1 - behind;
        if first + u64::from(count) > self.end() {
            return Expected::Code(45);
        }
        let remembered = self.batches.iter().rev().take(5);
        let mut exact = remembered.filter(|stored| stored.first == first && stored.count == count);
        match exact.next() {
            Some(stored) if stored.payload == payload => Expected::Duplicate(*stored),
            Some(_) | None => Expected::Code(46),
        }
    }
}

enum Expected {
    Append,
    Duplicate(Stored),
    Code(i16),
}

#[derive(Default)]
struct Model {
    sessions: BTreeMap<(ProducerId, u32), Session>,
    ends: HashMap<u32, i64>,
}

impl Model {
    fn judge(&self, partition: u32, stamp: &BatchStamp) -> Expected {
        let (epoch, first) = (stamp.producer.epoch.get(), stamp.first_sequence.get() as u64);
        match self.sessions.get(&(stamp.producer.id, partition)) {
            None if first == 0 => Expected::Append,
            None => Expected::Code(45),
            Some(session) if epoch < session.epoch => Expected::Code(47),
            Some(session) if epoch > session.epoch && first == 0 => Expected::Append,
            Some(session) if epoch > session.epoch => Expected::Code(45),
            Some(session) => session.judge(first, stamp.count, stamp.checksum.0),
        }
    }

    fn append(&mut self, partition: u32, stamp: &BatchStamp, at: i64) {
        let session = self.sessions.entry((stamp.producer.id, partition)).or_default();
        let epoch = stamp.producer.epoch.get();
        if epoch != session.epoch {
            *session = Session { epoch, batches: Vec::new() };
        }
        let end = self.ends.entry(partition).or_default();
        let (first, offset) = (session.end(), *end);
        *end += i64::from(stamp.count);
        session.batches.push(Stored { first, count: stamp.count, payload: stamp.checksum.0, offset, at });
    }

    /// A batch that is likely to matter.
    fn interesting(&self, random: &mut Random, pairs: Pairs) -> (u32, BatchStamp) {
        let (producer, partition) =
            (id(random.below(pairs.producers) as i64), random.below(pairs.partitions) as u32);
        let empty = Session::default();
        let session = self.sessions.get(&(producer, partition)).unwrap_or(&empty);
        let mut count = random.pick(&[1, 1, 2, 3, 10, 1 << 20, 1 << 29]);
        let mut first = match random.below(10) {
            0 => 0,
            1 => session.end().saturating_sub(random.below(12)),
            2 => session.end() + random.below(3),
            3 => random.below(MODULUS),
            4 => session.end().saturating_sub(random.below(1 << 30)),
            _ => session.end(),
        };
        let mut payload = random.below(2) as u32;
        if random.one_in(3) && !session.batches.is_empty() {
            let back = random.below(8).min(session.batches.len() as u64 - 1) as usize;
            let retried = session.batches[session.batches.len() - 1 - back];
            (first, count) = (retried.first, retried.count);
            payload = if random.one_in(4) { payload } else { retried.payload };
        }
        let epoch = match random.below(20) {
            0 => session.epoch + 1,
            1 => (session.epoch - 1).max(0),
            _ => session.epoch,
        };
        let stamp = batch(producer, epoch, (first % MODULUS) as i64, count);
        (partition, BatchStamp { checksum: PayloadChecksum(payload), ..stamp })
    }
}

/// Who writes where.
#[derive(Clone, Copy)]
struct Pairs {
    producers: u64,
    partitions: u64,
}

/// Random steps of one history; how often each answer was given.
fn history(
    random: &mut Random,
    shard: &mut Shard,
    pairs: Pairs,
    steps: u32,
    answers: &mut BTreeMap<i16, u32>,
) {
    let mut model = Model::default();
    for step in 0..steps {
        shard.now += random.below(1000) as i64;
        let (partition, stamp) = model.interesting(random, pairs);
        let judgement = shard.produce(partition, stamp);
        match model.judge(partition, &stamp) {
            Expected::Append => {
                assert_eq!(judgement, Judgement::Append, "step {step}: {stamp:?}");
                model.append(partition, &stamp, shard.now);
            }
            Expected::Duplicate(stored) => {
                assert_eq!(judgement, duplicate_at(stored.offset, stored.at), "step {step}: {stamp:?}");
            }
            Expected::Code(expected) => assert_eq!(code(&judgement), expected, "step {step}: {stamp:?}"),
        }
        *answers.entry(code(&judgement)).or_default() += 1;
    }
    for partition in 0..pairs.partitions as u32 {
        assert_eq!(shard.next_offset(partition), model.ends.get(&partition).copied().unwrap_or(0));
    }
}

#[test]
fn batches_of_any_size_are_judged_as_by_a_model_that_keeps_everything() {
    let (mut random, mut answers) = (Random::new(4), BTreeMap::new());
    let mut fresh = Shard::new(3);
    fresh.check = false;
    for _ in 0..10_000 {
        history(&mut random, &mut fresh.clone(), FEW, 60, &mut answers);
    }
    assert!([0, 45, 46, 47].iter().all(|code| answers[code] > 2_000), "{answers:?}");
}

#[test]
fn the_state_is_sound_after_each_step_of_random_batches() {
    let (mut random, mut answers) = (Random::new(5), BTreeMap::new());
    for _ in 0..200 {
        history(&mut random, &mut Shard::new(3), FEW, 60, &mut answers);
    }
}

#[test]
fn producers_of_very_many_partitions_are_judged_as_by_the_model() {
    let (mut random, mut answers) = (Random::new(6), BTreeMap::new());
    for _ in 0..5 {
        let mut shard = Shard::new(500);
        shard.check = false;
        history(&mut random, &mut shard, Pairs { producers: 2, partitions: 500 }, 20_000, &mut answers);
        shard.state.check().expect("sound");
    }
}

#[test]
fn many_producers_of_few_partitions_are_judged_as_by_the_model() {
    let (mut random, mut answers) = (Random::new(7), BTreeMap::new());
    let mut shard = Shard::new(2);
    shard.check = false;
    history(&mut random, &mut shard, Pairs { producers: 1000, partitions: 2 }, 50_000, &mut answers);
    shard.state.check().expect("sound");
}
