//! What is known of groups and need not survive: who was heard of when, and whose request waits for what.
//!
//! Purpose: deadlines and parked requests of every group that has any. Invariants: GRP-06 nothing in here is read by
//! `apply`; a parked request is answered once; a group is woken no later than its earliest deadline.
//! What it does not do: decide (that is [`classic`](crate::classic)).

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};

use rpds::RedBlackTreeMapSync;
use semel_events::GroupMember;
use semel_types::{ConnectionNumber, DurationMs, GroupId, Now, RequestToken};

use crate::{
    Kind, MemberId, Membership, State, consumer,
    history::{Cause, Causes, History, Reason, Round},
    streams,
};

/// A request that is to be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiter {
    /// The connection it came on.
    pub connection: ConnectionNumber,
    /// Names it there.
    pub token: RequestToken,
}

/// A member that has asked to be in the next generation.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) member: GroupMember,
    pub(crate) waiter: Waiter,
    /// Joins are counted: without the old leader the first one leads.
    pub(crate) number: u64,
}

/// A group waits for its members (PreparingRebalance).
#[derive(Clone, Debug)]
pub(crate) struct Rebalance {
    pub(crate) protocol_type: Arc<str>,
    pub(crate) joined: BTreeMap<MemberId, Joined>,
    /// Next number of a join.
    pub(crate) next: u64,
    /// When those who came are taken.
    pub(crate) complete_at: Now,
    /// The first rebalance of an empty group: when it ends at the latest, and whether anybody came since it was last
    /// put off.
    pub(crate) initial: Option<(Now, bool)>,
}

/// One group's volatile side.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// When each member is taken for dead; members whose join waits have no entry.
    pub(crate) sessions: BTreeMap<MemberId, Now>,
    /// Ids that were given and not used yet (KIP-394), and until when they are good.
    pub(crate) pending: BTreeMap<MemberId, Now>,
    pub(crate) rebalance: Option<Rebalance>,
    /// Members that wait for their assignment.
    pub(crate) syncs: BTreeMap<MemberId, Waiter>,
    /// Members of this generation that have not asked for their assignment, and until when they may.
    pub(crate) unsynced: BTreeSet<MemberId>,
    pub(crate) sync_by: Option<Now>,
    /// Why the rebalance that is under way began.
    pub(crate) causes: Causes,
}

impl Live {
    /// The group waits for its members.
    #[must_use]
    pub const fn is_rebalancing(&self) -> bool {
        self.rebalance.is_some()
    }

    /// Members that have asked to be in the next generation.
    pub fn joining(&self) -> impl Iterator<Item = &GroupMember> {
        self.rebalance.iter().flat_map(|rebalance| rebalance.joined.values().map(|joined| &joined.member))
    }

    /// As after a start: everybody's time starts anew, and a group with members missing asks the others to join.
    pub(crate) fn of(membership: &Membership, now: Now) -> Self {
        let mut live = Self::default();
        for (id, seat) in membership.seats() {
            live.sessions.insert(Arc::clone(id), now.plus(seat.member.session_timeout));
        }
        let until = now.plus(membership.rebalance_timeout());
        if membership.is_unsettled() {
            live.causes.push(Cause::nobodys(Reason::Restarted, now));
            live.rebalance = Some(Rebalance {
                protocol_type: Arc::clone(membership.protocol_type()),
                joined: BTreeMap::new(),
                next: 0,
                complete_at: until,
                initial: None,
            });
        } else if !membership.is_assigned() {
            live.unsynced = membership.seats().map(|(id, _)| Arc::clone(id)).collect();
            live.sync_by = Some(until);
        }
        live
    }

    fn due(&self) -> Option<Now> {
        let sync_by = self.sync_by.filter(|_| !self.unsynced.is_empty());
        let rebalance = self.rebalance.as_ref().map(|rebalance| rebalance.complete_at);
        let sessions = self.sessions.iter().filter(|(id, _)| !self.syncs.contains_key(*id));
        let all = sessions.map(|(_, until)| *until).chain(self.pending.values().copied());
        all.chain(sync_by).chain(rebalance).min()
    }

