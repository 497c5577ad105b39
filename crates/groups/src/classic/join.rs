//! JoinGroup: new members, static ones that come back, and members that join again.

use alloc::{format, string::String, sync::Arc, vec::Vec};

use semel_events::{GroupMember, GroupMemberReplaced, GroupProtocol};

use super::{Answer, GENERATION_BYTES_MAX, Join, JoinedGeneration, Phase, Told, draft::Draft};
use crate::{MemberId, Membership, Refusal, history::Reason, subscription::differ};
use semel_types::{
    DurationMs,
    mutation::{Mutation, mutated},
};

/// Longest part of a member id that comes from the client, in bytes.
const PREFIX_BYTES_MAX: usize = 128;

impl Draft<'_> {
    pub(super) fn join(&mut self, join: &Join) {
        if let Err(refusal) = self.try_join(join) {
            self.answer(Answer::Join(Err((refusal, Arc::clone(&join.claim.member)))));
        }
    }

    fn try_join(&mut self, join: &Join) -> Result<(), Refusal> {
        self.admissible(join)?;
        if join.claim.member.is_empty() {
            return self.join_new(join);
        }
        if self.live.pending.contains_key(&join.claim.member) && join.claim.instance.is_none() {
            self.add(Arc::clone(&join.claim.member), join);
            return Ok(());
        }
        self.check(&join.claim)?;
        self.join_again(join)
    }

    /// What holds for every join, in Kafka's order.
    fn admissible(&self, join: &Join) -> Result<(), Refusal> {
        let (least, most) = (self.settings.session_timeout_min, self.settings.session_timeout_max);
        if self.id.as_str().is_empty() {
            return Err(Refusal::InvalidGroupId);
        }
        if !(least..=most).contains(&join.session_timeout) {
            return Err(Refusal::InvalidSessionTimeout);
        }
        let is_new = join.claim.member.is_empty();
        let is_unknown = self.phase() == Phase::Empty && !self.live.pending.contains_key(&join.claim.member);
        if is_unknown && !is_new {
            return Err(Refusal::UnknownMember);
        }
        if !self.has_room_for(join) {
            return Err(Refusal::GroupFull);
        }
        if self.agrees(join) { Ok(()) } else { Err(Refusal::InconsistentProtocol) }
    }

    /// `group.max.size`, and the bound of a generation's bytes.
    fn has_room_for(&self, join: &Join) -> bool {
        let bytes: usize = self.protocols().into_iter().flatten().map(protocol_bytes).sum();
        let more: usize = join.protocols.iter().map(protocol_bytes).sum();
        if bytes + more > GENERATION_BYTES_MAX {
            return false;
        }
        match &self.live.rebalance {
            Some(rebalance) => {
                rebalance.joined.contains_key(&join.claim.member)
                    || rebalance.joined.len() < self.settings.size_max
            }
            None => self.has(&join.claim.member) || self.membership.len() < self.settings.size_max,
        }
    }

    /// Is the type that of the group, and can everybody do one of these protocols?
    fn agrees(&self, join: &Join) -> bool {
        if join.protocol_type.is_empty() || join.protocols.is_empty() {
            return false;
        }
        let everybody = self.protocols();
        if everybody.is_empty() {
            return true;
        }
        let known = |name: &str| everybody.iter().all(|one| one.iter().any(|other| *other.name == *name));
        join.protocol_type == *self.protocol_type() && join.protocols.iter().any(|one| known(&one.name))
    }

    fn protocol_type(&self) -> &Arc<str> {
        match &self.live.rebalance {
            Some(rebalance) if self.membership.is_empty() => &rebalance.protocol_type,
            Some(_) | None => self.membership.protocol_type(),
        }
    }

    fn join_new(&mut self, join: &Join) -> Result<(), Refusal> {
        let id = self.new_id(join);
        if let Some(instance) = &join.claim.instance {
            match self.by_instance(instance) {
                Some(old) => self.take_place(&old, id, join),
                None => self.add(id, join),
            }
            return Ok(());
        }
        if !join.id_comes_first {
            self.add(id, join);
            return Ok(());
        }
        self.live.pending.insert(Arc::clone(&id), self.now().plus(join.session_timeout));
        self.answer(Answer::Join(Err((Refusal::MemberIdRequired, id))));
        Ok(())
    }

    /// The static member's name or the client's id, and a random part.
    fn new_id(&self, join: &Join) -> MemberId {
        let name = join.claim.instance.as_deref().unwrap_or(&join.client_id);
        let name = &name[..name.floor_char_boundary(PREFIX_BYTES_MAX)];
        let mut id = String::from(name);
        for (at, byte) in self.context.entropy[..16].iter().enumerate() {
            let dash = if matches!(at, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
            id.push_str(&format!("{dash}{byte:02x}"));
        }
        id.into()
    }

    fn add(&mut self, id: MemberId, join: &Join) {
        self.live.pending.remove(&id);
        let member = member(id, join);
        self.because(Reason::Joined, &member);
        self.enter(member, join);
    }

    /// A member of the group joins again: nothing changes for it, or the group rebalances.
    fn join_again(&mut self, join: &Join) -> Result<(), Refusal> {
        let id = Arc::clone(&join.claim.member);
        let seat = self.membership.seat(&id);
        let same = seat.is_some_and(|seat| seat.member.protocols == join.protocols);
        let leads = self.membership.leader() == &id;
        let stays = match self.phase() {
            Phase::PreparingRebalance => false,
            Phase::CompletingRebalance => same,
            Phase::Stable => same && !leads,
            Phase::Empty | Phase::Dead => return Err(Refusal::UnknownMember),
        };
        if stays {
            self.touch(&id);
            let told = tell(&self.membership, &id, leads);
            self.answer(Answer::Join(Ok(told)));
        } else {
            let member = member(id, join);
            if self.live.rebalance.is_none() {
                self.because(self.reason_of(&member, leads), &member);
            }
            self.enter(member, join);
        }
        Ok(())
    }

    /// Why a member of a settled group joins again.
    fn reason_of(&self, member: &GroupMember, leads: bool) -> Reason {
        let before = self.membership.seat(&member.id).map(|seat| seat.member.protocols.as_slice());
        let same = before
            .unwrap_or_default()
            .iter()
            .map(|one| &one.name)
            .eq(member.protocols.iter().map(|one| &one.name));
        let pairs = before.unwrap_or_default().iter().zip(&member.protocols);
        let consumes = &**self.membership.protocol_type() == "consumer";
        if !same || (consumes && pairs.into_iter().any(|(one, now)| differ(&one.metadata, &now.metadata))) {
            Reason::SubscriptionChanged
        } else if leads {
            Reason::LeaderRejoined
        } else {
            Reason::Rejoined
        }
    }

    /// A static member comes back with a new id: the old one is fenced. No rebalance if the group is stable and its
    /// protocol stays (KIP-345).
    fn take_place(&mut self, old: &MemberId, id: MemberId, join: &Join) {
        let (phase, led) = (self.phase(), self.membership.leader() == old);
        let new = member(Arc::clone(&id), join);
        self.fence(old);
        if self.membership.has(old) {
            let (group, now) = (self.id.clone(), self.now());
            let replaced = GroupMemberReplaced { group, old: Arc::clone(old), member: new.clone(), now };
            self.emit(replaced, Membership::replace);
        }
        let stays = phase == Phase::Stable && self.chosen() == *self.membership.protocol();
        if !stays {
            self.because(Reason::StaticReplaced, &new);
            self.enter(new, join);
            return;
        }
        self.touch(&id);
        let mut told = tell(&self.membership, &id, led && join.may_skip_assignment);
        told.skip_assignment = led && join.may_skip_assignment;
        // Without the means to say "nothing to assign", the old id leads on paper, and the member only follows.
        if led && !join.may_skip_assignment {
            told.leader = Arc::clone(old);
        }
        self.answer(Answer::Join(Ok(told)));
    }

    /// Whatever waits in the name of the old id is told that it is fenced.
    fn fence(&mut self, old: &MemberId) {
        self.live.sessions.remove(old);
        self.live.unsynced.remove(old);
        let joined = self.live.rebalance.as_mut().and_then(|rebalance| rebalance.joined.remove(old));
        if let Some(joined) = joined {
            let refused = (Refusal::FencedInstance, Arc::clone(old));
            self.answer_to(joined.waiter, Answer::Join(Err(refused)));
        }
        if let Some(waiter) = self.live.syncs.remove(old) {
            self.answer_to(waiter, Answer::Sync(Err(Refusal::FencedInstance)));
        }
    }
}

