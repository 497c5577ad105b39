//! The one producer table of a shard: producer id to page by a small map, never a vector sized by an id.
//!
//! Purpose: what each producer wrote on each partition, for a million producers, at the cost of one look-up.
//! Invariants: EOS-08, EOS-09, EOS-13 (the counts of entries and stubs are true), EOS-14. Nothing is forgotten by
//! age: an idle entry becomes a stub, and a stub goes with its topic or when there are too many. What it does not
//! do: judge; decide when to shrink (that is `expire`).

use alloc::{sync::Arc, vec::Vec};

use semel_events::{ProducersShrunk, StubsDropped};
use semel_types::{
    DurationMs, LogSequence, Now, PartitionHandle, ProducerId, ProducerStamp, TransactionNumber,
    TransactionalId,
};

use super::{
    Entry, Stub,
    entry::AcceptedBatch,
    foreign::Foreign,
    page::{Change, Hints, PER_PAGE, Page, Sweep},
    slot::{Known, OwnedSlot},
};
use crate::{ids::ProducerIds, pages::Pages, partition::Partitions};

/// How much later to look again at an entry that an open transaction keeps (Kafka's
/// `producer.id.expiration.check.interval.ms`).
const LOOK_AGAIN: DurationMs = DurationMs::from_ms(600_000);

/// Slots by producer id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    pub(super) pages: Pages<Page, Hints>,
    pub(super) foreign: Foreign,
    pub(super) hints: Hints,
    pub(super) entries: u64,
    pub(super) stubs: u64,
    /// A pass that drops what deleted topics left behind, if one is due.
    pub(super) reap: Option<Reap>,
}

/// A pass over all ids, in bounded ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reap {
    /// The next id to look at.
    pub(super) next: ProducerId,
    /// Another topic was deleted meanwhile: once more from the start.
    pub(super) again: bool,
}

/// What the table knows for one batch: found by one look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) owned: Option<&'a OwnedSlot>,
    pub(crate) known: Known<'a>,
    pub(crate) issued: bool,
}

/// Page and place of an id.
pub(super) const fn place(id: ProducerId) -> (u64, usize) {
    let number = id.get().cast_unsigned();
    (number / PER_PAGE as u64, (number % PER_PAGE as u64) as usize)
}

/// The first id of a page.
pub(super) const fn first_of(page: u64) -> ProducerId {
    ProducerId::new((page * PER_PAGE as u64).cast_signed())
}

