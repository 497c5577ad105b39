//! 64 producer ids side by side.
//!
//! Purpose: what is written together is copied together. A producer that writes to one partition has its entry here;
//! one that writes to many keeps them apart, so that a copy of the page stays small. Invariants: EOS-08, EOS-09 (the
//! hints are never later than what they stand for). What it does not do: judge.

use alloc::{sync::Arc, vec::Vec};

use semel_types::{Now, PartitionHandle};

use super::{
    Entry, Stub,
    entry::AcceptedBatch,
    slot::{Before, Fate, Held, Known, Many, Slot},
};
use crate::dropped::{Rule, keeps};

/// Producer ids in one page.
pub(super) const PER_PAGE: usize = 64;

/// When something here has to be looked at again. Never later than the truth: raised only by looking. Entries of an
/// owned id, which an open transaction may keep, are looked at up to ten minutes late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hints {
    /// No entry without an open transaction was last written before this moment.
    pub(super) idle: Now,
    /// No stub was last written before this second.
    pub(super) oldest_stub_s: u32,
}

impl Hints {
    /// Nothing is held.
    pub(super) const NONE: Self = Self { idle: Now::from_ms(i64::MAX), oldest_stub_s: u32::MAX };

    /// The earlier of both, each.
    pub(super) fn earlier(self, other: Self) -> Self {
        Self { idle: self.idle.min(other.idle), oldest_stub_s: self.oldest_stub_s.min(other.oldest_stub_s) }
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self::NONE
    }
}

/// How many entries and stubs came or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Change {
    pub(super) entries: i64,
    pub(super) stubs: i64,
}

impl Change {
    fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.stubs += other.stubs;
    }
}

/// What a pass over a page does.
pub(super) struct Sweep<'a> {
    /// Entries last written before this moment shrink.
    pub(super) idle_since: Now,
    /// When to look again at entries that an open transaction keeps.
    pub(super) look_again: Now,
    /// Partitions that exist; all else goes.
    pub(super) exists: &'a dyn Fn(PartitionHandle) -> bool,
}

impl Sweep<'_> {
    fn fate(&self, entry: &Entry) -> Fate {
        match ((self.exists)(entry.partition()), entry.appended_at() < self.idle_since) {
            (false, _) => Fate::Go,
            (true, true) if !keeps(Rule::StubStays) => Fate::Go,
            (true, true) => Fate::Shrink,
            (true, false) => Fate::Stay,
        }
    }
}

/// One page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Page {
    pub(super) slots: [Slot; PER_PAGE],
    /// The entries of slots that have just one.
    pub(super) singles: Vec<Entry>,
    pub(super) hints: Hints,
}

impl Default for Page {
    fn default() -> Self {
        Self { slots: [const { Slot::EMPTY }; PER_PAGE], singles: Vec::new(), hints: Hints::NONE }
    }
}

impl Slot {
    pub(super) const EMPTY: Self = Self { owned: None, held: Held::Nothing };

    pub(super) fn is_open(&self) -> bool {
        self.owned.as_ref().is_some_and(|owned| owned.open.is_some())
    }
}

