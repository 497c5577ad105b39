//! ConsumerGroupHeartbeat: join, stay, leave.

use alloc::{format, string::String, sync::Arc, vec, vec::Vec};

use semel_events::{
    ConsumerMember, ConsumerMemberChanged, ConsumerMemberReconciled, ConsumerMemberReplaced, ConsumerProgress,
};
use semel_types::{
    DurationMs, PartitionHandle,
    mutation::{Mutation, mutated},
};

use super::{AWAY, Roster, Seat, draft::Draft, reconcile};
use crate::{MemberId, Refusal, history::Reason};

/// Epoch of a member that joins.
pub(super) const JOINING: i32 = 0;

/// Epoch of a member that leaves for good.
pub(super) const LEAVING: i32 = -1;

/// What a member says; `None` for what it has said before.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heartbeat {
    /// The member; may be empty for a new one where the version lets the server make its id.
    pub member: MemberId,
    /// Its epoch; 0 to join, -1 to leave, -2 for a static member that leaves and will be back.
    pub member_epoch: i32,
    /// The static member's name.
    pub instance: Option<Arc<str>>,
    /// The rack that it is in.
    pub rack: Option<Arc<str>>,
    /// `client.id`, for people.
    pub client_id: Arc<str>,
    /// Address of the client.
    pub client_host: Arc<str>,
    /// How long it may take to give partitions up.
    pub rebalance_timeout: Option<DurationMs>,
    /// The topics that it reads.
    pub topics: Option<Vec<Arc<str>>>,
    /// Pattern of further topics that it reads.
    pub pattern: Option<Arc<str>>,
    /// The assignor that it asks for.
    pub assignor: Option<Arc<str>>,
    /// The partitions that it has.
    pub owned: Option<reconcile::OwnedSet>,
    /// It names partitions, whether they exist or not.
    pub names_owned: bool,
    /// Members make their ids themselves (version 1).
    pub brings_id: bool,
}

impl Heartbeat {
    /// It says everything, so it is told everything.
    fn is_full(&self) -> bool {
        let reads = self.topics.is_some() || self.pattern.is_some();
        self.member_epoch == JOINING || (self.rebalance_timeout.is_some() && reads && self.owned.is_some())
    }

    /// What it may and must say (upstream `throwIfConsumerGroupHeartbeatRequestIsInvalid`).
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_empty = |text: &Option<Arc<str>>| text.as_ref().is_some_and(|text| text.is_empty());
        let needs_id = self.brings_id || self.member_epoch > JOINING || self.member_epoch == LEAVING;
        let what = if needs_id && self.member.is_empty() {
            "MemberId can't be empty."
        } else if is_empty(&self.instance) {
            "InstanceId can't be empty."
        } else if is_empty(&self.rack) {
            "RackId can't be empty."
        } else if self.member_epoch < AWAY {
            "MemberEpoch is invalid."
        } else if self.member_epoch == AWAY && self.instance.is_none() {
            "InstanceId can't be null."
        } else if self.member_epoch == JOINING {
            return self.check_join();
        } else {
            return Ok(());
        };
        Err(Refusal::InvalidHeartbeat(what))
    }

    fn check_join(&self) -> Result<(), Refusal> {
        if self.rebalance_timeout.is_none() {
            return Err(Refusal::InvalidHeartbeat("RebalanceTimeoutMs must be provided in first request."));
        }
        if self.owned.is_none() || self.names_owned {
            return Err(Refusal::InvalidHeartbeat("TopicPartitions must be empty when (re-)joining."));
        }
        if self.topics.is_none() && self.pattern.is_none() {
            let what =
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.";
            return Err(Refusal::InvalidHeartbeat(what));
        }
        Ok(())
    }
}

/// What a member is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The member.
    pub member: MemberId,
    /// Its epoch.
    pub member_epoch: i32,
    /// All that it has from here on; `None` if that has not changed.
    pub assigned: Option<Vec<PartitionHandle>>,
}

