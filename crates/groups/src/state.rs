//! All groups of a shard. `apply` is the only writer, live and on replay.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::ops::Bound;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use semel_events::{
    CommittedOffset, Decode, DecodeError, Encode, Event, GroupMember, OffsetsCommitted, OffsetsDeleted,
    PendingOffsetsAdded, Reader, TransactionEnded,
};
use semel_types::{
    GroupId, LogSequence, Now, PartitionHandle,
    mutation::{Mutation, mutated},
};

use crate::{
    Change, Group, Kind, Member, Membership, Phase, Refusal, StoredOffset, Volatile, classic, consumer,
    streams, subscription,
};

/// Version of the written form of [`State`].
const VERSION: u8 = 4;

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

    /// True without any group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Every group by id.
    pub fn groups(&self) -> impl Iterator<Item = (&GroupId, &Group)> {
        self.groups.iter().map(|(id, group)| (id, &**group))
    }

    pub(crate) fn range(&self, bounds: (Bound<GroupId>, Bound<GroupId>)) -> impl Iterator<Item = &GroupId> {
        self.groups.range(bounds).map(|(id, _)| id)
    }

    /// Decides OffsetCommit: the event, and the sign that the member is alive.
    ///
    /// # Errors
    /// [`Refusal`] if the member may not commit; nothing changes then.
    pub fn commit(
        &self,
        volatile: &Volatile,
        id: &GroupId,
        member: Member<'_>,
        offsets: Vec<CommittedOffset>,
        now: Now,
    ) -> Result<(Event, Option<Change>), Refusal> {
        let partitions = offsets.iter().map(|offset| offset.partition);
        let change = self.check_commit(volatile, (id, member), partitions, now)?;
        Ok((OffsetsCommitted { group: id.clone(), offsets, now }.into(), change))
    }

    /// May this member commit offsets of these partitions, in a transaction or not? The change notes that it is alive.
    ///
    /// # Errors
    /// [`Refusal`] if it may not; nothing changes then.
    pub fn check_commit(
        &self,
        volatile: &Volatile,
        (id, member): (&GroupId, Member<'_>),
        partitions: impl Iterator<Item = PartitionHandle>,
        now: Now,
    ) -> Result<Option<Change>, Refusal> {
        match self.group(id).map(Group::kind) {
            None | Some(Kind::Classic(_)) => classic::check_commit(self, volatile, id, member, now),
            Some(Kind::Consumer(roster)) => {
                consumer::check_commit(roster, volatile, (id, member), partitions, now)
            }
            Some(Kind::Streams(roster)) => streams::check_commit(roster, member, partitions).map(|()| None),
        }
    }

    /// May offsets of this group be deleted at all (OffsetDelete)? Of a group with members only a consumer's may.
    ///
    /// # Errors
    /// [`Refusal::UnknownGroup`] or [`Refusal::NonEmpty`].
    pub fn check_offset_delete(&self, volatile: &Volatile, id: &GroupId) -> Result<(), Refusal> {
        let group = self.group(id).ok_or(Refusal::UnknownGroup)?;
        let Some(membership) = group.classic() else { return Ok(()) };
        let live = volatile.group(id).map(|live| &**live);
        let is_empty = Phase::of(membership, live) == Phase::Empty;
        let consumes = is_empty || &**membership.protocol_type() == "consumer";
        if consumes { Ok(()) } else { Err(Refusal::NonEmpty) }
    }

    /// May the offset of this partition of this topic be deleted?
    ///
    /// # Errors
    /// [`Refusal::Subscribed`] if a member reads the topic, [`Refusal::UnstableOffset`] if an undecided transaction
    /// carries an offset of the partition.
    pub fn check_offset_of(
        &self,
        volatile: &Volatile,
        id: &GroupId,
        topic: &str,
        partition: PartitionHandle,
    ) -> Result<(), Refusal> {
        let reads = |member: &GroupMember| subscription::names(member, topic);
        let group = self.group(id);
        let seats = group.and_then(Group::classic).into_iter().flat_map(Membership::seats);
        let mut joining = volatile.group(id).into_iter().flat_map(|live| live.joining());
        let roster = group.and_then(Group::consumer);
        if seats.map(|(_, seat)| &seat.member).any(reads)
            || joining.any(reads)
            || roster.is_some_and(|roster| roster.reads(topic, partition))
            || group.and_then(Group::streams).is_some_and(|roster| roster.reads(topic))
        {
            return Err(Refusal::Subscribed);
        }
        if self.is_unstable(id, partition) { Err(Refusal::UnstableOffset) } else { Ok(()) }
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
            Event::GroupGenerationStarted(event) => {
                self.write((&event.group, event.now), |group| group.classic_mut().start(event));
            }
            Event::GroupAssigned(event) => {
                self.write((&event.group, event.now), |group| group.classic_mut().assign(event));
            }
            Event::GroupMemberReplaced(event) => {
                self.write((&event.group, event.now), |group| group.classic_mut().replace(event));
            }
            Event::GroupMembersRemoved(event) => {
                self.write((&event.group, event.now), |group| group.classic_mut().remove(event));
            }
            Event::GroupDeleted(event) => {
                self.groups.remove_mut(&event.group);
            }
            Event::OffsetsDeleted(event) => self.apply_offsets_deleted(event),
            Event::GroupKindChanged(event) => {
                self.write((&event.group, event.now), |group| group.change_kind(event))
            }
            Event::ConsumerMemberChanged(event) => {
                self.write((&event.group, event.now), |group| group.consumer_mut().change(event));
            }
            Event::ConsumerEpochStarted(event) => {
                self.write((&event.group, event.now), |group| group.consumer_mut().start(event));
            }
            Event::ConsumerMemberReconciled(event) => {
                self.write((&event.group, event.now), |group| group.consumer_mut().reconcile(event));
            }
            Event::ConsumerMembersRemoved(event) => {
                self.write((&event.group, event.now), |group| group.consumer_mut().remove(event));
            }
            Event::ConsumerMemberReplaced(event) => {
                self.write((&event.group, event.now), |group| group.consumer_mut().replace(event));
            }
            Event::StreamsTopologySet(e) => self.streams(&e.group, e.now, |roster| roster.set_topology(e)),
            Event::StreamsMemberChanged(e) => self.streams(&e.group, e.now, |roster| roster.change(e)),
            Event::StreamsEpochStarted(e) => self.streams(&e.group, e.now, |roster| roster.start(e)),
            Event::StreamsTargetSet(e) => self.streams(&e.group, e.now, |roster| roster.set_target(e)),
            Event::StreamsMemberReconciled(e) => self.streams(&e.group, e.now, |roster| roster.reconcile(e)),
            Event::StreamsMembersRemoved(e) => self.streams(&e.group, e.now, |roster| roster.remove(e)),
            Event::ShardStarted(event) => {
                if loses_at_restart() {
                    let ids: Vec<_> = self.groups.keys().cloned().collect();
                    ids.iter().for_each(|id| self.write((id, event.now), Group::lose_at_restart));
                }
            }
            Event::ProducerIdsReserved(_)
            | Event::TopicCreated(_)
            | Event::BatchAppended(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionExtended(_)
            | Event::RecordsDeleted(_)
            | Event::TopicSettingsChanged(_)
            | Event::PartitionsAdded(_)
            | Event::GroupSettingsChanged(_)
            | Event::TransactionalIdExpired(_) => {}
        }
    }

    fn apply_commit(&mut self, sequence: LogSequence, event: &OffsetsCommitted) {
        let stored = stored(&event.offsets, sequence, event.now);
        self.write((&event.group, event.now), |group| stored.for_each(|offset| group.commit(offset)));
    }

    fn apply_pending(&mut self, sequence: LogSequence, event: &PendingOffsetsAdded) {
        let key = (event.id.clone(), event.number);
        let stored = stored(&event.offsets, sequence, event.now);
        self.write((&event.group, event.now), |group| group.hold(key, stored));
    }

    fn apply_offsets_deleted(&mut self, event: &OffsetsDeleted) {
        if self.groups.contains_key(&event.group) {
            let partitions = event.partitions.iter().copied();
            self.write((&event.group, event.now), |group| {
                partitions.for_each(|partition| group.forget(partition))
            });
        }
    }

    fn apply_end(&mut self, event: &TransactionEnded) {
        let key = (event.id.clone(), event.number);
        for id in &event.groups {
            if self.groups.contains_key(id) {
                self.write((id, event.now), |group| group.settle(&key, event.outcome));
            }
        }
    }

    fn streams(&mut self, id: &GroupId, now: Now, change: impl FnOnce(&mut streams::Roster)) {
        self.write((id, now), |group| change(group.streams_mut()));
    }

    fn write(&mut self, (id, now): (&GroupId, Now), change: impl FnOnce(&mut Group)) {
        let mut group = self.groups.get(id).map(|group| Group::clone(group)).unwrap_or_default();
        if !self.dead.is_empty() {
            group.purge(&self.dead);
        }
        let had_members = !group.is_empty();
        change(&mut group);
        group.note_members(had_members, now);
        self.groups.insert_mut(id.clone(), Arc::new(group));
    }

    /// Whole-state check: no committed offset is younger than `last`, and none is held twice (GRP-01, GRP-03).
    ///
    /// # Errors
    /// Names the first violation.
    pub fn check(&self, last: LogSequence) -> Result<(), Violation> {
        for (id, group) in self.groups.iter() {
            let checked = match group.kind() {
                Kind::Classic(membership) => membership.check(),
                Kind::Consumer(roster) => roster.check(),
                Kind::Streams(roster) => roster.check(),
            };
            checked.map_err(|error| Violation(alloc::format!("{error} in group {id}")))?;
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
        if !(1..=VERSION).contains(&version) {
            return Err(DecodeError::NewerEvent { event: "groups in a snapshot", version });
        }
        let mut state = Self::new();
        for _ in 0..reader.length()? {
            let id = GroupId::decode(reader)?;
            state.groups.insert_mut(id, Arc::new(Group::decode(reader, version)?));
        }
        Ok(state)
    }
}

/// A fault that has a start forget something of every group.
fn loses_at_restart() -> bool {
    mutated(Mutation::PendingLostAtRestart)
        || mutated(Mutation::AssignmentsLostAtRestart)
        || mutated(Mutation::ConsumersLostAtRestart)
        || mutated(Mutation::StreamsMembersLostAtRestart)
}

fn stored(
    offsets: &[CommittedOffset],
    sequence: LogSequence,
    now: Now,
) -> impl Iterator<Item = StoredOffset> + '_ {
    offsets.iter().map(move |committed| StoredOffset { committed: committed.clone(), sequence, now })
}
