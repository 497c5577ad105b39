//! One decision in progress, on copies of both sides of a group.

use alloc::{collections::BTreeMap, sync::Arc, vec, vec::Vec};

use semel_events::{Event, StreamsMember, StreamsMemberReconciled, StreamsTarget, StreamsTargetSet};
use semel_types::{
    DurationMs, GroupId, Now,
    mutation::{Mutation, mutated},
};

use super::{
    Candidate, Decision, Denied, Goal, Live, Roster, Settings, Sides, TaskId, Tasks, Told, Topics, assign,
    step,
};
use crate::{
    Change, Kind, MemberId, Pulse,
    history::{Cause, Reason, Round},
};

pub(super) struct Draft<'a> {
    pub(super) id: &'a GroupId,
    pub(super) settings: &'a Settings,
    pub(super) topics: &'a dyn Topics,
    pub(super) now: Now,
    /// What the group is now, if there is one.
    pub(super) kind: Option<&'a Kind>,
    /// A classic group's members are on their way.
    pub(super) is_rebalancing: bool,
    pub(super) roster: Roster,
    /// Copied only when it is changed: most heartbeats change a session alone.
    pub(super) live: Arc<Live>,
    /// Members that were heard of, as far as nothing else changed on the volatile side.
    alive: Option<(MemberId, Now)>,
    /// The rebalance that ended, for people.
    round: Option<Round>,
    live_changed: bool,
    events: Vec<Event>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(sides: Sides<'a>, settings: &'a Settings, id: &'a GroupId, now: Now) -> Self {
        let kind = sides.state.group(id).map(crate::Group::kind);
        let roster = match kind {
            Some(Kind::Streams(roster)) => Roster::clone(roster),
            None | Some(Kind::Classic(_) | Kind::Consumer(_)) => Roster::default(),
        };
        Self {
            id,
            settings,
            topics: sides.topics,
            now,
            kind,
            is_rebalancing: sides.volatile.group(id).is_some_and(|live| live.is_rebalancing()),
            roster,
            live: sides.volatile.streams(id).cloned().unwrap_or_default(),
            alive: None,
            round: None,
            live_changed: false,
            events: Vec::new(),
        }
    }

    /// Takes an event, and its effect on the group: the one that [`State::apply`](crate::State::apply) gives it.
    pub(super) fn emit<E: Into<Event>>(&mut self, event: E, effect: impl FnOnce(&mut Roster, &E)) {
        effect(&mut self.roster, &event);
        self.events.push(event.into());
    }

    /// The volatile side, to be changed.
    pub(super) fn live_mut(&mut self) -> &mut Live {
        self.live_changed = true;
        Arc::make_mut(&mut self.live)
    }

    /// A member was heard of.
    pub(super) fn touch(&mut self, member: &MemberId) {
        let for_ever = mutated(Mutation::StreamsSessionsNeverExpire);
        let session = if for_ever { DurationMs::from_ms(1 << 40) } else { self.settings.session_timeout };
        let until = self.now.plus(session);
        self.live_changed |= !self.live.sessions.contains_key(member);
        self.alive = Some((Arc::clone(member), until));
    }

    /// Computes who shall get what and takes it for the group's epoch.
    pub(super) fn set_target(&mut self) {
        let none = BTreeMap::new();
        let offsets = |id: &MemberId| self.live.offsets.get(id).map_or(&none, |offsets| &offsets.read);
        let candidates: Vec<_> = (self.roster.seats())
            .map(|(id, seat)| Candidate {
                id,
                process: &seat.member.process,
                has: &seat.position.assigned,
                offsets: offsets(id),
            })
            .collect();
        let ready = self.roster.configured().filter(|configured| configured.is_ready());
        let parts = ready.map(|configured| &configured.subtopologies);
        let (replicas, _) = self.roster.assignment_settings();
        let given = parts.map(|parts| assign(&candidates, parts, replicas)).unwrap_or_default();
        let targets = self.changed_targets(&given);
        let (group, epoch, now) = (self.id.clone(), self.roster.group_epoch(), self.now);
        self.emit(StreamsTargetSet { group, epoch, targets, now }, Roster::set_target);
        self.end_round();
    }

    /// The causes so far led to the epoch as it is now.
    pub(super) fn end_round(&mut self) {
        let causes = core::mem::take(&mut self.live_mut().causes);
        self.round = Some(causes.end(self.roster.group_epoch(), self.roster.len(), self.now));
    }

    fn changed_targets(&self, given: &BTreeMap<MemberId, Tasks>) -> Vec<StreamsTarget> {
        let nothing = Tasks::default();
        let target = |id: &MemberId| given.get(id).unwrap_or(&nothing);
        let changed = self.roster.seats().filter(|(id, seat)| seat.target != *target(id));
        changed.map(|(id, _)| target(id).to_target(id)).collect()
    }

    /// Notes why there will be another target.
    pub(super) fn note_cause(&mut self, reason: Reason, member: Option<&StreamsMember>) {
        let at = self.now;
        let cause = match member {
            None => Cause::nobodys(reason, at),
            Some(member) => Cause::of(reason, member, at),
        };
        self.live_mut().causes.push(cause);
    }

    /// Takes a member one step on.
    pub(super) fn reconcile(&mut self, member: &MemberId, owned: Option<&Tasks>) {
        let seat = self.roster.seat(member).expect("a member that was just heard of");
        if seat.position.has_arrived(self.roster.assignment_epoch()) {
            return;
        }
        let others = self.roster.others(member);
        let goal = Goal {
            assignment_epoch: self.roster.assignment_epoch(),
            tasks: &seat.target,
            process: &seat.member.process,
            owned,
            others: &others,
        };
        let Some(next) = step(&seat.position, &goal) else { return };
        let event = StreamsMemberReconciled {
            group: self.id.clone(),
            member: Arc::clone(member),
            epoch: next.member_epoch,
            previous_epoch: next.previous_member_epoch,
            progress: next.progress,
            assigned: next.assigned.to_event(),
            revoking: next.revoking.to_event(),
            now: self.now,
        };
        self.emit(event, Roster::reconcile);
        self.watch(member);
    }

    pub(super) fn watch(&mut self, member: &MemberId) {
        let now = self.now;
        if let Some(seat) = self.roster.seat(member).cloned() {
            self.live_mut().watch_revocation(member, &seat, now);
        }
    }

    pub(super) fn note_offsets(
        &mut self,
        member: &MemberId,
        read: Option<&BTreeMap<TaskId, i64>>,
        end: Option<&BTreeMap<TaskId, i64>>,
    ) {
        if read.is_none() && end.is_none() {
            return;
        }
        let known = self.live_mut().offsets.entry(Arc::clone(member)).or_default();
        let known = Arc::make_mut(known);
        known.read = read.unwrap_or(&known.read).clone();
        known.end = end.unwrap_or(&known.end).clone();
    }

    pub(super) fn finish(mut self, answer: Option<Result<Told, Denied>>) -> Decision {
        let group = self.id.clone();
        let mut changes = match self.alive.take() {
            Some((member, until)) if !self.live_changed => {
                vec![Change::Alive { group: group.clone(), member, until }]
            }
            alive => {
                self.live_mut().sessions.extend(alive);
                vec![Change::Set { group: group.clone(), live: Pulse::Streams(self.live) }]
            }
        };
        changes.extend(self.round.map(|round| Change::Rebalanced { group, round }));
        Decision { events: self.events, changes, answer }
    }
}
