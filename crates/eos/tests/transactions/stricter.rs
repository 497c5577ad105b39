//! Where Kafka 4.4 breaks its own promise: S3, S4, S6, S7, S8, S9, S13, S19, S21 of the list, on the level of the core.

use semel_eos::{Refusal, Reply, txn::TransactionState};
use semel_events::{EndCause, Event, Outcome, Protocol};
use semel_types::ProducerStamp;

use super::world::{World, is_fenced, shifted};

const CLASSIC: Protocol = Protocol::Classic;
const COMMIT: Outcome = Outcome::Commit;
const ABORT: Outcome = Outcome::Abort;

fn superseded<T>(answer: &Result<T, Refusal>) -> bool {
    matches!(answer, Err(Refusal::SupersededConnection { .. }))
}

/// An owner at epoch 2 with an open transaction that has one record in partition 0.
fn owner_with_open_transaction(world: &mut World) -> ProducerStamp {
    let owner = (0..3).map(|_| world.init("app", None)).last().expect("an identity");
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.write("app", owner, 0, 0, CLASSIC).expect("the owner writes");
    owner
}

#[test]
fn s3_a_zombies_init_with_its_old_pair_touches_nothing() {
    let mut world = World::new();
    let owner = owner_with_open_transaction(&mut world);
    let before = world.state.clone();
    assert!(is_fenced(&world.try_init("app", Some(shifted(owner, -2)))));
    assert_eq!(world.state, before);
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    assert_eq!(world.outcome_at(0, 0), Some(COMMIT));
}

#[test]
fn s4_a_late_copy_of_the_owners_own_recovery_does_not_fence_it() {
    let mut world = World::new();
    let old = world.init("app", None);
    let owner = world.init("app", Some(old));
    assert_eq!(owner, shifted(old, 1));
    assert_eq!(world.init("app", Some(old)), owner, "the copy gets the identity already given");
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    assert!(is_fenced(&world.try_init("app", Some(old))), "and none once a transaction has started");
    assert_eq!(world.stage("app"), Some(TransactionState::Ongoing));
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    assert!(is_fenced(&world.try_init("app", Some(old))), "nor after it ended");
}

#[test]
fn s6_a_late_copy_of_a_classic_commit_does_not_commit_half_of_the_next_transaction() {
    let mut world = World::new();
    let owner = world.init("app", None);
    let late = world.connection;
    world.connection = 2;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.write("app", owner, 0, 0, CLASSIC).expect("record 1");
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.write("app", owner, 0, 1, CLASSIC).expect("record 2");

    world.connection = late;
    let before = world.state.clone();
    assert!(superseded(&world.classic_end("app", owner, COMMIT)));
    assert_eq!(world.state, before, "not executed");

    world.connection = 2;
    world.write("app", owner, 0, 2, CLASSIC).expect("record 3");
    assert_eq!(world.classic_end("app", owner, ABORT), Ok(Reply::Ended(owner)));
    let outcomes: Vec<_> = [0, 2, 3].map(|offset| world.outcome_at(0, offset)).into();
    assert_eq!(outcomes, [Some(COMMIT), Some(ABORT), Some(ABORT)]);
}

#[test]
fn s7_late_offsets_of_an_aborted_transaction_do_not_enter_the_next_one() {
    let mut world = World::new();
    let owner = world.init("app", None);
    let late = world.connection;
    world.connection = 2;
    assert_eq!(world.add_offsets("app", owner, "g"), Ok(Reply::Done));
    assert_eq!(world.commit_offset("app", owner, "g", 99, CLASSIC), Ok(Reply::Done));
    assert_eq!(world.classic_end("app", owner, ABORT), Ok(Reply::Ended(owner)));
    assert_eq!(world.add_offsets("app", owner, "g"), Ok(Reply::Done));
    assert_eq!(world.commit_offset("app", owner, "g", 50, CLASSIC), Ok(Reply::Done));

    world.connection = late;
    assert!(superseded(&world.commit_offset("app", owner, "g", 100, CLASSIC)));
    world.connection = 2;
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    let pending: Vec<_> = world
        .log
        .iter()
        .filter_map(|event| match event {
            Event::PendingOffsetsAdded(added) => Some((added.number.get(), added.offsets[0].offset.get())),
            _ => None,
        })
        .collect();
    assert_eq!(pending, [(1, 99), (2, 50)]);
}

