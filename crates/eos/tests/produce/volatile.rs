//! What Produce remembers outside the log: connections in use, refusals for want of room, starts that may have lost
//! writes.

use semel_eos::{Judgement, Refusal};
use semel_events::{Outcome, Protocol};
use semel_types::{ConnectionNumber, ProducerId, TransactionalId};

use crate::shard::{Shard, batch, code, duplicate_at, handle, id, in_transaction};

fn superseded(connection: u64, highest: u64) -> Judgement {
    Judgement::Refuse(Refusal::SupersededConnection {
        connection: ConnectionNumber::new(connection),
        highest: ConnectionNumber::new(highest),
    })
}

#[test]
fn a_copy_on_a_connection_that_the_client_left_is_not_executed() {
    let mut shard = Shard::new(2);
    assert_eq!(shard.produce_on(4, None, 0, batch(id(0), 0, 0, 1)), Judgement::Append);
    assert_eq!(shard.produce_on(9, None, 1, batch(id(0), 0, 0, 1)), Judgement::Append);
    assert_eq!(shard.produce_on(4, None, 0, batch(id(0), 0, 1, 1)), superseded(4, 9));
    assert_eq!(shard.produce_on(9, None, 0, batch(id(0), 0, 1, 1)), Judgement::Append);
    assert_eq!(shard.produce_on(4, None, 0, batch(id(1), 0, 0, 1)), Judgement::Append, "another producer");
}

#[test]
fn the_identity_is_judged_before_its_connection() {
    let mut shard = Shard::new(1);
    shard.produce_on(9, None, 0, batch(id(0), 5, 0, 1));
    assert_eq!(code(&shard.produce_on(4, None, 0, batch(id(0), 4, 1, 1))), 47);
    let identity = shard.init("a");
    assert_eq!(code(&shard.produce_on(1, None, 0, batch(identity.id, 0, 0, 1))), 48);
}

#[test]
fn a_refused_identity_does_not_raise_the_connection() {
    let mut shard = Shard::new(1);
    shard.produce_on(4, None, 0, batch(id(0), 5, 0, 1));
    assert_eq!(code(&shard.produce_on(9, None, 0, batch(id(0), 4, 1, 1))), 47);
    assert_eq!(
        code(&shard.produce_on(9, None, 0, batch(id(0), 99, 3, 1))),
        45,
        "an epoch that nobody proved"
    );
    assert_eq!(shard.produce_on(4, None, 0, batch(id(0), 5, 1, 1)), Judgement::Append);
}

#[test]
fn a_new_identity_starts_with_no_connection_in_use() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let before = shard.init("a");
    shard.add("a", before, 0).expect("current");
    assert_eq!(shard.produce_on(9, Some(&owner), 0, in_transaction(before, 0, 1)), Judgement::Append);
    let after = shard.end("a", before, Outcome::Commit, Protocol::Version2).expect("current");
    shard.add("a", after, 0).expect("current");
    assert_eq!(shard.produce_on(4, Some(&owner), 0, in_transaction(after, 0, 1)), Judgement::Append);
    assert_eq!(shard.produce_on(3, Some(&owner), 0, in_transaction(after, 1, 1)), superseded(3, 4));
}

#[test]
fn many_made_up_ids_do_not_push_a_working_producer_out_of_the_connection_rule() {
    let mut shard = Shard::new(1);
    shard.check = false;
    shard.produce_on(9, None, 0, batch(id(0), 0, 0, 1));
    for number in 0..40_000_i64 {
        shard.judge_on(1, None, 0, batch(ProducerId::new(1 << 50 | number << 8), 0, 0, 1));
        if number % 20_000 == 0 {
            shard.judge_on(9, None, 0, batch(id(0), 0, 0, 1));
        }
    }
    assert_eq!(shard.produce_on(4, None, 0, batch(id(0), 0, 1, 1)), superseded(4, 9));
}

#[test]
fn after_a_refusal_for_want_of_room_what_follows_waits_and_is_not_told_to_start_again() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    let (first, second) = (batch(id(0), 0, 0, 1), batch(id(0), 0, 1, 1));
    assert_eq!(code(&shard.judge_on(1, None, 10, second)), 59, "it may have been known before the deletion");
    assert_eq!(shard.judge_on(1, None, 10, first), Judgement::Append);
    shard.volatile.refused_for_room(handle(10), &first);
    assert_eq!(code(&shard.judge_on(1, None, 10, second)), 45, "the first is still on its way");
    assert_eq!(shard.produce(10, first), Judgement::Append);
    assert_eq!(shard.produce(10, second), Judgement::Append);
}

