//! The published view and who waits for it.
//!
//! Purpose: when a group is durable it becomes visible whole, before its answers leave. Invariants: LOG-21 (a group is
//! published under one write lock: no reader ever sees half of one), LOG-22 (the sequence is visible only with
//! everything up to it), LOG-24 (dead files). What it does not do: decide what is visible (it applies
//! [`Visible`] mechanically), touch a disk while the lock is held.

use std::{mem, ops::Deref, sync::Arc, task::Waker};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use semel_events::{Setting, Visible};
use semel_types::{LeaderEpoch, LogSequence, PartitionHandle, PartitionIndex, TopicId};

use crate::{
    extents::{Extent, FileNumber, LogPosition},
    restore::RestoreError,
    side_file::Reap,
    view::{PartitionView, TopicView, View},
    waiters::{Changed, Reached, Ticket, Waiters},
};

/// Holds the view still while it is read: keep it short, a publish waits for it.
pub struct ViewGuard<'a>(RwLockReadGuard<'a, View>);

impl Deref for ViewGuard<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        &self.0
    }
}

/// The published view and who waits for it.
#[derive(Debug, Default)]
pub struct Published {
    pub(crate) view: RwLock<View>,
    waiters: Arc<Waiters>,
    /// Held while side files change, so that a snapshot's index meets none half installed. Taken before the view's.
    pub(crate) upkeep: Mutex<()>,
}

impl Published {
    /// Nothing is visible yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything up to here is visible.
    #[must_use]
    pub fn sequence(&self) -> LogSequence {
        self.waiters.sequence()
    }

    /// One cut of everything, under the read lock: keep it short.
    #[must_use]
    pub fn read(&self) -> ViewGuard<'_> {
        ViewGuard(self.view.read())
    }

    /// Wakes `waker` once `sequence` is visible, at once if it already is. The ticket takes the registration back
    /// when dropped.
    pub fn wake_when(&self, sequence: LogSequence, waker: &Waker) -> Ticket {
        self.waiters.wake_when(sequence, waker)
    }

    /// Wakes `waker` at the next change of one of these partitions, their deletion included. Register first, then
    /// read the view: a change in between is not missed. The ticket takes the registration back when dropped.
    pub fn wake_on_change(&self, partitions: &[PartitionHandle], waker: &Waker) -> Ticket {
        self.waiters.wake_on_change(partitions, waker)
    }

    /// Ready once `sequence` is visible.
    pub fn reached(&self, sequence: LogSequence) -> Reached {
        self.waiters.reached(sequence)
    }

    /// Ready once one of these partitions has changed since this call. Make it first, then read the view.
    pub fn changed(&self, partitions: &[PartitionHandle]) -> Changed {
        self.waiters.changed(partitions)
    }

    /// How many are registered: for a sequence, for a change.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        self.waiters.counts()
    }

    /// The epoch this node leads in from now on; called by the log when it starts.
    pub fn set_leader_epoch(&self, epoch: LeaderEpoch) {
        self.view.write().leader_epoch = Some(epoch);
    }

    /// Makes durable groups visible, all at once: called by the log only, in order of sequence. Extents of one
    /// partition are in order; entries that are there already (a snapshot held them) are left out.
    pub fn publish(&self, sequence: LogSequence, extents: &[Extent], visible: Vec<Visible>) {
        let mut change = Change::default();
        let mut changed: Vec<_> = extents.iter().map(|extent| extent.partition).collect();
        // A topic may be made, written to and deleted by one group: first what makes, then extents, then the rest.
        let is_creation = |visible: &Visible| {
            matches!(visible, Visible::TopicCreated { .. } | Visible::TopicChanged { .. })
        };
        let (creations, rest) = if visible.iter().any(is_creation) {
            visible.into_iter().partition(is_creation)
        } else {
            (Vec::new(), visible)
        };
        let mut view = self.view.write();
        creations.into_iter().for_each(|visible| view.apply(visible, &mut change));
        extents.iter().for_each(|extent| view.index(extent));
        rest.into_iter().for_each(|visible| view.apply(visible, &mut change));
        view.files.close();
        view.sequence = sequence;
        self.waiters.set_sequence(sequence);
        drop(view);
        changed.append(&mut change.changed);
        changed.sort_unstable();
        changed.dedup();
        self.waiters.wake(sequence, &changed);
    }

    /// Those of `sealed` in which no live extent lies and which no planned read may still touch.
    #[must_use]
    pub fn dead_files(&self, sealed: &[FileNumber]) -> Vec<FileNumber> {
        let mut view = self.view.write();
        view.files.drain_files();
        sealed.iter().filter(|file| view.files.is_dead(**file)).copied().collect()
    }

    /// Checks that every partition's index reaches from its log start to its high watermark (LOG-31). For tests and
    /// tools: it goes through everything under the read lock.
    ///
    /// # Errors
    /// The first partition of which that is not so.
    pub fn check(&self) -> Result<(), RestoreError> {
        self.view.read().check()
    }

    /// The newest file whose entries stand in a side file; nothing more may be written to it.
    pub(crate) fn covered_through(&self) -> FileNumber {
        self.view.read().sides.covered_through()
    }

    /// Bytes of live batches in each file that has any, oldest file first. Dead extents of a partition that still
    /// has live ones in the file count as live.
    #[must_use]
    pub fn file_uses(&self) -> Vec<(FileNumber, u64)> {
        self.view.read().files.iter().map(|(file, used)| (file, used.bytes)).collect()
    }
}

