//! Kafka's own cases (upstream `ProducerStateManagerTest`, `UnifiedLogTest`), by the rule that each pins. Where Semel
//! answers otherwise on purpose, the name says so.

use semel_eos::Judgement;
use semel_events::{AbortedTransaction, Outcome, Protocol, Visible};
use semel_types::{Offset, ProducerId, TransactionalId};

use crate::shard::{Shard, batch, code, duplicate_at, handle, id, in_transaction, other_payload};

#[test]
fn the_basic_life_of_a_producer_id() {
    let mut shard = Shard::new(1);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 1, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 5, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(1), 1, 0, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 5, 1))), 47);
}

#[test]
fn zero_follows_the_largest_sequence() {
    let mut shard = Shard::new(1);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 1 << 31))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 1, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 1, 1))), 0);
}

#[test]
fn a_batch_lies_across_the_wrap_and_its_retry_is_known() {
    let mut shard = Shard::new(1);
    let last = i64::from(i32::MAX);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, i32::MAX as u32 - 9))), 0);
    let across = batch(id(1), 0, last - 9, 20);
    assert_eq!(shard.produce(0, across), Judgement::Append);
    assert_eq!(shard.produce(0, across), duplicate_at(last - 9, shard.now));
    assert_eq!(code(&shard.produce(0, other_payload(across))), 46);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 11, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 10, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, last, 1))), 46);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, last - 5, 17))), 45 + 1);
}

#[test]
fn a_wrap_to_anything_but_zero_is_a_gap() {
    let mut shard = Shard::new(1);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 1 << 31))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 1, 1))), 45);
}

#[test]
fn each_entry_is_of_one_producer_and_one_partition() {
    let mut shard = Shard::new(2);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 1))), 0);
    assert_eq!(code(&shard.produce(1, batch(id(1), 0, 1, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(2), 0, 1, 1))), 45);
    assert_eq!(code(&shard.produce(1, batch(id(1), 5, 0, 1))), 0);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 1, 1))), 0);
}

#[test]
fn five_batches_answer_with_their_offsets_and_what_lies_across_them_is_refused() {
    let mut shard = Shard::new(1);
    for first in 0..5 {
        shard.produce(0, batch(id(1), 0, first * 2, 2));
    }
    for first in 0..5 {
        assert_eq!(shard.produce(0, batch(id(1), 0, first * 2, 2)), duplicate_at(first * 2, shard.now));
    }
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 9, 2))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 0, 11))), 45);
}

#[test]
fn judging_changes_nothing() {
    let mut shard = Shard::new(1);
    shard.produce(0, batch(id(1), 0, 0, 1));
    let before = shard.state.clone();
    for (epoch, first) in [(0, 0), (0, 1), (0, 9), (1, 0), (1, 1)] {
        shard.judge_on(1, None, 0, batch(id(1), epoch, first, 1));
    }
    assert!(shard.state == before);
}

#[test]
fn a_plain_batch_never_enters_a_transaction() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    shard.add("a", identity, 0).expect("current");
    shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1));
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, batch(identity.id, 0, 1, 1))), 48);
}

#[test]
fn the_first_unstable_offset_is_that_of_the_oldest_open_transaction() {
    let mut shard = Shard::new(1);
    let owners = [TransactionalId::from("a"), TransactionalId::from("b")];
    let identities = [shard.init("a"), shard.init("b")];
    shard.produce(0, batch(id(900), 0, 0, 4));
    for (owner, identity) in owners.iter().zip(identities) {
        shard.add(owner.as_str(), identity, 0).expect("current");
        assert_eq!(shard.produce_on(1, Some(owner), 0, in_transaction(identity, 0, 3)), Judgement::Append);
    }
    shard.produce_anonymously(0, 5);
    assert_eq!((shard.stable_offset(0), shard.next_offset(0)), (4, 15));
    shard.end("b", identities[1], Outcome::Commit, Protocol::Classic).expect("current");
    assert_eq!((shard.stable_offset(0), shard.next_offset(0)), (4, 16));
    shard.visible.clear();
    shard.end("a", identities[0], Outcome::Abort, Protocol::Classic).expect("current");
    assert_eq!((shard.stable_offset(0), shard.next_offset(0)), (17, 17));
    let aborted = AbortedTransaction {
        producer: identities[0].id,
        first_offset: Offset::new(4),
        last_offset: Offset::new(16),
        last_stable_offset: Offset::new(17),
    };
    let positions = Visible::Positions {
        partition: handle(0),
        log_start_offset: Offset::new(0),
        high_watermark: Offset::new(17),
        last_stable_offset: Offset::new(17),
    };
    assert_eq!(shard.visible, [Visible::Aborted { partition: handle(0), aborted }, positions]);
}