#[test]
fn only_a_lower_sequence_of_the_same_epoch_that_was_refused_holds_back() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    shard.volatile.refused_for_room(handle(10), &batch(id(0), 3, 4, 1));
    for (epoch, first, expected) in [(3, 3, 59), (3, 4, 59), (3, 5, 45), (2, 5, 59), (4, 5, 59)] {
        let mut other = shard.clone();
        assert_eq!(
            code(&other.judge_on(1, None, 10, batch(id(0), epoch, first, 1))),
            expected,
            "{epoch} {first}"
        );
    }
    assert_eq!(code(&shard.judge_on(1, None, 10, batch(id(1), 3, 5, 1))), 59, "another producer");
}

#[test]
fn the_mark_of_a_refusal_goes_once_the_batch_is_judged_again() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    let (first, second) = (batch(id(0), 0, 0, 1), batch(id(0), 0, 1, 1));
    for lowest in [batch(id(0), 0, 3, 1), first, second] {
        shard.volatile.refused_for_room(handle(10), &lowest);
    }
    assert_eq!(code(&shard.judge_on(1, None, 10, second)), 45);
    shard.judge_on(1, None, 10, first);
    assert_eq!(code(&shard.judge_on(1, None, 10, second)), 59);
}

#[test]
fn a_stray_of_a_refused_batch_on_a_left_connection_leaves_its_mark() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    let (first, second) = (batch(id(0), 0, 0, 1), batch(id(0), 0, 1, 1));
    assert_eq!(shard.judge_on(9, None, 10, first), Judgement::Append);
    shard.volatile.refused_for_room(handle(10), &first);
    assert_eq!(shard.judge_on(4, None, 10, first), superseded(4, 9));
    assert_eq!(code(&shard.judge_on(9, None, 10, second)), 45, "the first is still on its way");
}

#[test]
fn a_stray_of_an_older_epoch_leaves_the_mark_of_a_refused_batch() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    let (first, second) = (batch(id(0), 1, 0, 1), batch(id(0), 1, 1, 1));
    assert_eq!(shard.judge_on(9, None, 10, first), Judgement::Append);
    shard.volatile.refused_for_room(handle(10), &first);
    assert_eq!(shard.judge_on(4, None, 10, batch(id(0), 0, 0, 1)), Judgement::Append);
    assert_eq!(code(&shard.judge_on(9, None, 10, second)), 45, "the first is still on its way");
}

#[test]
fn after_a_start_that_may_have_lost_writes_a_gap_means_start_again_until_a_batch_is_accepted() {
    let mut shard = Shard::new(3);
    for producer in 0..3 {
        shard.produce(0, batch(id(producer), 1, 0, 1));
    }
    shard.start(2, true);
    shard.now += 1;
    shard.apply(semel_events::ProducerIdsReserved { first: id(1000), end: id(2000) }.into());
    assert_eq!(code(&shard.produce(1, batch(id(0), 1, 4, 1))), 59, "nothing known");
    assert_eq!(code(&shard.produce(0, batch(id(0), 1, 2, 1))), 59, "beyond the next one");
    assert_eq!(code(&shard.produce(0, batch(id(0), 2, 1, 1))), 59, "a new epoch not from 0");
    assert_eq!(shard.produce(0, batch(id(0), 1, 0, 1)), duplicate_at(0, shard.now - 1));
    assert_eq!(code(&shard.produce(0, batch(id(0), 0, 0, 1))), 47);
    assert_eq!(shard.produce(0, batch(id(0), 2, 0, 1)), Judgement::Append);
    assert_eq!(code(&shard.produce(0, batch(id(0), 2, 2, 1))), 45, "its next batch was accepted");
    assert_eq!(code(&shard.produce(1, batch(id(0), 2, 4, 1))), 59, "elsewhere it is still in doubt");
    assert_eq!(code(&shard.produce(1, batch(id(1), 1, 4, 1))), 59, "another id is still in doubt");
    assert_eq!(code(&shard.produce(1, batch(id(1500), 0, 4, 1))), 45, "issued after the start");
    shard.start(3, false);
    assert_eq!(code(&shard.produce(1, batch(id(1), 1, 4, 1))), 59, "a clean start clears no doubt");
    shard.start(4, true);
    assert_eq!(code(&shard.produce(0, batch(id(0), 2, 2, 1))), 59, "a new doubt");
}

#[test]
fn an_owned_id_is_not_in_doubt_after_such_a_start() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    shard.start(2, true);
    shard.add("a", identity, 0).expect("identities stay valid");
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 3, 1))), 45);
}
