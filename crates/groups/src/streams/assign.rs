//! The sticky assignor: who shall get which task (upstream `StickyTaskAssignor`, at Kafka 4.4's version).
//!
//! Purpose: [`assign`] gives every task one member that works on it, and those with stores copies on other instances.
//! Active tasks stay where they are if that leaves the members balanced, else they go where a copy of the store is,
//! the most complete one first, else to the instance with the least to do for its size. Invariants: every task has
//! exactly one active owner; no instance has a task twice; with as many instances as copies are asked, all copies are
//! given; the same input gives the same result. What it does not do: warm-up tasks (Kafka 4.4 hands out none), rack
//! awareness.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};

use semel_types::PartitionIndex;

use super::{ConfiguredSubtopology, HeldTasks, TaskId, Tasks};
use crate::MemberId;

/// A member as the assignor sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id.
    pub id: &'a MemberId,
    /// The instance that it belongs to.
    pub process: &'a Arc<str>,
    /// What it has.
    pub has: &'a HeldTasks,
    /// Stores that it says it has on its disk, and how far it has read their changelogs.
    pub offsets: &'a BTreeMap<TaskId, i64>,
}

/// Assigns all tasks; members must be there unless there are no tasks.
#[must_use]
pub fn assign(
    members: &[Candidate<'_>],
    subtopologies: &BTreeMap<Arc<str>, ConfiguredSubtopology>,
    standby_replicas: u32,
) -> BTreeMap<MemberId, Tasks> {
    if members.is_empty() {
        return BTreeMap::new();
    }
    let mut plan = Plan::new(members, subtopologies, standby_replicas);
    plan.assign_active();
    plan.assign_standby();
    let given = members.iter().zip(plan.members);
    given.map(|(member, seat)| (Arc::clone(member.id), seat.tasks)).collect()
}

/// A task with those who have something of it.
struct Job {
    task: TaskId,
    is_stateful: bool,
    /// Who works on it.
    active: Option<usize>,
    /// Who has its store: standby owners first, then those that only have it on their disk; the most complete first.
    copies: Vec<usize>,
}

/// A member in the plan.
struct Seat {
    process: usize,
    tasks: Tasks,
    count: u64,
}

/// An instance in the plan.
#[derive(Default)]
struct Process {
    members: BTreeSet<(u64, usize)>,
    tasks: BTreeSet<usize>,
}

impl Process {
    /// Tasks per member, to be compared.
    fn load(&self) -> u64 {
        ((self.tasks.len() as u64) << 24) / self.members.len().max(1) as u64
    }
}

/// What members may take before others have as much: the ceiling of the rest over those that are below it.
struct Quota {
    tasks: u64,
    members: u64,
    each: u64,
}

impl Quota {
    fn new(tasks: u64, members: u64) -> Self {
        Self { tasks, members, each: tasks.div_ceil(members.max(1)) }
    }

    /// A member has this many now; one that has its part is counted out.
    fn note(&mut self, count: u64) {
        if count == self.each {
            self.members = self.members.saturating_sub(1);
            self.tasks = self.tasks.saturating_sub(count);
            self.each = if self.members == 0 { 0 } else { self.tasks.div_ceil(self.members) };
        }
    }
}

struct Plan {
    jobs: Vec<Job>,
    members: Vec<Seat>,
    processes: Vec<Process>,
    by_load: BTreeSet<(u64, usize)>,
    active: Quota,
    all: Quota,
    standby_replicas: u32,
}

impl Plan {
    fn new(
        members: &[Candidate<'_>],
        subtopologies: &BTreeMap<Arc<str>, ConfiguredSubtopology>,
        standby_replicas: u32,
    ) -> Self {
        let jobs = jobs(members, subtopologies);
        let stateful = jobs.iter().filter(|job| job.is_stateful).count() as u64;
        let (tasks, count) = (jobs.len() as u64, members.len() as u64);
        let (seats, processes) = seats(members);
        let by_load = processes.iter().enumerate().map(|(at, process)| (process.load(), at)).collect();
        Self {
            jobs,
            members: seats,
            processes,
            by_load,
            active: Quota::new(tasks, count),
            all: Quota::new(tasks + stateful * u64::from(standby_replicas), count),
            standby_replicas,
        }
    }

    fn assign_active(&mut self) {
        let mut open = Vec::new();
        for job in self.order(|job| (job.task.partition, Arc::clone(&job.task.subtopology))) {
            match self.jobs[job].active.filter(|member| self.members[*member].count < self.active.each) {
                Some(member) => self.give_active(job, member),
                None => open.push(job),
            }
        }
        let mut rest = Vec::new();
        for job in open {
            let member = self.least_loaded_copy(job, false);
            match member.filter(|member| self.members[*member].count < self.active.each) {
                Some(member) => self.give_active(job, member),
                None => rest.push(job),
            }
        }
        rest.sort_by(|a, b| self.jobs[*a].task.cmp(&self.jobs[*b].task));
        for job in rest {
            let process = self.by_load.first().expect("there are members").1;
            let member = self.processes[process].members.first().expect("an instance has members").1;
            self.give_active(job, member);
        }
    }

    fn assign_standby(&mut self) {
        let mut open = Vec::new();
        let mut order = self.order(|job| (job.task.partition, Arc::clone(&job.task.subtopology)));
        order.retain(|job| self.jobs[*job].is_stateful);
        for job in order.into_iter().rev() {
            for given in 0..self.standby_replicas {
                match self.sticky_standby(job) {
                    Some(member) => self.give(job, member, false),
                    None => {
                        open.push((job, self.standby_replicas - given));
                        break;
                    }
                }
            }
        }
        open.sort_by(|(a, _), (b, _)| self.jobs[*b].task.cmp(&self.jobs[*a].task));
        for (job, missing) in open {
            for _ in 0..missing {
                let free = |(_, process): &&(u64, usize)| !self.processes[*process].tasks.contains(&job);
                let Some((_, process)) = self.by_load.iter().find(free) else { break };
                let member = self.processes[*process].members.first().expect("an instance has members").1;
                self.give(job, member, false);
            }
        }
    }

    /// A member that had the task before and may take its copy: the one that worked on it, else one with a copy.
    fn sticky_standby(&self, job: usize) -> Option<usize> {
        let may = |member: &usize| {
            let seat = &self.members[*member];
            !self.processes[seat.process].tasks.contains(&job) && seat.count < self.all.each
        };
        let active = self.jobs[job].active.filter(may);
        active.or_else(|| self.least_loaded_copy(job, true).filter(may))
    }

    /// Of those with a copy the one with the least to do, on an instance that has less to do as well; the first of
    /// equals. `elsewhere`: not on an instance that has the task.
    fn least_loaded_copy(&self, job: usize, elsewhere: bool) -> Option<usize> {
        let mut best: Option<(usize, u64, u64)> = None;
        for member in &self.jobs[job].copies {
            let seat = &self.members[*member];
            let process = &self.processes[seat.process];
            if elsewhere && process.tasks.contains(&job) {
                continue;
            }
            let load = process.load();
            if best.is_none_or(|(_, least, count)| load < least && seat.count < count) {
                best = Some((*member, load, seat.count));
            }
        }
        best.map(|(member, ..)| member)
    }

    fn give_active(&mut self, job: usize, member: usize) {
        self.give(job, member, true);
        self.active.note(self.members[member].count);
    }

    fn give(&mut self, job: usize, member: usize, is_active: bool) {
        let seat = &mut self.members[member];
        let process = &mut self.processes[seat.process];
        self.by_load.remove(&(process.load(), seat.process));
        process.members.remove(&(seat.count, member));
        seat.count += 1;
        process.members.insert((seat.count, member));
        process.tasks.insert(job);
        self.by_load.insert((process.load(), seat.process));
        let task = self.jobs[job].task.clone();
        if is_active {
            seat.tasks.active.insert(task)
        } else {
            seat.tasks.standby.insert(task)
        };
        self.all.note(seat.count);
    }

    fn order<K: Ord>(&self, key: impl Fn(&Job) -> K) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.jobs.len()).collect();
        order.sort_by_key(|job| key(&self.jobs[*job]));
        order
    }
}

