//! A rebalance from its first join to the new generation.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use semel_events::{GroupGenerationStarted, GroupMember, GroupMembersRemoved, GroupProtocol};
use semel_types::DurationMs;

use super::{Answer, Join, draft::Draft, join::tell};
use crate::{
    MemberId, Membership, Refusal,
    history::Reason,
    volatile::{Joined, Rebalance},
};

/// Shortest pause before a rebalance to which nobody came is looked at again.
const LOOK_AGAIN: DurationMs = DurationMs::from_ms(1_000);

impl Draft<'_> {
    /// A member asks to be in the next generation; its request waits.
    pub(super) fn enter(&mut self, member: GroupMember, join: &Join) {
        let id = Arc::clone(&member.id);
        self.prepare(join);
        self.live.sessions.remove(&id);
        let waiter = self.waiter;
        let rebalance = self.live.rebalance.as_mut().expect("just prepared");
        let number = rebalance.next;
        rebalance.next += 1;
        if let Some((_, grown)) = &mut rebalance.initial {
            *grown |= number > 0;
        }
        let before = rebalance.joined.insert(Arc::clone(&id), Joined { member, waiter, number });
        if let Some(before) = before {
            self.answer_to(before.waiter, Answer::Join(Err((Refusal::RebalanceInProgress, id))));
        }
        self.complete_if_all_joined();
    }

    /// Starts a rebalance because of a join, if none is under way.
    fn prepare(&mut self, join: &Join) {
        if self.live.rebalance.is_some() {
            return;
        }
        let (now, delay) = (self.now(), self.settings.initial_rebalance_delay);
        if self.membership.is_empty() {
            let latest = now.plus(join.rebalance_timeout.max(delay));
            self.begin(Arc::clone(&join.protocol_type));
            let rebalance = self.live.rebalance.as_mut().expect("just begun");
            rebalance.complete_at = now.plus(delay);
            rebalance.initial = (delay.as_ms() > 0).then_some((latest, false));
        } else {
            self.begin(Arc::clone(self.membership.protocol_type()));
            let timeout = self.membership.rebalance_timeout().max(join.rebalance_timeout);
            self.live.rebalance.as_mut().expect("just begun").complete_at = now.plus(timeout);
        }
    }

    /// Members have to join anew; those that wait for an assignment are told so.
    fn begin(&mut self, protocol_type: Arc<str>) {
        for (id, waiter) in core::mem::take(&mut self.live.syncs) {
            self.touch(&id);
            self.answer_to(waiter, Answer::Sync(Err(Refusal::RebalanceInProgress)));
        }
        self.live.unsynced.clear();
        self.live.sync_by = None;
        let complete_at = self.now().plus(self.membership.rebalance_timeout());
        let (joined, next) = (BTreeMap::new(), 0);
        self.live.rebalance = Some(Rebalance { protocol_type, joined, next, complete_at, initial: None });
    }

    /// Members are gone: removes them for good, and lets the others rebalance.
    pub(super) fn remove(&mut self, gone: &[MemberId]) {
        for id in gone {
            self.live.sessions.remove(id);
            self.live.unsynced.remove(id);
            let joined = self.live.rebalance.as_mut().and_then(|rebalance| rebalance.joined.remove(id));
            if let Some(joined) = joined {
                let refused = (Refusal::UnknownMember, Arc::clone(id));
                self.answer_to(joined.waiter, Answer::Join(Err(refused)));
            }
            if let Some(waiter) = self.live.syncs.remove(id) {
                self.answer_to(waiter, Answer::Sync(Err(Refusal::UnknownMember)));
            }
        }
        self.unseat(gone);
        if self.live.rebalance.is_none() && !self.membership.is_empty() && self.membership.is_unsettled() {
            self.begin(Arc::clone(self.membership.protocol_type()));
        }
        self.complete_if_all_joined();
    }

    fn unseat(&mut self, gone: &[MemberId]) {
        let members: Vec<_> = gone.iter().filter(|id| self.membership.has(id)).cloned().collect();
        if !members.is_empty() {
            let removed = GroupMembersRemoved { group: self.id.clone(), members, now: self.now() };
            self.emit(removed, Membership::remove);
        }
    }

    /// Ends the rebalance if there is nobody left to wait for.
    pub(super) fn complete_if_all_joined(&mut self) {
        let Some(rebalance) = &self.live.rebalance else {
            if self.membership.is_empty() && self.membership.is_unsettled() {
                self.start_generation(Vec::new(), None);
            }
            return;
        };
        let nobody = rebalance.joined.is_empty() && self.membership.is_empty();
        let all = self.membership.seats().all(|(id, _)| rebalance.joined.contains_key(id));
        if nobody || (all && rebalance.initial.is_none() && self.live.pending.is_empty()) {
            self.complete();
        }
    }

    /// Takes those who came. Dynamic members that did not are gone; static ones keep their seat until their session
    /// ends. If nobody came the wait starts anew.
    pub(super) fn complete(&mut self) {
        let Some(rebalance) = self.live.rebalance.take() else { return };
        let absent: Vec<_> = (self.membership.seats())
            .filter(|(id, seat)| !rebalance.joined.contains_key(*id) && seat.member.instance.is_none())
            .map(|(id, _)| Arc::clone(id))
            .collect();
        self.because_of(Reason::DidNotRejoin, &absent);
        for id in &absent {
            self.live.sessions.remove(id);
        }
        if rebalance.joined.is_empty() && self.membership.len() > absent.len() {
            self.unseat(&absent);
            let complete_at = self.now().plus(self.membership.rebalance_timeout().max(LOOK_AGAIN));
            self.live.rebalance = Some(Rebalance { complete_at, initial: None, ..rebalance });
            return;
        }
        if rebalance.joined.is_empty() {
            let ever = self.membership.generation() > 0;
            self.unseat(&absent);
            if ever && self.membership.is_unsettled() {
                self.start_generation(Vec::new(), None);
            }
            return;
        }
        self.take(&rebalance, &absent);
    }

    /// Starts the generation of those who came and of the static members that did not.
    fn take(&mut self, rebalance: &Rebalance, absent: &[MemberId]) {
        let leader = if rebalance.joined.contains_key(self.membership.leader()) {
            Arc::clone(self.membership.leader())
        } else {
            let first = rebalance.joined.iter().min_by_key(|(_, joined)| joined.number);
            Arc::clone(first.expect("somebody came").0)
        };
        let kept = self
            .membership
            .seats()
            .filter(|(id, _)| !rebalance.joined.contains_key(*id) && !absent.contains(id));
        let kept = kept.map(|(_, seat)| seat.member.clone());
        let mut members: Vec<_> = rebalance.joined.values().map(|joined| joined.member.clone()).collect();
        members.extend(kept);
        let timeout = members.iter().map(|member| member.rebalance_timeout).max().unwrap_or_default();
        self.start_generation(members, Some((Arc::clone(&rebalance.protocol_type), leader)));
        self.live.sync_by = Some(self.now().plus(timeout));
        self.live.unsynced = rebalance.joined.keys().cloned().collect();
        for (id, joined) in &rebalance.joined {
            self.touch(id);
            let told = tell(&self.membership, id, self.membership.leader() == id);
            self.answer_to(joined.waiter, Answer::Join(Ok(told)));
        }
    }

    /// Without members the group is empty from here on.
    fn start_generation(&mut self, members: Vec<GroupMember>, led: Option<(Arc<str>, MemberId)>) {
        let protocols: Vec<_> = members.iter().map(|member| member.protocols.as_slice()).collect();
        let protocol = choose(&protocols);
        let (protocol_type, leader) =
            led.unwrap_or_else(|| (Arc::clone(self.membership.protocol_type()), Arc::default()));
        self.live.unsynced.clear();
        self.live.sync_by = None;
        let started = GroupGenerationStarted {
            group: self.id.clone(),
            generation: next(self.membership.generation()),
            protocol_type,
            protocol,
            leader,
            members,
            now: self.now(),
        };
        self.emit(started, Membership::start);
        self.end_round();
    }

    /// The protocol that the members as they are would choose.
    pub(super) fn chosen(&self) -> Arc<str> {
        choose(&self.protocols())
    }
}

/// Saturates: 68 years of one rebalance a second.
fn next(generation: i32) -> i32 {
    generation.saturating_add(1)
}

/// Of the protocols that everybody knows the one that most members like best; of equals the first by name.
fn choose(members: &[&[GroupProtocol]]) -> Arc<str> {
    let known = |name: &str| members.iter().all(|one| one.iter().any(|other| *other.name == *name));
    let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    for protocols in members {
        if let Some(best) = protocols.iter().find(|one| known(&one.name)) {
            *votes.entry(&best.name).or_default() += 1;
        }
    }
    let mut best: Option<(&Arc<str>, usize)> = None;
    for (name, count) in votes {
        if best.is_none_or(|(_, most)| count > most) {
            best = Some((name, count));
        }
    }
    best.map(|(name, _)| Arc::clone(name)).unwrap_or_default()
}
