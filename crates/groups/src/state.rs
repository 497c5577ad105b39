//! All groups of a shard. `apply` is the only writer, live and on replay.

use alloc::{string::String, sync::Arc, vec::Vec};

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use semel_events::{
    CommittedOffset, Decode, DecodeError, Encode, Event, OffsetsCommitted, PendingOffsetsAdded, Reader,
    TransactionEnded,
};
use semel_types::{GroupId, LogSequence, Now, PartitionHandle};

use crate::{Group, Member, Refusal, StoredOffset};

/// Version of the written form of [`State`].
const VERSION: u8 = 1;

/// A whole-state check that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation(pub String);

/// Every group, cheap to clone.
#[derive(Clone, Default)]
pub struct State {
    groups: RedBlackTreeMapSync<GroupId, Arc<Group>>,
    /// Partitions that were deleted and may still stand in groups not touched since: each group drops them when it
    /// is next written, a snapshot leaves them out.
    dead: RedBlackTreeSetSync<PartitionHandle>,
}

impl State {
    /// A shard without groups.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One group, if it has committed or holds anything.
    #[must_use]
    pub fn group(&self, id: &GroupId) -> Option<&Group> {
        self.groups.get(id).map(|group| &**group)
    }

    /// The committed offset of one partition, unless the partition is gone.
    #[must_use]
    pub fn offset(&self, id: &GroupId, partition: PartitionHandle) -> Option<&StoredOffset> {
        if self.dead.contains(&partition) { None } else { self.group(id)?.offset(partition) }
    }

    /// All committed offsets of a group, of partitions that still exist.
    pub fn offsets(&self, id: &GroupId) -> impl Iterator<Item = &StoredOffset> {
        let offsets = self.group(id).into_iter().flat_map(Group::offsets);
        offsets.filter(|stored| !self.dead.contains(&stored.committed.partition))
    }

    /// True while an undecided transaction carries an offset of the partition.
    #[must_use]
    pub fn is_unstable(&self, id: &GroupId, partition: PartitionHandle) -> bool {
        self.group(id).is_some_and(|group| group.is_unstable(partition))
    }

    /// May this member commit in this group? Groups here have no members, so a claimed membership is refused:
    /// 22 for a group that does not exist, 25 otherwise (upstream `OffsetMetadataManager`).
    ///
    /// # Errors
    /// [`Refusal`] if it may not.
    pub fn check_member(&self, id: &GroupId, member: Member<'_>) -> Result<(), Refusal> {
        let claims = member.generation.is_some_and(|generation| generation >= 0);
        match (self.group(id), claims, member.member_id.is_empty()) {
            (_, false, true) => Ok(()),
            (None, true, _) => Err(Refusal::IllegalGeneration),
            (None, false, false) | (Some(_), _, _) => Err(Refusal::UnknownMember),
        }
    }

    /// Decides OffsetCommit.
    ///
    /// # Errors
    /// [`Refusal`] if the member may not commit; nothing changes then.
    pub fn commit(
        &self,
        id: &GroupId,
        member: Member<'_>,
        offsets: Vec<CommittedOffset>,
        now: Now,
    ) -> Result<Event, Refusal> {
        self.check_member(id, member)?;
        Ok(OffsetsCommitted { group: id.clone(), offsets, now }.into())
    }

    /// The only writer.
    pub fn apply(&mut self, sequence: LogSequence, event: &Event) {
        match event {
            Event::OffsetsCommitted(event) => self.apply_commit(sequence, event),
            Event::PendingOffsetsAdded(event) => self.apply_pending(sequence, event),
            Event::TransactionEnded(event) => self.apply_end(event),
            Event::TopicDeleted(event) => {
                event.partitions.iter().for_each(|partition| self.dead.insert_mut(*partition));
            }
            Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TopicCreated(_)
            | Event::BatchAppended(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionExtended(_)
            | Event::TransactionalIdExpired(_) => {}
        }
    }

    fn apply_commit(&mut self, sequence: LogSequence, event: &OffsetsCommitted) {
        let stored = stored(&event.offsets, sequence, event.now);
        self.write(&event.group, |group| stored.for_each(|offset| group.commit(offset)));
    }

    fn apply_pending(&mut self, sequence: LogSequence, event: &PendingOffsetsAdded) {
        let key = (event.id.clone(), event.number);
        let stored = stored(&event.offsets, sequence, event.now);
        self.write(&event.group, |group| group.hold(key, stored));
    }

    fn apply_end(&mut self, event: &TransactionEnded) {
        let key = (event.id.clone(), event.number);
        for id in &event.groups {
            if self.groups.contains_key(id) {
                self.write(id, |group| group.settle(&key, event.outcome));
            }
        }
    }

    fn write(&mut self, id: &GroupId, change: impl FnOnce(&mut Group)) {
        let mut group = self.groups.get(id).map(|group| Group::clone(group)).unwrap_or_default();
        if !self.dead.is_empty() {
            group.purge(&self.dead);
        }
        change(&mut group);
        self.groups.insert_mut(id.clone(), Arc::new(group));
    }

    /// Whole-state check: no committed offset is younger than `last`, and none is held twice (GRP-01, GRP-03).
    ///
    /// # Errors
    /// Names the first violation.
    pub fn check(&self, last: LogSequence) -> Result<(), Violation> {
        for (id, group) in self.groups.iter() {
            let held = group.pending().flat_map(|(_, held)| held.iter());
            if group.offsets().chain(held).any(|stored| stored.sequence > last) {
                return Err(Violation(alloc::format!("GRP-03: group {id} holds an offset from the future")));
            }
        }
        Ok(())
    }

    /// Appends the snapshot form; offsets of deleted partitions are left out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        (self.groups.size() as u64).encode(out);
        for (id, group) in self.groups.iter() {
            let mut group = Group::clone(group);
            group.purge(&self.dead);
            id.encode(out);
            group.encode(out);
        }
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// [`DecodeError`] for damaged bytes or a version that this build does not know.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::NewerEvent { event: "groups in a snapshot", version });
        }
        let mut state = Self::new();
        for _ in 0..reader.length()? {
            let id = GroupId::decode(reader)?;
            state.groups.insert_mut(id, Arc::new(Group::decode(reader)?));
        }
        Ok(state)
    }
}

fn stored(
    offsets: &[CommittedOffset],
    sequence: LogSequence,
    now: Now,
) -> impl Iterator<Item = StoredOffset> + '_ {
    offsets.iter().map(move |committed| StoredOffset { committed: committed.clone(), sequence, now })
}
