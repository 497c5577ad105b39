//! One cut of everything that readers may see.
//!
//! Purpose: topics, partitions with their positions, and where their bytes lie, as of one published sequence.
//! Invariants: a [`View`] changes only by whole groups, under the write lock of [`crate::Published`] (LOG-21), so
//! whatever is read under one guard belongs together. The catalogue is persistent: [`View::catalog`] clones in O(1),
//! and long answers are built from the clone without the lock. What it does not do: read bytes, wait, decide.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use semel_events::{AbortedTransaction, Setting};
use semel_types::{
    GroupId, LeaderEpoch, LogSequence, Offset, PartitionHandle, PartitionIndex, TopicId, TopicName,
};

use crate::{
    extents::{ExtentList, FileNumber, Placed},
    file_uses::FileUses,
    side_file::{Run, Sides},
};

/// A topic as readers see it; never changes, a change of settings makes a new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicView {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub name: TopicName,
    /// Its partitions in order.
    pub partitions: Vec<PartitionHandle>,
    /// Settings that differ from the defaults.
    pub settings: Vec<Setting>,
}

/// All topics at one moment; clones in O(1) and needs no lock.
#[derive(Clone, Debug)]
pub struct Catalog {
    by_name: RedBlackTreeMapSync<TopicName, Arc<TopicView>>,
    by_id: RedBlackTreeMapSync<TopicId, Arc<TopicView>>,
    /// Settings of groups that have any of their own.
    groups: RedBlackTreeMapSync<GroupId, Arc<Vec<Setting>>>,
}

impl Default for Catalog {
    fn default() -> Self {
        let (by_name, by_id) = (RedBlackTreeMapSync::new_sync(), RedBlackTreeMapSync::new_sync());
        Self { by_name, by_id, groups: RedBlackTreeMapSync::new_sync() }
    }
}

impl Catalog {
    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Arc<TopicView>> {
        self.by_name.get(name)
    }

    /// The topic of this id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicView>> {
        self.by_id.get(&id)
    }

    /// All topics by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicView>> {
        self.by_name.values()
    }

    /// Number of topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.size()
    }

    /// True if there is no topic.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Settings that a group was given, whether it exists or not.
    #[must_use]
    pub fn group_settings(&self, group: &GroupId) -> &[Setting] {
        self.groups.get(group).map_or(&[], |settings| settings.as_slice())
    }

    /// Groups that have settings of their own, by name.
    pub fn groups_with_settings(&self) -> impl Iterator<Item = &GroupId> {
        self.groups.keys()
    }

    pub(crate) fn set_group(&mut self, group: GroupId, settings: Vec<Setting>) {
        if settings.is_empty() {
            self.groups.remove_mut(&group);
        } else {
            self.groups.insert_mut(group, Arc::new(settings));
        }
    }

    pub(crate) fn insert(&mut self, topic: Arc<TopicView>) {
        self.by_name.insert_mut(topic.name.clone(), Arc::clone(&topic));
        self.by_id.insert_mut(topic.id, topic);
    }

    /// Removes a topic; its name stays if another topic has it by now.
    pub(crate) fn remove(&mut self, id: TopicId) -> Option<Arc<TopicView>> {
        let topic = Arc::clone(self.by_id.get(&id)?);
        self.by_id.remove_mut(&id);
        if self.by_name.get(&topic.name).is_some_and(|named| named.id == id) {
            self.by_name.remove_mut(&topic.name);
        }
        Some(topic)
    }
}

/// A partition as readers see it.
#[derive(Clone, Debug)]
pub struct PartitionView {
    /// Whose partition.
    pub topic: TopicId,
    /// Its number in the topic.
    pub index: PartitionIndex,
    /// Oldest offset still there.
    pub log_start: Offset,
    /// Offset after the newest durable record.
    pub high_watermark: Offset,
    /// Bound of read_committed: offset of the first record of the oldest open transaction, else the high watermark.
    pub last_stable: Offset,
    /// Leader epochs with the first offset written in each, ascending.
    pub leader_epochs: Vec<(LeaderEpoch, Offset)>,
    /// Bytes of all batches that no trim has removed yet.
    pub size_bytes: u64,
    /// What side files hold of it, oldest first; contiguous with `extents`.
    pub(crate) runs: Vec<Run>,
    pub(crate) extents: ExtentList,
    /// Aborted transactions whose markers lie in `extents`, by marker.
    pub(crate) aborted: Vec<AbortedTransaction>,
    /// Log start up to which the use of files by `runs` has been taken back.
    pub(crate) reaped_to: Offset,
}

