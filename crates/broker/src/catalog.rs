//! Which topics exist, and which did.
//!
//! Purpose: names, ids and settings of topics, and the handles of their partitions. Invariants: a handle and a topic
//! id are never used twice; of two names that differ only in `.` and `_` at most one exists; a name that was ever
//! deleted here is told apart from one that never was (design section 3, `may_have_forgotten`).
//! What it does not do: offsets, leaders, anything of a partition's content (that is `eos` and the log).

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use semel_events::{
    Decode, DecodeError, Encode, Event, PartitionsAdded, Reader, Setting, TopicCreated, TopicDeleted,
    Visible, membership_event,
};
use semel_types::{Now, PartitionHandle, PartitionIndex, ProducerId, TopicId, TopicName};

use crate::{settings::topic::TopicLimits, topic_name::collision_key};

/// Names of deleted topics that are told apart. Beyond it all of them are given up at once, and every new topic may
/// then have forgotten the ids up to the latest of those deletions: 59 instead of 45, never a loss.
const DELETED_NAMES_MAX: usize = 100_000;

/// Version of the written form.
const VERSION: u8 = 1;

/// A topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    created: TopicCreated,
    limits: TopicLimits,
}

impl Topic {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> TopicId {
        self.created.id
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &TopicName {
        &self.created.name
    }

    /// Handles of its partitions in order.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionHandle] {
        &self.created.partitions
    }

    /// The handle of one partition.
    #[must_use]
    pub fn partition(&self, index: PartitionIndex) -> Option<PartitionHandle> {
        self.created.partitions.get(usize::try_from(index.get()).ok()?).copied()
    }

    /// Settings that it was given.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.created.settings
    }

    /// What Produce must know of it.
    #[must_use]
    pub const fn limits(&self) -> TopicLimits {
        self.limits
    }
}

/// Partitions of a topic whose handles follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct HandleRun {
    topic: TopicId,
    first_index: u32,
}

/// All topics; cheap to clone.
#[derive(Clone, Default)]
pub struct Catalog {
    by_name: RedBlackTreeMapSync<TopicName, Arc<Topic>>,
    by_id: RedBlackTreeMapSync<TopicId, Arc<Topic>>,
    /// Existing names by their collision key.
    by_collision_key: RedBlackTreeMapSync<TopicName, TopicName>,
    /// Runs of partitions by their first handles: what was made together follows each other.
    by_first_handle: RedBlackTreeMapSync<PartitionHandle, HandleRun>,
    next_handle: PartitionHandle,
    /// The next unissued producer id at the latest deletion of a name.
    deleted: RedBlackTreeMapSync<TopicName, ProducerId>,
    /// The same for names that were given up.
    forgotten_floor: ProducerId,
}

impl Catalog {
    /// A shard without topics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A topic by name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// A topic by id.
    #[must_use]
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// The topic and partition that a handle names, while they exist.
    #[must_use]
    pub fn locate(&self, handle: PartitionHandle) -> Option<(&Arc<Topic>, PartitionIndex)> {
        let (first, run) = self.by_first_handle.range(..=handle).next_back()?;
        let topic = self.by_id.get(&run.topic)?;
        let index = i32::try_from(run.first_index + (handle.get() - first.get())).ok()?;
        let index = PartitionIndex::new(index);
        topic.partition(index).filter(|found| *found == handle).map(|_| (topic, index))
    }

