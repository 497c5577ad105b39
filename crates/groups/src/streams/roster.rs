//! What the log holds of a streams group: its topology, its members, what each of them has and shall get.
//!
//! Invariants: GRP-10 the group's epoch only rises and no member is ahead of it; GRP-11 no task is worked on by two
//! members; GRP-05 no two members have the same static name. What it does not do:
//! time (that is [`Live`](super::Live)), decisions.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

use rpds::RedBlackTreeMapSync;
use semel_events::{
    Decode, DecodeError, Encode, Reader, StreamsEpochStarted, StreamsHeldTasks, StreamsKnownTopic,
    StreamsMember, StreamsMemberChanged, StreamsMemberReconciled, StreamsMembersRemoved, StreamsProgress,
    StreamsTargetSet, StreamsTopology, StreamsTopologySet,
};
use semel_types::{Now, PartitionHandle, PartitionIndex};

use super::{Configured, HeldTasks, Others, Position, TaskId, Tasks, configure};
use crate::MemberId;

/// Epoch of a static member that is away and keeps its place.
pub const AWAY: i32 = -2;

/// Kafka's first epoch of a group: members that wait for the first target have one, too.
const FIRST_GROUP_EPOCH: i32 = 1;

/// Where a streams group stands (upstream `StreamsGroupState`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// No members.
    Empty,
    /// Topics are missing, or partitioned wrongly.
    NotReady,
    /// The target of the epoch is not computed yet.
    Assigning,
    /// Some member has not got its target yet.
    Reconciling,
    /// Everybody has its target.
    Stable,
}

impl Phase {
    /// Kafka's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::NotReady => "NotReady",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

/// A member with what it has and shall get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The member.
    pub member: StreamsMember,
    /// What it has, and how far it is.
    pub position: Position,
    /// What it shall get in the end.
    pub target: Tasks,
}

impl Seat {
    pub(crate) fn new(member: StreamsMember) -> Self {
        Self { member, position: Position::new(), target: Tasks::default() }
    }
}

/// The members of a streams group and its topology. A clone shares everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roster {
    group_epoch: i32,
    assignment_epoch: i32,
    /// When the last target was computed; `None` before the first and in a group that was left by all.
    assigned_at: Option<Now>,
    topology: Option<Arc<StreamsTopology>>,
    topics: Arc<Vec<StreamsKnownTopic>>,
    standby_replicas: u32,
    tags: Arc<Vec<Arc<str>>>,
    seats: RedBlackTreeMapSync<MemberId, Arc<Seat>>,
    /// Follows from topology and topics.
    configured: Option<Arc<Configured>>,
}

impl Roster {
    /// No members, after this epoch.
    pub(crate) fn empty(epoch: i32) -> Self {
        let group_epoch = if epoch < FIRST_GROUP_EPOCH { FIRST_GROUP_EPOCH } else { epoch };
        Self { group_epoch, assignment_epoch: group_epoch, ..Self::default() }
    }

    /// The group's epoch.
    #[must_use]
    pub const fn group_epoch(&self) -> i32 {
        self.group_epoch
    }

    /// The epoch of the target.
    #[must_use]
    pub const fn assignment_epoch(&self) -> i32 {
        self.assignment_epoch
    }

    /// When the target was computed.
    #[must_use]
    pub const fn assigned_at(&self) -> Option<Now> {
        self.assigned_at
    }

    /// What the application looks like, once a member has said so.
    #[must_use]
    pub const fn topology(&self) -> Option<&Arc<StreamsTopology>> {
        self.topology.as_ref()
    }

    /// The topology with its numbers decided, as of the group's epoch.
    #[must_use]
    pub const fn configured(&self) -> Option<&Arc<Configured>> {
        self.configured.as_ref()
    }

    /// Topics of the topology that existed when the epoch started.
    #[must_use]
    pub fn topics(&self) -> &[StreamsKnownTopic] {
        &self.topics
    }

    /// Settings that the epoch goes by: copies of each store, and tags that members have to bring.
    #[must_use]
    pub fn assignment_settings(&self) -> (u32, &[Arc<str>]) {
        (self.standby_replicas, &self.tags)
    }

