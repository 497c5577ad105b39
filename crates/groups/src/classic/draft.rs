//! One decision in progress, on copies of both sides of a group.

use alloc::{sync::Arc, vec::Vec};

use semel_events::{Event, GroupKind, GroupKindChanged, GroupMember, GroupProtocol};
use semel_types::{Context, GroupId, Now};

use super::{Answer, Claim, Decision, Phase, Request, Settings};
use crate::{
    Change, Group, Live, MemberId, Membership, Pulse, Refusal, State, Volatile, Waiter,
    history::{Cause, Reason, Round},
};

pub(super) struct Draft<'a> {
    pub(super) id: &'a GroupId,
    pub(super) settings: &'a Settings,
    pub(super) context: &'a Context,
    pub(super) waiter: Waiter,
    /// The group exists in the log.
    pub(super) exists: bool,
    /// An undecided transaction carries offsets of the group.
    pub(super) holds_pending: bool,
    pub(super) membership: Membership,
    pub(super) live: Live,
    events: Vec<Event>,
    rounds: Vec<Round>,
    answers: Vec<(Waiter, Answer)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        state: &State,
        volatile: &Volatile,
        settings: &'a Settings,
        request: &'a Request,
        context: &'a Context,
    ) -> Self {
        let group = state.group(&request.group);
        Self {
            id: &request.group,
            settings,
            context,
            waiter: request.waiter,
            exists: group.is_some(),
            holds_pending: group.is_some_and(|group| group.pending().next().is_some()),
            membership: group.and_then(Group::classic).cloned().unwrap_or_default(),
            live: volatile.group(&request.group).map(|live| Live::clone(live)).unwrap_or_default(),
            events: Vec::new(),
            rounds: Vec::new(),
            answers: Vec::new(),
        }
    }

    pub(super) const fn now(&self) -> Now {
        self.context.now
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(&self.membership, Some(&self.live))
    }

    /// Answers the request that is decided on.
    pub(super) fn answer(&mut self, answer: Answer) {
        self.answer_to(self.waiter, answer);
    }

    pub(super) fn answer_to(&mut self, waiter: Waiter, answer: Answer) {
        self.answers.push((waiter, answer));
    }

    /// Takes an event, and its effect on the members: the one that [`State::apply`] gives it.
    pub(super) fn emit<E: Into<Event>>(&mut self, event: E, effect: impl FnOnce(&mut Membership, &E)) {
        effect(&mut self.membership, &event);
        self.events.push(event.into());
    }

    /// An empty group of another kind goes on as a classic one, from this epoch.
    pub(super) fn make_classic(&mut self, epoch: i32) {
        let (group, now) = (self.id.clone(), self.now());
        let changed = GroupKindChanged { group, kind: GroupKind::Classic, epoch, now };
        self.emit(changed, |membership, event| *membership = Membership::empty(event.epoch));
    }

    /// This is why the group rebalances.
    pub(super) fn because(&mut self, reason: Reason, member: &GroupMember) {
        let cause = Cause::of(reason, member, self.now());
        self.live.causes.push(cause);
    }

    /// The same of members by their ids; those that nobody knows are no cause.
    pub(super) fn because_of(&mut self, reason: Reason, ids: &[MemberId]) {
        for id in ids {
            let joining = self.live.joining().find(|member| member.id == *id).cloned();
            let seated = || self.membership.seat(id).map(|seat| seat.member.clone());
            if let Some(member) = joining.or_else(seated) {
                self.because(reason, &member);
            }
        }
    }

    /// The rebalance is over, with the generation as it is now.
    pub(super) fn end_round(&mut self) {
        let causes = core::mem::take(&mut self.live.causes);
        let (generation, members) = (self.membership.generation(), self.membership.len());
        self.rounds.push(causes.end(generation, members, self.now()));
    }

    /// A member's session starts anew.
    pub(super) fn touch(&mut self, member: &MemberId) {
        if let Some(seat) = self.membership.seat(member) {
            let until = self.now().plus(seat.member.session_timeout);
            self.live.sessions.insert(Arc::clone(member), until);
        }
    }

    /// Is it a member of this generation, or will it be one of the next?
    pub(super) fn has(&self, member: &str) -> bool {
        self.membership.has(member) || self.has_joined(member)
    }

    pub(super) fn has_joined(&self, member: &str) -> bool {
        self.live.rebalance.as_ref().is_some_and(|rebalance| rebalance.joined.contains_key(member))
    }

    /// The member with this static name, in this generation or the next.
    pub(super) fn by_instance(&self, instance: &str) -> Option<MemberId> {
        let joined = self.live.joining().find(|member| member.instance.as_deref() == Some(instance));
        let joined = joined.map(|member| &member.id);
        joined.or_else(|| self.membership.by_instance(instance)).cloned()
    }

    /// Does this claim name a member?
    pub(super) fn check(&self, claim: &Claim) -> Result<(), Refusal> {
        if let Some(instance) = &claim.instance {
            match self.by_instance(instance) {
                None => return Err(Refusal::UnknownMember),
                Some(member) if member != claim.member => return Err(Refusal::FencedInstance),
                Some(_) => {}
            }
        }
        if self.has(&claim.member) { Ok(()) } else { Err(Refusal::UnknownMember) }
    }

    /// What every member of this generation and the next can do.
    pub(super) fn protocols(&self) -> Vec<&[GroupProtocol]> {
        let joined = self.live.joining();
        let seated = self.membership.seats().filter(|(id, _)| !self.has_joined(id));
        let seated = seated.map(|(_, seat)| seat.member.protocols.as_slice());
        joined.map(|member| member.protocols.as_slice()).chain(seated).collect()
    }

    pub(super) fn finish(self) -> Decision {
        let live = Pulse::Classic(Arc::new(self.live));
        let mut changes = alloc::vec![Change::Set { group: self.id.clone(), live }];
        let rounds = self.rounds.into_iter();
        changes.extend(rounds.map(|round| Change::Rebalanced { group: self.id.clone(), round }));
        Decision { events: self.events, changes, answers: self.answers }
    }
}
