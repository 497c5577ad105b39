//! What is known of a streams group and need not survive.

use alloc::{collections::BTreeMap, sync::Arc};

use semel_events::StreamsProgress;
use semel_types::{DurationMs, Now};

use super::{Roster, Seat, TaskId};
use crate::{MemberId, history::Causes};

/// How far a member has read the changelogs of its stores, summed up for each task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offsets {
    /// How far.
    pub read: BTreeMap<TaskId, i64>,
    /// Where the changelogs ended.
    pub end: BTreeMap<TaskId, i64>,
}

/// One streams group's volatile side.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// When each member is taken for dead.
    pub(crate) sessions: BTreeMap<MemberId, Now>,
    /// Until when a member has to have given tasks up, and in which epoch it was asked to.
    pub(crate) revocations: BTreeMap<MemberId, (Now, i32)>,
    /// The first target of a group that was empty is computed then.
    pub(crate) first_target_at: Option<Now>,
    /// The member that asked all to shut down; until the group is empty.
    pub(crate) shutdown_by: Option<MemberId>,
    /// Counts changes of who serves what.
    pub(crate) endpoint_epoch: i32,
    pub(crate) offsets: BTreeMap<MemberId, Arc<Offsets>>,
    /// What has changed since the last target, for people.
    pub(crate) causes: Causes,
}

impl Live {
    /// As after a start: everybody's time starts anew; stores are told of again.
    pub(crate) fn of(roster: &Roster, session: DurationMs, now: Now) -> Self {
        let mut live = Self::default();
        for (id, seat) in roster.seats() {
            live.sessions.insert(Arc::clone(id), now.plus(session));
            live.watch_revocation(id, seat, now);
        }
        live
    }

    /// Notes until when a member has to have given up what it has to.
    pub(crate) fn watch_revocation(&mut self, id: &MemberId, seat: &Seat, now: Now) {
        let member_epoch = seat.position.member_epoch;
        if seat.position.progress != StreamsProgress::Revoking || member_epoch < 0 {
            self.revocations.remove(id);
        } else if self.revocations.get(id).is_none_or(|(_, asked)| *asked != member_epoch) {
            self.revocations.insert(Arc::clone(id), (now.plus(seat.member.rebalance_timeout), member_epoch));
        }
    }

    /// A member is gone.
    pub(crate) fn forget(&mut self, id: &str) {
        self.sessions.remove(id);
        self.revocations.remove(id);
        self.offsets.remove(id);
    }

    /// What a member has said of its stores.
    #[must_use]
    pub fn offsets(&self, id: &str) -> Option<&Offsets> {
        self.offsets.get(id).map(|offsets| &**offsets)
    }

    pub(crate) fn due(&self) -> Option<Now> {
        let revocations = self.revocations.values().map(|(by, _)| *by);
        self.sessions.values().copied().chain(revocations).chain(self.first_target_at).min()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }
}