    fn is_idle(&self) -> bool {
        let nobody = self.sessions.is_empty() && self.pending.is_empty() && self.syncs.is_empty();
        nobody && self.rebalance.is_none()
    }

    fn connections(&self) -> impl Iterator<Item = ConnectionNumber> {
        let joins = self.rebalance.iter().flat_map(|rebalance| rebalance.joined.values());
        joins
            .map(|joined| joined.waiter.connection)
            .chain(self.syncs.values().map(|waiter| waiter.connection))
    }
}

/// A group's volatile side, by the protocol that it speaks.
#[derive(Clone, Debug)]
pub enum Pulse {
    /// Of a classic group, or one that is about to exist.
    Classic(Arc<Live>),
    /// Of a consumer group (KIP-848).
    Consumer(Arc<consumer::Live>),
    /// Of a streams group (KIP-1071).
    Streams(Arc<streams::Live>),
}

impl Pulse {
    /// As after a start at `now`; none for a group without members.
    fn of(kind: &Kind, sessions: Sessions, now: Now) -> Option<Self> {
        match kind {
            Kind::Classic(membership) if membership.is_empty() => None,
            Kind::Classic(membership) => Some(Self::Classic(Arc::new(Live::of(membership, now)))),
            Kind::Consumer(roster) if roster.is_empty() => None,
            Kind::Consumer(roster) => {
                Some(Self::Consumer(Arc::new(consumer::Live::of(roster, sessions.consumer, now))))
            }
            Kind::Streams(roster) if roster.is_empty() => None,
            Kind::Streams(roster) => {
                Some(Self::Streams(Arc::new(streams::Live::of(roster, sessions.streams, now))))
            }
        }
    }

    /// A member was heard of. A later deadline leaves the group's time as it is: it is looked at early, once.
    fn alive(&mut self, member: MemberId, until: Now) {
        match self {
            Self::Classic(live) => Arc::make_mut(live).sessions.insert(member, until),
            Self::Consumer(live) => Arc::make_mut(live).sessions.insert(member, until),
            Self::Streams(live) => Arc::make_mut(live).sessions.insert(member, until),
        };
    }

    fn due(&self) -> Option<Now> {
        match self {
            Self::Classic(live) => live.due(),
            Self::Consumer(live) => live.due(),
            Self::Streams(live) => live.due(),
        }
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Classic(live) => live.is_idle(),
            Self::Consumer(live) => live.is_idle(),
            Self::Streams(live) => live.is_idle(),
        }
    }

    /// Connections with a request that waits here.
    fn connections(&self) -> Vec<ConnectionNumber> {
        match self {
            Self::Classic(live) => live.connections().collect(),
            Self::Consumer(_) | Self::Streams(_) => Vec::new(),
        }
    }
}

/// A change of the volatile side that a decision asks for.
#[derive(Clone, Debug)]
pub enum Change {
    /// A member was heard of.
    Alive {
        /// Its group.
        group: GroupId,
        /// The member.
        member: MemberId,
        /// When it is taken for dead now.
        until: Now,
    },
    /// The group's volatile side is this from here on.
    Set {
        /// The group.
        group: GroupId,
        /// Its volatile side.
        live: Pulse,
    },
    /// A rebalance has ended: for people.
    Rebalanced {
        /// The group.
        group: GroupId,
        /// From its causes to its end.
        round: Round,
    },
}

/// How long the members of a group may be silent, by the kind that the group is of. Members of the classic protocol say so
/// themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sessions {
    /// In a consumer group.
    pub consumer: DurationMs,
    /// In a streams group.
    pub streams: DurationMs,
}

/// The volatile side of every group. A clone shares everything.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    groups: RedBlackTreeMapSync<GroupId, Pulse>,
    /// When each group is to be looked at, and the same by time. May be early, never late.
    due: BTreeMap<GroupId, Now>,
    by_time: BTreeSet<(Now, GroupId)>,
    /// Groups in which a connection has had a request waiting.
    by_connection: BTreeMap<ConnectionNumber, BTreeSet<GroupId>>,
    history: History,
}

