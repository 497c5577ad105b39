//! Sets of tasks: what a member shall get, and what it has.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use semel_events::{StreamsActiveTask, StreamsHeldTasks, StreamsTarget, StreamsTaskId};

use crate::MemberId;

/// A task: one partition of one subtopology.
pub type TaskId = StreamsTaskId;

/// Tasks by the part that a member has in them. No task stands in two of the three.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tasks {
    /// It works on these.
    pub active: BTreeSet<TaskId>,
    /// It keeps a copy of their stores.
    pub standby: BTreeSet<TaskId>,
    /// It restores their stores, to work on them later. No target of this version has any.
    pub warmup: BTreeSet<TaskId>,
}

impl Tasks {
    pub(crate) fn of_target(target: &StreamsTarget) -> Self {
        let set = |tasks: &[TaskId]| tasks.iter().cloned().collect();
        Self { active: set(&target.active), standby: set(&target.standby), warmup: BTreeSet::new() }
    }

    pub(crate) fn to_target(&self, member: &MemberId) -> StreamsTarget {
        let list = |tasks: &BTreeSet<TaskId>| tasks.iter().cloned().collect();
        StreamsTarget { member: member.clone(), active: list(&self.active), standby: list(&self.standby) }
    }

    /// Is one of those tasks among these, in the same part?
    fn has_any_of(&self, held: &HeldTasks) -> bool {
        held.active.keys().any(|task| self.active.contains(task))
            || held.standby.iter().any(|task| self.standby.contains(task))
            || held.warmup.iter().any(|task| self.warmup.contains(task))
    }

    /// What a member says it owns: has it let go of all of those? It has not if it does not say.
    pub(crate) fn have_let_go(owned: Option<&Self>, held: &HeldTasks) -> bool {
        owned.is_some_and(|owned| !owned.has_any_of(held))
    }
}

/// Tasks that a member has; the active ones with the assignment's epoch in which it got each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldTasks {
    /// It works on these.
    pub active: BTreeMap<TaskId, i32>,
    /// It keeps a copy of their stores.
    pub standby: BTreeSet<TaskId>,
    /// It restores their stores.
    pub warmup: BTreeSet<TaskId>,
}

impl HeldTasks {
    /// None at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// Does a member that says it owns this own nothing beyond these?
    pub(crate) fn contain(&self, owned: &Tasks) -> bool {
        owned.active.iter().all(|task| self.active.contains_key(task))
            && owned.standby.is_subset(&self.standby)
            && owned.warmup.is_subset(&self.warmup)
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        self.active.append(&mut other.active);
        self.standby.append(&mut other.standby);
        self.warmup.append(&mut other.warmup);
    }

    /// The active tasks are taken for having been there always: a static member goes, and its next id has them.
    pub(crate) fn forget_epochs(&mut self) {
        self.active.values_mut().for_each(|since| *since = 0);
    }

    pub(crate) fn of_event(held: &StreamsHeldTasks) -> Self {
        Self {
            active: held.active.iter().map(|active| (active.task.clone(), active.since)).collect(),
            standby: held.standby.iter().cloned().collect(),
            warmup: held.warmup.iter().cloned().collect(),
        }
    }

    pub(crate) fn to_event(&self) -> StreamsHeldTasks {
        let active = |(task, since): (&TaskId, &i32)| StreamsActiveTask { task: task.clone(), since: *since };
        let list = |tasks: &BTreeSet<TaskId>| -> Vec<_> { tasks.iter().cloned().collect() };
        StreamsHeldTasks {
            active: self.active.iter().map(active).collect(),
            standby: list(&self.standby),
            warmup: list(&self.warmup),
        }
    }
}
