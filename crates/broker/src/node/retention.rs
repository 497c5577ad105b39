//! The walk over all groups that forgets old offsets.
//!
//! Purpose: once in `offsets.retention.check.interval.ms` every group is looked at, a bounded number of them in one
//! step. Invariant: what is forgotten is an event that a group's own rules asked for (`semel_groups`). What it does not
//! do: say what is old.

use semel_types::{DurationMs, GroupId, Now};

use super::Step;

/// Groups that one step looks at, at most.
const GROUPS_PER_STEP: usize = 1024;

/// Events that one step makes, at most: each deletes a bounded number of offsets.
const EVENTS_PER_STEP: usize = 16;

/// Worst case of their bytes: five for each partition.
pub(super) const STEP_BYTES: u64 =
    (EVENTS_PER_STEP * (semel_groups::OFFSETS_PER_EVENT_MAX * 5 + 1024)) as u64;

/// Where the walk stands.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// When the next group is to be looked at.
    due: Now,
    /// The group that was looked at last, within a walk.
    last: Option<GroupId>,
    interval: DurationMs,
}

impl Walk {
    /// The first walk begins an interval after the start.
    pub(super) fn new(now: Now, interval: DurationMs) -> Self {
        Self { due: now.plus(interval), last: None, interval }
    }

    /// When the next step of it is due.
    pub(super) const fn due(&self) -> Now {
        self.due
    }
}

impl Step<'_> {
    /// One step of the walk, if it is due.
    pub(super) fn forget_old_offsets(&mut self) {
        let now = self.context.now;
        let mut walk = self.walk().clone();
        if walk.due > now {
            return;
        }
        let mut events = 0;
        for _ in 0..GROUPS_PER_STEP {
            let Some(group) = self.state().groups.group_after(walk.last.as_ref()).cloned() else {
                *self.walk() = Walk::new(now, walk.interval);
                return;
            };
            while let Some(event) = self.old_offsets(&group) {
                self.apply(event);
                events += 1;
                if events == EVENTS_PER_STEP {
                    *self.walk() = walk;
                    return;
                }
            }
            walk.last = Some(group);
        }
        *self.walk() = walk;
    }

    fn old_offsets(&self, group: &GroupId) -> Option<semel_events::Event> {
        let state = self.state();
        let topic_of = |handle| state.catalog.locate(handle).map(|(topic, _)| topic.name().as_str());
        let age = (self.settings.offsets_retention(), self.context.now);
        state.groups.old_offsets(self.groups(), group, age, topic_of)
    }
}
