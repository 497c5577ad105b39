//! What readers may see: the published view, changed whole groups at a time.

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{PoisonError, RwLock, RwLockReadGuard},
    task::Waker,
};

use semel_events::{Setting, Visible};
use semel_types::{LeaderEpoch, LogSequence, Offset, PartitionHandle, PartitionIndex, TopicId, TopicName};

use crate::{Extent, FileNumber, IndexEntries};

/// A topic as readers see it.
#[derive(Clone, Debug)]
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
    /// Bound of read_committed.
    pub last_stable: Offset,
    /// Leader epochs with the first offset written in each.
    pub leader_epochs: Vec<(LeaderEpoch, Offset)>,
}

/// One consistent cut of everything published.
#[derive(Debug, Default)]
pub struct View {
    sequence: LogSequence,
    topics: BTreeMap<TopicId, TopicView>,
    names: BTreeMap<TopicName, TopicId>,
    partitions: BTreeMap<PartitionHandle, PartitionView>,
    entries: IndexEntries,
}

/// Holds the view still while it is read.
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
    view: RwLock<View>,
}

impl View {
    /// Everything up to here is visible.
    #[must_use]
    pub fn sequence(&self) -> LogSequence {
        self.sequence
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &TopicName) -> Option<&TopicView> {
        self.names.get(name).and_then(|id| self.topics.get(id))
    }

    /// The topic of this id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&TopicView> {
        self.topics.get(&id)
    }

    /// All topics.
    pub fn topics(&self) -> impl Iterator<Item = &TopicView> {
        self.names.values().filter_map(|id| self.topics.get(id))
    }

    /// One partition.
    #[must_use]
    pub fn partition(&self, handle: PartitionHandle) -> Option<&PartitionView> {
        self.partitions.get(&handle)
    }

    fn apply(&mut self, visible: Visible) {
        match visible {
            Visible::Positions {
                partition,
                log_start_offset,
                high_watermark,
                last_stable_offset,
            } => {
                if let Some(view) = self.partitions.get_mut(&partition) {
                    (view.log_start, view.high_watermark, view.last_stable) =
                        (log_start_offset, high_watermark, last_stable_offset);
                }
            }
            Visible::Aborted { partition, aborted } => self.entries.aborted.push((partition, aborted)),
            Visible::EpochStarted {
                partition,
                epoch,
                first_offset,
            } => {
                if let Some(view) = self.partitions.get_mut(&partition) {
                    view.leader_epochs.push((epoch, first_offset));
                }
            }
            Visible::TopicCreated {
                id,
                name,
                partitions,
                settings,
            } => {
                for (index, handle) in (0..).zip(&partitions) {
                    self.partitions
                        .insert(*handle, PartitionView::new(id, PartitionIndex::new(index)));
                }
                self.names.insert(name.clone(), id);
                self.topics.insert(
                    id,
                    TopicView {
                        id,
                        name,
                        partitions,
                        settings,
                    },
                );
            }
            Visible::TopicDeleted { id } => self.delete(id),
        }
    }

    fn delete(&mut self, id: TopicId) {
        let Some(topic) = self.topics.remove(&id) else {
            return;
        };
        self.names.remove(&topic.name);
        self.entries
            .extents
            .retain(|extent| !topic.partitions.contains(&extent.partition));
        self.entries
            .aborted
            .retain(|(partition, _)| !topic.partitions.contains(partition));
        for handle in topic.partitions {
            self.partitions.remove(&handle);
        }
    }
}

impl PartitionView {
    fn new(topic: TopicId, index: PartitionIndex) -> Self {
        Self {
            topic,
            index,
            log_start: Offset::ZERO,
            high_watermark: Offset::ZERO,
            last_stable: Offset::ZERO,
            leader_epochs: Vec::new(),
        }
    }
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
        self.read().sequence
    }

    /// One cut of everything, under the read lock: keep it short.
    #[must_use]
    pub fn read(&self) -> ViewGuard<'_> {
        ViewGuard(self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes `waker` once `sequence` is visible; true if it already is.
    pub fn wake_when(&self, sequence: LogSequence, waker: &Waker) -> bool {
        let ready = self.sequence() >= sequence;
        if ready {
            waker.wake_by_ref();
        }
        ready
    }

    /// Wakes `waker` at the next change of one of these partitions.
    pub fn wake_on_change(&self, _partitions: &[PartitionHandle], waker: &Waker) {
        waker.wake_by_ref();
    }

    /// Makes durable groups visible, all at once: called by the log only, in order of sequence.
    pub fn publish(&self, sequence: LogSequence, extents: &[Extent], visible: Vec<Visible>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.entries.extents.extend_from_slice(extents);
        visible.into_iter().for_each(|visible| view.apply(visible));
        view.sequence = sequence;
    }

    /// Rebuilds the view from a snapshot: what the restored state shows, and the index that was written with it.
    pub fn restore(&self, sequence: LogSequence, visible: Vec<Visible>, entries: IndexEntries) {
        self.publish(sequence, &[], visible);
        self.view.write().unwrap_or_else(PoisonError::into_inner).entries = entries;
    }

    /// The index as a snapshot holds it: entries of every file without a synced side file, and the list of the
    /// files that have one. Called between two publishes by the log.
    #[must_use]
    pub fn index_for_snapshot(&self) -> IndexEntries {
        self.read().entries.clone()
    }

    /// Those of `sealed` in which no live extent lies.
    #[must_use]
    pub fn dead_files(&self, sealed: &[FileNumber]) -> Vec<FileNumber> {
        let view = self.read();
        let is_dead = |file: &&FileNumber| view.entries.extents.iter().all(|extent| extent.file != **file);
        sealed.iter().filter(is_dead).copied().collect()
    }

    /// A dead file is about to be recycled or deleted.
    pub fn forget_file(&self, _file: FileNumber) {}
}
