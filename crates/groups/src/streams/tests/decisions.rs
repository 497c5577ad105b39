//! Heartbeats: who is let in, what is told, what time does.

use super::*;
use crate::Refusal;

fn refusal(answer: Result<Told, Denied>) -> Option<Refusal> {
    answer.err().map(|(refusal, _)| refusal)
}

fn statuses(told: &Told) -> Vec<Status> {
    told.status.iter().map(|(status, _)| *status).collect()
}

fn started() -> (World, Vec<Client>) {
    let mut world = World::new();
    let mut clients = vec![Client::new("a", "p"), Client::new("b", "q")];
    settle(&mut world, &mut clients);
    (world, clients)
}

#[test]
fn the_first_member_gets_everything_at_once() {
    let mut world = World::new();
    let told = Client::new("a", "p").beat(&mut world).expect("it may join");
    assert_eq!(told.member_epoch, 2, "as in Kafka 4.4: a group starts in epoch 1");
    assert_eq!(told.status, []);
    let tasks = told.tasks.expect("a member that joins is told its tasks");
    assert_eq!(tasks.active.len(), 8, "four of each part");
    assert_eq!(world.phase(), Phase::Stable);
}

#[test]
fn a_second_member_gets_its_part_once_the_first_has_let_go() {
    let mut world = World::new();
    let (mut a, mut b) = (Client::new("a", "p"), Client::new("b", "q"));
    a.beat(&mut world).unwrap();
    let told = b.beat(&mut world).unwrap();
    assert_eq!(told.tasks.map(|tasks| tasks.active.len()), Some(0), "all of it is the first one's");
    assert_eq!(world.phase(), Phase::Reconciling);
    let revoke = a.beat(&mut world).unwrap();
    assert_eq!(revoke.tasks.map(|tasks| tasks.active.len()), Some(4));
    assert_eq!(b.beat(&mut world).unwrap().tasks, None, "not free before it is said to be");
    a.beat(&mut world).unwrap();
    assert_eq!(b.beat(&mut world).unwrap().tasks.map(|tasks| tasks.active.len()), Some(4));
    assert_eq!(world.phase(), Phase::Stable);
    assert_eq!(active(&[a, b]).len(), 8);
}

#[test]
fn a_heartbeat_that_changes_nothing_is_no_event() {
    let (mut world, mut clients) = started();
    for client in &mut clients {
        let told = client.beat(&mut world).unwrap();
        assert_eq!((told.tasks, world.events.len()), (None, 0));
    }
}

#[test]
fn after_a_restart_members_carry_on() {
    let (mut world, mut clients) = started();
    let before: Vec<_> = clients.iter().map(|client| client.member_epoch).collect();
    world.restart();
    for client in &mut clients {
        client.beat(&mut world).unwrap();
        assert!(world.events.is_empty(), "{:?}", world.events);
    }
    let after: Vec<_> = clients.iter().map(|client| client.member_epoch).collect();
    assert_eq!(after, before);
}

#[test]
fn what_is_refused_is_told_why_and_changes_nothing() {
    let (mut world, clients) = started();
    let a = &clients[0];
    let other_topology = StreamsTopology { epoch: 0, subtopologies: vec![part("0", &["in"])] };
    let cannot_be = StreamsTopology { epoch: 0, subtopologies: vec![part("0", &[])] };
    let no_task = Tasks { active: [task("0", 4)].into(), ..Tasks::default() };
    let fixed = |id: &str, member_epoch| Client { member_epoch, ..Client::fixed(id, "p", "i") };
    let cases: Vec<(Client, Refusal)> = vec![
        (Client { member_epoch: a.member_epoch + 1, ..a.clone() }, Refusal::FencedMember),
        (Client { member_epoch: 1, ..a.clone() }, Refusal::FencedMember),
        (Client { member_epoch: 3, ..Client::new("x", "p") }, Refusal::UnknownMember),
        (fixed("x", 3), Refusal::UnknownMember),
        (
            Client { topology: other_topology, ..Client::new("x", "p") },
            Refusal::InvalidHeartbeat("Topology updates are not supported yet."),
        ),
        (
            Client { owned: no_task, ..a.clone() },
            Refusal::InvalidHeartbeat("The member owns a task that does not exist."),
        ),
    ];
    for (mut client, due) in cases {
        assert_eq!(refusal(client.clone().beat(&mut world)), Some(due), "{client:?}");
        assert!(world.events.is_empty());
        client.member_epoch = 0;
    }
    let mut fresh = World::new();
    let mut first = Client { topology: cannot_be, ..Client::new("a", "p") };
    assert_eq!(refusal(first.beat(&mut fresh)), Some(Refusal::InvalidTopology));
    assert!(fresh.state.group(&World::group()).is_none(), "a refused member makes no group");
    let mut late = Client { member_epoch: 3, ..Client::new("a", "p") };
    assert_eq!(refusal(late.beat(&mut fresh)), Some(Refusal::UnknownGroup));
}