impl Draft<'_> {
    pub(super) fn heartbeat(&mut self, beat: &Heartbeat) -> Result<Told, Refusal> {
        let id = self.admit(beat)?;
        let before = self.roster.seat(&id).cloned();
        let member = describe(beat, &id, before.as_ref().map(|seat| &seat.member));
        self.check_pattern(&member, before.as_ref())?;
        self.replace_away(beat, &member);
        let changed = self.update(member);
        if self.topics_changed() || changed {
            self.start_epoch();
        }
        self.reconcile(&id, beat.owned.as_ref());
        self.touch(&id, self.settings.session_timeout);
        if self.live().classic_by.contains_key(&id) {
            self.live_mut().classic_by.remove(&id);
        }
        let seat = self.roster.seat(&id).expect("just made sure");
        let had = before.as_ref().map(|before| before.assigned.keys());
        let moved = had.is_none_or(|had| !had.eq(seat.assigned.keys()));
        let assigned = (beat.is_full() || moved).then(|| seat.assigned.keys().copied().collect());
        Ok(Told { member: id, member_epoch: seat.member_epoch, assigned })
    }

    /// May it speak at all, and who is it?
    fn admit(&self, beat: &Heartbeat) -> Result<MemberId, Refusal> {
        let known = self.roster.has(&beat.member);
        let known_name = beat.instance.as_deref().is_some_and(|name| self.roster.by_instance(name).is_some());
        if !known && !known_name && self.roster.len() >= self.settings.size_max {
            return Err(Refusal::GroupFull);
        }
        let joins = beat.member_epoch == JOINING;
        let owner = match &beat.instance {
            Some(name) => self.roster.by_instance(name).cloned(),
            None => known.then(|| Arc::clone(&beat.member)),
        };
        let Some(owner) = owner else {
            return if joins { Ok(self.id_of(beat)) } else { Err(Refusal::UnknownMember) };
        };
        let seat = self.roster.seat(&owner).expect("found by it");
        if joins && beat.instance.is_some() {
            let released = seat.member_epoch == AWAY || seat.member.classic.is_some();
            return if released { Ok(self.id_of(beat)) } else { Err(Refusal::UnreleasedInstance) };
        }
        if owner != beat.member && !mutated(Mutation::ConsumerInstanceNotFenced) {
            return Err(Refusal::FencedInstance);
        }
        check_member_epoch(seat, beat)?;
        Ok(owner)
    }

    fn id_of(&self, beat: &Heartbeat) -> MemberId {
        if beat.member.is_empty() { new_id(&self.context.entropy) } else { Arc::clone(&beat.member) }
    }

    fn check_pattern(&self, member: &ConsumerMember, before: Option<&Seat>) -> Result<(), Refusal> {
        let same = before.is_some_and(|before| before.member.pattern == member.pattern);
        let good = same || member.pattern.is_empty() || self.topics.is_pattern(&member.pattern);
        if good { Ok(()) } else { Err(Refusal::InvalidPattern) }
    }

    /// A static member that was away, or spoke the classic protocol, is back with another id or anew.
    fn replace_away(&mut self, beat: &Heartbeat, member: &ConsumerMember) {
        let name = beat.instance.as_deref().filter(|_| beat.member_epoch == JOINING);
        let Some(old) = name.and_then(|name| self.roster.by_instance(name)).cloned() else { return };
        self.replace(&old, member.clone());
    }

    /// The member takes the place of its old id.
    pub(super) fn replace(&mut self, old: &MemberId, mut member: ConsumerMember) {
        // What it reads is compared with what the old one read.
        let seat = self.roster.seat(old).expect("only a member is replaced");
        let (topics, pattern, assignor) =
            (seat.member.topics.clone(), Arc::clone(&seat.member.pattern), seat.member.assignor.clone());
        member = ConsumerMember { topics, pattern, assignor, ..member };
        self.live_mut().forget(old);
        let (group, now) = (self.id.clone(), self.now());
        self.emit(ConsumerMemberReplaced { group, old: Arc::clone(old), member, now }, Roster::replace);
    }

    /// The member is described so from here on. Does the group need another epoch for it?
    pub(super) fn update(&mut self, member: ConsumerMember) -> bool {
        let before = self.roster.seat(&member.id).map(|seat| &seat.member);
        if before == Some(&member) {
            return false;
        }
        let is_new = before.is_none();
        let changed = before.is_none_or(|before| {
            before.topics != member.topics
                || before.pattern != member.pattern
                || before.assignor != member.assignor
        });
        if changed {
            self.because(if is_new { Reason::Joined } else { Reason::SubscriptionChanged }, &member);
        }
        let (group, now) = (self.id.clone(), self.now());
        self.emit(ConsumerMemberChanged { group, member, now }, Roster::change);
        changed
    }

    /// A member leaves, for good or, if it has a static name and says so, for a while.
    pub(super) fn leave(&mut self, beat: &Heartbeat) -> Result<Told, Refusal> {
        let member = match &beat.instance {
            Some(name) => self.roster.by_instance(name).ok_or(Refusal::UnknownMember)?,
            None => &beat.member,
        };
        let seat = self.roster.seat(member).ok_or(Refusal::UnknownMember)?;
        if *member != beat.member {
            return Err(Refusal::FencedInstance);
        }
        if beat.instance.is_some() && beat.member_epoch == AWAY {
            let away = away(self, seat);
            self.emit(away, Roster::reconcile);
            if self.live().revocations.contains_key(&beat.member) {
                self.live_mut().revocations.remove(&beat.member);
            }
        } else {
            self.remove(&[(Arc::clone(&beat.member), Reason::Left)]);
        }
        Ok(Told { member: Arc::clone(&beat.member), member_epoch: beat.member_epoch, assigned: None })
    }
}

