//! Heartbeats, and commits of members, which count as such.

use alloc::{sync::Arc, vec, vec::Vec};

use semel_types::{
    GroupId, Now,
    mutation::{Mutation, mutated},
};

use super::{Answer, Claim, Decision, Phase, Request};
use crate::{Change, Live, Member, MemberId, Membership, Refusal, State, Volatile};

/// Where a group stands and who is in it.
struct View<'a> {
    membership: &'a Membership,
    live: Option<&'a Live>,
}

impl View<'_> {
    fn phase(&self) -> Phase {
        Phase::of(self.membership, self.live)
    }

    /// Is this a member of the present generation? A member that is only joining has no generation yet.
    fn check(&self, member: &str, instance: Option<&str>) -> Result<(), Refusal> {
        if let Some(instance) = instance {
            let joining = self.live.into_iter().flat_map(Live::joining);
            let mut joining = joining.filter(|member| member.instance.as_deref() == Some(instance));
            let known = joining.next().map(|member| &member.id);
            match known.or_else(|| self.membership.by_instance(instance)) {
                None => return Err(Refusal::UnknownMember),
                Some(_) if mutated(Mutation::StaticMemberNotFenced) => return Ok(()),
                Some(known) if **known != *member => return Err(Refusal::FencedInstance),
                Some(_) => {}
            }
        }
        if self.membership.has(member) || mutated(Mutation::AnyMember) {
            Ok(())
        } else {
            Err(Refusal::UnknownMember)
        }
    }

    /// The member's session starts anew, unless its join waits: then it has none.
    fn alive(&self, group: &GroupId, member: &MemberId, now: Now) -> Option<Change> {
        let until = now.plus(self.membership.seat(member)?.member.session_timeout);
        let known = self.live?.sessions.contains_key(member);
        known.then(|| Change::Alive { group: group.clone(), member: Arc::clone(member), until })
    }
}

fn view<'a>(state: &'a State, volatile: &'a Volatile, group: &GroupId) -> Option<View<'a>> {
    let membership = state.group(group)?.classic()?;
    Some(View { membership, live: volatile.group(group).map(|live| &**live) })
}

pub(super) fn heartbeat(
    state: &State,
    volatile: &Volatile,
    request: &Request,
    (claim, generation): (&Claim, i32),
    now: Now,
) -> Decision {
    let (result, change) = match view(state, volatile, &request.group) {
        None => (Err(Refusal::UnknownMember), None),
        Some(view) => beat(&view, &request.group, claim, generation, now),
    };
    let answers = vec![(request.waiter, Answer::Heartbeat(result))];
    Decision { events: Vec::new(), changes: change.into_iter().collect(), answers }
}

fn beat(
    view: &View<'_>,
    group: &GroupId,
    claim: &Claim,
    generation: i32,
    now: Now,
) -> (Result<(), Refusal>, Option<Change>) {
    if let Err(refusal) = view.check(&claim.member, claim.instance.as_deref()) {
        return (Err(refusal), None);
    }
    if generation != view.membership.generation() {
        return (Err(Refusal::IllegalGeneration), None);
    }
    let change = view.alive(group, &claim.member, now);
    match view.phase() {
        Phase::PreparingRebalance => (Err(Refusal::RebalanceInProgress), change),
        Phase::CompletingRebalance | Phase::Stable => (Ok(()), change),
        Phase::Empty | Phase::Dead => (Err(Refusal::UnknownMember), None),
    }
}

/// May this member commit offsets in this group (upstream `ClassicGroup.validateOffsetCommit`)? The change notes that
/// the member is alive.
///
/// A commit in a transaction is taken while the group waits for assignments: it is what the member did before. One
/// that names no member at all is taken there too, as from an application that manages its partitions by itself.
///
/// Without a generation, and outside of a transaction, anybody may commit while the group has no members, whoever it says
/// it is. In a transaction a claim has to be true (KIP-447): Kafka takes that of a former member there too.
///
/// # Errors
/// [`Refusal`] if it may not; nothing changes then.
pub fn check_commit(
    state: &State,
    volatile: &Volatile,
    group: &GroupId,
    member: Member<'_>,
    now: Now,
) -> Result<Option<Change>, Refusal> {
    let claims = member.generation.is_some() || !member.member_id.is_empty() || member.instance.is_some();
    let is_free = member.generation.is_none() && !member.transactional;
    let Some(view) = view(state, volatile, group) else {
        return match (claims, member.generation) {
            (_, None) if is_free => Ok(None),
            (false, _) => Ok(None),
            (true, Some(_)) => Err(Refusal::UnknownGeneration),
            (true, None) => Err(Refusal::UnknownMember),
        };
    };
    if is_free && view.phase() == Phase::Empty {
        return Ok(None);
    }
    if !claims {
        return if member.transactional { Ok(None) } else { Err(Refusal::UnknownMember) };
    }
    view.check(member.member_id, member.instance)?;
    let is_present = member.generation == Some(view.membership.generation());
    if !is_present && !mutated(Mutation::GenerationNotChecked) {
        return Err(Refusal::IllegalGeneration);
    }
    if !member.transactional && view.phase() == Phase::CompletingRebalance {
        return Err(Refusal::RebalanceInProgress);
    }
    Ok(view.alive(group, &MemberId::from(member.member_id), now))
}
