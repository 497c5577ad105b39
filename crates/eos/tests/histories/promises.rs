//! What clients were promised, held against the log. Knows no rule of the core.

use std::collections::{BTreeMap, BTreeSet};

use semel_events::{BatchAppended, Event, Outcome, Visible};
use semel_types::{MAX_USABLE_EPOCH, PartitionHandle, ProducerId, ProducerStamp};

use crate::shard::{Shard, transactional_id};

/// A promise is broken: the history ends here.
pub fn broken(promise: &'static str, found: &dyn std::fmt::Debug) -> ! {
    std::panic::panic_any(format!("{promise}: {found:?}"))
}

pub type Value = u32;

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Spot {
    pub handle: PartitionHandle,
    pub offset: i64,
}

/// A batch in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    pub value: Value,
    pub stamp: ProducerStamp,
    /// True if it is part of a transaction.
    pub transactional: bool,
}

/// One transaction as its application sees it.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// Whose: the number of the transactional id.
    pub id: usize,
    /// The offset of the id's group that it may commit; no other attempt has it.
    pub offset: Value,
    /// The offset was taken into the transaction.
    pub offset_taken: bool,
    pub acknowledged: Vec<(Record, Spot)>,
    /// What the client was told of its end.
    pub told: Option<Outcome>,
}

/// A plain batch that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    pub serial: u64,
    pub value: Value,
    pub handle: PartitionHandle,
    /// Its library keeps the order of what it sends.
    pub in_order: bool,
}

#[derive(Default)]
pub struct Promises {
    pub stored: BTreeMap<Spot, Record>,
    pub places: BTreeMap<Value, Vec<Spot>>,
    pub attempts: Vec<Attempt>,
    pub delivered: Vec<Delivered>,
    /// Who owns each transactional id now.
    pub current: [Option<ProducerStamp>; 3],
    /// Which client was given an identity.
    pub holders: BTreeMap<ProducerStamp, u64>,
    issued: BTreeSet<ProducerId>,
    seen: usize,
}

impl Promises {
    /// Takes in what was appended to the log since the last call.
    pub fn observe(&mut self, shard: &Shard, sender: Option<usize>) {
        for at in self.seen..shard.log.len() {
            match &shard.log[at] {
                Event::BatchAppended(batch) => self.observe_batch(batch, sender),
                Event::TransactionalIdInitialized(event) => {
                    self.identity_is(event.id.as_str(), event.identity)
                }
                Event::TransactionEnded(event) => self.identity_is(event.id.as_str(), event.identity_after),
                Event::TransactionalIdExpired(event) => self.current[number_of(event.id.as_str())] = None,
                _ => {}
            }
        }
        self.seen = shard.log.len();
    }

    fn observe_batch(&mut self, batch: &BatchAppended, sender: Option<usize>) {
        let Some(producer) = &batch.producer else { return };
        let (value, stamp) = (producer.checksum.0, producer.stamp);
        if let Some(id) = sender
            && self.current[id] != Some(stamp)
        {
            broken("no byte of a zombie", &(stamp, self.current[id]));
        }
        let spot = Spot { handle: batch.partition, offset: batch.base_offset.get() };
        let earlier = self.places.get(&value).map(Vec::as_slice).unwrap_or_default();
        let again = earlier.iter().filter(|earlier| earlier.handle == spot.handle);
        if sender.is_none() && again.count() > 0 {
            broken("once", &(value, spot, earlier));
        }
        self.note_stored(batch);
    }

    fn note_stored(&mut self, batch: &BatchAppended) {
        let Some(producer) = &batch.producer else { return };
        let spot = Spot { handle: batch.partition, offset: batch.base_offset.get() };
        let transactional = producer.transaction.is_some();
        let record = Record { value: producer.checksum.0, stamp: producer.stamp, transactional };
        self.places.entry(record.value).or_default().push(spot);
        self.stored.insert(spot, record);
    }