    /// All members by id.
    pub fn seats(&self) -> impl Iterator<Item = (&MemberId, &Seat)> {
        self.seats.iter().map(|(id, seat)| (id, &**seat))
    }

    /// One member.
    #[must_use]
    pub fn seat(&self, id: &str) -> Option<&Seat> {
        self.seats.get(id).map(|seat| &**seat)
    }

    /// How many members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.seats.size()
    }

    /// No members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// The member with this static name.
    #[must_use]
    pub fn by_instance(&self, instance: &str) -> Option<&Seat> {
        let found = |seat: &&Seat| seat.member.instance.as_deref() == Some(instance);
        self.seats.values().map(|seat| &**seat).find(found)
    }

    /// Where the group stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let arrived = |seat: &Arc<Seat>| seat.position.has_arrived(self.assignment_epoch);
        if self.is_empty() {
            Phase::Empty
        } else if !self.configured.as_ref().is_some_and(|configured| configured.is_ready()) {
            Phase::NotReady
        } else if self.group_epoch > self.assignment_epoch {
            Phase::Assigning
        } else if self.seats.values().all(arrived) {
            Phase::Stable
        } else {
            Phase::Reconciling
        }
    }

    /// Does a member of the group read this topic?
    #[must_use]
    pub fn reads(&self, topic: &str) -> bool {
        !self.is_empty() && self.subtopology_of(topic).is_some()
    }

    fn subtopology_of(&self, topic: &str) -> Option<&Arc<str>> {
        let mut parts = self.topology.as_ref()?.subtopologies.iter();
        let part = parts.find(|part| {
            part.sources.iter().any(|name| **name == *topic)
                || part.repartition_sources.iter().any(|source| *source.name == *topic)
        });
        part.map(|part| &part.id)
    }

    /// The task that reads this partition.
    pub(crate) fn task_of(&self, partition: PartitionHandle) -> Option<TaskId> {
        let found = self.topics.iter().find_map(|topic| Some((topic, index_in(topic, partition)?)));
        let (topic, index) = found?;
        let partition = PartitionIndex::new(i32::try_from(index).ok()?);
        Some(TaskId { subtopology: Arc::clone(self.subtopology_of(&topic.name)?), partition })
    }

    /// What all members but this one have, and still have to give up.
    pub(crate) fn others(&self, member: &str) -> Others {
        let mut others = Others::default();
        for (_, seat) in self.seats().filter(|(id, _)| ***id != *member) {
            others.add(&seat.member.process, &seat.position.assigned);
            others.add(&seat.member.process, &seat.position.revoking);
        }
        others
    }

    pub(crate) fn set_topology(&mut self, event: &StreamsTopologySet) {
        self.topology = Some(Arc::new(event.topology.clone()));
        self.topics = Arc::default();
        self.configured = None;
    }

    pub(crate) fn change(&mut self, event: &StreamsMemberChanged) {
        let id = Arc::clone(&event.member.id);
        let known = event.replaces.as_ref().unwrap_or(&id);
        let mut seat = self.seat(known).cloned().unwrap_or_else(|| Seat::new(event.member.clone()));
        seat.member = event.member.clone();
        if event.replaces.is_some() {
            (seat.position.member_epoch, seat.position.previous_member_epoch) = (0, 0);
            self.seats.remove_mut(known);
        }
        self.seats.insert_mut(id, Arc::new(seat));
    }

    pub(crate) fn start(&mut self, event: &StreamsEpochStarted) {
        self.group_epoch = event.epoch;
        self.topics = Arc::new(event.topics.clone());
        self.standby_replicas = event.standby_replicas;
        self.tags = Arc::new(event.tags.clone());
        self.configure();
    }

    fn configure(&mut self) {
        let topology = self.topology.as_ref();
        let configured = topology.and_then(|topology| configure(topology, &self.topics).ok());
        self.configured = configured.map(Arc::new);
    }

    pub(crate) fn set_target(&mut self, event: &StreamsTargetSet) {
        self.assignment_epoch = event.epoch;
        self.assigned_at = Some(event.now);
        for target in &event.targets {
            self.edit(&target.member, |seat| seat.target = Tasks::of_target(target));
        }
    }

    pub(crate) fn reconcile(&mut self, event: &StreamsMemberReconciled) {
        self.edit(&event.member, |seat| {
            seat.position = Position {
                member_epoch: event.epoch,
                previous_member_epoch: event.previous_epoch,
                progress: event.progress,
                assigned: HeldTasks::of_event(&event.assigned),
                revoking: HeldTasks::of_event(&event.revoking),
            };
        });
    }

    pub(crate) fn remove(&mut self, event: &StreamsMembersRemoved) {
        for id in &event.members {
            self.seats.remove_mut(id);
        }
        self.group_epoch = event.epoch;
        if self.is_empty() {
            self.assignment_epoch = event.epoch;
            self.assigned_at = None;
        }
    }

    fn edit(&mut self, id: &MemberId, change: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats.get_mut(id) {
            change(Arc::make_mut(seat));
        }
    }

    /// GRP-05, GRP-10, GRP-11, for [`State::check`](crate::State::check).
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let mut owners: BTreeMap<&TaskId, &MemberId> = BTreeMap::new();
        for (id, seat) in self.seats() {
            let Position { member_epoch, assigned, revoking, .. } = &seat.position;
            if *member_epoch > self.group_epoch {
                return Err(format!("GRP-10: {id} is in epoch {member_epoch} of {}", self.group_epoch));
            }
            if seat.member.instance.as_ref().is_some_and(|name| !names.insert(name)) {
                return Err(format!("GRP-05: static name of {id} stands for two members"));
            }
            for task in assigned.active.keys().chain(revoking.active.keys()) {
                if let Some(other) = owners.insert(task, id) {
                    return Err(format!("GRP-11: {other} and {id} work on {task:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Encode for Roster {
    fn encode(&self, out: &mut Vec<u8>) {
        self.group_epoch.encode(out);
        self.assignment_epoch.encode(out);
        self.assigned_at.encode(out);
        self.topology.as_deref().cloned().encode(out);
        self.topics.encode(out);
        self.standby_replicas.encode(out);
        self.tags.encode(out);
        (self.seats.size() as u64).encode(out);
        for seat in self.seats.values() {
            seat.member.encode(out);
            seat.position.member_epoch.encode(out);
            seat.position.previous_member_epoch.encode(out);
            seat.position.progress.encode(out);
            seat.position.assigned.to_event().encode(out);
            seat.position.revoking.to_event().encode(out);
            seat.target.to_target(&seat.member.id).encode(out);
        }
    }
}

impl Decode for Roster {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut read = Self {
            group_epoch: Decode::decode(reader)?,
            assignment_epoch: Decode::decode(reader)?,
            assigned_at: Decode::decode(reader)?,
            topology: Option::<StreamsTopology>::decode(reader)?.map(Arc::new),
            topics: Arc::new(Decode::decode(reader)?),
            standby_replicas: Decode::decode(reader)?,
            tags: Arc::new(Decode::decode(reader)?),
            ..Self::default()
        };
        for _ in 0..reader.length()? {
            let seat = decode_seat(reader)?;
            read.seats.insert_mut(Arc::clone(&seat.member.id), Arc::new(seat));
        }
        read.configure();
        Ok(read)
    }
}

/// The partition's number in the topic, if it is one of it.
fn index_in(topic: &StreamsKnownTopic, partition: PartitionHandle) -> Option<u32> {
    let mut before = 0;
    for run in &topic.runs {
        match partition.get().checked_sub(run.first.get()) {
            Some(offset) if offset < run.count => return Some(before + offset),
            Some(_) | None => before += run.count,
        }
    }
    None
}

fn decode_seat(reader: &mut Reader<'_>) -> Result<Seat, DecodeError> {
    let member = StreamsMember::decode(reader)?;
    let position = Position {
        member_epoch: Decode::decode(reader)?,
        previous_member_epoch: Decode::decode(reader)?,
        progress: StreamsProgress::decode(reader)?,
        assigned: HeldTasks::of_event(&StreamsHeldTasks::decode(reader)?),
        revoking: HeldTasks::of_event(&StreamsHeldTasks::decode(reader)?),
    };
    Ok(Seat { member, position, target: Tasks::of_target(&Decode::decode(reader)?) })
}
