//! From the classic protocol to the consumer one and back, while a group has members.
//!
//! Invariant: nobody loses what it has by it: members carry on in their generation, which is their epoch from then on,
//! and the other way round.

use alloc::{collections::BTreeSet, sync::Arc, vec::Vec};

use semel_events::{
    ClassicTraits, ConsumerEpochStarted, ConsumerMember, ConsumerMemberChanged, ConsumerMemberReconciled,
    ConsumerProgress, ConsumerTarget, GroupAssigned, GroupAssignment, GroupGenerationStarted, GroupKind,
    GroupKindChanged, GroupMember, GroupMembersRemoved, OwnedPartition,
};
use semel_types::PartitionHandle;

use super::{Roster, Seat, Topics, draft::Draft};
use crate::{
    Kind, MemberId, Membership, Refusal, Seat as ClassicSeat,
    classic::Answer,
    history::{Cause, Reason},
    subscription::{self, Named},
};

/// The type of the protocol that consumers speak in classic groups.
pub(super) const CONSUMERS: &str = "consumer";

impl Draft<'_> {
    /// A group that is none, or a classic one, becomes a consumer group.
    pub(super) fn upgrade(
        &mut self,
        kind: Option<&Kind>,
        live: Option<&Arc<crate::Live>>,
    ) -> Result<(), Refusal> {
        let nobody = Membership::default();
        let membership = match kind {
            Some(Kind::Classic(membership)) => membership,
            Some(Kind::Streams(_)) => return Err(Refusal::UnknownGroup),
            None | Some(Kind::Consumer(_)) => &nobody,
        };
        let is_used = !membership.is_empty() || live.is_some_and(|live| live.is_rebalancing());
        if is_used {
            self.check_upgrade(membership, live)?;
        }
        let (group, epoch, now) = (self.id.clone(), membership.generation(), self.now());
        let kind = GroupKind::Consumer;
        self.emit(GroupKindChanged { group, kind, epoch, now }, |roster, event| {
            *roster = Roster::empty(event.epoch);
        });
        self.take_members(membership);
        if let Some(live) = live {
            self.send_away(live);
        }
        // So that a group that had nobody is kept, too.
        self.live_mut();
        Ok(())
    }

    fn check_upgrade(&self, membership: &Membership, live: Option<&Arc<crate::Live>>) -> Result<(), Refusal> {
        let joining = live.and_then(|live| live.rebalance.as_ref());
        let consumers = **membership.protocol_type() == *CONSUMERS
            || (membership.is_empty() && joining.is_some_and(|joining| *joining.protocol_type == *CONSUMERS));
        let allowed = self.settings.migration.upgrades()
            && consumers
            && membership.len() <= self.settings.size_max
            && membership.seats().all(|(_, seat)| is_readable(membership, seat));
        if allowed { Ok(()) } else { Err(Refusal::UnknownGroup) }
    }

    /// Requests that wait are answered: their members join again, and find a consumer group.
    fn send_away(&mut self, live: &crate::Live) {
        for (id, joined) in live.rebalance.iter().flat_map(|rebalance| &rebalance.joined) {
            let refused = (Refusal::RebalanceInProgress, Arc::clone(id));
            self.answer_to(joined.waiter, Answer::Join(Err(refused)));
        }
        for waiter in live.syncs.values() {
            self.answer_to(*waiter, Answer::Sync(Err(Refusal::RebalanceInProgress)));
        }
    }

    /// The members with what they have; of two that got one partition the first keeps it.
    fn take_members(&mut self, membership: &Membership) {
        let (generation, now) = (membership.generation(), self.now());
        let mut taken = BTreeSet::new();
        let mut targets = Vec::new();
        for (id, seat) in membership.seats() {
            let mut partitions = got(self.topics, seat);
            partitions.retain(|partition| taken.insert(*partition));
            let group = self.id.clone();
            let changed = ConsumerMemberChanged { group, member: consumer_of(membership, seat), now };
            self.emit(changed, Roster::change);
            targets.push(ConsumerTarget {
                member: Arc::clone(id),
                partitions: partitions.iter().copied().collect(),
            });
        }
        if targets.is_empty() {
            return;
        }
        let (group, assignor) = (self.id.clone(), Arc::default());
        let started = ConsumerEpochStarted {
            group,
            epoch: generation,
            topics_hash: 0,
            assignor,
            targets: targets.clone(),
            now,
        };
        self.emit(started, Roster::start);
        for ConsumerTarget { member, partitions } in targets {
            let since = generation;
            let owned = partitions.into_iter().map(|partition| OwnedPartition { partition, since });
            let reconciled = ConsumerMemberReconciled {
                group: self.id.clone(),
                member: Arc::clone(&member),
                epoch: generation,
                previous_epoch: generation,
                progress: ConsumerProgress::Stable,
                assigned: owned.collect(),
                revoking: Vec::new(),
                now,
            };
            self.emit(reconciled, Roster::reconcile);
            if let Some(traits) = self.roster.seat(&member).and_then(|seat| seat.member.classic.clone()) {
                self.touch_now(&member, traits.session_timeout);
            }
        }
    }

    /// Would the group be left with members of the classic protocol alone, and may it then go back?
    pub(super) fn goes_classic_without(&self, gone: &[MemberId]) -> bool {
        let mut left = self.roster.seats().filter(|(id, _)| !gone.contains(id)).peekable();
        let count = self.roster.len().saturating_sub(gone.len());
        self.settings.migration.downgrades()
            && left.peek().is_some()
            && count <= self.settings.classic.size_max
            && left.all(|(_, seat)| seat.member.classic.is_some())
    }

    /// The group is a classic one from here on. Its generation still counts those who go, so that it knows, also after
    /// a restart, that it has to rebalance.
    pub(super) fn become_classic(&mut self, gone: &[MemberId]) {
        let (now, epoch) = (self.now(), self.roster.epoch());
        let roster = self.roster.clone();
        let members: Vec<_> = roster.seats().map(|(_, seat)| classic_of(seat)).collect();
        let stays = |member: &&GroupMember| !gone.contains(&member.id);
        let leader = members.iter().find(stays).map(|member| Arc::clone(&member.id)).unwrap_or_default();
        let first = members.iter().find(stays).and_then(|member| member.protocols.first());
        let mut membership = Membership::empty(epoch);
        let kind = GroupKind::Classic;
        self.emit_other(GroupKindChanged { group: self.id.clone(), kind, epoch, now }.into());
        let started = GroupGenerationStarted {
            group: self.id.clone(),
            generation: epoch,
            protocol_type: Arc::from(CONSUMERS),
            protocol: first.map(|protocol| Arc::clone(&protocol.name)).unwrap_or_default(),
            leader,
            members,
            now,
        };
        membership.start(&started);
        self.emit_other(started.into());
        let parts = roster.seats().filter(|(id, _)| !gone.contains(id));
        let assignments = parts.map(|(id, seat)| GroupAssignment {
            member: Arc::clone(id),
            assignment: part_of(self.topics, seat),
        });
        let assignments = assignments.collect();
        let assigned = GroupAssigned { group: self.id.clone(), generation: epoch, assignments, now };
        membership.assign(&assigned);
        self.emit_other(assigned.into());
        let removed = GroupMembersRemoved { group: self.id.clone(), members: gone.to_vec(), now };
        membership.remove(&removed);
        self.emit_other(removed.into());
        // The epoch is the one before: what happened is the cause of the generation that comes next.
        let mut causes = self.take_causes();
        causes.push(Cause::nobodys(Reason::ProtocolChanged, now));
        let live = crate::Live { causes, ..crate::Live::of(&membership, now) };
        self.classic = Some(Arc::new(live));
    }
}

