//! The numbers of each partition: next offset, last stable offset, leader epochs, what it may have forgotten.
//!
//! Purpose: an offset is given once, and read_committed never passes an undecided record. Invariants: EOS-10
//! (log start <= last stable offset <= next offset), EOS-11 (each open transaction stands once, by its first
//! offset), EOS-12 (leader epochs and their first offsets rise). What it does not do: know file positions, topics or
//! names.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use semel_events::{
    AbortedTransaction, BatchAppended, Decode, DecodeError, Encode, Marker, Outcome, PartitionsAdded, Reader,
    RecordsDeleted, TopicCreated, TopicDeleted, TransactionEnded, Visible, codec::put_unsigned,
};
use semel_types::{
    LeaderEpoch, Offset, PartitionHandle, ProducerId,
    mutation::{Mutation, mutated},
};

use crate::pages::Pages;

/// Partitions in one page.
const PER_PAGE: u64 = 64;

/// The numbers of one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionState {
    next_offset: Offset,
    log_start: Offset,
    may_have_forgotten: ProducerId,
    leader_epochs: Arc<Vec<EpochStart>>,
    open: Arc<OpenTransactions>,
}

/// The first offset written in a leader epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochStart {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The first offset written in it.
    pub first_offset: Offset,
}

/// Transactions that wrote here and are not decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct OpenTransactions {
    by_offset: BTreeMap<Offset, ProducerId>,
    by_producer: BTreeMap<ProducerId, Offset>,
}

impl PartitionState {
    fn new(may_have_forgotten: ProducerId) -> Self {
        Self {
            next_offset: Offset::ZERO,
            log_start: Offset::ZERO,
            may_have_forgotten,
            leader_epochs: Arc::default(),
            open: Arc::default(),
        }
    }

    /// The offset that the next record gets; once durable, the high watermark.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// The oldest record still there.
    #[must_use]
    pub const fn log_start(&self) -> Offset {
        self.log_start
    }

    /// First offset of the oldest open transaction, else the next offset; never below the log start.
    #[must_use]
    pub fn last_stable_offset(&self) -> Offset {
        let first_open = self.open.by_offset.keys().next().copied();
        let first_open = first_open.filter(|_| !mutated(Mutation::StableIsHighWatermark));
        first_open.unwrap_or(self.next_offset).max(self.log_start)
    }

    /// State of producer ids below this one may have been dropped here.
    #[must_use]
    pub const fn may_have_forgotten(&self) -> ProducerId {
        self.may_have_forgotten
    }

    /// The leader epochs in which the partition was written, rising.
    #[must_use]
    pub fn leader_epochs(&self) -> &[EpochStart] {
        &self.leader_epochs
    }

    /// First offset of a producer's open transaction here.
    #[must_use]
    pub fn open_transaction(&self, producer: ProducerId) -> Option<Offset> {
        self.open.by_producer.get(&producer).copied()
    }

    /// Open transactions here, oldest first: first offset and producer.
    pub fn open_transactions(&self) -> impl Iterator<Item = (Offset, ProducerId)> {
        self.open.by_offset.iter().map(|(offset, producer)| (*offset, *producer))
    }

    /// True if both directions of the index of open transactions say the same.
    pub(crate) fn open_index_agrees(&self) -> bool {
        let mut forward = self.open.by_offset.iter();
        self.open.by_offset.len() == self.open.by_producer.len()
            && forward.all(|(at, id)| self.open.by_producer.get(id) == Some(at))
    }

    /// Takes the offsets of an appended batch or marker.
    fn advance(&mut self, base: Offset, count: u32, written: &mut Written<'_>) {
        debug_assert_eq!(base, self.next_offset, "offsets are given without gaps");
        let leader_epoch = written.epoch;
        if self.leader_epochs.last().is_none_or(|last| last.epoch < leader_epoch) {
            Arc::make_mut(&mut self.leader_epochs)
                .push(EpochStart { epoch: leader_epoch, first_offset: base });
            written.visible.push(Visible::EpochStarted {
                partition: written.partition,
                epoch: leader_epoch,
                first_offset: base,
            });
        }
        self.next_offset = base.plus(count);
    }

