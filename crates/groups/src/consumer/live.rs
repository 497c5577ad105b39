//! What is known of a consumer group and need not survive.

use alloc::{collections::BTreeMap, sync::Arc};

use semel_types::{DurationMs, Now};

use super::{Roster, Seat};
use crate::MemberId;

/// One consumer group's volatile side.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// When each member is taken for dead.
    pub(crate) sessions: BTreeMap<MemberId, Now>,
    /// Until when a member has to have given partitions up, and in which epoch it was asked to.
    pub(crate) revocations: BTreeMap<MemberId, (Now, i32)>,
    /// Until when a member of the classic protocol has to join or to sync.
    pub(crate) classic_by: BTreeMap<MemberId, Now>,
    /// The version of the topics in which the subscriptions were last looked at.
    pub(crate) topics_seen: Option<u64>,
}

impl Live {
    /// As after a start: everybody's time starts anew, nobody has to join.
    pub(crate) fn of(roster: &Roster, session: DurationMs, now: Now) -> Self {
        let mut live = Self::default();
        for (id, seat) in roster.seats() {
            let session = seat.member.classic.as_ref().map_or(session, |traits| traits.session_timeout);
            live.sessions.insert(Arc::clone(id), now.plus(session));
            live.watch_revocation(id, seat, now);
        }
        live
    }

    /// Were the subscriptions looked at in this version of the topics?
    #[must_use]
    pub fn has_seen(&self, version: u64) -> bool {
        self.topics_seen == Some(version)
    }

    /// Notes until when a member has to have given up what it has to.
    pub(crate) fn watch_revocation(&mut self, id: &MemberId, seat: &Seat, now: Now) {
        if seat.revoking.is_empty() || seat.member_epoch < 0 {
            self.revocations.remove(id);
        } else {
            let asked =
                self.revocations.get(id).is_some_and(|(_, member_epoch)| *member_epoch == seat.member_epoch);
            if !asked {
                let by = now.plus(seat.member.rebalance_timeout);
                self.revocations.insert(Arc::clone(id), (by, seat.member_epoch));
            }
        }
    }

    pub(crate) fn forget(&mut self, id: &str) {
        self.sessions.remove(id);
        self.revocations.remove(id);
        self.classic_by.remove(id);
    }

    pub(crate) fn due(&self) -> Option<Now> {
        let revocations = self.revocations.values().map(|(by, _)| *by);
        self.sessions.values().copied().chain(revocations).chain(self.classic_by.values().copied()).min()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }
}
