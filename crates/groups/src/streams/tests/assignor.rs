//! The assignor: balance, stickiness, copies.

use super::*;

struct Member {
    id: MemberId,
    process: Arc<str>,
    has: HeldTasks,
    offsets: BTreeMap<TaskId, i64>,
}

fn member(id: &str, process: &str) -> Member {
    Member { id: name(id), process: name(process), has: HeldTasks::default(), offsets: BTreeMap::new() }
}

fn parts(tasks: u32, is_stateful: bool) -> BTreeMap<Arc<str>, ConfiguredSubtopology> {
    let part = ConfiguredSubtopology { tasks, is_stateful, sources: BTreeMap::new() };
    [(name("0"), part)].into()
}

fn run(
    members: &mut [Member],
    parts: &BTreeMap<Arc<str>, ConfiguredSubtopology>,
    replicas: u32,
) -> BTreeMap<MemberId, Tasks> {
    let candidates: Vec<_> = (members.iter())
        .map(|member| Candidate {
            id: &member.id,
            process: &member.process,
            has: &member.has,
            offsets: &member.offsets,
        })
        .collect();
    let given = assign(&candidates, parts, replicas);
    for member in members.iter_mut() {
        let tasks = &given[&member.id];
        member.has.active = tasks.active.iter().map(|task| (task.clone(), 1)).collect();
        member.has.standby = tasks.standby.clone();
    }
    given
}

/// Every task once, no task twice on one instance.
fn check(members: &[Member], given: &BTreeMap<MemberId, Tasks>, tasks: u32) {
    let mut active = BTreeSet::new();
    let mut placed = BTreeSet::new();
    for member in members {
        let tasks = &given[&member.id];
        for task in &tasks.active {
            assert!(active.insert(task.clone()), "{task:?} has two owners");
        }
        for task in tasks.active.iter().chain(&tasks.standby) {
            assert!(
                placed.insert((Arc::clone(&member.process), task.clone())),
                "{task:?} twice on one instance"
            );
        }
    }
    assert_eq!(active.len(), tasks as usize);
}

fn loads(given: &BTreeMap<MemberId, Tasks>) -> Vec<usize> {
    given.values().map(|tasks| tasks.active.len() + tasks.standby.len()).collect()
}

#[test]
fn tasks_are_spread_evenly() {
    for count in 1..9u32 {
        let mut members: Vec<_> =
            (0..count).map(|at| member(&at.to_string(), &(at / 2).to_string())).collect();
        for tasks in [0, 1, 7, 16, 33] {
            let given = run(&mut members, &parts(tasks, true), 0);
            check(&members, &given, tasks);
            let loads = loads(&given);
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(most - least <= 1 || count % 2 == 1, "{count} members, {tasks} tasks: {loads:?}");
            members.iter_mut().for_each(|member| member.has = HeldTasks::default());
        }
    }
}

#[test]
fn what_fits_stays_where_it_is() {
    let mut members = vec![member("a", "p"), member("b", "q")];
    let before = run(&mut members, &parts(8, true), 0);
    assert_eq!(run(&mut members, &parts(8, true), 0), before, "nothing changed");
    members.push(member("c", "r"));
    let after = run(&mut members, &parts(8, true), 0);
    check(&members, &after, 8);
    for id in [name("a"), name("b")] {
        assert!(after[&id].active.is_subset(&before[&id].active), "only the new one gets something");
    }
    assert_eq!(after[&name("c")].active.len(), 2);
}

#[test]
fn the_tasks_of_one_that_went_go_where_their_copies_are() {
    let mut members = vec![member("a", "p"), member("b", "q"), member("c", "r")];
    let before = run(&mut members, &parts(6, true), 1);
    check(&members, &before, 6);
    let gone = members.remove(0);
    let after = run(&mut members, &parts(6, true), 1);
    check(&members, &after, 6);
    for task in &before[&gone.id].active {
        let holder = before.iter().find(|(_, tasks)| tasks.standby.contains(task)).unwrap().0;
        let has = &after[holder].active;
        assert!(has.contains(task) || has.len() == 3, "{task:?} is where its store is, or {holder} is full");
    }
}

#[test]
fn copies_never_stand_on_the_instance_of_the_active_task() {
    for replicas in 0..3 {
        for processes in 1..5u32 {
            let mut members: Vec<_> =
                (0..processes * 2).map(|at| member(&at.to_string(), &(at % processes).to_string())).collect();
            let given = run(&mut members, &parts(9, true), replicas);
            check(&members, &given, 9);
            let copies: usize = given.values().map(|tasks| tasks.standby.len()).sum();
            assert_eq!(copies as u32, 9 * replicas.min(processes - 1), "{replicas} on {processes}");
        }
    }
}

#[test]
fn stateless_parts_have_no_copies() {
    let mut members = vec![member("a", "p"), member("b", "q")];
    let given = run(&mut members, &parts(4, false), 2);
    assert!(given.values().all(|tasks| tasks.standby.is_empty()));
}

#[test]
fn a_store_on_the_disk_draws_its_task_and_the_most_complete_one_wins() {
    let mut members = vec![member("a", "p"), member("b", "q")];
    members[0].offsets = [(task("0", 0), 10), (task("0", 1), 90)].into();
    members[1].offsets = [(task("0", 0), 80), (task("0", 1), 20)].into();
    let given = run(&mut members, &parts(2, true), 0);
    assert!(given[&name("a")].active.contains(&task("0", 1)));
    assert!(given[&name("b")].active.contains(&task("0", 0)));
}

#[test]
fn a_standby_owner_comes_before_one_that_only_has_the_store() {
    let mut members = vec![member("a", "p"), member("b", "q")];
    members[0].offsets = [(task("0", 0), 1_000)].into();
    members[1].has.standby = [task("0", 0)].into();
    let given = run(&mut members, &parts(1, true), 0);
    assert!(given[&name("b")].active.contains(&task("0", 0)));
}

#[test]
fn a_larger_instance_gets_more() {
    let mut members = vec![member("a", "p"), member("b", "p"), member("c", "p"), member("d", "q")];
    let given = run(&mut members, &parts(8, true), 0);
    check(&members, &given, 8);
    assert!(loads(&given).iter().all(|load| *load == 2));
}
