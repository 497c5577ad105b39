//! Members that speak the classic protocol in a consumer group, and what time does.
//!
//! A member's epoch is its generation. It is told to join again when the group has a new epoch, when it has to give
//! partitions up, or when those that it waits for are free; nobody leads, and no request waits.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use semel_events::{ClassicTraits, ConsumerMember, ConsumerProgress, GroupProtocol};

use super::{
    Seat,
    convert::{CONSUMERS, handles, part_of},
    draft::Draft,
    heartbeat::new_id,
    reconcile::has_free,
};
use crate::{
    MemberId, Refusal,
    classic::{Answer, Assigned, Claim, Command, Join, JoinedGeneration},
    history::Reason,
    subscription,
};

impl Draft<'_> {
    pub(super) fn classic(&mut self, command: &Command) {
        match command {
            Command::Join(join) => {
                let answer = self.join(join);
                self.answer(Answer::Join(answer));
            }
            Command::Sync { claim, generation, protocol, assignments: _ } => {
                let answer = self.sync(claim, *generation, protocol);
                self.answer(Answer::Sync(answer));
            }
            Command::Heartbeat { claim, generation } => {
                let answer = self.beat_classic(claim, *generation);
                self.answer(Answer::Heartbeat(answer));
            }
            Command::Leave(claims) => self.leave_classic(claims),
            Command::Delete => self.answer(Answer::Delete(Err(Refusal::NonEmpty))),
            Command::Tick => self.tick(),
            Command::Disconnected => {}
        }
    }

    fn join(&mut self, join: &Join) -> Result<JoinedGeneration, (Refusal, MemberId)> {
        let told = |refusal| (refusal, Arc::clone(&join.claim.member));
        self.check_join(join).map_err(told)?;
        let protocol = join.protocols.first().ok_or_else(|| told(Refusal::InconsistentProtocol))?;
        let read =
            subscription::read(&protocol.metadata).ok_or_else(|| told(Refusal::InconsistentProtocol))?;
        let is_new = join.claim.member.is_empty();
        let id = if is_new { new_id(&self.context.entropy) } else { Arc::clone(&join.claim.member) };
        if is_new && join.id_comes_first && join.claim.instance.is_none() {
            return Err((Refusal::MemberIdRequired, id));
        }
        let member = member(join, &id, &read);
        self.seat_static(join, &member).map_err(told)?;
        let changed = self.update(member);
        if self.topics_changed() || changed {
            self.start_epoch();
        }
        let owned = handles(self.topics, &read.owned);
        self.reconcile(&id, Some(&owned));
        self.touch(&id, join.session_timeout);
        let by = self.now().plus(join.rebalance_timeout);
        self.live_mut().classic_by.insert(Arc::clone(&id), by);
        let seat = self.roster.seat(&id).expect("just made sure");
        Ok(JoinedGeneration {
            generation: seat.member_epoch,
            protocol_type: Arc::from(CONSUMERS),
            protocol: Arc::clone(&protocol.name),
            leader: MemberId::default(),
            member: id,
            members: Vec::new(),
            skip_assignment: false,
        })
    }

    fn check_join(&self, join: &Join) -> Result<(), Refusal> {
        let classic = &self.settings.classic;
        if !(classic.session_timeout_min..=classic.session_timeout_max).contains(&join.session_timeout) {
            return Err(Refusal::InvalidSessionTimeout);
        }
        if self.settings.migration == super::Migration::Disabled {
            return Err(Refusal::InconsistentProtocol);
        }
        let named =
            join.claim.instance.as_deref().is_some_and(|name| self.roster.by_instance(name).is_some());
        if !named && !self.roster.has(&join.claim.member) && self.roster.len() >= self.settings.size_max {
            return Err(Refusal::GroupFull);
        }
        if *join.protocol_type == *CONSUMERS && self.knows_one_of(join) {
            Ok(())
        } else {
            Err(Refusal::InconsistentProtocol)
        }
    }

    /// Do all other members of the classic protocol know one of these protocols?
    fn knows_one_of(&self, join: &Join) -> bool {
        let others = || {
            let others = self.roster.seats().filter(|(id, _)| **id != join.claim.member);
            others.filter_map(|(_, seat)| seat.member.classic.as_ref())
        };
        let knows =
            |traits: &ClassicTraits, name: &str| traits.protocols.iter().any(|one| *one.name == *name);
        join.protocols.iter().any(|one: &GroupProtocol| others().all(|traits| knows(traits, &one.name)))
    }

    /// A static member takes its old place.
    fn seat_static(&mut self, join: &Join, member: &ConsumerMember) -> Result<(), Refusal> {
        let Some(name) = &join.claim.instance else { return Ok(()) };
        let old = self.roster.by_instance(name).cloned();
        match old {
            Some(old) if join.claim.member.is_empty() => self.replace(&old, member.clone()),
            Some(old) if old != join.claim.member => return Err(Refusal::FencedInstance),
            None if !join.claim.member.is_empty() => return Err(Refusal::UnknownMember),
            Some(_) | None => {}
        }
        Ok(())
    }

    /// The seat that a claim names; the member has to speak the classic protocol.
    fn seat_of(&self, claim: &Claim) -> Result<&Seat, Refusal> {
        if let Some(name) = &claim.instance {
            let owner = self.roster.by_instance(name).ok_or(Refusal::UnknownMember)?;
            if *owner != claim.member {
                return Err(Refusal::FencedInstance);
            }
        }
        let seat = self.roster.seat(&claim.member).ok_or(Refusal::UnknownMember)?;
        if seat.member.classic.is_some() { Ok(seat) } else { Err(Refusal::UnknownMember) }
    }

    fn sync(
        &mut self,
        claim: &Claim,
        generation: i32,
        protocol: &(Option<Arc<str>>, Option<Arc<str>>),
    ) -> Result<Assigned, Refusal> {
        let seat = self.seat_of(claim)?;
        let traits = seat.member.classic.as_ref().ok_or(Refusal::UnknownMember)?;
        if generation != seat.member_epoch {
            return Err(Refusal::IllegalGeneration);
        }
        let (of_type, name) = protocol;
        let first = traits.protocols.first().map(|one| Arc::clone(&one.name)).unwrap_or_default();
        let other = |said: &Option<Arc<str>>, ours: &str| said.as_ref().is_some_and(|said| **said != *ours);
        if other(of_type, CONSUMERS) || other(name, &first) {
            return Err(Refusal::InconsistentProtocol);
        }
        if seat.member_epoch < self.roster.epoch() && seat.progress != ConsumerProgress::Revoking {
            return Err(Refusal::RebalanceInProgress);
        }
        let (assignment, session) = (part_of(self.topics, seat), traits.session_timeout);
        self.touch(&claim.member, session);
        if self.live().classic_by.contains_key(&claim.member) {
            self.live_mut().classic_by.remove(&claim.member);
        }
        Ok(Assigned { protocol_type: Arc::from(CONSUMERS), protocol: first, assignment })
    }

    fn beat_classic(&mut self, claim: &Claim, generation: i32) -> Result<(), Refusal> {
        let seat = self.seat_of(claim)?.clone();
        let session = seat.member.classic.as_ref().map(|traits| traits.session_timeout).unwrap_or_default();
        if generation != seat.member_epoch {
            return Err(Refusal::IllegalGeneration);
        }
        self.touch(&claim.member, session);
        if self.topics_changed() {
            self.start_epoch();
        }
        let moves = match seat.progress {
            ConsumerProgress::Revoking => true,
            ConsumerProgress::Waiting => has_free(&self.roster, &seat),
            ConsumerProgress::Stable => false,
        };
        if !moves && seat.member_epoch >= self.roster.epoch() {
            return Ok(());
        }
        if !self.live().classic_by.contains_key(&claim.member) {
            let by = self.now().plus(seat.member.rebalance_timeout);
            self.live_mut().classic_by.insert(Arc::clone(&claim.member), by);
        }
        Err(Refusal::RebalanceInProgress)
    }

    /// Each member by itself; those that may leave do so at once, together. An administrator may name any member.
    fn leave_classic(&mut self, claims: &[Claim]) {
        let mut gone: Vec<MemberId> = Vec::new();
        let mut results = Vec::with_capacity(claims.len());
        for claim in claims {
            let found = self.leaving(claim).and_then(|member| {
                if gone.contains(&member) { Err(Refusal::UnknownMember) } else { Ok(member) }
            });
            results.push(found.map(|member| gone.push(member)));
        }
        let gone: Vec<_> = gone.into_iter().map(|id| (id, Reason::Left)).collect();
        self.remove(&gone);
        self.answer(Answer::Leave(results));
    }

    fn leaving(&self, claim: &Claim) -> Result<MemberId, Refusal> {
        let Some(name) = &claim.instance else {
            let known = self.roster.has(&claim.member);
            return if known { Ok(Arc::clone(&claim.member)) } else { Err(Refusal::UnknownMember) };
        };
        let owner = self.roster.by_instance(name).ok_or(Refusal::UnknownMember)?;
        if claim.member.is_empty() || *owner == claim.member {
            Ok(Arc::clone(owner))
        } else {
            Err(Refusal::FencedInstance)
        }
    }

    /// Members that were silent for too long, or did not give up what they had to, or did not join, are gone.
    fn tick(&mut self) {
        let now = self.now();
        let live = self.live();
        let silent = live.sessions.iter().filter(|(_, until)| **until <= now).map(|(id, _)| id);
        let silent = silent.map(|id| (Arc::clone(id), Reason::SessionExpired));
        let holding = live.revocations.iter().filter(|(_, (by, _))| *by <= now).map(|(id, _)| id);
        let holding = holding.map(|id| (Arc::clone(id), Reason::DidNotRevoke));
        let absent = live.classic_by.iter().filter(|(_, by)| **by <= now).map(|(id, _)| id);
        let absent = absent.map(|id| (Arc::clone(id), Reason::DidNotRejoin));
        let mut gone: BTreeMap<MemberId, Reason> = silent.chain(holding).chain(absent).collect();
        gone.retain(|id, _| self.roster.has(id));
        let gone: Vec<_> = gone.into_iter().collect();
        // The group's time is set anew even if nobody goes: it was looked at early.
        self.live_mut();
        self.remove(&gone);
    }
}

fn member(join: &Join, id: &MemberId, read: &subscription::Subscription) -> ConsumerMember {
    let mut topics = read.topics.clone();
    topics.sort_unstable();
    topics.dedup();
    ConsumerMember {
        id: Arc::clone(id),
        instance: join.claim.instance.clone(),
        rack: read.rack.clone(),
        client_id: Arc::clone(&join.client_id),
        client_host: Arc::clone(&join.client_host),
        rebalance_timeout: join.rebalance_timeout,
        topics,
        pattern: Arc::default(),
        assignor: None,
        classic: Some(ClassicTraits {
            session_timeout: join.session_timeout,
            protocols: join.protocols.clone(),
        }),
    }
}
