//! LeaveGroup and DeleteGroups.

use alloc::{sync::Arc, vec::Vec};

use semel_events::GroupDeleted;

use super::{Answer, Claim, Phase, draft::Draft};
use crate::{MemberId, Membership, Refusal, history::Reason};

impl Draft<'_> {
    /// Each member by itself; those that may leave do so at once, together.
    pub(super) fn leave(&mut self, claims: &[Claim]) {
        let mut gone: Vec<MemberId> = Vec::new();
        let mut results = Vec::with_capacity(claims.len());
        for claim in claims {
            let found = self.leaving(claim).and_then(|member| {
                if gone.contains(&member) { Err(Refusal::UnknownMember) } else { Ok(member) }
            });
            results.push(found.map(|member| gone.push(member)));
        }
        for member in &gone {
            self.live.pending.remove(member);
        }
        if !gone.is_empty() {
            self.because_of(Reason::Left, &gone);
            self.remove(&gone);
        }
        self.answer(Answer::Leave(results));
    }

    fn leaving(&self, claim: &Claim) -> Result<MemberId, Refusal> {
        if self.live.pending.contains_key(&claim.member) {
            return Ok(Arc::clone(&claim.member));
        }
        match &claim.instance {
            // An administrator names static members without their ids.
            Some(instance) if claim.member.is_empty() => {
                self.by_instance(instance).ok_or(Refusal::UnknownMember)
            }
            Some(_) | None => self.check(claim).map(|()| Arc::clone(&claim.member)),
        }
    }

    /// A group without members, and without offsets of undecided transactions.
    pub(super) fn delete(&mut self) {
        let deletable = if !self.exists {
            Err(if self.phase() == Phase::Empty { Refusal::UnknownGroup } else { Refusal::NonEmpty })
        } else if self.phase() != Phase::Empty || self.holds_pending {
            Err(Refusal::NonEmpty)
        } else {
            Ok(())
        };
        if deletable.is_ok() {
            self.live.pending.clear();
            let deleted = GroupDeleted { group: self.id.clone(), now: self.now() };
            self.emit(deleted, |membership, _| *membership = Membership::default());
        }
        self.answer(Answer::Delete(deletable));
    }
}
