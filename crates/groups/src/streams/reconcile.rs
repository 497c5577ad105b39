//! How a member gets from the tasks that it has to those that it shall have (upstream `CurrentAssignmentBuilder`).
//!
//! Purpose: [`step`] takes a member one step on. Invariants: a task is worked on by one member at a time, and stands
//! on one instance once: it is given only when nobody else has it, nor still has to give it up; a member is given
//! nothing before it has let go of what it must. What it does not do: time, events.
//!
//! | progress | waits for | then |
//! |---|---|---|
//! | Stable | a newer target | next step |
//! | Revoking | the member to say that it let go | next step, its epoch one higher while there is more to give up |
//! | Waiting | other members to let go | next step: takes what is free |

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use semel_events::StreamsProgress;
use semel_types::mutation::{Mutation, mutated};

use super::{HeldTasks, TaskId, Tasks};

/// Who else has which task: all other members, with what they have and what they still have to give up.
#[derive(Clone, Debug, Default)]
pub struct Others {
    active: BTreeMap<TaskId, BTreeSet<Arc<str>>>,
    copies: BTreeMap<TaskId, BTreeSet<Arc<str>>>,
}

impl Others {
    /// One other member's tasks.
    pub fn add(&mut self, process: &Arc<str>, tasks: &HeldTasks) {
        for task in tasks.active.keys() {
            self.active.entry(task.clone()).or_default().insert(Arc::clone(process));
        }
        for task in tasks.standby.iter().chain(&tasks.warmup) {
            self.copies.entry(task.clone()).or_default().insert(Arc::clone(process));
        }
    }

    fn is_worked_on(&self, task: &TaskId) -> bool {
        self.active.contains_key(task)
    }

    /// Another member of this instance has it in whatever part.
    fn is_on(&self, process: &str, task: &TaskId) -> bool {
        let has = |owners: &BTreeMap<TaskId, BTreeSet<Arc<str>>>| {
            owners.get(task).is_some_and(|processes| processes.contains(process))
        };
        has(&self.active) || has(&self.copies)
    }
}

/// Where a member stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// Its epoch.
    pub member_epoch: i32,
    /// The one before.
    pub previous_member_epoch: i32,
    /// How far it is.
    pub progress: StreamsProgress,
    /// What it has.
    pub assigned: HeldTasks,
    /// What it has to give up and still owns.
    pub revoking: HeldTasks,
}

impl Position {
    /// A member that has just come.
    #[must_use]
    pub fn new() -> Self {
        Self {
            member_epoch: 0,
            previous_member_epoch: 0,
            progress: StreamsProgress::Stable,
            assigned: HeldTasks::default(),
            revoking: HeldTasks::default(),
        }
    }

    /// It has its target, and the target is of this epoch.
    #[must_use]
    pub fn has_arrived(&self, assignment_epoch: i32) -> bool {
        self.progress == StreamsProgress::Stable && self.member_epoch == assignment_epoch
    }
}

impl Default for Position {
    fn default() -> Self {
        Self::new()
    }
}

/// What a member is to reach.
#[derive(Clone, Copy, Debug)]
pub struct Goal<'a> {
    /// The target's epoch.
    pub assignment_epoch: i32,
    /// Its tasks.
    pub tasks: &'a Tasks,
    /// Instance of the member.
    pub process: &'a Arc<str>,
    /// What it says it owns, if it says so.
    pub owned: Option<&'a Tasks>,
    /// What others have.
    pub others: &'a Others,
}

/// One step; `None` if it has to stay where it is.
#[must_use]
pub fn step(from: &Position, goal: &Goal<'_>) -> Option<Position> {
    let epoch = match from.progress {
        StreamsProgress::Stable if from.member_epoch == goal.assignment_epoch => return None,
        StreamsProgress::Stable | StreamsProgress::Waiting => from.member_epoch,
        StreamsProgress::Revoking if !Tasks::have_let_go(goal.owned, &from.revoking) => return None,
        StreamsProgress::Revoking => from.member_epoch.saturating_add(1),
    };
    Some(next(from, epoch, goal)).filter(|next| next != from)
}

/// Three parts of what a member has and shall have.
#[derive(Default)]
struct Difference {
    /// Keeps, and gets at once without having to let go of anything.
    kept: HeldTasks,
    /// Has to give up.
    revoking: HeldTasks,
    /// Gets when nothing has to be given up.
    granted: HeldTasks,
    /// Something is not free.
    waits: bool,
}