#[test]
fn s8_s9_an_administrators_abort_ends_the_whole_transaction_and_the_producer_learns_of_it() {
    let mut world = World::new();
    let owner = world.init("app", None);
    assert_eq!(world.add("app", owner, &[0, 1]), Ok(Reply::Done));
    world.write("app", owner, 0, 0, CLASSIC).expect("record 1");
    assert_eq!(world.marker(owner, ABORT, &[0]), Ok(Reply::Done));
    let bumped = shifted(owner, 1);
    let end = world.last_end();
    assert_eq!((end.cause, end.markers.len(), end.identity_after), (EndCause::Admin, 2, bumped));
    assert_eq!((world.offsets(0), world.offsets(1)), ((2, 2), (1, 1)), "LSO moved in both");
    assert!(matches!(world.write("app", owner, 0, 1, CLASSIC), Err(Refusal::Fenced { .. })), "record 2: 47");
    assert!(matches!(world.classic_end("app", owner, COMMIT), Err(Refusal::AbortedMeanwhile { .. })));
    assert_eq!(world.classic_end("app", owner, ABORT), Ok(Reply::Ended(bumped)), "it may go on");
    assert_eq!(world.marker(bumped, ABORT, &[0]), Ok(Reply::Done), "nothing is open");
    assert_eq!(world.identity("app"), bumped);
    world.assert_replays();
}

#[test]
fn s13_a_takeover_of_an_open_transaction_is_answered_once_with_everything_done() {
    let mut world = World::new();
    let old = owner_with_open_transaction(&mut world);
    world.connection = 2;
    assert_eq!(world.init("app", None), shifted(old, 1));
    assert_eq!(world.outcome_at(0, 0), Some(ABORT));
    assert_eq!(world.offsets(0), (2, 2));
}

#[test]
fn s19_an_old_owner_is_not_answered_with_its_successors_identity() {
    for outcome in [COMMIT, ABORT] {
        let mut world = World::new();
        let old = world.init("app", None);
        world.write("app", old, 0, 0, Protocol::Version2).expect("A writes");
        world.connection = 2;
        let new = world.init("app", None);
        assert_eq!(world.add("app", new, &[0]), Ok(Reply::Done));
        world.write("app", new, 0, 0, CLASSIC).expect("B writes");
        assert_eq!(world.classic_end("app", new, outcome), Ok(Reply::Ended(new)));
        world.connection = 1;
        assert!(is_fenced(&world.end_v2("app", old, outcome)));
        assert_eq!(world.identity("app"), new, "B unharmed");
    }
}

#[test]
fn a_lost_answer_to_an_end_of_version_2_is_answered_again() {
    for outcome in [COMMIT, ABORT] {
        let mut world = World::new();
        let owner = world.init("app", None);
        world.write("app", owner, 0, 0, Protocol::Version2).expect("the owner writes");
        let next = shifted(owner, 1);
        assert_eq!(world.end_v2("app", owner, outcome), Ok(Reply::Ended(next)));
        assert_eq!(world.end_v2("app", owner, outcome), Ok(Reply::Ended(next)));
        let other = if outcome == COMMIT { ABORT } else { COMMIT };
        assert!(is_fenced(&world.end_v2("app", owner, other)));
        assert_eq!(world.init("app", Some(owner)), next, "a client that gave up asking recovers");
    }
}

#[test]
fn s21_a_late_copy_of_a_plain_init_does_not_fence_its_own_sender() {
    let mut world = World::new();
    world.connection = 7;
    let owner = world.init("app", None);
    world.connection = 3;
    let before = world.state.clone();
    assert!(superseded(&world.try_init("app", None)));
    assert_eq!(world.state, before);
    world.connection = 7;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.connection = 8;
    assert_eq!(world.init("app", None), shifted(owner, 1), "a new instance comes on a new connection");
    world.connection = 7;
    assert!(superseded(&world.try_init("app", None)), "the identity's change does not clear this rule");
}

#[test]
fn eos_35_a_refused_identity_neither_raises_the_number_nor_is_held_against_it() {
    let mut world = World::new();
    let old = world.init("app", None);
    let owner = world.init("app", None);
    world.connection = 90;
    assert!(is_fenced(&world.add("app", old, &[0])), "a zombie on a high connection");
    world.connection = 5;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done), "does not close the owner's");
    world.connection = 4;
    assert!(is_fenced(&world.add("app", old, &[0])), "and is told that it is fenced, on a low one too");
    assert!(superseded(&world.add("app", owner, &[1])));
    assert_eq!(world.add_offsets("app", owner, "g"), Ok(Reply::Done), "each API by itself");
    assert_eq!(world.verify("app", owner, &[0]), Ok(Reply::Done), "a question is no late write");
}

#[test]
fn eos_35_a_new_identity_starts_with_a_clean_slate() {
    let mut world = World::new();
    let owner = world.init("app", None);
    world.connection = 9;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    assert_eq!(world.classic_end("app", owner, COMMIT), Ok(Reply::Ended(owner)));
    let next = world.init("app", Some(owner));
    world.connection = 2;
    assert_eq!(world.add("app", next, &[0]), Ok(Reply::Done), "its epoch tells its copies apart");
    assert_eq!(world.classic_end("app", next, COMMIT), Ok(Reply::Ended(next)));

    let owner = world.init("app", Some(next));
    world.connection = 9;
    assert_eq!(world.add("app", owner, &[0]), Ok(Reply::Done));
    world.pass(super::world::TIMEOUT_MS);
    let bumped = world.init("app", Some(owner));
    world.connection = 2;
    assert_eq!(world.add("app", bumped, &[0]), Ok(Reply::Done), "also when a timeout changed it");
}