/// What a change of the view leaves behind for after the lock.
#[derive(Default)]
pub(crate) struct Change {
    changed: Vec<PartitionHandle>,
    /// Dropped outside of the lock.
    #[expect(clippy::vec_box, reason = "they are boxed already, and moved under the lock")]
    deleted: Vec<Box<PartitionView>>,
}

impl View {
    fn index(&mut self, extent: &Extent) {
        self.files
            .reach(LogPosition { file: extent.file, position: extent.position + u64::from(extent.length) });
        let covered = extent.file <= self.sides.covered_through();
        let Some(view) = self.partitions.get_mut(extent.partition.get() as usize).and_then(Option::as_mut)
        else {
            return;
        };
        let indexed_end = view.indexed_end();
        if covered || indexed_end.is_some_and(|end| extent.base_offset < end) {
            return;
        }
        // Runs that are dead as a whole stay until the next upkeep.
        let after_dead = |end| view.extents.as_slice().is_empty() && end <= view.log_start;
        assert!(
            indexed_end.is_none_or(|end| extent.base_offset == end || after_dead(end)),
            "LOG-20: extents of a partition are contiguous"
        );
        let first = view.extents.last().is_none_or(|last| last.file != extent.file);
        view.extents.push(extent.placed());
        view.size_bytes += u64::from(extent.length);
        self.files.add(extent.file, extent.partition, u64::from(extent.length), first);
    }

    pub(crate) fn apply(&mut self, visible: Visible, change: &mut Change) {
        match visible {
            Visible::Positions { partition, log_start_offset, high_watermark, last_stable_offset } => {
                change.changed.push(partition);
                let Some(view) = self.partition_mut(partition) else { return };
                let trimmed = log_start_offset > view.log_start;
                view.log_start = log_start_offset;
                view.high_watermark = high_watermark;
                view.last_stable = last_stable_offset;
                if trimmed {
                    self.trim(partition);
                }
            }
            Visible::Aborted { partition, aborted } => {
                let Some(view) = self.partition_mut(partition) else { return };
                if view.aborted.last().is_none_or(|last| last.last_offset < aborted.last_offset) {
                    view.aborted.push(aborted);
                }
            }
            Visible::EpochStarted { partition, epoch, first_offset } => {
                if let Some(view) = self.partition_mut(partition) {
                    view.start_epoch(epoch, first_offset);
                }
            }
            Visible::TopicCreated { id, name, partitions, settings } => {
                self.create(TopicView { id, name, partitions, settings });
            }
            Visible::TopicChanged { id, partitions, settings } => self.change(id, partitions, settings),
            Visible::GroupSettings { group, settings } => self.catalog.set_group(group, settings),
            Visible::TopicDeleted { id } => self.delete(id, change),
        }
    }

    fn create(&mut self, topic: TopicView) {
        self.add_partitions(&topic, 0);
        self.catalog.insert(Arc::new(topic));
    }

    /// Makes the partitions of a topic from this one on.
    fn add_partitions(&mut self, topic: &TopicView, first: usize) {
        for (index, handle) in (0..).zip(&topic.partitions).skip(first) {
            let slot = handle.get() as usize;
            if self.partitions.len() <= slot {
                self.partitions.resize_with(slot + 1, || None);
            }
            let view = PartitionView::new(topic.id, PartitionIndex::new(index));
            self.partitions[slot] = Some(Box::new(view));
        }
    }

    fn change(&mut self, id: TopicId, partitions: Vec<PartitionHandle>, settings: Vec<Setting>) {
        let Some(before) = self.catalog.topic_by_id(id).cloned() else { return };
        let changed = TopicView { id, name: before.name.clone(), partitions, settings };
        self.add_partitions(&changed, before.partitions.len());
        self.catalog.insert(Arc::new(changed));
    }

    fn delete(&mut self, id: TopicId, change: &mut Change) {
        let Some(topic) = self.catalog.remove(id) else { return };
        for handle in &topic.partitions {
            let slot = self.partitions.get_mut(handle.get() as usize);
            let Some(mut view) = slot.and_then(Option::take) else { continue };
            while let Some((file, bytes)) = view.drop_first_file() {
                self.files.end_pair(file, bytes);
            }
            if !view.runs.is_empty() {
                let runs = mem::take(&mut view.runs);
                let runs = runs.iter().map(|run| (Arc::clone(self.sides.get(run.side)), *run)).collect();
                self.sides.reap.push(Reap { runs, reaped_to: view.reaped_to });
            }
            change.changed.push(*handle);
            change.deleted.push(view);
        }
    }

    /// Lets go of what lies wholly before the log start.
    fn trim(&mut self, partition: PartitionHandle) {
        let Some(view) = self.partitions.get_mut(partition.get() as usize).and_then(Option::as_mut) else {
            return;
        };
        while view.first_file_end().is_some_and(|end| end <= view.log_start) {
            if let Some((file, bytes)) = view.drop_first_file() {
                self.files.end_pair(file, bytes);
            }
        }
        let start = view.log_start;
        let dead = view.aborted.partition_point(|aborted| aborted.last_offset < start);
        view.aborted.drain(..dead);
        view.trim_epochs();
        if view.runs.first().is_some_and(|run| run.base_offset < start) {
            self.sides.trimmed.insert(partition);
        }
    }
}
