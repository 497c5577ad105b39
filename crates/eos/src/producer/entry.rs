//! What is kept of one producer on one partition: an entry with its last five batches, or, after long silence, a
//! stub.
//!
//! Purpose: the facts that the decision table asks for. Invariants: EOS-06 (the batches of an entry follow each other
//! without a gap and end at its last sequence), EOS-07 (an entry is 128 bytes, a stub 16). What it does not do: judge.

use alloc::vec::Vec;

use semel_events::{BatchAppended, BatchProducer, Decode, DecodeError, Encode, Reader};
use semel_types::{
    DurationMs, Now, Offset, PartitionHandle, PayloadChecksum, ProducerEpoch, REMEMBERED_BATCHES, Sequence,
    SequenceRange, TransactionNumber,
    mutation::{Mutation, mutated},
};

use crate::fence::{self, EpochStanding};

/// Farthest a sequence can lie behind the last one and still count as "at or below" it.
const REACH: u32 = (1 << 30) - 1;

/// One producer on one partition. Batches stand side by side, newest first, so that a retry is found in two cache
/// lines; their sequences follow from the last one and their counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Entry {
    base_offsets: [Offset; REMEMBERED_BATCHES],
    /// When the newest batch was appended.
    appended_at: Now,
    /// The transaction of the newest transactional batch; 0 for none.
    transaction: TransactionNumber,
    counts: [u32; REMEMBERED_BATCHES],
    checksums: [PayloadChecksum; REMEMBERED_BATCHES],
    /// How long before the newest batch each older one was appended; no more than 49 days are told apart.
    ages_ms: [u32; REMEMBERED_BATCHES - 1],
    last: Sequence,
    /// The first sequence that `transaction` wrote here.
    txn_first: Sequence,
    partition: PartitionHandle,
    epoch: ProducerEpoch,
    held: u8,
    wrapped: bool,
}

/// What an idle entry shrinks to: enough for the founding rules 2 to 4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Stub {
    partition: PartitionHandle,
    last: Sequence,
    /// When the last batch was appended, in seconds.
    last_written_s: u32,
    epoch: ProducerEpoch,
    wrapped: bool,
}

const _: () = assert!(size_of::<Entry>() == 128 && size_of::<Stub>() == 16);

/// A batch as it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AcceptedBatch {
    pub(crate) partition: PartitionHandle,
    pub(crate) epoch: ProducerEpoch,
    pub(crate) first_sequence: Sequence,
    pub(crate) count: u32,
    pub(crate) checksum: PayloadChecksum,
    pub(crate) base_offset: Offset,
    pub(crate) transaction: Option<TransactionNumber>,
    pub(crate) now: Now,
}

/// One remembered batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RememberedBatch {
    /// Its sequences.
    pub sequences: SequenceRange,
    /// Its number of records.
    pub count: u32,
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Checksum of the bytes after its header.
    pub checksum: PayloadChecksum,
    /// When it was appended.
    pub appended_at: Now,
}

impl Entry {
    /// The entry of a producer's first batch, or of the first of a new epoch.
    pub(crate) fn new(batch: &AcceptedBatch) -> Self {
        let mut entry = Self {
            base_offsets: [Offset::ZERO; REMEMBERED_BATCHES],
            appended_at: batch.now,
            transaction: TransactionNumber::default(),
            counts: [0; REMEMBERED_BATCHES],
            checksums: [PayloadChecksum(0); REMEMBERED_BATCHES],
            ages_ms: [0; REMEMBERED_BATCHES - 1],
            last: batch.first_sequence,
            txn_first: Sequence::ZERO,
            partition: batch.partition,
            epoch: batch.epoch,
            held: 0,
            wrapped: false,
        };
        entry.push(batch);
        entry
    }

    /// The entry of the first batch after a silence: in the stub's epoch its wrap is still known.
    pub(crate) fn from_stub(stub: &Stub, batch: &AcceptedBatch) -> Self {
        let mut entry = Self::new(batch);
        if fence::standing(batch.epoch, stub.epoch) == EpochStanding::Current {
            entry.wrapped |= stub.wrapped || wraps(stub.last, batch);
        }
        entry
    }

    /// Records an accepted batch: the next one of this epoch, or the first of a newer one.
    pub(crate) fn append(&mut self, batch: &AcceptedBatch) {
        match fence::standing(batch.epoch, self.epoch) {
            EpochStanding::Current => self.push(batch),
            EpochStanding::Newer | EpochStanding::Older => *self = Self::new(batch),
        }
    }