impl PartitionView {
    pub(crate) fn new(topic: TopicId, index: PartitionIndex) -> Self {
        Self {
            topic,
            index,
            log_start: Offset::ZERO,
            high_watermark: Offset::ZERO,
            last_stable: Offset::ZERO,
            leader_epochs: Vec::new(),
            size_bytes: 0,
            runs: Vec::new(),
            extents: ExtentList::default(),
            aborted: Vec::new(),
            reaped_to: Offset::ZERO,
        }
    }

    /// Where the index ends: the offset that the next extent starts at, if there is any extent.
    pub(crate) fn indexed_end(&self) -> Option<Offset> {
        let in_memory = self.extents.last().map(Placed::end_offset);
        in_memory.or_else(|| self.runs.last().map(|run| run.end_offset))
    }

    /// Where the extents of the oldest file that has some in memory end.
    pub(crate) fn first_file_end(&self) -> Option<Offset> {
        let extents = self.extents.as_slice();
        let end = self.extents.of_file(extents.first()?.file).end;
        Some(extents[end - 1].end_offset())
    }

    /// Drops the extents of that file; gives it and their bytes.
    pub(crate) fn drop_first_file(&mut self) -> Option<(FileNumber, u64)> {
        let file = self.extents.as_slice().first()?.file;
        let count = self.extents.of_file(file).end;
        let bytes = self.extents.as_slice()[..count].iter().map(|extent| u64::from(extent.length)).sum();
        self.extents.drop_front(count);
        self.size_bytes -= bytes;
        Some((file, bytes))
    }

    /// The leader epoch in which an offset was written; for the end of the log, the newest one.
    #[must_use]
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.leader_epochs.partition_point(|(_, first)| *first <= offset);
        after.checked_sub(1).map(|index| self.leader_epochs[index].0)
    }

    /// Notes the first write of an epoch. Epochs without records (the next one starts at the same offset) go.
    pub(crate) fn start_epoch(&mut self, epoch: LeaderEpoch, first_offset: Offset) {
        while self.leader_epochs.last().is_some_and(|(_, first)| *first >= first_offset) {
            self.leader_epochs.pop();
        }
        self.leader_epochs.push((epoch, first_offset));
    }

    /// Forgets epochs that end at or before the log start.
    pub(crate) fn trim_epochs(&mut self) {
        let start = self.log_start;
        let keep_from = self.leader_epochs.partition_point(|(_, first)| *first <= start).saturating_sub(1);
        self.leader_epochs.drain(..keep_from);
        if let Some((_, first)) = self.leader_epochs.first_mut() {
            *first = (*first).max(start);
        }
    }
}

/// One consistent cut of everything published.
#[derive(Debug, Default)]
pub struct View {
    pub(crate) sequence: LogSequence,
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    pub(crate) catalog: Catalog,
    /// By handle: handles are dense.
    pub(crate) partitions: Vec<Option<Box<PartitionView>>>,
    pub(crate) files: FileUses,
    pub(crate) sides: Sides,
}

impl View {
    /// Everything up to here is visible.
    #[must_use]
    pub const fn sequence(&self) -> LogSequence {
        self.sequence
    }

    /// The epoch this node leads in; `None` before the log was started.
    #[must_use]
    pub const fn leader_epoch(&self) -> Option<LeaderEpoch> {
        self.leader_epoch
    }

    /// All topics of this cut, to be used after the guard is gone: answers over thousands of topics are built from
    /// it, so that no publish waits for them.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&Arc<TopicView>> {
        self.catalog.topic(name)
    }

    /// The topic of this id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<TopicView>> {
        self.catalog.topic_by_id(id)
    }

    /// All topics by name. For long answers take [`View::catalog`].
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicView>> {
        self.catalog.topics()
    }

    /// One partition.
    #[must_use]
    pub fn partition(&self, handle: PartitionHandle) -> Option<&PartitionView> {
        self.partitions.get(handle.get() as usize)?.as_deref()
    }

    pub(crate) fn partition_mut(&mut self, handle: PartitionHandle) -> Option<&mut PartitionView> {
        self.partitions.get_mut(handle.get() as usize)?.as_deref_mut()
    }

    /// All partitions with their handles.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionHandle, &PartitionView)> {
        let numbered = (0..).zip(&self.partitions);
        numbered.filter_map(|(number, slot)| Some((PartitionHandle::new(number), slot.as_deref()?)))
    }
}
