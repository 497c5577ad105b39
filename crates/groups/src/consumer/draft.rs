//! One decision in progress, on copies of both sides of a consumer group.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use semel_events::{ConsumerEpochStarted, ConsumerMember, ConsumerMembersRemoved, ConsumerTarget, Event};
use semel_types::{
    Context, DurationMs, GroupId, Now,
    mutation::{Mutation, mutated},
};

use super::{
    Assignor, Decision, Live, Request, Roster, Settings, Topics, assign::assign, reconcile,
    topics::Subscribed,
};
use crate::{
    Change, MemberId, Pulse, Waiter,
    classic::Answer,
    history::{Cause, Causes, Reason, Round},
};

pub(super) struct Draft<'a> {
    pub(super) id: &'a GroupId,
    pub(super) settings: &'a Settings,
    pub(super) topics: &'a dyn Topics,
    pub(super) context: &'a Context,
    pub(super) waiter: Waiter,
    pub(super) roster: Roster,
    live: Arc<Live>,
    /// The volatile side is another one than before, not only younger.
    live_changed: bool,
    /// A session that starts anew, if that is all that happens to the volatile side.
    alive: Option<(MemberId, Now)>,
    /// The group is a classic one at the end, with this volatile side.
    pub(super) classic: Option<Arc<crate::Live>>,
    events: Vec<Event>,
    answers: Vec<(Waiter, Answer)>,
    /// Why the next epoch starts.
    causes: Causes,
    rounds: Vec<Round>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        topics: &'a dyn Topics,
        request: &'a Request,
        context: &'a Context,
        (roster, live): (Roster, Arc<Live>),
    ) -> Self {
        Self {
            id: &request.group,
            settings,
            topics,
            context,
            waiter: request.waiter,
            roster,
            live,
            live_changed: false,
            alive: None,
            classic: None,
            events: Vec::new(),
            answers: Vec::new(),
            causes: Causes::default(),
            rounds: Vec::new(),
        }
    }

    pub(super) const fn now(&self) -> Now {
        self.context.now
    }

    pub(super) fn live(&self) -> &Live {
        &self.live
    }

    pub(super) fn live_mut(&mut self) -> &mut Live {
        self.live_changed = true;
        Arc::make_mut(&mut self.live)
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        self.answers.push((self.waiter, answer));
    }

    pub(super) fn answer_to(&mut self, waiter: Waiter, answer: Answer) {
        self.answers.push((waiter, answer));
    }

    /// Takes an event, and its effect on the members: the one that [`State::apply`](crate::State::apply) gives it.
    pub(super) fn emit<E: Into<Event>>(&mut self, event: E, effect: impl FnOnce(&mut Roster, &E)) {
        effect(&mut self.roster, &event);
        self.events.push(event.into());
    }

    /// An event of another kind of group.
    pub(super) fn emit_other(&mut self, event: Event) {
        self.events.push(event);
    }

    /// This is why the next epoch starts.
    pub(super) fn because(&mut self, reason: Reason, member: &ConsumerMember) {
        self.causes.push(Cause::of(reason, member, self.context.now));
    }

    /// The causes so far, which led to no epoch yet.
    pub(super) fn take_causes(&mut self) -> Causes {
        core::mem::take(&mut self.causes)
    }

    /// The causes so far led to the epoch as it is now.
    pub(super) fn end_round(&mut self) {
        let causes = self.take_causes();
        self.rounds.push(causes.end(self.roster.epoch(), self.roster.len(), self.now()));
    }

    /// A member's session starts anew.
    pub(super) fn touch(&mut self, member: &MemberId, session: DurationMs) {
        let for_ever = mutated(Mutation::ConsumerSessionsNeverExpire);
        let until = self.now().plus(if for_ever { DurationMs::from_ms(1 << 40) } else { session });
        if self.live.sessions.contains_key(member) {
            self.alive = Some((Arc::clone(member), until));
        } else {
            self.live_mut().sessions.insert(Arc::clone(member), until);
        }
    }

    /// The same, where the volatile side is another one anyway.
    pub(super) fn touch_now(&mut self, member: &MemberId, session: DurationMs) {
        let until = self.now().plus(session);
        self.live_mut().sessions.insert(Arc::clone(member), until);
    }

    /// Did topics change, so that the members read others than when the epoch started? Looked at once for each change.
    pub(super) fn topics_changed(&mut self) -> bool {
        let version = self.topics.version();
        if self.live.topics_seen == Some(version) {
            return false;
        }
        self.live_mut().topics_seen = Some(version);
        let changed = Subscribed::of(&self.roster, self.topics).hash != self.roster.topics_hash();
        if changed {
            self.causes.push(Cause::nobodys(Reason::TopicsChanged, self.now()));
        }
        changed
    }

    /// The next epoch, with everybody's target.
    pub(super) fn start_epoch(&mut self) {
        let epoch = self.roster.epoch().saturating_add(1);
        let subscribed = Subscribed::of(&self.roster, self.topics);
        let assignor = self.assignor();
        let before: Vec<_> = self.roster.seats().map(|(_, seat)| &seat.target).collect();
        let after = assign(assignor, &subscribed, &before);
        let changed = subscribed.readers.iter().zip(before).zip(after);
        let changed = changed.filter(|((_, before), after)| *before != after);
        let targets = changed.map(|((reader, _), after)| ConsumerTarget {
            member: Arc::clone(&reader.id),
            partitions: after.into_iter().collect(),
        });
        let started = ConsumerEpochStarted {
            group: self.id.clone(),
            epoch,
            topics_hash: subscribed.hash,
            assignor: if self.roster.is_empty() { Arc::default() } else { Arc::from(assignor.name()) },
            targets: targets.collect(),
            now: self.now(),
        };
        self.emit(started, Roster::start);
        self.end_round();
        let version = self.topics.version();
        if self.live.topics_seen != Some(version) {
            self.live_mut().topics_seen = Some(version);
        }
    }

    /// The assignor that most members ask for; of equals, and without any, the first that the operator names.
    fn assignor(&self) -> Assignor {
        let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, seat) in self.roster.seats() {
            let Some(name) = seat.member.assignor.as_deref() else { continue };
            let place = self.settings.assignors.iter().position(|one| one.name() == name);
            place.into_iter().for_each(|place| *votes.entry(place).or_default() += 1);
        }
        let best = votes.into_iter().max_by_key(|(place, count)| (*count, usize::MAX - place));
        let place = best.map_or(0, |(place, _)| place);
        self.settings.assignors.get(place).copied().unwrap_or(Assignor::Uniform)
    }

    /// Brings a member nearer to its target, if it may; `owned` is what it says it has.
    pub(super) fn reconcile(&mut self, member: &MemberId, owned: Option<&reconcile::OwnedSet>) {
        let next = reconcile::next(&self.roster, member, owned);
        if let Some(next) = next {
            let event = next.event(self.id.clone(), Arc::clone(member), self.now());
            self.emit(event, Roster::reconcile);
        }
        let now = self.now();
        let Some(seat) = self.roster.seat(member).cloned() else { return };
        let watched = self.live.revocations.get(member).map(|(_, member_epoch)| *member_epoch);
        let wanted =
            (!seat.revoking.is_empty() && seat.member.classic.is_none()).then_some(seat.member_epoch);
        if watched != wanted {
            self.live_mut().watch_revocation(member, &seat, now);
        }
    }

    /// Members are gone: the others get what they had, or the group becomes a classic one.
    pub(super) fn remove(&mut self, gone: &[(MemberId, Reason)]) {
        if gone.is_empty() {
            return;
        }
        for (id, reason) in gone {
            self.live_mut().forget(id);
            if let Some(seat) = self.roster.seat(id).cloned() {
                self.because(*reason, &seat.member);
            }
        }
        let gone: &[MemberId] = &gone.iter().map(|(id, _)| Arc::clone(id)).collect::<Vec<_>>();
        if self.goes_classic_without(gone) {
            self.become_classic(gone);
            return;
        }
        let (group, now) = (self.id.clone(), self.now());
        self.emit(ConsumerMembersRemoved { group, members: gone.to_vec(), now }, Roster::remove);
        self.start_epoch();
    }

    pub(super) fn finish(self) -> Decision {
        let group = self.id.clone();
        let change = if let Some(live) = self.classic {
            Some(Change::Set { group, live: Pulse::Classic(live) })
        } else if self.live_changed {
            let mut live = self.live;
            if let Some((member, until)) = self.alive {
                Arc::make_mut(&mut live).sessions.insert(member, until);
            }
            Some(Change::Set { group, live: Pulse::Consumer(live) })
        } else {
            self.alive.map(|(member, until)| Change::Alive { group, member, until })
        };
        let id = self.id;
        let rounds = self.rounds.into_iter().map(|round| Change::Rebalanced { group: id.clone(), round });
        let changes = change.into_iter().chain(rounds).collect();
        Decision { events: self.events, changes, answers: self.answers, told: None }
    }
}
