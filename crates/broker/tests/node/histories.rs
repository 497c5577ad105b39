//! Random histories against a plain model: several instances fight over transactional ids, retry, copy, fall silent,
//! and the node restarts. What was acknowledged and committed is there once, in order; nothing else is.
//!
//! The model knows no rule of the broker: it believes the answers and checks what they add up to. What a stale
//! instance may do is the one thing that it predicts: nothing.

use semel_types::{ConnectionNumber, ProducerStamp};

use crate::support::*;

const IDS: [&str; 2] = ["tx-0", "tx-1"];
const PLACES: [Place<'static>; 3] = [("t", 0), ("t", 1), ("u", 0)];
const TIMEOUT_MS: i64 = 5000;

/// A record that was acknowledged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Stored {
    offset: i64,
    value: String,
}

/// What the model knows of one transactional id.
#[derive(Default)]
struct Id {
    current: Option<ProducerStamp>,
    open: Vec<(usize, Stored)>,
    open_since_ms: Option<i64>,
}

/// One application instance.
struct Instance {
    id: usize,
    stamp: ProducerStamp,
    version_2: bool,
    next: [i32; PLACES.len()],
    added: [bool; PLACES.len()],
    /// The last EndTxn: connection older than the one it was sent on, stamp, outcome.
    copy: Option<(ConnectionNumber, ProducerStamp, bool)>,
}

/// An idempotent producer.
struct Plain {
    stamp: ProducerStamp,
    sent: Vec<(bytes::Bytes, i64)>,
}