#[test]
fn a_marker_where_nothing_was_written_aborts_nothing_visible() {
    let mut shard = Shard::new(1);
    let identity = shard.init("a");
    shard.add("a", identity, 0).expect("current");
    shard.visible.clear();
    shard.end("a", identity, Outcome::Abort, Protocol::Classic).expect("current");
    assert_eq!(shard.next_offset(0), 1);
    assert!(!shard.visible.iter().any(|visible| matches!(visible, Visible::Aborted { .. })));
}

#[test]
fn after_an_end_that_bumps_the_old_epoch_is_refused_and_the_new_one_starts_at_0() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let before = shard.init("a");
    shard.add("a", before, 0).expect("current");
    shard.produce_on(1, Some(&owner), 0, in_transaction(before, 0, 5));
    let after = shard.end("a", before, Outcome::Commit, Protocol::Version2).expect("current");
    assert_eq!(after.epoch.get(), before.epoch.get() + 1);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(before, 5, 1))), 47);
    shard.add("a", after, 0).expect("current");
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(after, 5, 1))), 45);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(after, 0, 1))), 0);
}

#[test]
fn producers_with_an_open_transaction_do_not_expire() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    shard.add("a", identity, 0).expect("current");
    shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 5));
    shard.now += 2 * shard.settings.producer_id_expiration.as_ms();
    shard.expire();
    assert_eq!(shard.state.producers().entries(), 1);
    assert_eq!(
        shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 5)),
        duplicate_at(0, 1_000_000)
    );
    shard.end("a", identity, Outcome::Commit, Protocol::Classic).expect("current");
    shard.now += 2_000_000;
    shard.expire();
    assert_eq!((shard.state.producers().entries(), shard.state.producers().stubs()), (0, 1));
}

/// Kafka takes any sequence where it knows nothing; Semel tells what may be missing.
#[test]
fn stricter_nothing_known_takes_only_a_zero() {
    let mut shard = Shard::new(1);
    assert_eq!(code(&shard.produce(0, batch(id(1), 0, 7, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(id(1), 7, 1, 1))), 45);
    assert_eq!(code(&shard.produce(0, batch(ProducerId::new(1), 0, 7, 1))), 59);
}

#[test]
fn leader_epochs_are_kept_for_the_starts_in_which_a_partition_was_written() {
    let mut shard = Shard::new(2);
    shard.produce_anonymously(0, 3);
    shard.start(2, false);
    shard.start(3, false);
    shard.produce_anonymously(0, 2);
    shard.produce_anonymously(0, 2);
    let starts = shard.state.partition(handle(0)).expect("exists").leader_epochs();
    let starts: Vec<_> = starts.iter().map(|start| (start.epoch.get(), start.first_offset.get())).collect();
    assert_eq!(starts, [(1, 0), (3, 3)]);
    let mut rebuilt = Vec::new();
    shard.state.visible(&mut rebuilt);
    assert_eq!(rebuilt.len(), 2 + 2);
}

#[test]
fn the_first_write_of_version_2_adds_its_partition() {
    let (mut shard, owner) = (Shard::new(2), TransactionalId::from("a"));
    shard.protocol = Protocol::Version2;
    let before = shard.init("a");
    for partition in [0, 1] {
        assert_eq!(
            shard.produce_on(1, Some(&owner), partition, in_transaction(before, 0, 2)),
            Judgement::Append
        );
        assert_eq!((shard.stable_offset(partition), shard.next_offset(partition)), (0, 2));
    }
    let after = shard.end("a", before, Outcome::Commit, Protocol::Version2).expect("current");
    for partition in [0, 1] {
        assert_eq!((shard.stable_offset(partition), shard.next_offset(partition)), (3, 3));
        assert_eq!(code(&shard.produce_on(1, Some(&owner), partition, in_transaction(before, 2, 1))), 47);
    }
    assert_eq!(shard.produce_on(1, Some(&owner), 1, in_transaction(after, 0, 1)), Judgement::Append);
}

/// A transaction that writes more records to one partition than sequences can tell apart.
#[test]
fn retries_in_a_transaction_of_very_many_records_are_known() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    shard.add("a", identity, 0).expect("current");
    let length = 1_i64 << 29;
    for number in 0..9 {
        for back in [0, 1] {
            let number = number - back;
            if number >= 0 {
                let stamp = in_transaction(identity, number * length, length as u32);
                let judgement = shard.produce_on(1, Some(&owner), 0, stamp);
                let expected =
                    if back == 0 { Judgement::Append } else { duplicate_at(number * length, shard.now) };
                assert_eq!(judgement, expected, "batch {number}");
            }
        }
    }
}