    fn push(&mut self, batch: &AcceptedBatch) {
        self.age(batch.now.since(self.appended_at));
        shift(&mut self.base_offsets, batch.base_offset);
        shift(&mut self.counts, batch.count);
        shift(&mut self.checksums, batch.checksum);
        self.appended_at = batch.now;
        self.wrapped |= wraps(self.last, batch);
        self.last = batch.sequences().last;
        self.held = (self.held + 1).min(REMEMBERED_BATCHES as u8);
        if let Some(number) = batch.transaction {
            self.note_transaction(number, batch.first_sequence);
        }
    }

    /// Older batches have grown older by `passed`; the oldest makes room.
    fn age(&mut self, passed: DurationMs) {
        let passed = u32::try_from(passed.as_ms()).unwrap_or(u32::MAX);
        shift(&mut self.ages_ms, 0);
        let known = usize::from(self.held).min(self.ages_ms.len());
        for age in &mut self.ages_ms[..known] {
            *age = age.saturating_add(passed);
        }
    }

    /// The first sequence of the transaction, moved up where it falls out of reach: what lies farther back never
    /// counts as at or below.
    fn note_transaction(&mut self, number: TransactionNumber, first: Sequence) {
        if self.transaction != number {
            (self.transaction, self.txn_first) = (number, first);
        }
        if self.txn_first.behind(self.last) > REACH {
            self.txn_first = self.last.back(REACH);
        }
    }

    /// What remains after a long silence.
    pub(crate) fn stub(&self) -> Stub {
        Stub {
            partition: self.partition,
            last: self.last,
            last_written_s: seconds(self.appended_at),
            epoch: self.epoch,
            wrapped: self.wrapped,
        }
    }

    /// True if the range that starts at `first` was written by this transaction.
    pub(crate) fn is_of_transaction(&self, number: TransactionNumber, first: Sequence) -> bool {
        self.transaction == number && first.behind(self.last) <= self.txn_first.behind(self.last)
    }

    /// The remembered batch that has exactly these sequences.
    pub(crate) fn find(&self, sequences: SequenceRange, count: u32) -> Option<RememberedBatch> {
        let wanted = u64::from(sequences.last.behind(self.last));
        let mut behind = 0_u64;
        let held = if mutated(Mutation::OneRememberedBatch) { 1 } else { usize::from(self.held) };
        for at in 0..held {
            if behind == wanted && self.counts[at] == count {
                return Some(self.batch(at, sequences));
            }
            behind += u64::from(self.counts[at]);
        }
        None
    }

    fn batch(&self, at: usize, sequences: SequenceRange) -> RememberedBatch {
        let age_ms = if at == 0 { 0 } else { self.ages_ms[at - 1] };
        RememberedBatch {
            sequences,
            count: self.counts[at],
            base_offset: self.base_offsets[at],
            checksum: self.checksums[at],
            appended_at: Now::from_ms(self.appended_at.as_ms().saturating_sub(age_ms.into())),
        }
    }

    /// The remembered batches, newest first.
    pub fn batches(&self) -> impl Iterator<Item = RememberedBatch> {
        let mut last = self.last;
        (0..usize::from(self.held)).map(move |at| {
            let first = last.back(self.counts[at].saturating_sub(1));
            let batch = self.batch(at, SequenceRange { first, last });
            last = first.back(1);
            batch
        })
    }

    /// Epoch of the last batch.
    #[must_use]
    pub const fn epoch(&self) -> ProducerEpoch {
        self.epoch
    }

    /// Last accepted sequence.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        self.last
    }

    /// True if the sequence passed from 2147483647 to 0 in this epoch.
    #[must_use]
    pub const fn wrapped(&self) -> bool {
        self.wrapped
    }

    /// Which partition.
    #[must_use]
    pub const fn partition(&self) -> PartitionHandle {
        self.partition
    }

    /// When the last batch was appended.
    #[must_use]
    pub const fn appended_at(&self) -> Now {
        self.appended_at
    }

    /// The transaction that wrote last, with the first sequence it wrote here.
    #[must_use]
    pub fn transaction(&self) -> Option<(TransactionNumber, Sequence)> {
        (self.transaction != TransactionNumber::default()).then_some((self.transaction, self.txn_first))
    }

    /// What EOS-06 asks of an entry.
    pub(crate) fn is_sound(&self) -> bool {
        let held = usize::from(self.held);
        let counted = held <= REMEMBERED_BATCHES && self.counts[..held].iter().all(|count| *count > 0);
        let rising = self.base_offsets[..held].windows(2).all(|pair| pair[0] > pair[1]);
        held > 0 && counted && rising
    }
}