impl Volatile {
    /// As after a start at `now`: every member has the whole of its session before it. `sessions` tells those of a group.
    #[must_use]
    pub fn start(state: &State, sessions: impl Fn(&GroupId) -> Sessions, now: Now) -> Self {
        let mut volatile = Self::default();
        for (id, group) in state.groups() {
            if let Some(pulse) = Pulse::of(group.kind(), sessions(id), now) {
                volatile.set(id.clone(), pulse);
            }
        }
        volatile
    }

    /// One classic group's side, if it has any.
    #[must_use]
    pub fn group(&self, id: &GroupId) -> Option<&Arc<Live>> {
        match self.groups.get(id)? {
            Pulse::Classic(live) => Some(live),
            Pulse::Consumer(_) | Pulse::Streams(_) => None,
        }
    }

    /// One consumer group's side, if it has any.
    #[must_use]
    pub fn consumer(&self, id: &GroupId) -> Option<&Arc<consumer::Live>> {
        match self.groups.get(id)? {
            Pulse::Consumer(live) => Some(live),
            Pulse::Classic(_) | Pulse::Streams(_) => None,
        }
    }

    /// One streams group's side, if it has any.
    #[must_use]
    pub fn streams(&self, id: &GroupId) -> Option<&Arc<streams::Live>> {
        match self.groups.get(id)? {
            Pulse::Streams(live) => Some(live),
            Pulse::Classic(_) | Pulse::Consumer(_) => None,
        }
    }

    /// One group's side, of whatever kind.
    pub(crate) fn pulse(&self, id: &GroupId) -> Option<&Pulse> {
        self.groups.get(id)
    }

    /// All groups that have any.
    pub fn groups(&self) -> impl Iterator<Item = (&GroupId, &Pulse)> {
        self.groups.iter()
    }

    /// A copy to look groups up in later; it knows no times.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self { groups: self.groups.clone(), history: self.history.snapshot(), ..Self::default() }
    }

    /// Why groups rebalanced.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// A group is deleted, by whom or what ever: nothing is told of it any more.
    pub fn deleted(&mut self, group: &GroupId) {
        self.history.forget(group);
    }

    /// When time has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Option<Now> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The group that has been due for longest.
    #[must_use]
    pub fn due(&self, now: Now) -> Option<&GroupId> {
        self.by_time.first().filter(|(at, _)| *at <= now).map(|(_, group)| group)
    }

    /// Groups that may have a request of this connection waiting; they are forgotten as such.
    pub fn take_connection(&mut self, connection: ConnectionNumber) -> Vec<GroupId> {
        self.by_connection.remove(&connection).unwrap_or_default().into_iter().collect()
    }

    /// Makes what a decision asked for true.
    pub fn apply_changes(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Alive { group, member, until } => self.alive(&group, member, until),
                Change::Set { group, live } => self.set(group, live),
                Change::Rebalanced { group, round } => self.history.push(group, round),
            }
        }
    }

    fn alive(&mut self, group: &GroupId, member: MemberId, until: Now) {
        if let Some(pulse) = self.groups.get_mut(group) {
            pulse.alive(member, until);
        }
    }

    fn set(&mut self, group: GroupId, live: Pulse) {
        if let Some(before) = self.due.remove(&group) {
            self.by_time.remove(&(before, group.clone()));
        }
        if live.is_idle() {
            self.groups.remove_mut(&group);
            return;
        }
        if let Some(at) = live.due() {
            self.due.insert(group.clone(), at);
            self.by_time.insert((at, group.clone()));
        }
        for connection in live.connections() {
            let groups = self.by_connection.entry(connection).or_default();
            if !groups.contains(&group) {
                groups.insert(group.clone());
            }
        }
        self.groups.insert_mut(group, live);
    }
}
