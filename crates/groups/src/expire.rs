//! Offsets that nobody needs any more (`offsets.retention.minutes`, KIP-211).
//!
//! Purpose: says what of one group is old at a moment, as one event. A group without members keeps an offset for the
//! retention time from its commit, or from when its last member went if that is later (Kafka counts from the latter
//! alone: an offset that an administrator set a moment ago may vanish at once); a consuming group loses offsets of
//! topics that nobody reads, counted from their commit. Offsets that an undecided transaction carries are never touched,
//! nor what it would replace (GRP-16). A group that holds nothing and has no members goes. Times are the node's clock in events, so
//! a restart changes nothing. What it does not do: change state, ask for the time, know topics: their names are asked for.

use alloc::vec::Vec;

use semel_events::{Event, GroupDeleted, OffsetsDeleted};
use semel_types::{DurationMs, GroupId, Now, PartitionHandle};

use crate::{Group, Phase, State, Volatile};

/// Offsets that one event deletes, at most; the rest goes with the next one.
pub const OFFSETS_PER_EVENT_MAX: usize = 10_000;

impl State {
    /// The first group behind this one.
    #[must_use]
    pub fn group_after(&self, id: Option<&GroupId>) -> Option<&GroupId> {
        use core::ops::Bound::{Excluded, Unbounded};
        let after = id.map_or(Unbounded, |id| Excluded(id.clone()));
        self.range((after, Unbounded)).next()
    }

    /// What of a group is older than `retention` at `now`: ask again once the event is applied.
    ///
    /// `topic_of` names the topic of a partition while that exists.
    #[must_use]
    pub fn old_offsets<'a>(
        &self,
        volatile: &Volatile,
        id: &GroupId,
        (retention, now): (DurationMs, Now),
        topic_of: impl Fn(PartitionHandle) -> Option<&'a str>,
    ) -> Option<Event> {
        let group = self.group(id)?;
        if !self.may_lose_offsets(volatile, id, group) {
            return None;
        }
        let since = if group.is_empty() { group.emptied() } else { None };
        let old = |committed: Now| now >= committed.max(since.unwrap_or_default()).plus(retention);
        let unread = |partition| {
            let topic = topic_of(partition).unwrap_or_default();
            self.check_offset_of(volatile, id, topic, partition).is_ok()
        };
        let mut partitions: Vec<_> = self
            .offsets(id)
            .filter(|stored| old(stored.now) && unread(stored.committed.partition))
            .map(|stored| stored.committed.partition)
            .collect();
        if self.offsets(id).count() == partitions.len() && self.is_forgettable(volatile, id, group) {
            return Some(GroupDeleted { group: id.clone(), now }.into());
        }
        partitions.truncate(OFFSETS_PER_EVENT_MAX);
        (!partitions.is_empty()).then(|| OffsetsDeleted { group: id.clone(), partitions, now }.into())
    }

    /// A group of members that are no consumers loses nothing, and neither does a classic one that is not settled.
    fn may_lose_offsets(&self, volatile: &Volatile, id: &GroupId, group: &Group) -> bool {
        let live = volatile.group(id).map(|live| &**live);
        let settled = group
            .classic()
            .is_none_or(|membership| matches!(Phase::of(membership, live), Phase::Empty | Phase::Stable));
        settled && self.check_offset_delete(volatile, id).is_ok()
    }

    /// No members, nobody on the way to become one, and no transaction that carries offsets.
    fn is_forgettable(&self, volatile: &Volatile, id: &GroupId, group: &Group) -> bool {
        group.is_empty() && volatile.pulse(id).is_none() && group.pending().next().is_none()
    }
}