impl Table {
    /// What is known of a producer on a partition.
    pub(crate) fn find(&self, ids: &ProducerIds, id: ProducerId, partition: PartitionHandle) -> Found<'_> {
        if !ids.is_issued(id) {
            let known = self.foreign.find(id, partition);
            return Found { owned: None, known, issued: false };
        }
        let (page, at) = place(id);
        let Some(page) = self.pages.get(page) else {
            let (owned, known) = (None, Known::Nothing);
            return Found { owned, known, issued: true };
        };
        let slot = &page.slots[at];
        Found { owned: slot.owned.as_deref(), known: page.find(at, partition), issued: true }
    }

    /// Records an accepted batch.
    pub(crate) fn append(
        &mut self,
        ids: &ProducerIds,
        id: ProducerId,
        batch: &AcceptedBatch,
        sequence: LogSequence,
    ) {
        if !ids.is_issued(id) {
            return self.foreign.append(id, batch, sequence);
        }
        let (page, at) = place(id);
        let (page, summary) = self.pages.entry(page);
        let change = page.append(at, batch);
        *summary = summary.earlier(page.hints);
        self.hints = self.hints.earlier(*summary);
        self.count(change);
    }

    fn count(&mut self, change: Change) {
        self.entries = self.entries.saturating_add_signed(change.entries);
        self.stubs = self.stubs.saturating_add_signed(change.stubs);
    }

    /// What the coordinator said of an id; `None` for an id without owner.
    #[must_use]
    pub fn owned(&self, id: ProducerId) -> Option<&OwnedSlot> {
        let (page, at) = place(id);
        self.pages.get(page)?.slots[at].owned.as_deref()
    }

    /// All owned ids, closed ones included.
    pub fn owned_ids(&self) -> impl Iterator<Item = (ProducerId, &OwnedSlot)> {
        self.slots().filter_map(|(id, slot)| Some((id, slot.owned.as_deref()?)))
    }

    /// An identity was given: the id belongs to `owner` from here on, at this epoch, nothing open.
    pub(crate) fn set_identity(&mut self, identity: ProducerStamp, owner: &TransactionalId) {
        let slot = OwnedSlot { owner: owner.clone(), epoch: identity.epoch, closed: false, open: None };
        let (page, at) = place(identity.id);
        self.pages.entry(page).0.slots[at].owned = Some(Arc::new(slot));
    }

    /// The open transaction of an owned id changed: started (`Some`) or ended (`None`).
    pub(crate) fn set_open(&mut self, id: ProducerId, open: Option<TransactionNumber>) {
        if let Some(slot) = self.owned_mut(id) {
            slot.open = open;
        }
    }

    /// An owned id was rotated away, or its transactional id expired: closed for good.
    pub(crate) fn close(&mut self, id: ProducerId) {
        if let Some(slot) = self.owned_mut(id) {
            slot.closed = true;
            slot.open = None;
        }
    }

    fn owned_mut(&mut self, id: ProducerId) -> Option<&mut OwnedSlot> {
        let (page, at) = place(id);
        self.pages.get_mut(page)?.0.slots[at].owned.as_mut().map(Arc::make_mut)
    }

    /// Entries, of issued ids.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Stubs: the metric that `semel.producer.stubs.max` bounds.
    #[must_use]
    pub const fn stubs(&self) -> u64 {
        self.stubs
    }

    /// Everything known of one id: entries and stubs, by partition.
    #[must_use]
    pub fn held(&self, id: ProducerId) -> (Vec<Entry>, Vec<Stub>) {
        let (page, at) = place(id);
        let page = self.pages.get(page);
        let (mut entries, mut stubs) = page.map(|page| page.held(at)).unwrap_or_default();
        entries.extend(self.foreign.entries().filter(|(foreign, _)| *foreign == id).map(|(_, entry)| *entry));
        stubs.sort_unstable_by_key(Stub::partition);
        (entries, stubs)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = (ProducerId, &super::slot::Slot)> {
        self.pages.iter().flat_map(|(number, page)| {
            let ids = (first_of(number).get()..).zip(&page.slots);
            ids.map(|(id, slot)| (ProducerId::new(id), slot))
        })
    }

    /// A topic was deleted: what its partitions left behind is dropped by a pass in bounded ranges.
    pub(crate) fn apply_topic_deleted(&mut self) {
        self.reap = match self.reap {
            None if self.pages.iter().next().is_none() => None,
            None => Some(Reap { next: ProducerId::default(), again: false }),
            Some(reap) => Some(Reap { again: reap.next > ProducerId::default(), ..reap }),
        };
    }

    /// Shrinks the idle entries of a range, and drops what stood in partitions that are gone.
    pub(crate) fn apply_shrunk(&mut self, event: &ProducersShrunk, partitions: &Partitions) {
        let sweep = Sweep {
            idle_since: event.idle_since,
            look_again: event.idle_since.plus(LOOK_AGAIN),
            exists: &|partition| partitions.get(partition).is_some(),
        };
        if event.first < event.end {
            let last = ProducerId::new(event.end.get() - 1);
            let touched: Vec<u64> = self.pages.numbers(place(event.first).0, place(last).0).collect();
            for page in touched {
                self.sweep_page(page, event, &sweep);
            }
        }
        self.look();
        self.advance_reap(event);
    }

    fn sweep_page(&mut self, number: u64, event: &ProducersShrunk, sweep: &Sweep<'_>) {
        let first = first_of(number).get();
        let within = |id: ProducerId| (id.get() - first).clamp(0, PER_PAGE as i64) as usize;
        let range = within(event.first)..within(event.end);
        let Some((page, _)) = self.pages.get_mut(number) else { return };
        let change = page.sweep(range, sweep);
        let is_empty = page.is_empty();
        self.count(change);
        if is_empty {
            self.pages.remove(number);
        }
        self.look_at_directory(number);
    }

    /// Finds the summary of a directory anew.
    fn look_at_directory(&mut self, page: u64) {
        if let Some(directory) = self.pages.directory_mut(page) {
            let hints = directory.pages().map(|(_, page)| page.hints);
            directory.summary = hints.fold(Hints::NONE, Hints::earlier);
        }
    }

    /// Finds the hints of the whole table anew.
    pub(super) fn look(&mut self) {
        let summaries = self.pages.directories().map(|(_, directory)| directory.summary);
        self.hints = summaries.fold(Hints::NONE, Hints::earlier);
    }

    fn advance_reap(&mut self, event: &ProducersShrunk) {
        let Some(reap) = self.reap else { return };
        if !(event.first <= reap.next && reap.next < event.end) {
            return;
        }
        let more = self.pages.numbers(place(event.end).0, u64::MAX).next().is_some();
        self.reap = match (more, reap.again) {
            (true, _) => Some(Reap { next: event.end, ..reap }),
            (false, true) => Some(Reap { next: ProducerId::default(), again: false }),
            (false, false) => None,
        };
    }

    /// Drops all stubs of the producers named.
    pub(crate) fn apply_stubs_dropped(&mut self, event: &StubsDropped) {
        for id in &event.producers {
            let (number, at) = place(*id);
            let Some((page, _)) = self.pages.get_mut(number) else { continue };
            let change = page.drop_stubs(at);
            page.look(page.hints.idle);
            let is_empty = page.is_empty();
            self.count(change);
            if is_empty {
                self.pages.remove(number);
            }
            self.look_at_directory(number);
        }
        self.look();
    }
}

impl Table {
    /// When the page of an id has next to be looked at, for tests and messages.
    #[must_use]
    pub fn next_idle(&self) -> Option<Now> {
        (self.hints.idle < Hints::NONE.idle).then_some(self.hints.idle)
    }
}
