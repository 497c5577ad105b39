//! Commits and reads of offsets by members of a streams group.

use semel_types::{
    PartitionHandle,
    mutation::{Mutation, mutated},
};

use super::{Roster, Seat};
use crate::{Member, Refusal};

/// May this member commit offsets of these partitions (upstream `StreamsGroup.validateOffsetCommit`)? It makes no sign
/// of life.
///
/// A member that has since got a later epoch may still commit what it has had since before the epoch that it names:
/// nobody else can have committed there in between.
///
/// # Errors
/// [`Refusal`] if it may not; nothing changes then.
pub(crate) fn check_commit(
    roster: &Roster,
    member: Member<'_>,
    mut partitions: impl Iterator<Item = PartitionHandle>,
) -> Result<(), Refusal> {
    let nobody = member.generation.is_none() && member.member_id.is_empty() && member.instance.is_none();
    if member.generation.is_none() && (roster.is_empty() || (member.transactional && nobody)) {
        return Ok(());
    }
    let seat = roster.seat(member.member_id).ok_or(Refusal::UnknownMember)?;
    if !member.transactional && !member.knows_epochs {
        return Err(Refusal::NeedsEpochs);
    }
    let fresh = |partition| may_commit(roster, seat, member.generation, partition);
    if partitions.all(fresh) { Ok(()) } else { Err(Refusal::StaleMember) }
}

fn may_commit(roster: &Roster, seat: &Seat, member_epoch: Option<i32>, partition: PartitionHandle) -> bool {
    let Some(member_epoch) = member_epoch else { return false };
    if member_epoch >= seat.position.member_epoch {
        return member_epoch == seat.position.member_epoch;
    }
    if mutated(Mutation::StreamsOldEpochCommits) {
        return true;
    }
    let Some(task) = roster.task_of(partition) else { return false };
    let held = &seat.position;
    let since = held.assigned.active.get(&task).or_else(|| held.revoking.active.get(&task));
    since.is_some_and(|since| member_epoch >= *since)
}

impl Roster {
    /// May this member read offsets (upstream `StreamsGroup.validateOffsetFetch`)? A request that names none may.
    ///
    /// # Errors
    /// [`Refusal::UnknownMember`] or [`Refusal::StaleMember`].
    pub fn check_read(&self, member: Option<&str>, member_epoch: i32) -> Result<(), Refusal> {
        let Some(member) = member.or_else(|| (member_epoch >= 0).then_some("")) else { return Ok(()) };
        let seat = self.seat(member).ok_or(Refusal::UnknownMember)?;
        if member_epoch == seat.position.member_epoch { Ok(()) } else { Err(Refusal::StaleMember) }
    }
}