    fn open(&mut self, producer: ProducerId, first: Offset) {
        if self.open_transaction(producer).is_none() {
            let open = Arc::make_mut(&mut self.open);
            open.by_producer.insert(producer, first);
            open.by_offset.insert(first, producer);
        }
    }

    fn close(&mut self, producer: ProducerId) -> Option<Offset> {
        self.open_transaction(producer)?;
        let open = Arc::make_mut(&mut self.open);
        let first = open.by_producer.remove(&producer)?;
        open.by_offset.remove(&first);
        Some(first)
    }

    /// Gives up what lies below `start`. Of the leader epochs the one that `start` was written in stays.
    fn start_at(&mut self, start: Offset) {
        self.log_start = self.log_start.max(start.min(self.next_offset));
        let start = self.log_start;
        let dead = self.leader_epochs.partition_point(|one| one.first_offset <= start).saturating_sub(1);
        if dead > 0 {
            Arc::make_mut(&mut self.leader_epochs).drain(..dead);
        }
    }

    fn positions(&self, partition: PartitionHandle) -> Visible {
        Visible::Positions {
            partition,
            log_start_offset: self.log_start,
            high_watermark: self.next_offset,
            last_stable_offset: self.last_stable_offset(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.next_offset.encode(out);
        self.log_start.encode(out);
        self.may_have_forgotten.encode(out);
        put_unsigned(self.leader_epochs.len() as u64, out);
        for start in self.leader_epochs.iter() {
            start.epoch.encode(out);
            start.first_offset.encode(out);
        }
        put_unsigned(self.open.by_offset.len() as u64, out);
        for (first, producer) in &self.open.by_offset {
            first.encode(out);
            producer.encode(out);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (next_offset, log_start) = (Decode::decode(reader)?, Decode::decode(reader)?);
        let mut state = Self { next_offset, log_start, ..Self::new(Decode::decode(reader)?) };
        let epochs = Arc::make_mut(&mut state.leader_epochs);
        for _ in 0..reader.length()? {
            epochs.push(EpochStart { epoch: Decode::decode(reader)?, first_offset: Decode::decode(reader)? });
        }
        for _ in 0..reader.length()? {
            let first = Decode::decode(reader)?;
            state.open(Decode::decode(reader)?, first);
        }
        Ok(state)
    }
}

/// Where an append happens and where it is told.
struct Written<'a> {
    partition: PartitionHandle,
    epoch: LeaderEpoch,
    visible: &'a mut Vec<Visible>,
}

/// All partitions of the shard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Partitions {
    pages: Pages<PartitionPage, ()>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct PartitionPage([Option<PartitionState>; PER_PAGE as usize]);

impl Default for PartitionPage {
    fn default() -> Self {
        Self([const { None }; PER_PAGE as usize])
    }
}

/// Page and place of a partition.
const fn place(partition: PartitionHandle) -> (u64, usize) {
    let number = partition.get() as u64;
    (number / PER_PAGE, (number % PER_PAGE) as usize)
}

impl Partitions {
    /// One partition, if it exists.
    #[must_use]
    pub fn get(&self, partition: PartitionHandle) -> Option<&PartitionState> {
        let (page, at) = place(partition);
        self.pages.get(page)?.0[at].as_ref()
    }

    /// All partitions by handle.
    pub fn iter(&self) -> impl Iterator<Item = (PartitionHandle, &PartitionState)> {
        self.pages.iter().flat_map(|(number, page)| {
            let numbered = (number * PER_PAGE..).zip(&page.0);
            numbered.filter_map(|(number, state)| Some((handle(number), state.as_ref()?)))
        })
    }

    fn get_mut(&mut self, partition: PartitionHandle) -> Option<&mut PartitionState> {
        let (page, at) = place(partition);
        self.pages.get_mut(page)?.0.0[at].as_mut()
    }

    fn insert(&mut self, partition: PartitionHandle, state: PartitionState) {
        let (page, at) = place(partition);
        self.pages.entry(page).0.0[at] = Some(state);
    }

    pub(crate) fn apply_created(&mut self, event: &TopicCreated) {
        for partition in &event.partitions {
            self.insert(*partition, PartitionState::new(event.may_have_forgotten));
        }
    }

    pub(crate) fn apply_added(&mut self, event: &PartitionsAdded) {
        for partition in &event.partitions {
            self.insert(*partition, PartitionState::new(event.may_have_forgotten));
        }
    }

    /// Open transactions keep their first offsets; the last stable offset does not go below the start.
    pub(crate) fn apply_records_deleted(&mut self, event: &RecordsDeleted, visible: &mut Vec<Visible>) {
        for start in &event.starts {
            let Some(state) = self.get_mut(start.partition) else { continue };
            state.start_at(start.offset);
            visible.push(state.positions(start.partition));
        }
    }

    pub(crate) fn apply_deleted(&mut self, event: &TopicDeleted) {
        for partition in &event.partitions {
            let (page, at) = place(*partition);
            let Some((found, ())) = self.pages.get_mut(page) else { continue };
            found.0[at] = None;
            if found.0.iter().all(Option::is_none) {
                self.pages.remove(page);
            }
        }
    }

    pub(crate) fn apply_appended(
        &mut self,
        event: &BatchAppended,
        epoch: LeaderEpoch,
        visible: &mut Vec<Visible>,
    ) {
        let Some(state) = self.get_mut(event.partition) else { return };
        let mut written = Written { partition: event.partition, epoch, visible };
        state.advance(event.base_offset, event.count, &mut written);
        if let Some(producer) = event.producer.as_ref().filter(|producer| producer.transaction.is_some()) {
            state.open(producer.stamp.id, event.base_offset);
        }
        visible.push(state.positions(event.partition));
    }

    /// Appends every marker and closes the transaction; an aborted entry where it had written.
    pub(crate) fn apply_ended(
        &mut self,
        event: &TransactionEnded,
        epoch: LeaderEpoch,
        visible: &mut Vec<Visible>,
    ) {
        for marker in &event.markers {
            self.apply_marker(event, marker, epoch, visible);
        }
    }

    fn apply_marker(
        &mut self,
        event: &TransactionEnded,
        marker: &Marker,
        epoch: LeaderEpoch,
        visible: &mut Vec<Visible>,
    ) {
        let Some(state) = self.get_mut(marker.partition) else { return };
        state.advance(marker.offset, 1, &mut Written { partition: marker.partition, epoch, visible });
        let producer = event.marker_stamp.id;
        let first = state.close(producer);
        if let (Some(first_offset), Outcome::Abort) = (first, event.outcome)
            && !mutated(Mutation::AbortedNotListed)
        {
            let aborted = AbortedTransaction {
                producer,
                first_offset,
                last_offset: marker.offset,
                last_stable_offset: state.last_stable_offset(),
            };
            visible.push(Visible::Aborted { partition: marker.partition, aborted });
        }
        visible.push(state.positions(marker.partition));
    }

    /// Raises `may_have_forgotten` of partitions that lost stubs of ids below `end`.
    pub(crate) fn forget_below(&mut self, partitions: &[PartitionHandle], end: ProducerId) {
        for partition in partitions {
            if let Some(state) = self.get_mut(*partition) {
                state.may_have_forgotten = state.may_have_forgotten.max(end);
            }
        }
    }

    pub(crate) fn visible(&self, out: &mut Vec<Visible>) {
        for (partition, state) in self.iter() {
            for start in state.leader_epochs() {
                let (epoch, first_offset) = (start.epoch, start.first_offset);
                out.push(Visible::EpochStarted { partition, epoch, first_offset });
            }
            out.push(state.positions(partition));
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.iter().count() as u64, out);
        for (partition, state) in self.iter() {
            partition.encode(out);
            state.encode(out);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut partitions = Self::default();
        for _ in 0..reader.length()? {
            let partition = Decode::decode(reader)?;
            partitions.insert(partition, PartitionState::decode(reader)?);
        }
        Ok(partitions)
    }
}

/// The handle with a number that came from one.
fn handle(number: u64) -> PartitionHandle {
    PartitionHandle::new(u32::try_from(number).expect("numbers of pages come from handles"))
}
