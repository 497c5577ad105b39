//! Commits and reads of offsets by members of a consumer group.

use alloc::sync::Arc;

use semel_types::{
    GroupId, Now, PartitionHandle,
    mutation::{Mutation, mutated},
};

use super::{Roster, Seat};
use crate::{Change, Member, MemberId, Refusal, Volatile};

/// May this member commit offsets of these partitions (upstream `ConsumerGroup.validateOffsetCommit`)? A member that
/// speaks the classic protocol counts as heard of; heartbeats alone do for the others.
///
/// A member that has since got a later epoch may still commit what it has had since before the epoch that it names
/// (KIP-1251): nobody else can have committed there in between.
///
/// # Errors
/// [`Refusal`] if it may not; nothing changes then.
pub(crate) fn check_commit(
    roster: &Roster,
    volatile: &Volatile,
    (id, member): (&GroupId, Member<'_>),
    mut partitions: impl Iterator<Item = PartitionHandle>,
    now: Now,
) -> Result<Option<Change>, Refusal> {
    let nobody = member.generation.is_none() && member.member_id.is_empty() && member.instance.is_none();
    if member.generation.is_none() && (roster.is_empty() || (member.transactional && nobody)) {
        return Ok(None);
    }
    let seat = roster.seat(member.member_id).ok_or(Refusal::UnknownMember)?;
    let Some(traits) = &seat.member.classic else {
        if !member.transactional && !member.knows_epochs {
            return Err(Refusal::NeedsEpochs);
        }
        let fresh = |partition| may_commit(seat, member.generation, partition);
        return if partitions.all(fresh) { Ok(None) } else { Err(Refusal::StaleMember) };
    };
    if member.generation != Some(seat.member_epoch) {
        return Err(Refusal::IllegalGeneration);
    }
    Ok(alive(volatile, id, &seat.member.id, now.plus(traits.session_timeout)))
}

fn may_commit(seat: &Seat, member_epoch: Option<i32>, partition: PartitionHandle) -> bool {
    let Some(member_epoch) = member_epoch else { return false };
    let since = seat.assigned.get(&partition).or_else(|| seat.revoking.get(&partition));
    let has_had = since.is_some_and(|since| member_epoch >= *since);
    let may = has_had || mutated(Mutation::ConsumerOldEpochCommits);
    member_epoch == seat.member_epoch || (member_epoch < seat.member_epoch && may)
}

/// Notes that a member was heard of, if it has a session.
pub(super) fn alive(volatile: &Volatile, group: &GroupId, member: &MemberId, until: Now) -> Option<Change> {
    let known = volatile.consumer(group)?.sessions.contains_key(member);
    known.then(|| Change::Alive { group: group.clone(), member: Arc::clone(member), until })
}

impl Roster {
    /// May this member read offsets (upstream `ConsumerGroup.validateOffsetFetch`)? A request that names none may.
    ///
    /// # Errors
    /// [`Refusal::UnknownMember`], [`Refusal::StaleMember`], of a member of the classic protocol
    /// [`Refusal::IllegalGeneration`].
    pub fn check_read(&self, member: Option<&str>, member_epoch: i32) -> Result<(), Refusal> {
        let Some(member) = member.or_else(|| (member_epoch >= 0).then_some("")) else { return Ok(()) };
        let seat = self.seat(member).ok_or(Refusal::UnknownMember)?;
        match &seat.member.classic {
            _ if member_epoch == seat.member_epoch => Ok(()),
            _ if mutated(Mutation::ConsumerAnyEpochReads) => Ok(()),
            Some(_) => Err(Refusal::IllegalGeneration),
            None => Err(Refusal::StaleMember),
        }
    }
}