    /// All topics by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// Number of topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.size()
    }

    /// True without any topic.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// An existing topic whose name differs from this one only in `.` and `_`.
    #[must_use]
    pub fn collision(&self, name: &str) -> Option<&TopicName> {
        self.by_collision_key.get(&*collision_key(name)).filter(|existing| existing.as_str() != name)
    }

    /// The event that makes a topic. The caller has checked name, count and settings.
    #[must_use]
    pub fn create(
        &self,
        id: TopicId,
        name: TopicName,
        count: u32,
        settings: Vec<Setting>,
        now: Now,
    ) -> TopicCreated {
        let first = self.next_handle.get();
        let partitions = (first..first + count).map(PartitionHandle::new).collect();
        let may_have_forgotten = self.deleted.get(&name).copied().unwrap_or(self.forgotten_floor);
        TopicCreated { id, name, partitions, settings, may_have_forgotten, now }
    }

    /// The event that gives a topic this many more partitions. The caller has checked the count.
    #[must_use]
    pub fn grow(&self, topic: &Topic, by: u32, now: Now) -> PartitionsAdded {
        let first = self.next_handle.get();
        PartitionsAdded {
            id: topic.id(),
            partitions: (first..first + by).map(PartitionHandle::new).collect(),
            may_have_forgotten: topic.created.may_have_forgotten,
            now,
        }
    }

    /// Handles that are left: a topic with more partitions cannot be made.
    #[must_use]
    pub fn handles_left(&self) -> u32 {
        u32::MAX - self.next_handle.get()
    }

    /// Applies one event, live and on replay.
    pub fn apply(&mut self, event: &Event, visible: &mut Vec<Visible>) {
        match event {
            Event::TopicCreated(event) => {
                self.insert(event.clone());
                visible.push(created(event));
            }
            Event::TopicDeleted(event) => {
                self.remove(event);
                visible.push(Visible::TopicDeleted { id: event.id });
            }
            Event::TopicSettingsChanged(event) => {
                self.change(event.id, |topic| topic.settings.clone_from(&event.settings), visible);
            }
            Event::PartitionsAdded(event) => {
                self.change(event.id, |topic| topic.partitions.extend(&event.partitions), visible);
            }
            Event::ShardStarted(_)
            | Event::RecordsDeleted(_)
            | Event::GroupSettingsChanged(_)
            | Event::ProducerIdsReserved(_)
            | Event::BatchAppended(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionExtended(_)
            | Event::TransactionEnded(_)
            | Event::TransactionalIdExpired(_)
            | Event::OffsetsCommitted(_)
            | Event::PendingOffsetsAdded(_)
            | Event::GroupDeleted(_)
            | Event::OffsetsDeleted(_)
            | membership_event!() => {}
        }
    }

    /// What readers may see of the topics: rebuilds the published view after a snapshot.
    pub fn visible(&self, out: &mut Vec<Visible>) {
        out.extend(self.topics().map(|topic| created(&topic.created)));
    }

    fn insert(&mut self, created: TopicCreated) {
        let topic = Arc::new(Topic { limits: TopicLimits::of(&created.settings), created });
        for (first, run) in runs(&topic) {
            self.by_first_handle.insert_mut(first, run);
        }
        if let Some(last) = topic.partitions().iter().max() {
            self.next_handle = self.next_handle.max(last.next());
        }
        let name = topic.name().clone();
        self.by_collision_key.insert_mut(TopicName::new(&collision_key(name.as_str())), name.clone());
        self.by_id.insert_mut(topic.id(), Arc::clone(&topic));
        self.by_name.insert_mut(name, topic);
    }

    /// Changes a topic that exists, and tells readers.
    fn change(&mut self, id: TopicId, change: impl FnOnce(&mut TopicCreated), visible: &mut Vec<Visible>) {
        let Some(topic) = self.by_id.get(&id) else { return };
        let mut created = topic.created.clone();
        change(&mut created);
        visible.push(Visible::TopicChanged {
            id,
            partitions: created.partitions.clone(),
            settings: created.settings.clone(),
        });
        self.insert(created);
    }

    fn remove(&mut self, event: &TopicDeleted) {
        let Some(topic) = self.by_id.get(&event.id).cloned() else { return };
        self.by_id.remove_mut(&event.id);
        self.by_name.remove_mut(topic.name());
        self.by_collision_key.remove_mut(&*collision_key(topic.name().as_str()));
        for (first, _) in runs(&topic) {
            self.by_first_handle.remove_mut(&first);
        }
        self.remember_deleted(topic.name().clone(), event.next_unissued);
    }

    fn remember_deleted(&mut self, name: TopicName, next_unissued: ProducerId) {
        if self.deleted.size() >= DELETED_NAMES_MAX && !self.deleted.contains_key(&name) {
            let latest = self.deleted.values().max().copied();
            self.forgotten_floor = self.forgotten_floor.max(latest.unwrap_or_default());
            self.deleted = RedBlackTreeMapSync::default();
        }
        self.deleted.insert_mut(name, next_unissued);
    }

    /// Appends the snapshot form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        self.next_handle.encode(out);
        self.forgotten_floor.encode(out);
        (self.by_name.size() as u64).encode(out);
        self.topics().for_each(|topic| topic.created.encode(out));
        (self.deleted.size() as u64).encode(out);
        for (name, next_unissued) in self.deleted.iter() {
            name.encode(out);
            next_unissued.encode(out);
        }
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// [`DecodeError`] for damaged bytes or a version that this build does not know.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::NewerEvent { event: "topics in a snapshot", version });
        }
        let next_handle = PartitionHandle::decode(reader)?;
        let forgotten_floor = ProducerId::decode(reader)?;
        let mut catalog = Self { next_handle, forgotten_floor, ..Self::new() };
        for _ in 0..reader.length()? {
            catalog.insert(TopicCreated::decode(reader)?);
        }
        for _ in 0..reader.length()? {
            let name = TopicName::decode(reader)?;
            catalog.deleted.insert_mut(name, ProducerId::decode(reader)?);
        }
        Ok(catalog)
    }
}

/// The runs of a topic's handles.
fn runs(topic: &Topic) -> impl Iterator<Item = (PartitionHandle, HandleRun)> + '_ {
    let handles = topic.partitions();
    let starts = move |at: usize| at == 0 || handles[at - 1].next() != handles[at];
    (0..)
        .zip(handles)
        .filter(move |(at, _)| starts(*at as usize))
        .map(|(first_index, first)| (*first, HandleRun { topic: topic.id(), first_index }))
}

