//! Who belongs to a consumer group, what each of them has, and what it shall get. All of it is in the log.
//!
//! Invariants: GRP-09 and GRP-10 (see the module above); GRP-05 no two members have the same static name.
//! What it does not do: time (that is [`Live`](super::Live)), decisions.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

use rpds::RedBlackTreeMapSync;
use semel_events::{
    ConsumerEpochStarted, ConsumerMember, ConsumerMemberChanged, ConsumerMemberReconciled,
    ConsumerMemberReplaced, ConsumerMembersRemoved, ConsumerProgress, Decode, DecodeError, Encode,
    OwnedPartition, Reader,
};
use semel_types::PartitionHandle;

use crate::MemberId;

/// Epoch of a static member that is away and keeps its place (upstream `LEAVE_GROUP_STATIC_MEMBER_EPOCH`).
pub const AWAY: i32 = -2;

/// Where a consumer group stands (upstream `ConsumerGroupState`). Targets are computed with each epoch, so that it never
/// is "Assigning".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// No members.
    Empty,
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
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

/// Partitions with the epoch in which the member got each.
pub type Owned = BTreeMap<PartitionHandle, i32>;

/// A member with what it has and shall get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The member.
    pub member: ConsumerMember,
    /// Its epoch; 0 before it was told one, [`AWAY`] for a static member that is away.
    pub member_epoch: i32,
    /// Its epoch before.
    pub previous_epoch: i32,
    /// How far it is.
    pub progress: ConsumerProgress,
    /// What it has.
    pub assigned: Owned,
    /// What it has to give up and still owns.
    pub revoking: Owned,
    /// What it shall get in the end.
    pub target: BTreeSet<PartitionHandle>,
}

impl Seat {
    pub(crate) fn new(member: ConsumerMember) -> Self {
        Self {
            member,
            member_epoch: 0,
            previous_epoch: 0,
            progress: ConsumerProgress::Stable,
            assigned: Owned::new(),
            revoking: Owned::new(),
            target: BTreeSet::new(),
        }
    }

    /// Is it the partition's owner, even if it has to give it up?
    #[must_use]
    pub fn owns(&self, partition: PartitionHandle) -> bool {
        self.assigned.contains_key(&partition) || self.revoking.contains_key(&partition)
    }

    fn owned(&self) -> impl Iterator<Item = PartitionHandle> {
        self.assigned.keys().chain(self.revoking.keys()).copied()
    }
}

/// The members of a consumer group. A clone shares everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roster {
    group_epoch: i32,
    topics_hash: u64,
    assignor: Arc<str>,
    seats: RedBlackTreeMapSync<MemberId, Arc<Seat>>,
    /// Who owns each partition: follows from the seats.
    owners: RedBlackTreeMapSync<PartitionHandle, MemberId>,
}

impl Roster {
    /// No members, after this epoch.
    pub(crate) fn empty(epoch: i32) -> Self {
        Self { group_epoch: epoch, ..Self::default() }
    }

    /// The group's epoch, which is that of the targets; 0 before the first.
    #[must_use]
    pub const fn epoch(&self) -> i32 {
        self.group_epoch
    }

    /// Hash of the topics that were read when the epoch started.
    #[must_use]
    pub const fn topics_hash(&self) -> u64 {
        self.topics_hash
    }

