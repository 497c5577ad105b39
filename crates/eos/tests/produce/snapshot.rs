//! What a snapshot keeps: everything. Random lives of a shard, with transactions, expiry and deletions.

use semel_eos::State;
use semel_events::{Outcome, Protocol, Reader};
use semel_types::{DurationMs, LogSequence, ProducerId, ProducerStamp, TransactionalId};

use crate::{
    random::Random,
    shard::{Shard, batch, id, in_transaction},
};

fn read_back(state: &State) -> State {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    let mut reader = Reader::new(&bytes);
    let decoded = State::decode(&mut reader).expect("what was written is read");
    assert!(reader.is_empty(), "a snapshot is read to its end");
    decoded
}

/// One life: what it does next depends on what it has.
struct Life {
    shard: Shard,
    owners: Vec<(TransactionalId, ProducerStamp)>,
    next_topic: u32,
    topics: Vec<u32>,
}

const PARTITIONS: u32 = 20;

impl Life {
    fn new() -> Self {
        let mut shard = Shard::new(PARTITIONS);
        shard.settings.producer_stubs_max = 40;
        shard.settings.producer_id_expiration = DurationMs::from_ms(100_000);
        Self { shard, owners: Vec::new(), next_topic: 100, topics: vec![0] }
    }

    fn step(&mut self, random: &mut Random) {
        self.shard.now += random.below(3000) as i64;
        let topic = random.pick(&self.topics);
        let partition = topic + random.below(u64::from(PARTITIONS)) as u32;
        match random.below(100) {
            0..60 => self.plain(random, partition),
            60..80 => self.transactional(random, partition),
            80..84 => self.init(random),
            84..90 => self.end(random),
            90..95 => self.shard.expire(),
            95..97 => self.shard.now += 100_000,
            97 => self.replace_topic(random),
            98 => self.shard.start(self.shard.state.shard_epoch().get() + 1, random.one_in(2)),
            _ => self.shard.produce_anonymously(partition, 1 + random.below(5) as u32),
        }
    }

    fn plain(&mut self, random: &mut Random, partition: u32) {
        let producer = match random.below(8) {
            0 => ProducerId::new(random.below(4) as i64),
            1 => id(300 + random.below(400) as i64),
            _ => id(random.pick(&[400, 401, 463, 464, 465])),
        };
        let held = self.shard.state.producers().held(producer);
        let known = held.0.iter().find(|entry| entry.partition().get() == partition);
        let stub = held.1.iter().find(|stub| stub.partition().get() == partition);
        let (epoch, last) = known
            .map(|entry| (entry.epoch().get(), entry.last().get()))
            .or_else(|| stub.map(|stub| (stub.epoch().get(), stub.last().get())))
            .unwrap_or((0, -1));
        let first = i64::from(last) + random.pick(&[1, 1, 1, 1, 1, 0, 2]);
        let count = random.pick(&[1, 2, 3, 1 << 29]);
        let stamp = if random.one_in(20) {
            batch(producer, epoch + 1, 0, count)
        } else {
            batch(producer, epoch, first.max(0), count)
        };
        self.shard.produce(partition, stamp);
    }

    fn transactional(&mut self, random: &mut Random, partition: u32) {
        if self.owners.is_empty() {
            return self.init(random);
        }
        let at = random.below(self.owners.len() as u64) as usize;
        let (owner, identity) = self.owners[at].clone();
        let held = self.shard.state.producers().held(identity.id).0;
        let known =
            held.iter().find(|entry| entry.partition().get() == partition && entry.epoch() == identity.epoch);
        let first = known.map_or(0, |entry| i64::from(entry.last().get()) + 1);
        let _ = self.shard.add(owner.as_str(), identity, partition);
        self.shard.produce_on(
            1,
            Some(&owner),
            partition,
            in_transaction(identity, first, 1 + random.below(4) as u32),
        );
    }

    fn init(&mut self, random: &mut Random) {
        let owner = TransactionalId::from(random.pick(&["a", "b", "c", "d"]));
        let identity = self.shard.init(owner.as_str());
        self.owners.retain(|(known, _)| *known != owner);
        self.owners.push((owner, identity));
    }

