//! Epochs run out at 32766: whatever the cause of the next bump, it takes a new producer id at epoch 0.

use semel_eos::{Command, Refusal, Reply};
use semel_events::{Event, InitCause, Outcome, Protocol, TransactionalIdInitialized};
use semel_types::{DurationMs, MAX_USABLE_EPOCH, Now, ProducerStamp, WallTime};

use super::world::{TIMEOUT_MS, World, author, id, identity_of, is_fenced, shifted};

const COMMIT: Outcome = Outcome::Commit;
const ABORT: Outcome = Outcome::Abort;

/// An owner at the last usable epoch, by the event that a log would hold.
fn at_the_last_epoch(world: &mut World) -> ProducerStamp {
    let owner = world.init("app", None);
    let last = shifted(owner, MAX_USABLE_EPOCH);
    let event = TransactionalIdInitialized {
        id: id("app"),
        cause: InitCause::Takeover,
        identity: last,
        carried: None,
        timeout: DurationMs::from_ms(TIMEOUT_MS),
        author: author("app", "InitProducerId"),
        now: Now::from_ms(world.now_ms),
        wall: WallTime::from_ms(world.now_ms),
    };
    world.apply(event.into());
    last
}

/// The identity after a rotation: new producer id, epoch 0, the old one closed for good.
fn assert_rotated(world: &mut World, old: ProducerStamp) -> ProducerStamp {
    let new = world.identity("app");
    assert_eq!(new.epoch.get(), 0);
    assert_ne!(new.id, old.id);
    for sequence in 0..2 {
        let zombie = world.write("app", old, 3, sequence, Protocol::Version2);
        assert!(matches!(zombie, Err(Refusal::Fenced { current: None | Some(_), .. })), "{zombie:?}");
    }
    assert!(matches!(world.add("app", old, &[0]), Err(Refusal::OtherProducer { .. })));
    for event in &world.log {
        if let Event::TransactionalIdInitialized(event) = event {
            assert!(event.identity.epoch.get() <= MAX_USABLE_EPOCH, "EOS-31");
        }
    }
    world.write("app", new, 3, 0, Protocol::Version2).expect("the new one writes");
    world.assert_replays();
    new
}

#[test]
fn eos_31_a_walk_through_all_epochs_never_stores_32767() {
    let mut world = World::new();
    let first = world.init("app", None);
    for epoch in 1..=MAX_USABLE_EPOCH {
        let (answer, _) = world.ask_unchecked(world.init_command(Some("app"), None));
        assert_eq!(identity_of(answer), shifted(first, epoch));
    }
    let next = world.init("app", None);
    assert_eq!((next.id.get(), next.epoch.get()), (first.id.get() + 1, 0));
    assert_eq!(world.init("app", None), shifted(next, 1));
    assert!(is_fenced(&world.try_init("app", Some(shifted(first, MAX_USABLE_EPOCH)))));
}

#[test]
fn a_takeover_rotates_and_remembers_nothing() {
    let mut world = World::new();
    let old = at_the_last_epoch(&mut world);
    assert_eq!(world.add("app", old, &[0]), Ok(Reply::Done));
    world.write("app", old, 0, 0, Protocol::Classic).expect("the owner writes");
    world.init("app", None);
    assert_eq!(world.last_end().marker_stamp, shifted(old, 1), "32767 stands in markers only");
    assert_eq!(world.offsets(0), (2, 2));
    assert!(is_fenced(&world.try_init("app", Some(old))));
    assert_rotated(&mut world, old);
}

#[test]
fn a_recovery_rotates_and_its_copy_gets_the_same_identity() {
    let mut world = World::new();
    let old = at_the_last_epoch(&mut world);
    let new = world.init("app", Some(old));
    assert_eq!(world.init("app", Some(old)), new);
    assert!(is_fenced(&world.try_init("app", Some(shifted(old, -1)))));
    assert_eq!(assert_rotated(&mut world, old), new);
    assert!(is_fenced(&world.try_init("app", Some(old))), "a transaction has started since");
}

#[test]
fn an_end_of_version_2_rotates_and_its_copy_gets_the_same_answer() {
    for outcome in [COMMIT, ABORT] {
        let mut world = World::new();
        let old = at_the_last_epoch(&mut world);
        world.write("app", old, 0, 0, Protocol::Version2).expect("the owner writes");
        let new = identity_of(world.end_v2("app", old, outcome));
        assert_eq!(world.last_end().marker_stamp, shifted(old, 1));
        assert_eq!(world.end_v2("app", old, outcome), Ok(Reply::Ended(new)));
        assert_eq!(world.init("app", Some(old)), new, "KIP-360 with the rotated pair");
        assert_eq!(world.outcome_at(0, 0), Some(outcome));
        assert_eq!(assert_rotated(&mut world, old), new);
        assert!(matches!(world.end_v2("app", old, outcome), Err(Refusal::OtherProducer { .. })));
    }
}

#[test]
fn an_abort_of_nothing_rotates_too() {
    let mut world = World::new();
    let old = at_the_last_epoch(&mut world);
    let new = identity_of(world.end_v2("app", old, ABORT));
    assert!(world.last_end().markers.is_empty());
    assert_eq!(assert_rotated(&mut world, old), new);
}

#[test]
fn a_classic_end_needs_no_new_epoch() {
    let mut world = World::new();
    let old = at_the_last_epoch(&mut world);
    assert_eq!(world.add("app", old, &[0]), Ok(Reply::Done));
    assert_eq!(world.classic_end("app", old, COMMIT), Ok(Reply::Ended(old)));
    assert_eq!(world.identity("app"), old);
}

#[test]
fn a_timeout_an_administrator_and_an_unclean_start_rotate_and_the_victim_recovers() {
    let causes: [fn(&mut World, ProducerStamp); 3] = [
        |world, _| world.pass(TIMEOUT_MS),
        |world, old| assert_eq!(world.marker(old, ABORT, &[0]), Ok(Reply::Done)),
        |world, _| world.restart(true),
    ];
    for cause in causes {
        let mut world = World::new();
        let old = at_the_last_epoch(&mut world);
        world.write("app", old, 0, 0, Protocol::Version2).expect("the owner writes");
        cause(&mut world, old);
        let new = world.identity("app");
        assert_eq!(world.last_end().marker_stamp, shifted(old, 1));
        assert_eq!(world.offsets(0), (2, 2));
        assert!(matches!(world.end_v2("app", old, COMMIT), Err(Refusal::AbortedMeanwhile { .. })));
        assert_eq!(world.end_v2("app", old, ABORT), Ok(Reply::Ended(new)));
        assert_eq!(world.init("app", Some(old)), new);
        assert_eq!(assert_rotated(&mut world, old), new);
    }
}

#[test]
fn eos_20_ids_taken_in_one_decision_and_after_a_restart_are_all_different() {
    let mut world = World::new();
    let mut seen = std::collections::BTreeSet::new();
    for name in ["a", "b", "c"] {
        seen.insert(world.init(name, None).id);
    }
    world.restart(false);
    for _ in 0..1500 {
        let fresh = identity_of(world.ask(Command::InitProducerId {
            transactional_id: None,
            timeout: DurationMs::from_ms(1),
            carried: None,
            author: author("app", "InitProducerId"),
        }));
        assert!(seen.insert(fresh.id), "{} was issued twice", fresh.id);
    }
}
