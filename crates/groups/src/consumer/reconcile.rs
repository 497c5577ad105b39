//! A member's way to its target: give up first, then take what is free (upstream `CurrentAssignmentBuilder`).
//!
//! Invariant: GRP-09 nothing is given to a member that another one has or still has to give up. A member that has to give
//! something up stays in its epoch until it says that it has.

use alloc::{collections::BTreeSet, vec::Vec};

use semel_events::{ConsumerMemberReconciled, ConsumerProgress, OwnedPartition};
use semel_types::{
    GroupId, Now, PartitionHandle,
    mutation::{Mutation, mutated},
};

use super::{AWAY, Owned, Roster, Seat};
use crate::MemberId;

/// What a member says it has.
pub type OwnedSet = BTreeSet<PartitionHandle>;

/// Where a member stands next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Next {
    member_epoch: i32,
    previous_epoch: i32,
    progress: ConsumerProgress,
    assigned: Owned,
    revoking: Owned,
}

/// `None` if it stays where it is. `owned`: what it says it has, `None` if it did not say.
pub(super) fn next(roster: &Roster, member: &MemberId, owned: Option<&OwnedSet>) -> Option<Next> {
    let seat = roster.seat(member)?;
    if seat.member_epoch == AWAY {
        return None;
    }
    let still_has =
        |revoking: &Owned| owned.is_none_or(|owned| revoking.keys().any(|one| owned.contains(one)));
    let moves = match seat.progress {
        ConsumerProgress::Stable => seat.member_epoch != roster.epoch(),
        ConsumerProgress::Revoking => !still_has(&seat.revoking),
        ConsumerProgress::Waiting => true,
    };
    if !moves {
        return None;
    }
    let next = step(roster, member, seat, still_has);
    let same = next.member_epoch == seat.member_epoch
        && next.progress == seat.progress
        && next.assigned == seat.assigned
        && next.revoking == seat.revoking;
    (!same).then_some(next)
}

fn step(roster: &Roster, member: &MemberId, seat: &Seat, still_has: impl Fn(&Owned) -> bool) -> Next {
    let split = |keep: bool| {
        let of = seat.assigned.iter().filter(|(partition, _)| seat.target.contains(partition) == keep);
        of.map(|(partition, since)| (*partition, *since)).collect::<Owned>()
    };
    let (mut assigned, revoking) = (split(true), split(false));
    let previous_epoch = seat.member_epoch;
    if !revoking.is_empty() && still_has(&revoking) {
        let (member_epoch, progress) = (seat.member_epoch, ConsumerProgress::Revoking);
        return Next { member_epoch, previous_epoch, progress, assigned, revoking };
    }
    let member_epoch = roster.epoch();
    let wanted: Vec<_> = seat.target.iter().filter(|one| !assigned.contains_key(one)).copied().collect();
    let is_free = |partition: &PartitionHandle| {
        let others = roster.owner(*partition).filter(|owner| *owner != member);
        others.is_none() || mutated(Mutation::ConsumerOwnersNotAwaited)
    };
    let (free, taken): (Vec<_>, Vec<_>) = wanted.into_iter().partition(is_free);
    assigned.extend(free.into_iter().map(|partition| (partition, member_epoch)));
    let progress = if taken.is_empty() { ConsumerProgress::Stable } else { ConsumerProgress::Waiting };
    Next { member_epoch, previous_epoch, progress, assigned, revoking: Owned::new() }
}

impl Next {
    pub(super) fn event(&self, group: GroupId, member: MemberId, now: Now) -> ConsumerMemberReconciled {
        ConsumerMemberReconciled {
            group,
            member,
            epoch: self.member_epoch,
            previous_epoch: self.previous_epoch,
            progress: self.progress,
            assigned: list(&self.assigned),
            revoking: list(&self.revoking),
            now,
        }
    }
}

/// As it stands in events.
pub(super) fn list(owned: &Owned) -> Vec<OwnedPartition> {
    let owned = owned.iter();
    owned.map(|(partition, since)| OwnedPartition { partition: *partition, since: *since }).collect()
}

/// Would a member that waits for partitions of others get any now?
pub(super) fn has_free(roster: &Roster, seat: &Seat) -> bool {
    let wanted = seat.target.iter().filter(|one| !seat.assigned.contains_key(one));
    wanted.into_iter().all(|partition| roster.owner(*partition).is_none_or(|owner| *owner == seat.member.id))
}
