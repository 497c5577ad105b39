//! Who belongs to a group: its generation, its members, and what each of them got. All of it is in the log.
//!
//! Invariants: GRP-04 the generation only rises; GRP-05 a leader is a member and no two members have the same static
//! name. What it does not do: time, requests that wait (both are in [`Volatile`](crate::Volatile)).

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};

use semel_events::{
    Blob, Decode, DecodeError, Encode, GroupAssigned, GroupGenerationStarted, GroupMember,
    GroupMemberReplaced, GroupMembersRemoved, Reader,
};
use semel_types::DurationMs;

/// A member's id.
pub type MemberId = Arc<str>;

/// A member with what it got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The member.
    pub member: GroupMember,
    /// What it got; empty before the generation is assigned.
    pub assignment: Blob,
}

/// The members of a group in its present generation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Membership {
    generation: i32,
    protocol_type: Arc<str>,
    protocol: Arc<str>,
    leader: MemberId,
    seats: BTreeMap<MemberId, Arc<Seat>>,
    assigned: bool,
    unsettled: bool,
}

impl Membership {
    /// No members, after this generation.
    pub(crate) fn empty(generation: i32) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Number of the generation; 0 before the first.
    #[must_use]
    pub const fn generation(&self) -> i32 {
        self.generation
    }

    /// The protocol's type, empty if there never was a member.
    #[must_use]
    pub const fn protocol_type(&self) -> &Arc<str> {
        &self.protocol_type
    }

    /// The protocol that was chosen; empty without members.
    #[must_use]
    pub const fn protocol(&self) -> &Arc<str> {
        &self.protocol
    }

    /// The leader; empty without members.
    #[must_use]
    pub const fn leader(&self) -> &MemberId {
        &self.leader
    }

    /// All members by id.
    pub fn seats(&self) -> impl ExactSizeIterator<Item = (&MemberId, &Seat)> {
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
        self.seats.len()
    }

    /// No members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// The leader has given every member its part.
    #[must_use]
    pub const fn is_assigned(&self) -> bool {
        self.assigned
    }

    /// Members are gone since the generation started: their part belongs to nobody until the next one.
    #[must_use]
    pub const fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// The member with this static name.
    #[must_use]
    pub fn by_instance(&self, instance: &str) -> Option<&MemberId> {
        let found = |seat: &Seat| seat.member.instance.as_deref() == Some(instance);
        self.seats.iter().find(|(_, seat)| found(seat)).map(|(id, _)| id)
    }

    /// Longest time that a member asks a rebalance to wait for it.
    #[must_use]
    pub fn rebalance_timeout(&self) -> DurationMs {
        self.seats.values().map(|seat| seat.member.rebalance_timeout).max().unwrap_or_default()
    }

    pub(crate) fn start(&mut self, event: &GroupGenerationStarted) {
        let seat = |member: &GroupMember| {
            let seat = Seat { member: member.clone(), assignment: Blob::default() };
            (Arc::clone(&member.id), Arc::new(seat))
        };
        *self = Self {
            generation: event.generation,
            protocol_type: Arc::clone(&event.protocol_type),
            protocol: Arc::clone(&event.protocol),
            leader: Arc::clone(&event.leader),
            seats: event.members.iter().map(seat).collect(),
            assigned: false,
            unsettled: false,
        };
    }

    pub(crate) fn assign(&mut self, event: &GroupAssigned) {
        self.assigned = true;
        for given in &event.assignments {
            if let Some(seat) = self.seats.get_mut(&given.member) {
                Arc::make_mut(seat).assignment = given.assignment.clone();
            }
        }
    }

    /// A start that forgets.
    pub(crate) fn lose_assignments(&mut self) {
        self.seats.values_mut().for_each(|seat| Arc::make_mut(seat).assignment = Blob::default());
    }

    pub(crate) fn replace(&mut self, event: &GroupMemberReplaced) {
        let Some(old) = self.seats.remove(&event.old) else { return };
        let seat = Seat { member: event.member.clone(), assignment: old.assignment.clone() };
        if self.leader == event.old {
            self.leader = Arc::clone(&event.member.id);
        }
        self.seats.insert(Arc::clone(&event.member.id), Arc::new(seat));
    }

    pub(crate) fn remove(&mut self, event: &GroupMembersRemoved) {
        for id in &event.members {
            self.unsettled |= self.seats.remove(id).is_some();
        }
    }

    /// GRP-05, for [`State::check`](crate::State::check).
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.is_empty() && !self.unsettled && !self.has(&self.leader) {
            return Err(alloc::format!("GRP-05: leader {} is no member", self.leader));
        }
        let mut names: Vec<_> =
            self.seats.values().filter_map(|seat| seat.member.instance.as_deref()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(alloc::format!("GRP-05: static name {} stands for two members", pair[0])),
            None => Ok(()),
        }
    }
}

impl Encode for Membership {
    fn encode(&self, out: &mut Vec<u8>) {
        self.generation.encode(out);
        self.protocol_type.encode(out);
        self.protocol.encode(out);
        self.leader.encode(out);
        (self.seats.len() as u64).encode(out);
        for seat in self.seats.values() {
            seat.member.encode(out);
            seat.assignment.encode(out);
        }
        self.assigned.encode(out);
        self.unsettled.encode(out);
    }
}

impl Decode for Membership {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut read = Self {
            generation: Decode::decode(reader)?,
            protocol_type: Decode::decode(reader)?,
            protocol: Decode::decode(reader)?,
            leader: Decode::decode(reader)?,
            ..Self::default()
        };
        for _ in 0..reader.length()? {
            let seat = Seat { member: Decode::decode(reader)?, assignment: Decode::decode(reader)? };
            read.seats.insert(Arc::clone(&seat.member.id), Arc::new(seat));
        }
        read.assigned = Decode::decode(reader)?;
        read.unsettled = Decode::decode(reader)?;
        Ok(read)
    }
}