fn next(from: &Position, epoch: i32, goal: &Goal<'_>) -> Position {
    let mut parts = Difference::default();
    diff_active(&mut parts, from, goal);
    diff_standby(&mut parts, from, goal);
    diff_warmup(&mut parts, from, goal);
    if promote(&mut parts, from, goal) {
        return Position {
            member_epoch: epoch,
            previous_member_epoch: from.member_epoch,
            progress: StreamsProgress::Revoking,
            assigned: parts.kept,
            revoking: parts.revoking,
        };
    }
    parts.kept.merge(parts.granted);
    Position {
        member_epoch: goal.assignment_epoch,
        previous_member_epoch: from.member_epoch,
        progress: if parts.waits { StreamsProgress::Waiting } else { StreamsProgress::Stable },
        assigned: parts.kept,
        revoking: HeldTasks::default(),
    }
}

fn diff_active(parts: &mut Difference, from: &Position, goal: &Goal<'_>) {
    for (task, since) in &from.assigned.active {
        let stays = goal.tasks.active.contains(task);
        let part = if stays { &mut parts.kept } else { &mut parts.revoking };
        part.active.insert(task.clone(), *since);
    }
    for task in goal.tasks.active.iter().filter(|task| !from.assigned.active.contains_key(*task)) {
        let is_taken = goal.others.is_worked_on(task) || goal.others.is_on(goal.process, task);
        if is_taken && !mutated(Mutation::StreamsOwnersNotAwaited) {
            parts.waits = true;
        } else {
            parts.granted.active.insert(task.clone(), goal.assignment_epoch);
        }
    }
}

/// A task that the member works on or warms up, and shall keep a copy of, changes its part at once: the store is
/// there. It still has to give up working on it.
fn diff_standby(parts: &mut Difference, from: &Position, goal: &Goal<'_>) {
    for task in &from.assigned.standby {
        if goal.tasks.standby.contains(task) {
            parts.kept.standby.insert(task.clone());
        } else if !goal.tasks.warmup.contains(task) || goal.others.is_on(goal.process, task) {
            parts.revoking.standby.insert(task.clone());
        }
    }
    for task in goal.tasks.standby.iter().filter(|task| !from.assigned.standby.contains(*task)) {
        let has_store = from.assigned.active.contains_key(task) || from.assigned.warmup.contains(task);
        if goal.others.is_on(goal.process, task) {
            parts.waits = true;
        } else if has_store {
            parts.kept.standby.insert(task.clone());
        } else {
            parts.granted.standby.insert(task.clone());
        }
    }
}

fn diff_warmup(parts: &mut Difference, from: &Position, goal: &Goal<'_>) {
    for task in &from.assigned.warmup {
        if goal.tasks.warmup.contains(task) {
            parts.kept.warmup.insert(task.clone());
        } else if !goal.tasks.standby.contains(task) || goal.others.is_on(goal.process, task) {
            parts.revoking.warmup.insert(task.clone());
        }
    }
    for task in goal.tasks.warmup.iter().filter(|task| !from.assigned.warmup.contains(*task)) {
        let works = from.assigned.active.contains_key(task);
        if works || goal.others.is_on(goal.process, task) {
            parts.waits = true;
        } else if from.assigned.standby.contains(task) {
            parts.kept.warmup.insert(task.clone());
        } else {
            parts.granted.warmup.insert(task.clone());
        }
    }
}

/// A copy that shall become the active task is not given up: it stays as it is until the task is granted. Says whether
/// anything is left to be given up first.
fn promote(parts: &mut Difference, from: &Position, goal: &Goal<'_>) -> bool {
    for task in &goal.tasks.active {
        parts.revoking.standby.remove(task);
        parts.revoking.warmup.remove(task);
    }
    let revokes = !parts.revoking.is_empty() && !Tasks::have_let_go(goal.owned, &parts.revoking);
    let stays = |task: &&TaskId| {
        goal.tasks.active.contains(*task) && (revokes || !parts.granted.active.contains_key(*task))
    };
    let standby: BTreeSet<_> = from.assigned.standby.iter().filter(stays).cloned().collect();
    let warmup: BTreeSet<_> = from.assigned.warmup.iter().filter(stays).cloned().collect();
    parts.kept.standby.extend(standby);
    parts.kept.warmup.extend(warmup);
    revokes
}