    fn identity_is(&mut self, id: &str, identity: ProducerStamp) {
        let current = &mut self.current[number_of(id)];
        match *current {
            Some(before) if before.id == identity.id => {
                if identity.epoch < before.epoch || identity.epoch.get() > MAX_USABLE_EPOCH {
                    broken("epochs rise", &(before, identity));
                }
            }
            Some(_) | None => {
                if !self.issued.insert(identity.id) {
                    broken("a producer id is issued once", &identity);
                }
            }
        }
        *current = Some(identity);
    }

    /// A client without transactional id was given an id.
    pub fn issued(&mut self, stamp: ProducerStamp) {
        if !self.issued.insert(stamp.id) {
            broken("a producer id is issued once", &stamp);
        }
    }

    /// An answer gave a client an identity.
    pub fn given(&mut self, identity: ProducerStamp, serial: u64) {
        let holder = *self.holders.entry(identity).or_insert(serial);
        if holder != serial {
            broken("an identity has one holder", &(identity, holder, serial));
        }
    }

    /// A batch was acknowledged at an offset.
    pub fn acknowledged_at(&self, value: Value, spot: Spot) {
        if self.stored.get(&spot).is_none_or(|record| record.value != value) {
            broken("what is acknowledged is stored", &(value, spot, self.stored.get(&spot)));
        }
    }

    /// A batch was acknowledged without an offset (46): where it is.
    pub fn acknowledged_somewhere(&self, value: Value, handle: PartitionHandle) -> Spot {
        let mut spots = self.places.get(&value).into_iter().flatten();
        match spots.rfind(|spot| spot.handle == handle) {
            Some(spot) => *spot,
            None => broken("what is acknowledged is stored", &(value, handle, 46)),
        }
    }

    pub fn is_stored(&self, value: Value, handle: PartitionHandle) -> bool {
        self.places.get(&value).is_some_and(|spots| spots.iter().any(|spot| spot.handle == handle))
    }

    /// The log lost its end: plain records of it are excused, committed ones are not.
    pub fn lost(&mut self, shard: &Shard) {
        let attempts = std::mem::take(&mut self.attempts);
        let (holders, issued) = (std::mem::take(&mut self.holders), std::mem::take(&mut self.issued));
        let delivered = std::mem::take(&mut self.delivered);
        *self = Self { attempts, holders, issued, ..Self::default() };
        for event in &shard.log {
            match event {
                Event::BatchAppended(batch) => self.note_stored(batch),
                Event::TransactionalIdInitialized(event) => {
                    self.current[number_of(event.id.as_str())] = Some(event.identity);
                }
                Event::TransactionEnded(event) => {
                    self.current[number_of(event.id.as_str())] = Some(event.identity_after);
                }
                Event::TransactionalIdExpired(event) => self.current[number_of(event.id.as_str())] = None,
                _ => {}
            }
        }
        self.delivered = delivered;
        let (places, delivered) = (&self.places, &mut self.delivered);
        let is_there = |one: &Delivered| {
            places.get(&one.value).is_some_and(|spots| spots.iter().any(|spot| spot.handle == one.handle))
        };
        delivered.retain(is_there);
        self.seen = shard.log.len();
    }

    /// Everything is decided: what readers see is what was told.
    pub fn assert_kept(&self, shard: &Shard) {
        let exists: BTreeSet<_> = shard.state.partitions().map(|(handle, _)| handle).collect();
        for (handle, numbers) in shard.state.partitions() {
            if numbers.last_stable_offset() != numbers.next_offset() {
                broken("readers get on", &(handle, numbers.last_stable_offset()));
            }
        }
        let readers = Readers::of(shard);
        let is_read = |spot: &Spot| self.stored.get(spot).is_some_and(|record| readers.see(*spot, record));
        let is_read_as =
            |(record, spot): &(Record, Spot)| self.stored.get(spot) == Some(record) && is_read(spot);
        let committed = committed_offsets(shard);
        for attempt in &self.attempts {
            let offset_is_read = committed[attempt.id].contains(&attempt.offset);
            assert_whole(attempt, offset_is_read, &exists, is_read_as);
        }
        for (value, spots) in &self.places {
            let mut read = BTreeSet::new();
            for spot in spots.iter().filter(|spot| exists.contains(&spot.handle) && is_read(spot)) {
                if !read.insert(spot.handle) {
                    broken("once", &(value, spots));
                }
            }
        }
        self.assert_delivered(&exists);
    }

