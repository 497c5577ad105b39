//! What happens by itself: sessions end, a rebalance has waited for long enough, connections go.

use alloc::{sync::Arc, vec::Vec};

use semel_types::ConnectionNumber;

use super::draft::Draft;
use crate::{MemberId, Waiter, history::Reason};

impl Draft<'_> {
    pub(super) fn tick(&mut self) {
        let now = self.now();
        let waiting = self.live.pending.len();
        self.live.pending.retain(|_, until| *until > now);
        let silent = self.silent();
        let late = self.late(&silent);
        if !silent.is_empty() || !late.is_empty() || self.live.pending.len() < waiting {
            self.because_of(Reason::SessionExpired, &silent);
            self.because_of(Reason::NotSynced, &late);
            self.remove(&[silent, late].concat());
        }
        if self.live.rebalance.as_ref().is_some_and(|rebalance| rebalance.complete_at <= now) {
            self.rebalance_is_due();
        }
    }

    /// Members that were silent for too long.
    fn silent(&self) -> Vec<MemberId> {
        let now = self.now();
        let sessions = self.live.sessions.iter();
        let over = sessions.filter(|(id, until)| **until <= now && !self.live.syncs.contains_key(*id));
        over.map(|(id, _)| Arc::clone(id)).collect()
    }

    /// Others that have not asked for their part in time.
    fn late(&mut self, silent: &[MemberId]) -> Vec<MemberId> {
        if self.live.sync_by.is_none_or(|by| by > self.now()) {
            return Vec::new();
        }
        self.live.sync_by = None;
        let unsynced = core::mem::take(&mut self.live.unsynced);
        unsynced.into_iter().filter(|id| !silent.contains(id)).collect()
    }

    /// The first rebalance is put off while members keep coming, to its end at the latest.
    fn rebalance_is_due(&mut self) {
        let (now, delay) = (self.now(), self.settings.initial_rebalance_delay);
        let rebalance = self.live.rebalance.as_mut().expect("it is due");
        match rebalance.initial {
            Some((latest, true)) if now < latest => {
                rebalance.initial = Some((latest, false));
                rebalance.complete_at = now.plus(delay).min(latest);
            }
            Some(_) | None => self.complete(),
        }
    }

    /// Requests of a connection that is gone wait no more. A member that has not been in any generation is forgotten:
    /// nobody knows its id; one that has been goes back to not having joined, and its session starts anew.
    pub(super) fn disconnected(&mut self) {
        let connection: ConnectionNumber = self.waiter.connection;
        let is_of = |waiter: &Waiter| waiter.connection == connection;
        let synced: Vec<_> = self
            .live
            .syncs
            .iter()
            .filter(|(_, waiter)| is_of(waiter))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in &synced {
            self.live.syncs.remove(id);
            self.touch(id);
        }
        let Some(rebalance) = &mut self.live.rebalance else { return };
        let joins = rebalance.joined.iter().filter(|(_, joined)| is_of(&joined.waiter));
        let joins: Vec<_> = joins.map(|(id, _)| Arc::clone(id)).collect();
        for id in &joins {
            rebalance.joined.remove(id);
        }
        let is_over = rebalance.joined.is_empty() && self.membership.is_empty();
        if is_over {
            self.live.rebalance = None;
        }
        joins.iter().for_each(|id| self.touch(id));
    }
}
