//! What time alone brings about: timeouts, expiry, bounded steps, unclean starts.

use semel_eos::{Command, Refusal, Reply, txn::TransactionState};
use semel_events::{EndCause, Event, Outcome, Protocol};
use semel_types::{DurationMs, Now};

use super::world::{TIMEOUT_MS, World, author, handle, id, identity_of, is_fenced, shifted};

const COMMIT: Outcome = Outcome::Commit;
const ABORT: Outcome = Outcome::Abort;

#[test]
fn a_transaction_is_overdue_one_timeout_after_its_start_whatever_came_since() {
    let mut world = World::new();
    let owner = world.init("app", None);
    let started = world.now_ms;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    assert_eq!(world.next_wake(), Some(Now::from_ms(started + TIMEOUT_MS)));
    world.pass(TIMEOUT_MS - 1);
    assert_eq!(world.stage("app"), Some(TransactionState::Ongoing));
    assert_eq!(world.add("app", owner, &[1]), Ok(Reply::Done), "does not restart the clock");
    world.pass(1);
    let bumped = shifted(owner, 1);
    assert_eq!(world.stage("app"), Some(TransactionState::CompleteAbort));
    assert_eq!(world.identity("app"), bumped, "the silent producer is fenced");
    let end = world.last_end();
    assert_eq!((end.cause, end.marker_stamp, end.author.clone()), (EndCause::Timeout, bumped, None));
}

#[test]
fn a_silent_producer_that_can_recover_does() {
    let mut world = World::new();
    let owner = world.init("app", None);
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    world.pass(TIMEOUT_MS);
    let bumped = shifted(owner, 1);
    assert!(matches!(world.write("app", owner, 0, 1, Protocol::Version2), Err(Refusal::Fenced { .. })));
    assert!(matches!(world.end_v2("app", owner, COMMIT), Err(Refusal::AbortedMeanwhile { .. })));
    assert_eq!(world.end_v2("app", owner, ABORT), Ok(Reply::Ended(bumped)));
    assert_eq!(world.init("app", Some(owner)), bumped);
    world.write("app", bumped, 0, 0, Protocol::Version2).expect("it goes on");
    assert!(is_fenced(&world.end_v2("app", owner, ABORT)), "its old pair is spent");
    world.assert_replays();
}

#[test]
fn an_end_that_comes_before_the_tick_wins() {
    let mut world = World::new();
    let owner = world.init("app", None);
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.now_ms += TIMEOUT_MS;
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    world.tick();
    assert_eq!(world.identity("app"), owner);
}

