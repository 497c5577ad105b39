//! The founding text's walk through InitProducerId, step by step, and its edge cases.

use semel_eos::{Refusal, Reply, txn::TransactionState};
use semel_events::{EndCause, Event, Outcome, Protocol};

use super::world::{World, is_fenced, shifted};

const CLASSIC: Protocol = Protocol::Classic;

#[test]
fn a_new_instance_takes_the_id_and_the_old_one_is_locked_out_everywhere() {
    let mut world = World::new();
    let old = world.init("app", None);
    assert_eq!(old.epoch.get(), 0, "a new id starts at epoch 0");
    assert_eq!(world.add("app", old, &[0, 1]), Ok(Reply::Done));
    world.write("app", old, 0, 0, CLASSIC).expect("the owner writes");
    world.write("app", old, 1, 0, CLASSIC).expect("the owner writes");

    world.connection = 2;
    let logged = world.log.len();
    let new = world.init("app", None);
    assert_eq!(new, shifted(old, 1), "the same producer id, the next epoch");
    let kinds: Vec<_> = world.log[logged..].iter().map(Event::name).collect();
    assert_eq!(kinds, ["TransactionEnded", "TransactionalIdInitialized"], "one group: abort, then identity");
    let end = world.last_end();
    assert_eq!((end.outcome, end.cause, end.markers.len()), (Outcome::Abort, EndCause::Takeover, 2));
    assert_eq!(end.marker_stamp, new, "the marker carries the bumped epoch");
    assert_eq!(world.stage("app"), Some(TransactionState::Empty));
    assert_eq!((world.offsets(0), world.offsets(1)), ((2, 2), (2, 2)), "nothing holds readers back");

    world.connection = 1;
    assert!(is_fenced(&world.add("app", old, &[2])));
    assert!(is_fenced(&world.add_offsets("app", old, "g")));
    assert!(is_fenced(&world.commit_offset("app", old, "g", 1, CLASSIC)));
    assert!(is_fenced(&world.classic_end("app", old, Outcome::Commit)));
    assert!(is_fenced(&world.end_v2("app", old, Outcome::Abort)));
    assert!(is_fenced(&world.try_init("app", Some(old))));
    for partition in 0..6 {
        let zombie = world.write("app", old, partition, 1, CLASSIC);
        assert!(matches!(zombie, Err(Refusal::Fenced { .. })), "also where the successor never wrote");
    }

    world.connection = 2;
    assert_eq!(world.add("app", new, &[0]), Ok(Reply::Done));
    world.write("app", new, 0, 0, CLASSIC).expect("the successor writes");
    assert_eq!(world.classic_end("app", new, Outcome::Commit), Ok(Reply::Ended(new)));
    assert_eq!(world.outcome_at(0, 0), Some(Outcome::Abort));
    assert_eq!(world.outcome_at(0, 2), Some(Outcome::Commit));
    world.assert_replays();
}

#[test]
fn epochs_rise_by_one_with_each_instance_and_the_last_caller_wins() {
    let mut world = World::new();
    let mut identities = vec![world.init("app", None)];
    for _ in 0..50 {
        let next = world.init("app", None);
        assert_eq!(next, shifted(*identities.last().expect("one"), 1));
        identities.push(next);
    }
    let winner = identities.pop().expect("one");
    for loser in identities {
        assert!(is_fenced(&world.add("app", loser, &[0])));
    }
    assert_eq!(world.add("app", winner, &[0]), Ok(Reply::Done));
}

#[test]
fn two_ids_never_touch_each_other() {
    let mut world = World::new();
    let (one, two) = (world.init("one", None), world.init("two", None));
    assert_ne!(one.id, two.id);
    for (name, owner) in [("one", one), ("two", two)] {
        assert_eq!(world.add(name, owner, &[0]), Ok(Reply::Done));
        world.write(name, owner, 0, 0, CLASSIC).expect("both write");
    }
    assert_eq!(world.offsets(0), (0, 2));
    world.init("one", None);
    assert_eq!(world.offsets(0), (1, 3), "only the first of the two is decided");
    assert!(matches!(world.add("two", one, &[0]), Err(Refusal::OtherProducer { .. })));
    assert_eq!(world.classic_end("two", two, Outcome::Commit), Ok(Reply::Ended(two)));
    assert_eq!(
        (world.outcome_at(0, 0), world.outcome_at(0, 1)),
        (Some(Outcome::Abort), Some(Outcome::Commit))
    );
    assert_eq!(world.offsets(0), (4, 4));
}

#[test]
fn a_client_of_version_2_needs_no_request_but_its_writes_and_ends() {
    let mut world = World::new();
    let first = world.init("app", None);
    world.write("app", first, 0, 0, Protocol::Version2).expect("the first write adds its partition");
    world.write("app", first, 1, 0, Protocol::Version2).expect("and the next another");
    assert_eq!(world.commit_offset("app", first, "g", 5, Protocol::Version2), Ok(Reply::Done));
    let open = world.state.transactions().open(&super::world::id("app")).expect("open");
    assert_eq!((open.partitions.len(), open.groups.len(), open.number.get()), (2, 1, 1));
    let second = shifted(first, 1);
    assert_eq!(world.end_v2("app", first, Outcome::Commit), Ok(Reply::Ended(second)));
    let end = world.last_end();
    assert_eq!((end.marker_stamp, end.groups.len(), end.version2), (second, 1, true));
    assert!(matches!(world.write("app", first, 0, 1, Protocol::Version2), Err(Refusal::Fenced { .. })));
    world.write("app", second, 0, 0, Protocol::Version2).expect("the next transaction starts at sequence 0");
    assert_eq!(world.end_v2("app", second, Outcome::Abort), Ok(Reply::Ended(shifted(first, 2))));
    assert_eq!(
        (world.outcome_at(0, 0), world.outcome_at(0, 2)),
        (Some(Outcome::Commit), Some(Outcome::Abort))
    );
    world.assert_replays();
}

#[test]
fn a_classic_write_outside_of_the_transaction_is_refused() {
    let mut world = World::new();
    let owner = world.init("app", None);
    let outside = |partition| Err(Refusal::NotInTransaction { partition: super::world::handle(partition) });
    assert_eq!(world.write("app", owner, 0, 0, CLASSIC), outside(0), "none is open");
    assert_eq!(world.add("app", owner, &[1]), Ok(Reply::Done));
    assert_eq!(world.write("app", owner, 0, 0, CLASSIC), outside(0), "it holds another one");
    world.write("app", owner, 1, 0, CLASSIC).expect("it holds this one");
}

#[test]
fn a_partition_whose_topic_was_deleted_meanwhile_is_skipped_at_the_end() {
    use semel_events::TopicDeleted;
    use semel_types::{Now, TopicId};
    let mut world = World::new();
    let owner = world.init("app", None);
    assert_eq!(world.add("app", owner, &[0, 1]), Ok(Reply::Done));
    world.write("app", owner, 0, 0, CLASSIC).expect("it holds this one");
    let deleted = TopicDeleted {
        id: TopicId::new([1; 16]),
        partitions: (0..super::world::PARTITIONS).map(super::world::handle).collect(),
        next_unissued: world.state.next_unissued_id(&world.volatile),
        now: Now::from_ms(world.now_ms),
    };
    world.apply(deleted.into());
    assert_eq!(world.classic_end("app", owner, Outcome::Commit), Ok(Reply::Ended(owner)));
    assert!(world.last_end().markers.is_empty());
    world.assert_replays();
}