    fn assert_delivered(&self, exists: &BTreeSet<PartitionHandle>) {
        let mut last: BTreeMap<(u64, PartitionHandle), (Value, i64)> = BTreeMap::new();
        for one in self.delivered.iter().filter(|one| exists.contains(&one.handle)) {
            let spot = self.acknowledged_somewhere(one.value, one.handle);
            let before = last.insert((one.serial, one.handle), (one.value, spot.offset));
            let rises = before.is_none_or(|(value, offset)| (value < one.value) == (offset < spot.offset));
            if one.in_order && !rises {
                broken("in order", &(one, before, spot));
            }
        }
    }
}

/// Records and offset of an attempt are seen, or none of them; and as its client was told.
fn assert_whole(
    attempt: &Attempt,
    offset_is_read: bool,
    exists: &BTreeSet<PartitionHandle>,
    is_read: impl Fn(&(Record, Spot)) -> bool,
) {
    let there = attempt.acknowledged.iter().filter(|(_, spot)| exists.contains(&spot.handle));
    let mut seen: BTreeSet<bool> = there.map(is_read).collect();
    if attempt.offset_taken {
        seen.insert(offset_is_read);
    }
    if let Some(outcome) = attempt.told {
        seen.insert(outcome == Outcome::Commit);
    }
    if seen.len() > 1 {
        broken("a transaction is whole", &(attempt, offset_is_read));
    }
    // It may be on its way for longer than its transaction (S7).
    if attempt.told == Some(Outcome::Abort) && offset_is_read {
        broken("no offset of an aborted transaction", attempt);
    }
}

/// What a reader of each group's offset saw, in order.
fn committed_offsets(shard: &Shard) -> [Vec<Value>; 3] {
    let (mut committed, mut pending) = (<[Vec<Value>; 3]>::default(), BTreeMap::new());
    for event in &shard.log {
        match event {
            Event::PendingOffsetsAdded(event) => {
                let value = Value::try_from(event.offsets[0].offset.get()).unwrap();
                pending.insert((event.id.clone(), event.number), (event.group.clone(), value));
            }
            Event::TransactionEnded(event) => {
                let held = pending.remove(&(event.id.clone(), event.number));
                let Some((group, value)) = held.filter(|_| event.outcome == Outcome::Commit) else {
                    continue;
                };
                if !event.groups.contains(&group) {
                    broken("a transaction is whole", &(event, value));
                }
                committed[number_of(event.id.as_str())].push(value);
            }
            _ => {}
        }
    }
    if let Some(back) = committed.iter().find(|values| !values.is_sorted_by(|one, next| one < next)) {
        broken("a group goes forward", back);
    }
    committed
}

/// What read_committed shows once everything is decided.
struct Readers {
    aborted: Vec<(PartitionHandle, ProducerId, i64, i64)>,
}

impl Readers {
    fn of(shard: &Shard) -> Self {
        let aborted = shard.visible.iter().filter_map(|visible| match visible {
            Visible::Aborted { partition, aborted } => {
                let (first, last) = (aborted.first_offset.get(), aborted.last_offset.get());
                Some((*partition, aborted.producer, first, last))
            }
            _ => None,
        });
        Self { aborted: aborted.collect() }
    }

    fn see(&self, spot: Spot, record: &Record) -> bool {
        let hides = |(handle, producer, first, last): &(PartitionHandle, ProducerId, i64, i64)| {
            *handle == spot.handle && *producer == record.stamp.id && (*first..=*last).contains(&spot.offset)
        };
        !record.transactional || !self.aborted.iter().any(hides)
    }
}

fn number_of(id: &str) -> usize {
    (0..3).find(|number| transactional_id(*number).as_str() == id).expect("one of the three ids")
}
