//! One producer id: who owns it and what it wrote where.
//!
//! Purpose: the entry of a producer and a partition is found in two steps, whether the producer writes to one
//! partition or to ten thousand. Invariants: EOS-08 (a partition stands at most once under a producer, as an entry or
//! as a stub). What it does not do: judge, count, find slots.

use alloc::{sync::Arc, vec::Vec};

use semel_types::{PartitionHandle, ProducerEpoch, TransactionNumber, TransactionalId};

use super::{Entry, Stub, entry::AcceptedBatch};

/// Entries in one run of a producer with many partitions.
const RUN: usize = 16;

/// What the coordinator says of an owned id. It changes only through the methods of [`super::Table`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedSlot {
    /// The owner, also after the slot was closed.
    pub owner: TransactionalId,
    /// The owner's current epoch; of a closed slot its last.
    pub epoch: ProducerEpoch,
    /// Rotated away, or its transactional id expired: nobody may write under it again.
    pub closed: bool,
    /// The open transaction.
    pub open: Option<TransactionNumber>,
}

/// What is known of a producer on a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known<'a> {
    /// Nothing.
    Nothing,
    /// Its last batches.
    Entry(&'a Entry),
    /// What a long silence left of them.
    Stub(&'a Stub),
}

/// One producer id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Slot {
    pub(super) owned: Option<Arc<OwnedSlot>>,
    pub(super) held: Held,
}

/// Where a producer's entries are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Held {
    #[default]
    Nothing,
    /// One entry, at this place among the page's own.
    One(u8),
    /// One stub.
    Stub(Stub),
    /// Several of either.
    Many(Arc<Many>),
}

/// Entries in runs and stubs, both by partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Many {
    runs: Vec<Run>,
    stubs: Vec<Stub>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    first: PartitionHandle,
    entries: Arc<Vec<Entry>>,
}

impl Run {
    fn new(entries: Vec<Entry>) -> Option<Self> {
        let first = entries.first()?.partition();
        Some(Self { first, entries: Arc::new(entries) })
    }
}

impl Many {
    /// From entries and stubs in any order.
    pub(super) fn new(mut entries: Vec<Entry>, mut stubs: Vec<Stub>) -> Self {
        entries.sort_unstable_by_key(Entry::partition);
        stubs.sort_unstable_by_key(Stub::partition);
        let runs = entries.chunks(RUN / 2).filter_map(|run| Run::new(run.to_vec())).collect();
        Self { runs, stubs }
    }

    /// From runs and stubs exactly as they were.
    pub(super) fn from_runs(runs: Vec<Vec<Entry>>, stubs: Vec<Stub>) -> Self {
        Self { runs: runs.into_iter().filter_map(Run::new).collect(), stubs }
    }

    pub(super) fn runs(&self) -> impl ExactSizeIterator<Item = &[Entry]> {
        self.runs.iter().map(|run| run.entries.as_slice())
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.runs().flatten()
    }

    pub(super) fn stubs(&self) -> &[Stub] {
        &self.stubs
    }

    /// Entries that `keep` keeps stay, others become the stub that it makes of them, or nothing. Runs without a
    /// change are left shared.
    pub(super) fn sweep(&mut self, fate: impl Fn(&Entry) -> Fate, exists: impl Fn(PartitionHandle) -> bool) {
        let stubs_before = self.stubs.len();
        self.stubs.retain(|stub| exists(stub.partition()));
        let is_touched = |run: &Run| run.entries.iter().any(|entry| fate(entry) != Fate::Stay);
        if self.stubs.len() == stubs_before && !self.runs.iter().any(is_touched) {
            return;
        }
        for run in self.runs.iter_mut().filter(|run| is_touched(run)) {
            let shrunk = run.entries.iter().filter(|entry| fate(entry) == Fate::Shrink);
            self.stubs.extend(shrunk.map(Entry::stub));
            let kept: Vec<Entry> =
                run.entries.iter().filter(|entry| fate(entry) == Fate::Stay).copied().collect();
            run.first = kept.first().map_or(run.first, Entry::partition);
            run.entries = Arc::new(kept);
        }
        self.runs.retain(|run| !run.entries.is_empty());
        self.stubs.sort_unstable_by_key(Stub::partition);
    }

    /// True if a smaller form would do.
    pub(super) fn is_small(&self) -> bool {
        self.entries().count() + self.stubs.len() <= 1
    }

    /// The run that holds a partition if any does.
    fn run_of(&self, partition: PartitionHandle) -> Option<usize> {
        self.runs.partition_point(|run| run.first <= partition).checked_sub(1)
    }

    pub(super) fn find(&self, partition: PartitionHandle) -> Known<'_> {
        let entries = self.run_of(partition).map(|at| &self.runs[at].entries);
        let entry = entries.and_then(|entries| {
            let at = entries.binary_search_by_key(&partition, Entry::partition).ok()?;
            entries.get(at)
        });
        match (entry, self.stub_at(partition)) {
            (Some(entry), _) => Known::Entry(entry),
            (None, Ok(at)) => Known::Stub(&self.stubs[at]),
            (None, Err(_)) => Known::Nothing,
        }
    }

    fn stub_at(&self, partition: PartitionHandle) -> Result<usize, usize> {
        self.stubs.binary_search_by_key(&partition, Stub::partition)
    }

    /// Records a batch. Says what was known before.
    pub(super) fn append(&mut self, batch: &AcceptedBatch) -> Before {
        let Some(at) = self.run_of(batch.partition) else {
            return self.insert(0, batch);
        };
        let found = self.runs[at].entries.binary_search_by_key(&batch.partition, Entry::partition);
        match found {
            Ok(place) => {
                Arc::make_mut(&mut self.runs[at].entries)[place].append(batch);
                Before::Entry
            }
            Err(_) => self.insert(at, batch),
        }
    }

    /// Makes a new entry in a run, from the partition's stub if there is one.
    fn insert(&mut self, at: usize, batch: &AcceptedBatch) -> Before {
        let (entry, before) = match self.stub_at(batch.partition) {
            Ok(stub) => (Entry::from_stub(&self.stubs.remove(stub), batch), Before::Stub),
            Err(_) => (Entry::new(batch), Before::Nothing),
        };
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.extend(Run::new([entry].into()));
            return before;
        };
        let entries = Arc::make_mut(&mut run.entries);
        let place = entries.partition_point(|other| other.partition() < batch.partition);
        entries.insert(place, entry);
        run.first = run.first.min(batch.partition);
        if entries.len() > RUN {
            let upper = entries.split_off(RUN / 2);
            self.runs.splice(at + 1..at + 1, Run::new(upper));
        }
        before
    }
}

/// What becomes of an entry in a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Stay,
    Shrink,
    Go,
}

/// What was known of a producer on a partition before a batch was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Before {
    Nothing,
    Entry,
    Stub,
}