fn metadata<'a>(membership: &Membership, seat: &'a ClassicSeat) -> &'a [u8] {
    let protocols = &seat.member.protocols;
    let chosen = protocols.iter().find(|one| one.name == *membership.protocol());
    chosen.or_else(|| protocols.first()).map(|one| &one.metadata[..]).unwrap_or_default()
}

/// Can the server's assignors take over? Not from one of the members' own that keeps data in the subscriptions.
fn is_readable(membership: &Membership, seat: &ClassicSeat) -> bool {
    let metadata = metadata(membership, seat);
    subscription::read(metadata).is_some()
        && !subscription::has_user_data(metadata)
        && subscription::read_assignment(&seat.assignment).is_some()
}

fn got(topics: &dyn Topics, seat: &ClassicSeat) -> BTreeSet<PartitionHandle> {
    handles(topics, &subscription::read_assignment(&seat.assignment).unwrap_or_default())
}

/// Partitions by name and index, as far as they exist.
pub(super) fn handles(topics: &dyn Topics, named: &Named) -> BTreeSet<PartitionHandle> {
    let of = |(name, indexes): &(Arc<str>, Vec<_>)| {
        let topic = topics.topic(name)?;
        let at = |index: &semel_types::PartitionIndex| {
            topic.partitions.get(usize::try_from(index.get()).ok()?).copied()
        };
        Some(indexes.iter().filter_map(at).collect::<Vec<_>>())
    };
    named.iter().filter_map(of).flatten().collect()
}

/// What a member of the classic protocol gets, as it reads it.
pub(super) fn part_of(topics: &dyn Topics, seat: &Seat) -> semel_events::Blob {
    let mut named = Named::new();
    for partition in seat.assigned.keys() {
        let Some((name, index)) = topics.locate(*partition) else { continue };
        match named.last_mut().filter(|(last, _)| **last == *name) {
            Some((_, indexes)) => indexes.push(index),
            None => named.push((Arc::from(name), alloc::vec![index])),
        }
    }
    let first = seat.member.classic.as_ref().and_then(|traits| traits.protocols.first());
    subscription::write_assignment(first.map(|one| &one.metadata[..]).unwrap_or_default(), &named)
}

fn consumer_of(membership: &Membership, seat: &ClassicSeat) -> ConsumerMember {
    let member = &seat.member;
    let read = subscription::read(metadata(membership, seat)).unwrap_or_default();
    let mut topics = read.topics;
    topics.sort_unstable();
    topics.dedup();
    ConsumerMember {
        id: Arc::clone(&member.id),
        instance: member.instance.clone(),
        rack: read.rack,
        client_id: Arc::clone(&member.client_id),
        client_host: Arc::clone(&member.client_host),
        rebalance_timeout: member.rebalance_timeout,
        topics,
        pattern: Arc::default(),
        assignor: None,
        classic: Some(ClassicTraits {
            session_timeout: member.session_timeout,
            protocols: member.protocols.clone(),
        }),
    }
}

fn classic_of(seat: &Seat) -> GroupMember {
    let member = &seat.member;
    GroupMember {
        id: Arc::clone(&member.id),
        instance: member.instance.clone(),
        client_id: Arc::clone(&member.client_id),
        client_host: Arc::clone(&member.client_host),
        session_timeout: member.classic.as_ref().map(|traits| traits.session_timeout).unwrap_or_default(),
        rebalance_timeout: member.rebalance_timeout,
        protocols: member.classic.as_ref().map(|traits| traits.protocols.clone()).unwrap_or_default(),
    }
}
