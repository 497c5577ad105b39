//! One step of a member towards its target, as a table.

use semel_events::StreamsProgress::{self, Revoking, Stable, Waiting};

use super::*;

/// `a0` is the active task 0, `s1` the standby task 1, `w2` the warm-up task 2; words in a row.
fn tasks(words: &str) -> Tasks {
    let mut tasks = Tasks::default();
    for word in words.split_whitespace() {
        let (kind, number) = word.split_at(1);
        let task = task("0", number.parse().expect("a number"));
        match kind {
            "a" => tasks.active.insert(task),
            "s" => tasks.standby.insert(task),
            _ => tasks.warmup.insert(task),
        };
    }
    tasks
}

fn held(words: &str) -> HeldTasks {
    let Tasks { active, standby, warmup } = tasks(words);
    HeldTasks { active: active.into_iter().map(|task| (task, 1)).collect(), standby, warmup }
}

fn words(held: &HeldTasks) -> String {
    let list = |kind: &str, tasks: &mut dyn Iterator<Item = &TaskId>| -> Vec<String> {
        tasks.map(|task| alloc::format!("{kind}{}", task.partition.get())).collect()
    };
    let mut all = list("a", &mut held.active.keys());
    all.extend(list("s", &mut held.standby.iter()));
    all.extend(list("w", &mut held.warmup.iter()));
    all.join(" ")
}

struct Case {
    /// What the member has, and still has to give up.
    has: (&'static str, &'static str, StreamsProgress),
    target: &'static str,
    /// What it says it owns; `None` if it does not say.
    owned: Option<&'static str>,
    /// What others have: (instance, tasks). The member's own instance is `p`.
    others: &'static [(&'static str, &'static str)],
    /// Progress, what it has, what it has to give up; the member was in epoch 3, the target is of epoch 7.
    due: Option<(i32, StreamsProgress, &'static str, &'static str)>,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Nothing to give up: takes what is free.
    Case { has: ("", "", Stable), target: "a0 s1", owned: Some(""), others: &[], due: Some((7, Stable, "a0 s1", "")) },
    Case { has: ("a0", "", Stable), target: "a0 a1", owned: None, others: &[], due: Some((7, Stable, "a0 a1", "")) },
    // A task that another works on, or has to give up, is waited for.
    Case { has: ("a0", "", Stable), target: "a0 a1", owned: None, others: &[("q", "a1")], due: Some((7, Waiting, "a0", "")) },
    Case { has: ("a0", "", Waiting), target: "a0 a1", owned: None, others: &[], due: Some((7, Stable, "a0 a1", "")) },
    // What goes is given up first, and nothing is taken before.
    Case { has: ("a0 a1", "", Stable), target: "a1 a2", owned: None, others: &[], due: Some((3, Revoking, "a1", "a0")) },
    Case { has: ("a0 a1", "", Stable), target: "a1 a2", owned: Some("a0 a1"), others: &[], due: Some((3, Revoking, "a1", "a0")) },
    // It does not own it any more: nothing to give up.
    Case { has: ("a0 a1", "", Stable), target: "a1 a2", owned: Some("a1"), others: &[], due: Some((7, Stable, "a1 a2", "")) },
    // Not given up yet, or not said.
    Case { has: ("a1", "a0", Revoking), target: "a1 a2", owned: Some("a0 a1"), others: &[], due: None },
    Case { has: ("a1", "a0", Revoking), target: "a1 a2", owned: None, others: &[], due: None },
    Case { has: ("a1", "a0", Revoking), target: "a1 a2", owned: Some("a1"), others: &[], due: Some((7, Stable, "a1 a2", "")) },
    // The target moved on meanwhile: there is more to give up, in the next epoch.
    Case { has: ("a1", "a0", Revoking), target: "a2", owned: Some("a1"), others: &[], due: Some((4, Revoking, "", "a1")) },
    // A copy becomes the active task: it is no loss, and stays until the task is granted.
    Case { has: ("s0", "", Stable), target: "a0", owned: Some("s0"), others: &[], due: Some((7, Stable, "a0", "")) },
    Case { has: ("s0", "", Stable), target: "a0", owned: Some("s0"), others: &[("q", "a0")], due: Some((7, Waiting, "s0", "")) },
    Case { has: ("s0 a1", "", Stable), target: "a0", owned: None, others: &[], due: Some((3, Revoking, "s0", "a1")) },
    // An active task becomes a copy: it has to be given up, the store is kept.
    Case { has: ("a0", "", Stable), target: "s0", owned: Some("a0"), others: &[], due: Some((3, Revoking, "s0", "a0")) },
    Case { has: ("s0", "a0", Revoking), target: "s0", owned: Some("s0"), others: &[], due: Some((7, Stable, "s0", "")) },
    // Standby and warm-up change places at once.
    Case { has: ("w0", "", Stable), target: "s0", owned: Some("w0"), others: &[], due: Some((7, Stable, "s0", "")) },
    Case { has: ("s0", "", Stable), target: "w0", owned: Some("s0"), others: &[], due: Some((7, Stable, "w0", "")) },
    Case { has: ("w0", "", Stable), target: "a0", owned: Some("w0"), others: &[("q", "a0")], due: Some((7, Waiting, "w0", "")) },
    // Another member of the same instance has the store: one of them at a time.
    Case { has: ("", "", Stable), target: "s0", owned: Some(""), others: &[("p", "s0")], due: Some((7, Waiting, "", "")) },
    Case { has: ("", "", Stable), target: "a0", owned: Some(""), others: &[("p", "s0")], due: Some((7, Waiting, "", "")) },
    Case { has: ("", "", Stable), target: "s0", owned: Some(""), others: &[("p", "a0")], due: Some((7, Waiting, "", "")) },
    Case { has: ("", "", Stable), target: "s0", owned: Some(""), others: &[("q", "a0")], due: Some((7, Stable, "s0", "")) },
    Case { has: ("", "", Stable), target: "w0", owned: Some(""), others: &[("q", "s0")], due: Some((7, Stable, "w0", "")) },
    Case { has: ("", "", Stable), target: "w0", owned: Some(""), others: &[("p", "w0")], due: Some((7, Waiting, "", "")) },
];

#[test]
fn every_case_of_the_table() {
    for (number, case) in CASES.iter().enumerate() {
        let (has, revoking, progress) = case.has;
        let from = Position {
            member_epoch: 3,
            previous_member_epoch: 2,
            progress,
            assigned: held(has),
            revoking: held(revoking),
        };
        let mut others = Others::default();
        case.others.iter().for_each(|(process, tasks)| others.add(&name(process), &held(tasks)));
        let (target, owned) = (tasks(case.target), case.owned.map(tasks));
        let goal = Goal {
            assignment_epoch: 7,
            tasks: &target,
            process: &name("p"),
            owned: owned.as_ref(),
            others: &others,
        };
        let found = step(&from, &goal);
        let found = found
            .as_ref()
            .map(|next| (next.member_epoch, next.progress, words(&next.assigned), words(&next.revoking)));
        let due = case
            .due
            .map(|(at, progress, has, revoking)| (at, progress, has.to_string(), revoking.to_string()));
        assert_eq!(found, due, "case {number}: {} to {}", has, case.target);
    }
}

#[test]
fn a_member_at_its_target_stays() {
    let from = Position { member_epoch: 7, ..Position::new() };
    let (target, others) = (tasks("a0"), Others::default());
    let process = name("p");
    let goal = Goal { assignment_epoch: 7, tasks: &target, process: &process, owned: None, others: &others };
    assert_eq!(step(&from, &goal), None);
}
