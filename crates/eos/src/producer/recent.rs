//! What the node remembers of recent Produce requests, outside the log.
//!
//! Purpose: the connection rule for Produce (design section 4), and the mark of a batch that was refused for want of
//! room. Invariants: EOS-16 (bounded whatever clients send). Volatile: empty at start, never read by `apply`.

use alloc::{boxed::Box, collections::BTreeMap};

use semel_types::{ConnectionNumber, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp, Sequence};

use super::{BatchStamp, Judgement, ProduceScope};
use crate::{
    Refusal, Volatile,
    fence::{self, EpochStanding},
};

/// Producer ids in one page.
const PER_PAGE: usize = 64;

/// Pages in one generation, half a KiB each. Enough for two million ids issued densely; made-up ids take one each.
const PAGES: usize = 32_768;

/// Marks of refusals at most.
const MARKS: usize = 65_536;

/// The highest connection of each producer id, and what was refused for want of room.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Pages in use; when there are too many they grow old, and pages not used since go.
    young: BTreeMap<u64, Box<[InUse; PER_PAGE]>>,
    old: BTreeMap<u64, Box<[InUse; PER_PAGE]>>,
    refused: BTreeMap<(ProducerId, PartitionHandle), Refused>,
}

/// The connection that an identity uses, in one word: the epoch above, the number below; number 0 for none. A server
/// would have to accept a million connections a second for nine years to reach 2^48.
#[derive(Clone, Copy, Debug, Default)]
struct InUse(u64);

impl InUse {
    const NUMBER_BITS: u32 = 48;

    fn new(epoch: ProducerEpoch, connection: ConnectionNumber) -> Self {
        let epoch = u64::from(epoch.get().cast_unsigned());
        Self(epoch << Self::NUMBER_BITS | connection.get().min((1 << Self::NUMBER_BITS) - 1))
    }

    const fn epoch(self) -> ProducerEpoch {
        ProducerEpoch::new((self.0 >> Self::NUMBER_BITS) as i16)
    }

    const fn connection(self) -> ConnectionNumber {
        ConnectionNumber::new(self.0 & ((1 << Self::NUMBER_BITS) - 1))
    }
}

/// The lowest sequence refused for want of room and not judged since.
#[derive(Clone, Copy, Debug)]
struct Refused {
    epoch: ProducerEpoch,
    sequence: Sequence,
}

/// Page and place of an id.
const fn place(id: ProducerId) -> (u64, usize) {
    let number = id.get().cast_unsigned();
    (number / PER_PAGE as u64, (number % PER_PAGE as u64) as usize)
}

impl Recent {
    /// The connection in use, if it is a later one than the request's: the client has left the request's connection.
    pub(crate) fn superseded_by(
        &self,
        stamp: ProducerStamp,
        connection: ConnectionNumber,
    ) -> Option<ConnectionNumber> {
        let (page, at) = place(stamp.id);
        let page = self.young.get(&page).or_else(|| self.old.get(&page))?;
        let in_use = page[at];
        let is_current = fence::standing(stamp.epoch, in_use.epoch()) == EpochStanding::Current;
        (is_current && connection < in_use.connection()).then_some(in_use.connection())
    }

    /// True if a lower sequence of the same epoch was refused here for want of room and not judged since.
    pub(crate) fn was_refused_below(&self, partition: PartitionHandle, batch: &BatchStamp) -> bool {
        let refused = self.refused.get(&(batch.producer.id, partition));
        refused.is_some_and(|refused| {
            fence::standing(batch.producer.epoch, refused.epoch) == EpochStanding::Current
                && refused.sequence.get() < batch.first_sequence.get()
        })
    }

    /// A request with the current identity was judged: its connection is in use from here on.
    fn raise(&mut self, stamp: ProducerStamp, connection: ConnectionNumber, is_new_epoch_proven: bool) {
        let (number, at) = place(stamp.id);
        let in_use = &mut self.page(number)[at];
        match fence::standing(stamp.epoch, in_use.epoch()) {
            EpochStanding::Current => *in_use = InUse::new(stamp.epoch, connection.max(in_use.connection())),
            EpochStanding::Newer if is_new_epoch_proven => *in_use = InUse::new(stamp.epoch, connection),
            EpochStanding::Newer | EpochStanding::Older => {}
        }
    }

    fn page(&mut self, number: u64) -> &mut [InUse; PER_PAGE] {
        if self.young.len() >= PAGES && !self.young.contains_key(&number) {
            self.old = core::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young
            .entry(number)
            .or_insert_with(|| old.remove(&number).unwrap_or_else(|| Box::new([InUse::default(); PER_PAGE])))
    }

    fn forget_refusal(&mut self, partition: PartitionHandle, batch: &BatchStamp) {
        let key = (batch.producer.id, partition);
        let is_of = |refused: &Refused| {
            refused.sequence == batch.first_sequence
                && fence::standing(batch.producer.epoch, refused.epoch) == EpochStanding::Current
        };
        if self.refused.get(&key).is_some_and(is_of) {
            self.refused.remove(&key);
        }
    }
}

impl Volatile {
    /// Notes what became of a judged batch. Called once for each, before [`Self::refused_for_room`] where that
    /// follows.
    pub fn note_produce(
        &mut self,
        scope: &ProduceScope<'_>,
        batch: &BatchStamp,
        partition: PartitionHandle,
        judgement: &Judgement,
    ) {
        let (is_current, is_stored) = match judgement {
            Judgement::Append | Judgement::Duplicate { .. } => (true, true),
            Judgement::Refuse(refusal) => (keeps_order(refusal), false),
        };
        if is_current {
            // A stray on a connection that was left says nothing about the batch that is still to come.
            if !self.produce.refused.is_empty() {
                self.produce.forget_refusal(partition, batch);
            }
            let is_owned = scope.transactional_id.is_some();
            self.produce.raise(batch.producer, scope.connection, is_owned || is_stored);
        }
    }

    /// Notes that a batch that would have been appended was refused for want of room (56).
    pub fn refused_for_room(&mut self, partition: PartitionHandle, batch: &BatchStamp) {
        let key = (batch.producer.id, partition);
        let new = Refused { epoch: batch.producer.epoch, sequence: batch.first_sequence };
        let refused = self.produce.refused.entry(key).or_insert(new);
        let lowest = match fence::standing(new.epoch, refused.epoch) {
            EpochStanding::Current => new.sequence.get() < refused.sequence.get(),
            EpochStanding::Newer => true,
            EpochStanding::Older => false,
        };
        if lowest {
            *refused = new;
        }
        if self.produce.refused.len() > MARKS {
            self.produce.refused.pop_first();
        }
    }
}

/// True for the refusals of a batch with the current identity on its connection in use.
const fn keeps_order(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::OutOfOrder { .. }
            | Refusal::StrayOfEndedTransaction { .. }
            | Refusal::ForgottenProducer { .. }
            | Refusal::AlreadyStored { .. }
            | Refusal::OtherPayload { .. }
            | Refusal::NotInTransaction { .. }
    )
}