fn seats(members: &[Candidate<'_>]) -> (Vec<Seat>, Vec<Process>) {
    let mut numbers: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    let mut processes: Vec<Process> = Vec::new();
    let mut seats = Vec::with_capacity(members.len());
    for (at, member) in members.iter().enumerate() {
        let process = *numbers.entry(member.process).or_insert_with(|| {
            processes.push(Process::default());
            processes.len() - 1
        });
        processes[process].members.insert((0, at));
        seats.push(Seat { process, tasks: Tasks::default(), count: 0 });
    }
    (seats, processes)
}

fn jobs(members: &[Candidate<'_>], subtopologies: &BTreeMap<Arc<str>, ConfiguredSubtopology>) -> Vec<Job> {
    let mut active: BTreeMap<&TaskId, usize> = BTreeMap::new();
    let mut copies: BTreeMap<&TaskId, Vec<(bool, i64, usize)>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        active.extend(member.has.active.keys().map(|task| (task, at)));
        let offset = |task| member.offsets.get(task).copied().unwrap_or(0);
        for task in &member.has.standby {
            copies.entry(task).or_default().push((true, offset(task), at));
        }
        for (task, offset) in member.offsets.iter().filter(|(task, _)| !member.has.standby.contains(*task)) {
            copies.entry(task).or_default().push((false, *offset, at));
        }
    }
    let mut jobs = Vec::new();
    for (name, part) in subtopologies {
        for partition in 0..i32::try_from(part.tasks).unwrap_or(i32::MAX) {
            let task = TaskId { subtopology: Arc::clone(name), partition: PartitionIndex::new(partition) };
            let mut ranked = copies.remove(&task).unwrap_or_default();
            ranked.sort_by_key(|(is_standby, offset, _)| (!is_standby, core::cmp::Reverse(*offset)));
            let ranked = ranked.into_iter().map(|(_, _, member)| member).collect();
            let active = active.get(&task).copied();
            jobs.push(Job { task, is_stateful: part.is_stateful, active, copies: ranked });
        }
    }
    jobs
}