impl semel_groups::streams::Topics for Catalog {
    fn topic(&self, name: &str) -> Option<&[PartitionHandle]> {
        self.topic(name).map(|topic| topic.partitions())
    }
}

fn created(event: &TopicCreated) -> Visible {
    Visible::TopicCreated {
        id: event.id,
        name: event.name.clone(),
        partitions: event.partitions.clone(),
        settings: event.settings.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now::from_ms(1);

    fn id(byte: u8) -> TopicId {
        TopicId::new([byte; 16])
    }

    fn make(catalog: &mut Catalog, byte: u8, name: &str, count: u32) -> TopicCreated {
        let event = catalog.create(id(byte), TopicName::from(name), count, Vec::new(), NOW);
        catalog.apply(&event.clone().into(), &mut Vec::new());
        event
    }

    fn delete(catalog: &mut Catalog, byte: u8, next_unissued: i64) {
        let partitions = catalog.topic_by_id(id(byte)).unwrap().partitions().to_vec();
        let next_unissued = ProducerId::new(next_unissued);
        let event = TopicDeleted { id: id(byte), partitions, next_unissued, now: NOW };
        catalog.apply(&event.into(), &mut Vec::new());
    }

    #[test]
    fn handles_are_dense_and_never_used_again() {
        let mut catalog = Catalog::new();
        make(&mut catalog, 1, "a", 2);
        let second = make(&mut catalog, 2, "b", 1);
        assert_eq!(second.partitions, [PartitionHandle::new(2)]);
        delete(&mut catalog, 2, 0);
        assert!(catalog.locate(PartitionHandle::new(2)).is_none());
        let third = make(&mut catalog, 3, "b", 1);
        assert_eq!(third.partitions, [PartitionHandle::new(3)]);
        let (topic, index) = catalog.locate(PartitionHandle::new(1)).unwrap();
        assert_eq!((topic.name().as_str(), index.get()), ("a", 1));
    }

    #[test]
    fn only_a_name_that_was_deleted_may_have_forgotten_producers() {
        let mut catalog = Catalog::new();
        make(&mut catalog, 1, "a", 1);
        delete(&mut catalog, 1, 77);
        assert_eq!(make(&mut catalog, 2, "a", 1).may_have_forgotten, ProducerId::new(77));
        assert_eq!(make(&mut catalog, 3, "b", 1).may_have_forgotten, ProducerId::new(0));
    }

    #[test]
    fn names_given_up_raise_the_floor_for_all_new_topics() {
        let mut catalog = Catalog::new();
        for name in 0..DELETED_NAMES_MAX {
            catalog.remember_deleted(TopicName::from(&*name.to_string()), ProducerId::new(name as i64));
        }
        catalog.remember_deleted(TopicName::from("one-more"), ProducerId::new(5));
        let floor = ProducerId::new(DELETED_NAMES_MAX as i64 - 1);
        assert_eq!(make(&mut catalog, 1, "new", 1).may_have_forgotten, floor);
        assert_eq!(make(&mut catalog, 2, "one-more", 1).may_have_forgotten, ProducerId::new(5));
    }

    #[test]
    fn a_topic_that_grows_is_found_by_its_new_handles() {
        let mut catalog = Catalog::new();
        make(&mut catalog, 1, "a", 2);
        make(&mut catalog, 2, "b", 1);
        let event = catalog.grow(catalog.topic("a").unwrap(), 2, NOW);
        assert_eq!(event.partitions, [PartitionHandle::new(3), PartitionHandle::new(4)]);
        catalog.apply(&event.into(), &mut Vec::new());
        let mut bytes = Vec::new();
        catalog.encode(&mut bytes);
        for mut catalog in [catalog, Catalog::decode(&mut Reader::new(&bytes)).unwrap()] {
            let (topic, index) = catalog.locate(PartitionHandle::new(4)).unwrap();
            assert_eq!((topic.name().as_str(), index.get()), ("a", 3));
            assert_eq!(catalog.locate(PartitionHandle::new(2)).unwrap().0.name().as_str(), "b");
            delete(&mut catalog, 1, 0);
            assert!(
                [0, 1, 3, 4].iter().all(|handle| catalog.locate(PartitionHandle::new(*handle)).is_none())
            );
            assert_eq!(make(&mut catalog, 3, "c", 1).partitions, [PartitionHandle::new(5)]);
        }
    }

    #[test]
    fn a_snapshot_restores_the_catalogue() {
        let mut catalog = Catalog::new();
        make(&mut catalog, 1, "a.x", 3);
        make(&mut catalog, 2, "b", 1);
        delete(&mut catalog, 2, 9);
        let mut bytes = Vec::new();
        catalog.encode(&mut bytes);
        let mut back = Catalog::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(back.topic("a.x").unwrap().partitions().len(), 3);
        assert_eq!(back.collision("a_x").unwrap().as_str(), "a.x");
        assert_eq!(make(&mut back, 3, "b", 1), make(&mut catalog, 3, "b", 1));
    }
}