    fn end(&mut self, random: &mut Random) {
        let outcome = random.pick(&[Outcome::Commit, Outcome::Abort]);
        let protocol = random.pick(&[Protocol::Classic, Protocol::Version2]);
        for (owner, identity) in &mut self.owners {
            if let Ok(after) = self.shard.end(owner.as_str(), *identity, outcome, protocol) {
                *identity = after;
            }
        }
    }

    fn replace_topic(&mut self, random: &mut Random) {
        let next_unissued = if random.one_in(2) {
            let topic = self.topics.remove(0);
            self.shard.delete_topic(topic, PARTITIONS)
        } else {
            ProducerId::new(0)
        };
        self.shard.create_topic(self.next_topic, PARTITIONS, next_unissued);
        self.topics.push(self.next_topic);
        self.next_topic += PARTITIONS;
    }
}

#[test]
fn a_state_read_back_is_equal_and_lives_on_equally() {
    for seed in 0..150 {
        let (mut random, mut life) = (Random::new(1000 + seed), Life::new());
        life.shard.check = seed % 10 == 0;
        for _ in 0..150 {
            life.step(&mut random);
        }
        let read = read_back(&life.shard.state);
        assert!(read == life.shard.state, "seed {seed}");
        let mut other = Life { shard: life.shard.clone(), owners: life.owners.clone(), ..Life::new() };
        (other.next_topic, other.topics) = (life.next_topic, life.topics.clone());
        other.shard.state = read;
        let mut same_random = Random::new(seed);
        let mut random = Random::new(seed);
        for _ in 0..100 {
            life.step(&mut random);
            other.step(&mut same_random);
        }
        assert!(other.shard.state == life.shard.state, "seed {seed}, later");
        assert_eq!(other.shard.visible, life.shard.visible, "seed {seed}");
        life.shard.state.check().expect("sound");
    }
}

#[test]
fn a_clone_keeps_what_it_had_while_the_original_lives_on() {
    for seed in 0..30 {
        let (mut random, mut life) = (Random::new(9000 + seed), Life::new());
        life.shard.check = false;
        for _ in 0..10 {
            let clone = life.shard.state.clone();
            let mut before = Vec::new();
            clone.encode(&mut before);
            for _ in 0..40 {
                life.step(&mut random);
            }
            let mut after = Vec::new();
            clone.encode(&mut after);
            assert!(before == after, "seed {seed}");
        }
    }
}

#[test]
fn a_snapshot_cut_anywhere_or_of_another_version_is_refused() {
    let (mut random, mut life) = (Random::new(77), Life::new());
    life.shard.check = false;
    for _ in 0..200 {
        life.step(&mut random);
    }
    let mut bytes = Vec::new();
    life.shard.state.encode(&mut bytes);
    for cut in 0..bytes.len() {
        assert!(State::decode(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut} of {}", bytes.len());
    }
    bytes[0] += 1;
    assert!(State::decode(&mut Reader::new(&bytes)).is_err());
}

#[test]
fn a_damaged_snapshot_is_refused_or_read_but_never_brings_the_reader_down() {
    let (mut random, mut life) = (Random::new(78), Life::new());
    life.shard.check = false;
    for _ in 0..200 {
        life.step(&mut random);
    }
    let mut bytes = Vec::new();
    life.shard.state.encode(&mut bytes);
    let mut refused = 0;
    for _ in 0..5_000 {
        let at = random.below(bytes.len() as u64) as usize;
        let kept = bytes[at];
        bytes[at] = random.below(256) as u8;
        match State::decode(&mut Reader::new(&bytes)) {
            Ok(state) => drop(state.check()),
            Err(_) => refused += 1,
        }
        bytes[at] = kept;
    }
    assert!(refused > 500, "{refused} refused");
}

#[test]
fn replayed_events_make_the_state_that_lived_and_show_what_was_shown() {
    for seed in 0..50 {
        let (mut random, mut life) = (Random::new(5000 + seed), Life::new());
        life.shard.check = false;
        for _ in 0..200 {
            life.step(&mut random);
        }
        let (mut replayed, mut visible) = (State::new(), Vec::new());
        for (event, number) in life.shard.events.iter().zip(1..) {
            replayed.apply(LogSequence::new(number), event, &mut visible);
        }
        assert!(replayed == life.shard.state, "seed {seed}");
        assert_eq!(visible, life.shard.visible, "seed {seed}");
    }
}