#[test]
fn a_group_of_another_kind_is_left_alone_unless_it_is_an_empty_classic_one() {
    use semel_events::{CommittedOffset, GroupKind, GroupKindChanged, OffsetsCommitted};
    let (group, now) = (World::group(), Now::from_ms(1));
    let mut world = World::new();
    let offsets = vec![CommittedOffset {
        partition: PartitionHandle::new(0),
        offset: semel_types::Offset::new(7),
        leader_epoch: None,
        metadata: name(""),
    }];
    world.apply(&OffsetsCommitted { group: group.clone(), offsets, now }.into());
    Client::new("a", "p").beat(&mut world).expect("an empty classic group becomes a streams group");
    assert_eq!(world.state.offsets(&group).count(), 1, "and keeps its offsets");

    let mut world = World::new();
    world.apply(&GroupKindChanged { group, kind: GroupKind::Consumer, epoch: 4, now }.into());
    assert_eq!(refusal(Client::new("a", "p").beat(&mut world)), Some(Refusal::UnknownGroup));
}

#[test]
fn a_full_group_takes_nobody_new() {
    let (mut world, mut clients) = started();
    world.settings.size_max = 2;
    assert_eq!(refusal(Client::new("c", "r").beat(&mut world)), Some(Refusal::GroupFull));
    assert!(clients[0].beat(&mut world).is_ok());
    clients[0].member_epoch = 0;
    clients[0].owned = Tasks::default();
    assert!(clients[0].beat(&mut world).is_ok(), "one that is in may join again");
}

#[test]
fn a_member_that_missed_an_answer_is_let_in_with_its_epoch_before() {
    let mut world = World::new();
    let mut a = Client::new("a", "p");
    a.beat(&mut world).unwrap();
    let before = a.clone();
    Client::new("b", "q").beat(&mut world).unwrap();
    a.beat(&mut world).unwrap();
    a.beat(&mut world).unwrap();
    assert!(a.member_epoch > before.member_epoch);
    let missed = Client { owned: a.owned.clone(), ..before.clone() };
    assert!(missed.clone().beat(&mut world).is_ok(), "it owns nothing beyond what it was given");
    assert_eq!(
        refusal(before.clone().beat(&mut world)),
        Some(Refusal::FencedMember),
        "it owns what it gave up"
    );
}

#[test]
fn a_silent_member_is_gone_and_its_tasks_go_to_the_others() {
    let (mut world, mut clients) = started();
    for _ in 0..10 {
        world.pass(5_000);
        clients[0].beat(&mut world).unwrap();
    }
    assert_eq!(world.roster().len(), 1);
    assert_eq!(clients[0].owned.active.len(), 8);
    assert_eq!(refusal(clients[1].beat(&mut world)), Some(Refusal::UnknownMember));
}

#[test]
fn a_member_that_does_not_let_go_in_time_is_gone() {
    let mut world = World::new();
    let (mut a, mut b) = (Client::new("a", "p"), Client::new("b", "q"));
    a.beat(&mut world).unwrap();
    b.beat(&mut world).unwrap();
    let stubborn = a.clone();
    a.beat(&mut world).unwrap();
    for _ in 0..3 {
        world.pass(3_000);
        let mut again = Client { member_epoch: a.member_epoch, ..stubborn.clone() };
        assert!(again.beat(&mut world).is_ok(), "it is heard of");
    }
    world.pass(1_001);
    assert!(world.roster().seat("a").is_none(), "its rebalance timeout of 10 s is over");
    b.beat(&mut world).unwrap();
    assert_eq!(b.owned.active.len(), 8);
}

#[test]
fn a_member_that_leaves_frees_its_tasks_and_the_last_one_empties_the_group() {
    let (mut world, mut clients) = started();
    let epoch = world.roster().group_epoch();
    assert_eq!(clients[1].leave(&mut world, false).unwrap().member_epoch, -1);
    assert_eq!(world.roster().group_epoch(), epoch + 1);
    clients[0].beat(&mut world).unwrap();
    assert_eq!(clients[0].owned.active.len(), 8);
    clients[0].leave(&mut world, false).unwrap();
    assert_eq!(world.phase(), Phase::Empty);
    assert_eq!(world.roster().assignment_epoch(), world.roster().group_epoch());
    assert!(world.volatile.streams(&World::group()).is_none(), "nothing is kept of an empty group");
    assert_eq!(refusal(clients[0].leave(&mut world, false)), Some(Refusal::UnknownMember));
}