impl Page {
    /// What a slot knows of a partition.
    pub(super) fn find(&self, at: usize, partition: PartitionHandle) -> Known<'_> {
        match &self.slots[at].held {
            Held::One(place) if self.singles[usize::from(*place)].partition() == partition => {
                Known::Entry(&self.singles[usize::from(*place)])
            }
            Held::Stub(stub) if stub.partition() == partition => Known::Stub(stub),
            Held::Many(many) => many.find(partition),
            Held::Nothing | Held::One(_) | Held::Stub(_) => Known::Nothing,
        }
    }

    /// Everything that a slot holds.
    pub(super) fn held(&self, at: usize) -> (Vec<Entry>, Vec<Stub>) {
        match &self.slots[at].held {
            Held::Nothing => (Vec::new(), Vec::new()),
            Held::One(place) => ([self.singles[usize::from(*place)]].into(), Vec::new()),
            Held::Stub(stub) => (Vec::new(), [*stub].into()),
            Held::Many(many) => (many.entries().copied().collect(), many.stubs().to_vec()),
        }
    }

    /// The entries of a slot.
    pub(super) fn entries(&self, at: usize) -> impl Iterator<Item = &Entry> {
        let (one, many) = match &self.slots[at].held {
            Held::One(place) => (Some(&self.singles[usize::from(*place)]), None),
            Held::Many(many) => (None, Some(many)),
            Held::Nothing | Held::Stub(_) => (None, None),
        };
        one.into_iter().chain(many.into_iter().flat_map(|many| many.entries()))
    }

    /// Numbers of entries and stubs of a slot.
    pub(super) fn counts(&self, at: usize) -> (usize, usize) {
        match &self.slots[at].held {
            Held::Nothing => (0, 0),
            Held::One(_) => (1, 0),
            Held::Stub(_) => (0, 1),
            Held::Many(many) => (many.runs().map(<[Entry]>::len).sum(), many.stubs().len()),
        }
    }

    /// Records an accepted batch.
    pub(super) fn append(&mut self, at: usize, batch: &AcceptedBatch) -> Change {
        self.hints.idle = self.hints.idle.min(batch.now);
        let before = match &mut self.slots[at].held {
            Held::Nothing => {
                self.add_single(at, Entry::new(batch));
                Before::Nothing
            }
            Held::One(place) if self.singles[usize::from(*place)].partition() == batch.partition => {
                self.singles[usize::from(*place)].append(batch);
                Before::Entry
            }
            Held::Stub(stub) if stub.partition() == batch.partition => {
                let entry = Entry::from_stub(stub, batch);
                self.add_single(at, entry);
                Before::Stub
            }
            Held::Many(many) => Arc::make_mut(many).append(batch),
            Held::One(_) | Held::Stub(_) => {
                let (mut entries, stubs) = self.held(at);
                entries.push(Entry::new(batch));
                self.replace(at, entries, stubs);
                Before::Nothing
            }
        };
        match before {
            Before::Nothing => Change { entries: 1, stubs: 0 },
            Before::Entry => Change::default(),
            Before::Stub => Change { entries: 1, stubs: -1 },
        }
    }

    fn add_single(&mut self, at: usize, entry: Entry) {
        let place = u8::try_from(self.singles.len()).expect("a page has 64 slots, each with one at most");
        self.singles.push(entry);
        self.slots[at].held = Held::One(place);
    }

    /// Takes a slot's own entry out of the page; the last one moves into its place.
    fn remove_single(&mut self, at: usize) {
        let Held::One(place) = self.slots[at].held else { return };
        self.slots[at].held = Held::Nothing;
        self.singles.swap_remove(usize::from(place));
        let moved = self.singles.len();
        let points_at_moved =
            |slot: &&mut Slot| matches!(slot.held, Held::One(last) if usize::from(last) == moved);
        if let Some(slot) = self.slots.iter_mut().find(points_at_moved) {
            slot.held = Held::One(place);
        }
    }

    /// Gives a slot other contents, in the smallest form.
    fn replace(&mut self, at: usize, entries: Vec<Entry>, stubs: Vec<Stub>) {
        self.remove_single(at);
        match (entries.as_slice(), stubs.as_slice()) {
            ([], []) => self.slots[at].held = Held::Nothing,
            ([entry], []) => self.add_single(at, *entry),
            ([], [stub]) => self.slots[at].held = Held::Stub(*stub),
            _ => self.slots[at].held = Held::Many(Arc::new(Many::new(entries, stubs))),
        }
    }

    /// Shrinks what is idle in some slots, drops what stood in partitions that are gone, and looks at all of the
    /// page anew for the hints.
    pub(super) fn sweep(&mut self, range: core::ops::Range<usize>, sweep: &Sweep<'_>) -> Change {
        let mut change = Change::default();
        for at in range {
            let idle_since = if self.slots[at].is_open() { Now::from_ms(i64::MIN) } else { sweep.idle_since };
            change.add(self.sweep_slot(at, &Sweep { idle_since, ..*sweep }));
        }
        self.look(sweep.look_again);
        change
    }

    fn sweep_slot(&mut self, at: usize, sweep: &Sweep<'_>) -> Change {
        let (entries_before, stubs_before) = self.counts(at);
        if let Held::Many(many) = &mut self.slots[at].held {
            Arc::make_mut(many).sweep(|entry| sweep.fate(entry), sweep.exists);
            if many.is_small() {
                let (entries, stubs) = self.held(at);
                self.replace(at, entries, stubs);
            }
        } else {
            self.sweep_single(at, sweep);
        }
        let (entries, stubs) = self.counts(at);
        Change { entries: difference(entries, entries_before), stubs: difference(stubs, stubs_before) }
    }

    fn sweep_single(&mut self, at: usize, sweep: &Sweep<'_>) {
        match self.slots[at].held {
            Held::One(place) => {
                let entry = self.singles[usize::from(place)];
                match sweep.fate(&entry) {
                    Fate::Stay => {}
                    Fate::Shrink => self.replace(at, Vec::new(), [entry.stub()].into()),
                    Fate::Go => self.replace(at, Vec::new(), Vec::new()),
                }
            }
            Held::Stub(stub) if !(sweep.exists)(stub.partition()) => self.slots[at].held = Held::Nothing,
            Held::Nothing | Held::Stub(_) | Held::Many(_) => {}
        }
    }

    /// Drops all stubs of a slot.
    pub(super) fn drop_stubs(&mut self, at: usize) -> Change {
        let (entries, stubs) = self.held(at);
        if !stubs.is_empty() {
            self.replace(at, entries, Vec::new());
        }
        Change { entries: 0, stubs: difference(0, stubs.len()) }
    }

    /// Finds the hints anew.
    pub(super) fn look(&mut self, look_again: Now) {
        let slots = (0..PER_PAGE).map(|at| self.slot_hints(at, look_again));
        self.hints = slots.fold(Hints::NONE, Hints::earlier);
    }

    pub(super) fn slot_hints(&self, at: usize, look_again: Now) -> Hints {
        let slot = &self.slots[at];
        let mut hints = match &slot.held {
            Held::Nothing => Hints::NONE,
            Held::One(place) => {
                Hints { idle: self.singles[usize::from(*place)].appended_at(), ..Hints::NONE }
            }
            Held::Stub(stub) => Hints { oldest_stub_s: stub.last_written_s(), ..Hints::NONE },
            Held::Many(many) => {
                let idle = many.entries().map(Entry::appended_at).min();
                let oldest = many.stubs().iter().map(Stub::last_written_s).min();
                Hints {
                    idle: idle.unwrap_or(Hints::NONE.idle),
                    oldest_stub_s: oldest.unwrap_or(Hints::NONE.oldest_stub_s),
                }
            }
        };
        if slot.is_open() && hints.idle < Hints::NONE.idle {
            hints.idle = hints.idle.max(look_again);
        }
        hints
    }

    /// True if nothing is held and nobody owns any of the ids.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.iter().all(|slot| slot.owned.is_none() && slot.held == Held::Nothing)
    }
}

fn difference(after: usize, before: usize) -> i64 {
    let signed = |count: usize| i64::try_from(count).expect("counts of what is in memory");
    signed(after) - signed(before)
}
