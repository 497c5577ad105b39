//! SyncGroup: the leader brings everybody's part, the others wait for theirs.

use alloc::{sync::Arc, vec::Vec};

use semel_events::{GroupAssigned, GroupAssignment};

use super::{Answer, Assigned, Claim, GENERATION_BYTES_MAX, Phase, draft::Draft};
use crate::{MemberId, Membership, Refusal};

impl Draft<'_> {
    /// `None` if the request waits.
    pub(super) fn sync(
        &mut self,
        claim: &Claim,
        generation: i32,
        protocol: &(Option<Arc<str>>, Option<Arc<str>>),
        assignments: &[GroupAssignment],
    ) -> Option<Result<Assigned, Refusal>> {
        self.try_sync(claim, generation, protocol, assignments).err()
    }

    /// `Err` is the answer.
    fn try_sync(
        &mut self,
        claim: &Claim,
        generation: i32,
        protocol: &(Option<Arc<str>>, Option<Arc<str>>),
        assignments: &[GroupAssignment],
    ) -> Result<(), Result<Assigned, Refusal>> {
        self.check(claim).map_err(Err)?;
        if generation != self.membership.generation() {
            return Err(Err(Refusal::IllegalGeneration));
        }
        let (of_type, name) = protocol;
        let other = |said: &Option<Arc<str>>, ours: &Arc<str>| said.as_ref().is_some_and(|said| said != ours);
        if other(of_type, self.membership.protocol_type()) || other(name, self.membership.protocol()) {
            return Err(Err(Refusal::InconsistentProtocol));
        }
        match self.phase() {
            Phase::Empty | Phase::Dead => Err(Err(Refusal::UnknownMember)),
            Phase::PreparingRebalance => Err(Err(Refusal::RebalanceInProgress)),
            Phase::Stable => Err(self.assigned(&claim.member)),
            Phase::CompletingRebalance => self.wait(&claim.member, assignments).map_err(Err),
        }
    }

    fn assigned(&mut self, member: &MemberId) -> Result<Assigned, Refusal> {
        self.live.unsynced.remove(member);
        self.touch(member);
        let seat = self.membership.seat(member).ok_or(Refusal::UnknownMember)?;
        Ok(Assigned {
            protocol_type: Arc::clone(self.membership.protocol_type()),
            protocol: Arc::clone(self.membership.protocol()),
            assignment: seat.assignment.clone(),
        })
    }

    fn wait(&mut self, member: &MemberId, assignments: &[GroupAssignment]) -> Result<(), Refusal> {
        let leads = self.membership.leader() == member;
        if leads && assignment_bytes(assignments) > GENERATION_BYTES_MAX {
            return Err(Refusal::AssignmentTooLarge);
        }
        self.live.unsynced.remove(member);
        let before = self.live.syncs.insert(Arc::clone(member), self.waiter);
        if let Some(before) = before {
            self.answer_to(before, Answer::Sync(Err(Refusal::RebalanceInProgress)));
        }
        if leads {
            self.assign(assignments);
        }
        Ok(())
    }

    fn assign(&mut self, assignments: &[GroupAssignment]) {
        let known = |given: &&GroupAssignment| self.membership.has(&given.member);
        let assignments: Vec<_> = assignments.iter().filter(known).cloned().collect();
        let (group, generation, now) = (self.id.clone(), self.membership.generation(), self.now());
        self.emit(GroupAssigned { group, generation, assignments, now }, Membership::assign);
        for (member, waiter) in core::mem::take(&mut self.live.syncs) {
            let answer = self.assigned(&member);
            self.answer_to(waiter, Answer::Sync(answer));
        }
    }
}

fn assignment_bytes(assignments: &[GroupAssignment]) -> usize {
    assignments.iter().map(|given| given.member.len() + given.assignment.len()).sum()
}