fn protocol_bytes(protocol: &GroupProtocol) -> usize {
    protocol.name.len() + protocol.metadata.len()
}

fn member(id: MemberId, join: &Join) -> GroupMember {
    let for_ever = mutated(Mutation::SessionsNeverExpire);
    GroupMember {
        id,
        instance: join.claim.instance.clone(),
        client_id: Arc::clone(&join.client_id),
        client_host: Arc::clone(&join.client_host),
        session_timeout: if for_ever { DurationMs::from_ms(1 << 40) } else { join.session_timeout },
        rebalance_timeout: join.rebalance_timeout,
        protocols: join.protocols.clone(),
    }
}

/// What a member is told of the present generation.
pub(super) fn tell(membership: &Membership, member: &MemberId, all: bool) -> JoinedGeneration {
    let protocol = membership.protocol();
    let metadata = |protocols: &[GroupProtocol]| {
        let chosen = protocols.iter().find(|one| one.name == *protocol);
        chosen.map(|one| one.metadata.clone()).unwrap_or_default()
    };
    let members = membership.seats().map(|(id, seat)| Told {
        member: Arc::clone(id),
        instance: seat.member.instance.clone(),
        metadata: metadata(&seat.member.protocols),
    });
    JoinedGeneration {
        generation: membership.generation(),
        protocol_type: Arc::clone(membership.protocol_type()),
        protocol: Arc::clone(protocol),
        leader: Arc::clone(if mutated(Mutation::EverybodyLeads) { member } else { membership.leader() }),
        member: Arc::clone(member),
        members: if all { members.collect() } else { Vec::new() },
        skip_assignment: false,
    }
}