/// It keeps its partitions; what it had to give up is free, since it has stopped.
fn away(draft: &Draft<'_>, seat: &Seat) -> ConsumerMemberReconciled {
    let assigned = seat.assigned.keys().map(|partition| (*partition, 0)).collect();
    ConsumerMemberReconciled {
        group: draft.id.clone(),
        member: Arc::clone(&seat.member.id),
        epoch: AWAY,
        previous_epoch: seat.member_epoch,
        progress: ConsumerProgress::Stable,
        assigned: reconcile::list(&assigned),
        revoking: vec![],
        now: draft.now(),
    }
}

/// A member is in its own epoch, or in the one before if it missed the last answer and has nothing that it lost by it.
fn check_member_epoch(seat: &Seat, beat: &Heartbeat) -> Result<(), Refusal> {
    let missed = || {
        let keeps = |owned: &reconcile::OwnedSet| owned.iter().all(|one| seat.assigned.contains_key(one));
        beat.member_epoch < seat.member_epoch
            && beat.member_epoch == seat.previous_epoch
            && beat.owned.as_ref().is_some_and(keeps)
    };
    let is_there = beat.member_epoch == JOINING || beat.member_epoch == seat.member_epoch || missed();
    if is_there || mutated(Mutation::ConsumerEpochNotChecked) { Ok(()) } else { Err(Refusal::FencedMember) }
}

/// The member as it describes itself now; what it does not say is as before.
fn describe(beat: &Heartbeat, id: &MemberId, before: Option<&ConsumerMember>) -> ConsumerMember {
    let mut topics = beat.topics.clone();
    if let Some(topics) = &mut topics {
        topics.sort_unstable();
        topics.dedup();
    }
    let known = |get: fn(&ConsumerMember) -> Option<Arc<str>>| before.and_then(get);
    ConsumerMember {
        id: Arc::clone(id),
        instance: beat.instance.clone().or_else(|| known(|member| member.instance.clone())),
        rack: beat.rack.clone().or_else(|| known(|member| member.rack.clone())),
        client_id: Arc::clone(&beat.client_id),
        client_host: Arc::clone(&beat.client_host),
        rebalance_timeout: beat
            .rebalance_timeout
            .or_else(|| before.map(|member| member.rebalance_timeout))
            .unwrap_or_default(),
        topics: topics.or_else(|| before.map(|member| member.topics.clone())).unwrap_or_default(),
        pattern: (beat.pattern.clone())
            .or_else(|| known(|member| Some(Arc::clone(&member.pattern))))
            .unwrap_or_default(),
        assignor: beat.assignor.clone().or_else(|| known(|member| member.assignor.clone())),
        classic: None,
    }
}

/// A random id.
pub(super) fn new_id(entropy: &[u8; 32]) -> MemberId {
    let mut id = String::new();
    for (at, byte) in entropy[..16].iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        id.push_str(&format!("{dash}{byte:02x}"));
    }
    id.into()
}