struct World {
    broker: Broker,
    dice: Dice,
    ids: [Id; IDS.len()],
    instances: Vec<Instance>,
    plain: Plain,
    committed: [Vec<Stored>; PLACES.len()],
    stored: [Vec<Stored>; PLACES.len()],
    values: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut broker = Broker::seeded(&[], seed);
        broker.topic("t", 2);
        broker.topic("u", 1);
        let on = broker.connect();
        let plain = Plain { stamp: broker.init_idempotent(on), sent: Vec::new() };
        Self {
            broker,
            dice: Dice::seeded(seed),
            ids: Default::default(),
            instances: Vec::new(),
            plain,
            committed: Default::default(),
            stored: Default::default(),
            values: 0,
        }
    }

    fn value(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0 | 1 => self.new_instance(),
            2..=9 => self.write(),
            10..=13 => self.end(),
            14 | 15 => self.late_copy(),
            16 | 17 => self.write_plain(),
            18 => self.pass(),
            _ => self.restart(),
        }
    }

    /// Connections of before are gone, and with them what was still on its way on them.
    fn restart(&mut self) {
        self.broker.restart();
        self.instances.iter_mut().for_each(|instance| instance.copy = None);
    }

    fn new_instance(&mut self) {
        let id = self.dice.below(IDS.len());
        let on = self.broker.connect();
        let stamp = self.broker.init(on, IDS[id], i32::try_from(TIMEOUT_MS).unwrap());
        let known = &mut self.ids[id];
        known.current = Some(stamp);
        known.open.clear();
        known.open_since_ms = None;
        let version_2 = self.dice.one_in(2);
        let (next, added) = ([0; PLACES.len()], [false; PLACES.len()]);
        self.instances.push(Instance { id, stamp, version_2, next, added, copy: None });
        if self.instances.len() > 6 {
            self.instances.remove(0);
        }
    }

    fn write(&mut self) {
        if self.instances.is_empty() {
            return;
        }
        let (number, place) = (self.dice.below(self.instances.len()), self.dice.below(PLACES.len()));
        let (on, value) = (self.broker.connect(), self.value());
        let instance = &mut self.instances[number];
        let is_current = self.ids[instance.id].current == Some(instance.stamp);
        if !instance.version_2 && !instance.added[place] {
            let added = self.broker.add(on, IDS[instance.id], instance.stamp, PLACES[place]);
            assert_eq!(added == 0, is_current, "AddPartitionsToTxn answered {added}");
            instance.added[place] = added == 0;
            if added == 0 {
                self.ids[instance.id].open_since_ms.get_or_insert(self.broker.now_ms());
            }
        }
        let version = if instance.version_2 { V2 } else { CLASSIC };
        let batch = transactional(instance.stamp, instance.next[place], &[&value]);
        let send = |broker: &mut Broker, on| {
            broker.produce(on, version, Some(IDS[instance.id]), PLACES[place], batch.clone()).answer()
        };
        let sent = send(&mut self.broker, on);
        assert_eq!(sent.error_code.get() == 0, is_current, "{:?}", sent.error_message);
        if !is_current {
            assert_eq!(sent.error_code.get(), 47);
            return;
        }
        if self.dice.one_in(3) {
            let retry_on = self.broker.connect();
            assert_eq!(fate(&send(&mut self.broker, retry_on)), fate(&sent), "a retry gets its first offset");
        }
        instance.next[place] += 1;
        let stored = Stored { offset: sent.base_offset.get(), value };
        self.stored[place].push(stored.clone());
        let id = &mut self.ids[instance.id];
        id.open.push((place, stored));
        id.open_since_ms.get_or_insert(self.broker.now_ms());
    }

    fn end(&mut self) {
        if self.instances.is_empty() {
            return;
        }
        let (number, commit) = (self.dice.below(self.instances.len()), !self.dice.one_in(3));
        let (older, on) = (self.broker.connect(), self.broker.connect());
        let instance = &mut self.instances[number];
        let version = if instance.version_2 { 5 } else { 3 };
        let ended = self.broker.end_raw(on, version, IDS[instance.id], instance.stamp, commit).answer();
        let id = &mut self.ids[instance.id];
        let is_current = id.current == Some(instance.stamp);
        instance.copy = Some((older, instance.stamp, commit));
        if ended.error_code.get() != 0 || !is_current {
            assert!(
                !(is_current && id.open_since_ms.is_some()),
                "an open transaction of the current one ends"
            );
            return;
        }
        for (place, stored) in std::mem::take(&mut id.open) {
            if commit {
                self.committed[place].push(stored);
            }
        }
        id.open_since_ms = None;
        instance.added = Default::default();
        if instance.version_2 {
            instance.stamp = pair(ended.producer_id, ended.producer_epoch);
            instance.next = Default::default();
            id.current = Some(instance.stamp);
        }
    }

    /// A copy of an earlier EndTxn arrives on a connection that was left before it was sent there again.
    fn late_copy(&mut self) {
        let copies = self.instances.iter().filter_map(|instance| {
            instance.copy.map(|(on, stamp, commit)| (instance.id, instance.version_2, on, stamp, commit))
        });
        let copies: Vec<_> = copies.collect();
        if !copies.is_empty() {
            let (id, version_2, on, stamp, commit) = copies[self.dice.below(copies.len())];
            let version = if version_2 { 5 } else { 3 };
            // Whatever it is told, it changes nothing: the model does not move.
            self.broker.end_raw(on, version, IDS[id], stamp, commit);
        }
    }

    fn write_plain(&mut self) {
        let place = PLACES.len() - 1;
        let on = self.broker.connect();
        let sequence = i32::try_from(self.plain.sent.len()).unwrap();
        let gap = plain(self.plain.stamp, sequence + 1, &["gap"]);
        assert_eq!(self.broker.send(on, PLACES[place], gap).error_code.get(), 45);
        let value = self.value();
        let batch = plain(self.plain.stamp, sequence, &[&value]);
        let sent = self.broker.send(on, PLACES[place], batch.clone());
        assert_eq!(sent.error_code.get(), 0, "{:?}", sent.error_message);
        let stored = Stored { offset: sent.base_offset.get(), value };
        self.stored[place].push(stored.clone());
        self.committed[place].push(stored);
        self.plain.sent.push((batch, sent.base_offset.get()));
        let back = self.dice.below(7) + 1;
        if let Some((batch, offset)) = self.plain.sent.iter().rev().nth(back).cloned() {
            let expected = if back < 5 { (0, offset) } else { (46, -1) };
            assert_eq!(fate(&self.broker.send(on, PLACES[place], batch)), expected, "{back} batches back");
        }
    }

    fn pass(&mut self) {
        let ms = i64::try_from(self.dice.below(4000)).unwrap();
        self.broker.pass(ms);
        let now_ms = self.broker.now_ms();
        for id in &mut self.ids {
            if id.open_since_ms.is_some_and(|since| since + TIMEOUT_MS <= now_ms) {
                *id = Id::default();
            }
        }
    }

    fn check(&mut self) {
        self.broker.restart();
        self.broker.pass(2 * TIMEOUT_MS);
        for (place, at) in PLACES.into_iter().zip(0..) {
            self.committed[at].sort();
            let delivered = self.broker.committed_from(place, 0, 300).into_iter();
            let delivered: Vec<_> = delivered.map(|(offset, value)| Stored { offset, value }).collect();
            assert_eq!(delivered, self.committed[at], "committed on {place:?}");
            let records = self.broker.dump(place).into_iter().filter_map(|entry| match entry {
                Entry::Record(offset, value) => Some(Stored { offset, value }),
                Entry::Commit(_) | Entry::Abort(_) => None,
            });
            assert_eq!(records.collect::<Vec<_>>(), self.stored[at], "stored on {place:?}");
            assert_eq!(self.broker.end_offset(place, 1), self.broker.end_offset(place, 0));
        }
    }
}

#[test]
fn random_histories_keep_what_was_acknowledged_and_nothing_else() {
    for seed in 1..=300 {
        let outcome = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            (0..120).for_each(|_| world.step());
            world.check();
        });
        assert!(outcome.is_ok(), "history {seed} breaks a promise; see above");
    }
}