    /// The assignor that made the targets.
    #[must_use]
    pub const fn assignor(&self) -> &Arc<str> {
        &self.assignor
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

    /// Is this one a member?
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.seats.contains_key(id)
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
    pub fn by_instance(&self, instance: &str) -> Option<&MemberId> {
        let found = |seat: &Seat| seat.member.instance.as_deref() == Some(instance);
        self.seats().find(|(_, seat)| found(seat)).map(|(id, _)| id)
    }

    /// The partition's owner, even if it has to give it up.
    #[must_use]
    pub fn owner(&self, partition: PartitionHandle) -> Option<&MemberId> {
        self.owners.get(&partition)
    }

    /// Partitions that have an owner.
    #[must_use]
    pub fn owned_count(&self) -> usize {
        self.owners.size()
    }

    /// Does a member read this topic, by name or through a pattern?
    #[must_use]
    pub fn reads(&self, topic: &str, partition: PartitionHandle) -> bool {
        let names = |seat: &Seat| seat.member.topics.iter().any(|name| **name == *topic);
        self.seats().any(|(_, seat)| names(seat) || seat.target.contains(&partition))
    }

    /// Where the group stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let settled = |seat: &Seat| {
            seat.member_epoch == AWAY || (seat.member_epoch == self.group_epoch && is_stable(seat.progress))
        };
        if self.is_empty() {
            Phase::Empty
        } else if self.seats().all(|(_, seat)| settled(seat)) {
            Phase::Stable
        } else {
            Phase::Reconciling
        }
    }

    pub(crate) fn change(&mut self, event: &ConsumerMemberChanged) {
        let id = &event.member.id;
        let seat = match self.seats.get(id) {
            Some(seat) => Seat { member: event.member.clone(), ..Seat::clone(seat) },
            None => Seat::new(event.member.clone()),
        };
        self.seats.insert_mut(Arc::clone(id), Arc::new(seat));
    }

    pub(crate) fn start(&mut self, event: &ConsumerEpochStarted) {
        self.group_epoch = event.epoch;
        self.topics_hash = event.topics_hash;
        self.assignor = Arc::clone(&event.assignor);
        for target in &event.targets {
            if let Some(seat) = self.seats.get_mut(&target.member) {
                Arc::make_mut(seat).target = target.partitions.iter().copied().collect();
            }
        }
    }

    pub(crate) fn reconcile(&mut self, event: &ConsumerMemberReconciled) {
        let Some(seat) = self.seats.get(&event.member).cloned() else { return };
        self.free(&seat);
        let map = |owned: &[OwnedPartition]| owned.iter().map(|one| (one.partition, one.since)).collect();
        let seat = Seat {
            member_epoch: event.epoch,
            previous_epoch: event.previous_epoch,
            progress: event.progress,
            assigned: map(&event.assigned),
            revoking: map(&event.revoking),
            ..Seat::clone(&seat)
        };
        self.take(&event.member, seat);
    }

    pub(crate) fn remove(&mut self, event: &ConsumerMembersRemoved) {
        for id in &event.members {
            if let Some(seat) = self.seats.get(id).cloned() {
                self.free(&seat);
                self.seats.remove_mut(id);
            }
        }
    }

    pub(crate) fn replace(&mut self, event: &ConsumerMemberReplaced) {
        let Some(old) = self.seats.get(&event.old).cloned() else { return };
        self.free(&old);
        self.seats.remove_mut(&event.old);
        let seat = Seat {
            assigned: old.assigned.keys().map(|partition| (*partition, 0)).collect(),
            target: old.target.clone(),
            ..Seat::new(event.member.clone())
        };
        self.take(&event.member.id, seat);
    }

    fn free(&mut self, seat: &Seat) {
        for partition in seat.owned() {
            if self.owners.get(&partition) == Some(&seat.member.id) {
                self.owners.remove_mut(&partition);
            }
        }
    }

    fn take(&mut self, id: &MemberId, seat: Seat) {
        for partition in seat.owned() {
            self.owners.insert_mut(partition, Arc::clone(id));
        }
        self.seats.insert_mut(Arc::clone(id), Arc::new(seat));
    }

    /// GRP-05, GRP-09 and GRP-10, for [`State::check`](crate::State::check).
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut owned = 0;
        for (id, seat) in self.seats() {
            if seat.member_epoch > self.group_epoch {
                return Err(format!(
                    "GRP-10: member {id} is in epoch {}, ahead of the group",
                    seat.member_epoch
                ));
            }
            for partition in seat.owned() {
                owned += 1;
                if self.owner(partition) != Some(id) {
                    return Err(format!("GRP-09: partition {partition} has two owners, one is {id}"));
                }
            }
        }
        if owned != self.owners.size() {
            return Err(format!("GRP-09: {} partitions are owned by nobody", self.owners.size() - owned));
        }
        let mut names: Vec<_> =
            self.seats().filter_map(|(_, seat)| seat.member.instance.as_deref()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("GRP-05: static name {} stands for two members", pair[0])),
            None => Ok(()),
        }
    }
}

const fn is_stable(progress: ConsumerProgress) -> bool {
    matches!(progress, ConsumerProgress::Stable)
}

fn encode_owned(owned: &Owned, out: &mut Vec<u8>) {
    let list = owned.iter().map(|(partition, since)| OwnedPartition { partition: *partition, since: *since });
    list.collect::<Vec<_>>().encode(out);
}

fn decode_owned(reader: &mut Reader<'_>) -> Result<Owned, DecodeError> {
    let list = Vec::<OwnedPartition>::decode(reader)?;
    Ok(list.into_iter().map(|one| (one.partition, one.since)).collect())
}

impl Encode for Seat {
    fn encode(&self, out: &mut Vec<u8>) {
        self.member.encode(out);
        self.member_epoch.encode(out);
        self.previous_epoch.encode(out);
        self.progress.encode(out);
        encode_owned(&self.assigned, out);
        encode_owned(&self.revoking, out);
        self.target.iter().copied().collect::<Vec<_>>().encode(out);
    }
}

impl Decode for Seat {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            member: Decode::decode(reader)?,
            member_epoch: Decode::decode(reader)?,
            previous_epoch: Decode::decode(reader)?,
            progress: Decode::decode(reader)?,
            assigned: decode_owned(reader)?,
            revoking: decode_owned(reader)?,
            target: Vec::<PartitionHandle>::decode(reader)?.into_iter().collect(),
        })
    }
}

impl Encode for Roster {
    fn encode(&self, out: &mut Vec<u8>) {
        self.group_epoch.encode(out);
        self.topics_hash.encode(out);
        self.assignor.encode(out);
        (self.len() as u64).encode(out);
        self.seats().for_each(|(_, seat)| seat.encode(out));
    }
}

impl Decode for Roster {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut roster = Self {
            group_epoch: Decode::decode(reader)?,
            topics_hash: Decode::decode(reader)?,
            assignor: Decode::decode(reader)?,
            ..Self::default()
        };
        for _ in 0..reader.length()? {
            let seat = Seat::decode(reader)?;
            let id = Arc::clone(&seat.member.id);
            roster.take(&id, seat);
        }
        Ok(roster)
    }
}