#[test]
fn a_static_member_comes_back_to_its_tasks_without_a_rebalance() {
    let mut world = World::new();
    let mut clients = vec![Client::fixed("a1", "p", "i"), Client::new("b", "q")];
    settle(&mut world, &mut clients);
    let (epoch, had) = (world.roster().group_epoch(), clients[0].owned.clone());
    let mut early = Client::fixed("a2", "p", "i");
    assert_eq!(refusal(early.beat(&mut world)), Some(Refusal::UnreleasedInstance));
    assert_eq!(clients[0].leave(&mut world, true).unwrap().member_epoch, AWAY);
    let mut back = Client::fixed("a2", "p", "i");
    back.beat(&mut world).unwrap();
    assert_eq!((back.owned, world.roster().group_epoch()), (had, epoch));
    let mut old = Client { member_epoch: back.member_epoch, ..Client::fixed("a1", "p", "i") };
    assert_eq!(refusal(old.beat(&mut world)), Some(Refusal::FencedInstance));
}

#[test]
fn a_static_member_that_stays_away_is_gone_with_its_session() {
    let mut world = World::new();
    let mut clients = vec![Client::fixed("a1", "p", "i")];
    settle(&mut world, &mut clients);
    clients[0].leave(&mut world, true).unwrap();
    world.pass(45_000);
    assert_eq!(world.phase(), Phase::Empty);
}

#[test]
fn the_first_assignment_of_an_empty_group_waits_for_more_members() {
    let mut world = World::new();
    world.settings.initial_rebalance_delay = DurationMs::from_ms(3_000);
    let (mut a, mut b) = (Client::new("a", "p"), Client::new("b", "q"));
    let told = a.beat(&mut world).unwrap();
    assert_eq!((told.member_epoch, statuses(&told)), (1, vec![Status::AssignmentDelayed]));
    world.pass(2_000);
    b.beat(&mut world).unwrap();
    assert_eq!(world.phase(), Phase::Assigning);
    world.pass(1_000);
    assert_eq!(a.beat(&mut world).unwrap().status, []);
    b.beat(&mut world).unwrap();
    assert_eq!((a.owned.active.len(), b.owned.active.len()), (4, 4), "nobody had to give anything up");
}

#[test]
fn assignments_are_made_an_interval_apart() {
    let mut world = World::new();
    world.settings.assignment_interval = DurationMs::from_ms(1_000);
    let (mut a, mut b) = (Client::new("a", "p"), Client::new("b", "q"));
    a.beat(&mut world).unwrap();
    let told = b.beat(&mut world).unwrap();
    assert_eq!(statuses(&told), [Status::AssignmentDelayed]);
    assert_eq!(world.phase(), Phase::Assigning);
    world.pass(1_000);
    assert_eq!(b.beat(&mut world).unwrap().status, []);
    assert_eq!(world.phase(), Phase::Reconciling);
}

#[test]
fn missing_sources_are_told_and_their_coming_starts_the_work() {
    let mut world = World::new();
    world.catalog = Catalog::default();
    let mut a = Client::new("a", "p");
    let told = a.beat(&mut world).unwrap();
    assert_eq!(told.status, [(Status::MissingSourceTopics, "Source topics in are missing.".to_string())]);
    assert_eq!(world.phase(), Phase::NotReady);
    world.catalog.make("in", 2);
    let told = a.beat(&mut world).unwrap();
    assert_eq!((told.status, a.owned.active.len()), (vec![], 4));
}

#[test]
fn internal_topics_that_cannot_be_made_are_told_with_the_reason() {
    let mut world = World::new();
    let command = Command::Heartbeat(Box::new(Client::new("a", "p").heartbeat()));
    let told = world.ask_with(&command, false).unwrap().unwrap();
    let due = "Internal topics are missing: app-changelog, app-repartition; Creation failed: app-repartition (no \
               room).";
    assert_eq!(told.status, [(Status::MissingInternalTopics, due.to_string())]);
    assert_eq!(world.phase(), Phase::NotReady);
}

#[test]
fn more_partitions_of_a_source_make_more_tasks() {
    let (mut world, mut clients) = started();
    for (topic, first) in [("in", 100), ("app-repartition", 200), ("app-changelog", 300)] {
        let more = (first..first + 2).map(PartitionHandle::new);
        world.catalog.topics.get_mut(topic).unwrap().extend(more);
    }
    settle(&mut world, &mut clients);
    assert_eq!(active(&clients).len(), 12);
    assert_eq!(world.roster().task_of(PartitionHandle::new(101)), Some(task("0", 5)));
}

