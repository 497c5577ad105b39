//! Leaving, and what happens by itself: silent members, members that do not give up, the first target.

use alloc::{sync::Arc, vec, vec::Vec};

use semel_events::{StreamsMemberReconciled, StreamsMembersRemoved};

use super::{AWAY, Denied, HeldTasks, Leave, Live, Roster, Seat, Told, draft::Draft};
use crate::{Kind, MemberId, Refusal, history::Reason};

impl Draft<'_> {
    pub(super) fn leave(&mut self, leave: &Leave) -> Result<Told, Denied> {
        if !matches!(self.kind, Some(Kind::Streams(_))) {
            return Err((Refusal::UnknownGroup, None));
        }
        let seat = match &leave.instance {
            None => self.roster.seat(&leave.member),
            Some(instance) => self.roster.by_instance(instance),
        };
        let seat = seat.ok_or((Refusal::UnknownMember, None))?.clone();
        if seat.member.id != leave.member {
            return Err((Refusal::FencedInstance, None));
        }
        if leave.shutdown && self.live.shutdown_by.is_none() {
            self.live_mut().shutdown_by = Some(Arc::clone(&leave.member));
        }
        let goes_for_good = leave.instance.is_none() || !leave.will_return;
        if goes_for_good {
            self.remove(vec![Arc::clone(&leave.member)], Reason::Left);
        } else {
            self.set_away(&seat);
        }
        Ok(Told {
            member: Arc::clone(&leave.member),
            member_epoch: if leave.will_return { AWAY } else { -1 },
            tasks: None,
            status: Vec::new(),
            endpoint_epoch: 0,
            served: None,
        })
    }

    /// A static member goes and will be back: it keeps its tasks until its session ends.
    fn set_away(&mut self, seat: &Seat) {
        let mut assigned = seat.position.assigned.clone();
        assigned.forget_epochs();
        let event = StreamsMemberReconciled {
            group: self.id.clone(),
            member: Arc::clone(&seat.member.id),
            epoch: AWAY,
            previous_epoch: seat.position.previous_member_epoch,
            progress: seat.position.progress,
            assigned: assigned.to_event(),
            revoking: HeldTasks::default().to_event(),
            now: self.now,
        };
        self.emit(event, Roster::reconcile);
        self.watch(&seat.member.id);
    }

    fn remove(&mut self, members: Vec<MemberId>, reason: Reason) {
        for id in &members {
            let member = self.roster.seat(id).map(|seat| seat.member.clone());
            self.note_cause(reason, member.as_ref());
            self.live_mut().forget(id);
        }
        let epoch = self.roster.group_epoch().saturating_add(1);
        let event = StreamsMembersRemoved { group: self.id.clone(), members, epoch, now: self.now };
        self.emit(event, Roster::remove);
        if self.roster.is_empty() {
            self.end_round();
            *self.live_mut() = Live::default();
        }
    }

    pub(super) fn tick(&mut self) {
        let now = self.now;
        let silent = self.live.sessions.iter().filter(|(_, until)| **until <= now).map(|(id, _)| id);
        let late = self.live.revocations.iter().filter(|(id, (by, member_epoch))| {
            let still = |seat: &Seat| seat.position.member_epoch == *member_epoch;
            *by <= now && self.roster.seat(id).is_some_and(still)
        });
        let silent: Vec<_> = silent.cloned().collect();
        let late: Vec<_> = late.map(|(id, _)| id).filter(|id| !silent.contains(id)).cloned().collect();
        self.live_mut().revocations.retain(|_, (by, _)| *by > now);
        for (gone, reason) in [(silent, Reason::SessionExpired), (late, Reason::DidNotRevoke)] {
            if !gone.is_empty() {
                self.remove(gone, reason);
            }
        }
        if self.live.first_target_at.is_some_and(|at| at <= now) {
            self.live_mut().first_target_at = None;
            if self.roster.assignment_epoch() < self.roster.group_epoch() && !self.roster.is_empty() {
                self.set_target();
            }
        }
    }
}