impl Stub {
    /// Epoch of the last batch.
    #[must_use]
    pub const fn epoch(&self) -> ProducerEpoch {
        self.epoch
    }

    /// Last accepted sequence.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        self.last
    }

    /// True if the sequence passed from 2147483647 to 0 in this epoch.
    #[must_use]
    pub const fn wrapped(&self) -> bool {
        self.wrapped
    }

    /// Which partition.
    #[must_use]
    pub const fn partition(&self) -> PartitionHandle {
        self.partition
    }

    /// When the last batch was appended, in seconds.
    #[must_use]
    pub const fn last_written_s(&self) -> u32 {
        self.last_written_s
    }
}

impl AcceptedBatch {
    pub(crate) const fn of(event: &BatchAppended, producer: &BatchProducer) -> Self {
        Self {
            partition: event.partition,
            epoch: producer.stamp.epoch,
            first_sequence: producer.first_sequence,
            count: event.count,
            checksum: producer.checksum,
            base_offset: event.base_offset,
            transaction: producer.transaction,
            now: event.now,
        }
    }

    const fn sequences(&self) -> SequenceRange {
        SequenceRange::of(self.first_sequence, self.count)
    }
}

/// True if the sequence passes from 2147483647 to 0 between `last` and the end of the batch after it.
fn wraps(last: Sequence, batch: &AcceptedBatch) -> bool {
    let sequences = batch.sequences();
    sequences.wraps() || (last == Sequence::MAX && sequences.first == Sequence::ZERO)
}

/// Puts a value in front and lets the last one go.
fn shift<T: Copy, const N: usize>(values: &mut [T; N], newest: T) {
    values.copy_within(..N - 1, 1);
    values[0] = newest;
}

/// Whole seconds of a time; stubs keep no more.
fn seconds(now: Now) -> u32 {
    u32::try_from((now.as_ms() / 1000).max(0)).unwrap_or(u32::MAX - 1)
}

impl Encode for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.partition.encode(out);
        self.epoch.encode(out);
        self.last.encode(out);
        self.wrapped.encode(out);
        self.appended_at.encode(out);
        self.transaction.encode(out);
        self.txn_first.encode(out);
        out.push(self.held);
        for at in 0..usize::from(self.held) {
            self.base_offsets[at].encode(out);
            self.counts[at].encode(out);
            self.checksums[at].encode(out);
            if at > 0 {
                self.ages_ms[at - 1].encode(out);
            }
        }
    }
}

impl Decode for Entry {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut entry = Self {
            partition: Decode::decode(reader)?,
            epoch: Decode::decode(reader)?,
            last: Decode::decode(reader)?,
            wrapped: Decode::decode(reader)?,
            appended_at: Decode::decode(reader)?,
            transaction: Decode::decode(reader)?,
            txn_first: Decode::decode(reader)?,
            held: reader.byte()?,
            base_offsets: [Offset::ZERO; REMEMBERED_BATCHES],
            counts: [0; REMEMBERED_BATCHES],
            checksums: [PayloadChecksum(0); REMEMBERED_BATCHES],
            ages_ms: [0; REMEMBERED_BATCHES - 1],
        };
        if entry.held == 0 || usize::from(entry.held) > REMEMBERED_BATCHES {
            return Err(DecodeError::Choice { of: "number of remembered batches", found: entry.held });
        }
        for at in 0..usize::from(entry.held) {
            entry.base_offsets[at] = Decode::decode(reader)?;
            entry.counts[at] = Decode::decode(reader)?;
            entry.checksums[at] = Decode::decode(reader)?;
            if at > 0 {
                entry.ages_ms[at - 1] = Decode::decode(reader)?;
            }
        }
        Ok(entry)
    }
}

impl Encode for Stub {
    fn encode(&self, out: &mut Vec<u8>) {
        self.partition.encode(out);
        self.epoch.encode(out);
        self.last.encode(out);
        self.wrapped.encode(out);
        self.last_written_s.encode(out);
    }
}

impl Decode for Stub {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            partition: Decode::decode(reader)?,
            epoch: Decode::decode(reader)?,
            last: Decode::decode(reader)?,
            wrapped: Decode::decode(reader)?,
            last_written_s: Decode::decode(reader)?,
        })
    }
}