#[test]
fn an_older_topology_is_let_in_and_told_so() {
    let mut world = World::new();
    let newer = StreamsTopology { epoch: 5, ..counting() };
    Client { topology: newer, ..Client::new("a", "p") }.beat(&mut world).unwrap();
    let told = Client::new("b", "q").beat(&mut world).unwrap();
    assert_eq!(statuses(&told), [Status::StaleTopology]);
}

#[test]
fn a_shutdown_is_told_to_everybody_until_the_group_is_empty() {
    let (mut world, mut clients) = started();
    let beat = Heartbeat { shutdown: true, ..clients[0].heartbeat() };
    world.ask(&Command::Heartbeat(Box::new(beat))).unwrap().unwrap();
    for client in &mut clients {
        assert_eq!(statuses(&client.beat(&mut world).unwrap()), [Status::ShutdownApplication]);
    }
    for client in &mut clients {
        client.leave(&mut world, false).unwrap();
    }
    assert_eq!(Client::new("c", "r").beat(&mut world).unwrap().status, []);
}

#[test]
fn tags_that_are_asked_for_and_missing_are_told() {
    let (mut world, mut clients) = started();
    world.settings.tags = vec![name("zone")];
    let told = clients[0].beat(&mut world).unwrap();
    assert_eq!(statuses(&told), [Status::MissingClientTags]);
    let old = Heartbeat { knows_missing_tags: false, ..clients[0].heartbeat() };
    let told = world.ask(&Command::Heartbeat(Box::new(old))).unwrap().unwrap();
    assert_eq!(told.status, [], "version 0 does not know it");
}

#[test]
fn another_number_of_copies_is_a_new_epoch() {
    let (mut world, mut clients) = started();
    world.settings.standby_replicas = 1;
    settle(&mut world, &mut clients);
    let copies: usize = clients.iter().map(|client| client.owned.standby.len()).sum();
    assert_eq!(copies, 4, "of the one part with a store");
}

#[test]
fn everybody_is_told_who_serves_what_when_it_changed() {
    let mut world = World::new();
    let endpoint = StreamsEndpoint { host: name("h"), port: 1 };
    let mut a = Client { endpoint: Some(endpoint.clone()), ..Client::new("a", "p") };
    let told = a.beat(&mut world).unwrap();
    assert_eq!(told.endpoint_epoch, 1);
    let served = told.served.expect("it did not have it");
    assert_eq!(served.len(), 1);
    assert_eq!(served[0].endpoint, endpoint);
    let topics: Vec<_> = served[0].active.iter().map(|(topic, all)| (&**topic, all.len())).collect();
    assert_eq!(topics, [("app-repartition", 4), ("in", 4)]);
    assert_eq!(a.beat(&mut world).unwrap().served, None, "it has the newest");
    let mut b = Client::new("b", "q");
    assert!(b.beat(&mut world).unwrap().served.is_some(), "one without an endpoint is told, too");
    let told = a.beat(&mut world).unwrap();
    assert_eq!(told.endpoint_epoch, 2, "it has other tasks");
    assert!(told.served.is_some());
}

#[test]
fn offsets_that_a_member_tells_are_kept_until_it_goes() {
    let (mut world, mut clients) = started();
    clients[0].offsets = Some([(task("1", 0), 17)].into());
    clients[0].beat(&mut world).unwrap();
    clients[0].offsets = None;
    clients[0].beat(&mut world).unwrap();
    let live = world.volatile.streams(&World::group()).unwrap();
    assert_eq!(live.offsets("a").map(|offsets| offsets.read.len()), Some(1));
    clients[0].leave(&mut world, false).unwrap();
    let live = world.volatile.streams(&World::group()).unwrap();
    assert_eq!(live.offsets("a"), None);
}

#[test]
fn every_rebalance_tells_its_causes() {
    use crate::history::Reason;
    let (mut world, mut clients) = started();
    clients[1].leave(&mut world, false).unwrap();
    clients[0].beat(&mut world).unwrap();
    clients[0].leave(&mut world, false).unwrap();
    let group = World::group();
    let history = world.volatile.history();
    let causes: Vec<_> = history
        .of(&group)
        .map(|round| round.causes.iter().map(|cause| (cause.reason, &*cause.member)).collect::<Vec<_>>())
        .collect();
    let due = [(Reason::Joined, "a"), (Reason::Joined, "b"), (Reason::Left, "b"), (Reason::Left, "a")];
    assert_eq!(causes, due.map(|cause| vec![cause]));
    assert_eq!(history.of(&group).next_back().map(|last| last.members), Some(0));
}