#[test]
fn a_step_is_bounded_and_the_next_one_is_due_at_once() {
    let mut world = World::new();
    let names: Vec<_> = (0..600).map(|number| format!("app-{number:03}")).collect();
    for name in &names {
        let owner = world.init(name, None);
        assert_eq!(world.add(name, owner, &[0]), Ok(Reply::Done));
    }
    world.now_ms += TIMEOUT_MS;
    let now = Some(Now::from_ms(world.now_ms));
    let mut steps = 1;
    while world.tick() == now {
        steps += 1;
    }
    assert_eq!(steps, 3);
    assert!(names.iter().all(|name| world.stage(name) == Some(TransactionState::CompleteAbort)));
    let offsets: Vec<_> = world
        .log
        .iter()
        .filter_map(|event| match event {
            Event::TransactionEnded(end) => end.markers.first().map(|marker| marker.offset.get()),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, (0..600).collect::<Vec<_>>(), "markers of one step lie side by side");
    world.assert_replays();
}

#[test]
fn an_idle_id_is_forgotten_but_its_old_owner_stays_refused() {
    let mut world = World::new();
    let limit = world.settings.transactional_id_expiration.as_ms();
    let owner = world.init("app", None);
    assert_eq!(world.next_wake(), Some(Now::from_ms(world.now_ms + limit)));
    world.pass(limit - 1);
    assert!(world.entry("app").is_some());
    world.pass(1);
    assert!(world.entry("app").is_none());
    assert_eq!(world.next_wake(), None);
    let unknown = Err(Refusal::UnknownTransactionalId { id: id("app") });
    assert_eq!(world.add("app", owner, &[0]), unknown);
    let zombie = world.write("app", owner, 0, 0, Protocol::Version2);
    assert!(matches!(zombie, Err(Refusal::Fenced { .. } | Refusal::UnknownTransactionalId { .. })));
    let new = world.init("app", Some(owner));
    assert_ne!(new.id, owner.id);
    assert_eq!(new.epoch.get(), 0);
    assert_eq!(world.init("app", Some(owner)), new, "a retry of that request");
    let zombie = world.write("app", owner, 0, 0, Protocol::Version2);
    assert!(matches!(zombie, Err(Refusal::Fenced { .. })));
    world.assert_replays();
}

#[test]
fn nothing_is_remembered_of_the_connections_of_a_forgotten_id() {
    let mut world = World::new();
    world.connection = 9;
    let owner = world.init("app", None);
    assert!(is_fenced(&world.try_init("app", Some(shifted(owner, 1)))));
    assert!(world.volatile.refused(&id("app")).is_some());
    world.pass(world.settings.transactional_id_expiration.as_ms());
    assert!(world.volatile.refused(&id("app")).is_none());
    world.connection = 2;
    assert_ne!(world.init("app", None).id, owner.id);
}

#[test]
fn an_id_with_an_open_transaction_never_expires() {
    let mut world = World::new();
    world.settings.transactional_id_expiration = DurationMs::from_ms(10);
    let owner = world.init("app", None);
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.pass(TIMEOUT_MS - 1);
    assert_eq!(world.stage("app"), Some(TransactionState::Ongoing));
    world.pass(1);
    assert_eq!(world.stage("app"), Some(TransactionState::CompleteAbort), "first it times out");
    world.pass(10);
    assert!(world.entry("app").is_none(), "then it is idle");
}

#[test]
fn many_idle_ids_go_in_bounded_steps() {
    let mut world = World::new();
    for number in 0..2500 {
        let (answer, _) = world.ask_unchecked(world.init_command(Some(&format!("app-{number}")), None));
        assert!(answer.is_ok());
    }
    world.now_ms += world.settings.transactional_id_expiration.as_ms();
    let now = Some(Now::from_ms(world.now_ms));
    assert_eq!((world.tick(), world.tick(), world.tick()), (now, now, None));
    assert!(world.state.transactions().is_empty());
}

#[test]
fn an_unclean_start_aborts_what_is_open_and_leaves_identities_valid() {
    let mut world = World::new();
    let (one, two) = (world.init("one", None), world.init("two", None));
    world.write("one", one, 0, 0, Protocol::Version2).expect("one writes");
    world.restart(true);
    assert_eq!(world.last_end().cause, EndCause::UncleanStart);
    assert_eq!(world.identity("one"), shifted(one, 1));
    assert!(matches!(world.end_v2("one", one, COMMIT), Err(Refusal::AbortedMeanwhile { .. })));
    assert_eq!(world.init("one", Some(one)), shifted(one, 1));
    assert_eq!(world.identity("two"), two);
    assert_eq!(world.add("two", two, &[0]), Ok(Reply::Done));
    world.assert_replays();
}

#[test]
fn a_clean_start_keeps_what_is_open() {
    let mut world = World::new();
    let owner = world.init("app", None);
    world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
    let epoch = world.state.shard_epoch();
    world.restart(false);
    assert_eq!(world.state.shard_epoch(), epoch.next());
    assert_eq!(world.end_v2("app", owner, COMMIT), Ok(Reply::Ended(shifted(owner, 1))));
    assert_eq!(world.outcome_at(0, 0), Some(COMMIT));
}

#[test]
fn a_huge_transaction_does_not_keep_others_from_timing_out() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        let owner = world.init(name, None);
        let partitions = (0..9_000).map(handle).collect();
        let added = world.ask(Command::AddPartitions {
            id: id(name),
            stamp: owner,
            partitions,
            verify_only: false,
            protocol: Protocol::Classic,
        });
        assert_eq!(added, Ok(Reply::Done));
    }
    world.now_ms += TIMEOUT_MS;
    let now = Some(Now::from_ms(world.now_ms));
    assert_eq!((world.tick(), world.tick()), (now, now), "one in each step");
    assert_ne!(world.tick(), now);
}

#[test]
fn the_timeout_is_the_one_that_the_last_identity_asked_for() {
    let mut world = World::new();
    world.init("app", None);
    let owner = identity_of(world.ask(Command::InitProducerId {
        transactional_id: Some(id("app")),
        timeout: DurationMs::from_ms(50),
        carried: None,
        author: author("app", "InitProducerId"),
    }));
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.pass(50);
    assert_eq!(world.stage("app"), Some(TransactionState::CompleteAbort));
}
