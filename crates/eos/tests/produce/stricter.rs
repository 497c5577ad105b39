//! Where Kafka 4.4 breaks its own promise, and the core must not (`stricter` expectations of the suite), as far as
//! one partition's producer state decides it.

use semel_eos::{Judgement, Refusal};
use semel_events::{Outcome, Protocol, TransactionalIdExpired};
use semel_types::{ProducerEpoch, ProducerId, ProducerStamp, TransactionalId};

use crate::shard::{Shard, batch, code, duplicate_at, handle, id, in_transaction, now, other_payload};

#[test]
fn s1_reused_numbers_with_another_payload_are_not_acknowledged_as_stored() {
    let mut shard = Shard::new(1);
    let first = batch(id(0), 0, 0, 1);
    assert_eq!(shard.produce(0, first), Judgement::Append);
    let judgement = shard.produce(0, other_payload(first));
    assert!(matches!(judgement, Judgement::Refuse(Refusal::OtherPayload { .. })), "{judgement:?}");
    assert_eq!(shard.next_offset(0), 1);
}

/// A classic transaction of one record on partition 0, ended.
fn classic_transaction(
    shard: &mut Shard,
    owner: &TransactionalId,
    identity: ProducerStamp,
    outcome: Outcome,
) {
    shard.add(owner.as_str(), identity, 0).expect("current");
    let judgement = shard.produce_on(1, Some(owner), 0, in_transaction(identity, 0, 1));
    assert_eq!(judgement, Judgement::Append);
    assert_eq!(shard.end(owner.as_str(), identity, outcome, Protocol::Classic), Ok(identity));
}

#[test]
fn s2_a_stray_of_an_aborted_transaction_is_not_acknowledged_into_the_next_one() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    classic_transaction(&mut shard, &owner, identity, Outcome::Abort);
    shard.add("a", identity, 0).expect("current");
    for stamp in [in_transaction(identity, 0, 1), other_payload(in_transaction(identity, 0, 1))] {
        let judgement = shard.produce_on(1, Some(&owner), 0, stamp);
        assert!(
            matches!(judgement, Judgement::Refuse(Refusal::StrayOfEndedTransaction { .. })),
            "{judgement:?}"
        );
    }
    assert_eq!(shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 1, 1)), Judgement::Append);
    let retry = shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 1, 1));
    assert_eq!(retry, duplicate_at(2, shard.now));
}

#[test]
fn s2_a_stray_with_no_transaction_open_is_not_acknowledged_either() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    let identity = shard.init("a");
    classic_transaction(&mut shard, &owner, identity, Outcome::Commit);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1))), 45);
}

#[test]
fn s5_only_the_owner_writes_under_an_owned_id_and_no_other_epoch_does() {
    let (mut shard, owner, other) = (Shard::new(1), TransactionalId::from("a"), TransactionalId::from("b"));
    let identity = shard.init("a");
    shard.init("b");
    let forged = ProducerStamp { epoch: ProducerEpoch::new(99), ..identity };
    let plain = batch(identity.id, 99, 0, 1);
    assert_eq!(code(&shard.produce(0, plain)), 48);
    assert_eq!(code(&shard.produce(0, batch(identity.id, 0, 0, 1))), 48);
    assert_eq!(code(&shard.produce_on(1, Some(&other), 0, in_transaction(identity, 0, 1))), 49);
    assert_eq!(code(&shard.produce_on(1, None, 0, in_transaction(identity, 0, 1))), 49);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(forged, 0, 1))), 47);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1))), 48);
    shard.add("a", identity, 0).expect("current");
    assert_eq!(shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1)), Judgement::Append);
}

#[test]
fn an_id_without_owner_is_refused_in_a_transactional_batch() {
    let (mut shard, owner) = (Shard::new(1), TransactionalId::from("a"));
    shard.init("a");
    let stamp = ProducerStamp { id: id(500), epoch: ProducerEpoch::new(0) };
    let judgement = shard.produce_on(1, Some(&owner), 0, in_transaction(stamp, 0, 1));
    assert_eq!(judgement, Judgement::Refuse(Refusal::WrongOwner { owner: None }));
}

#[test]
fn a_zombie_is_refused_on_partitions_that_its_successor_never_touched() {
    let (mut shard, owner) = (Shard::new(2), TransactionalId::from("a"));
    let zombie = shard.init("a");
    classic_transaction(&mut shard, &owner, zombie, Outcome::Commit);
    let successor = shard.init("a");
    assert_ne!(zombie, successor);
    for partition in [0, 1] {
        assert_eq!(code(&shard.produce_on(1, Some(&owner), partition, in_transaction(zombie, 1, 1))), 47);
    }
}

#[test]
fn an_id_whose_transactional_id_expired_is_closed_for_good() {
    let (mut shard, owner, other) = (Shard::new(1), TransactionalId::from("a"), TransactionalId::from("b"));
    let identity = shard.init("a");
    let event = TransactionalIdExpired { id: owner.clone(), identity, now: now(shard.now) };
    shard.apply(event.into());
    let judgement = shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1));
    assert!(matches!(judgement, Judgement::Refuse(Refusal::Fenced { current: None, .. })), "{judgement:?}");
    assert_eq!(code(&shard.produce_on(1, Some(&other), 0, in_transaction(identity, 0, 1))), 49);
    assert_eq!(code(&shard.produce(0, batch(identity.id, 0, 0, 1))), 48);
    let successor = shard.init("a");
    assert_ne!(successor.id, identity.id);
    assert_eq!(code(&shard.produce_on(1, Some(&owner), 0, in_transaction(identity, 0, 1))), 47);
}

#[test]
fn a_fenced_session_is_told_since_when() {
    let mut shard = Shard::new(1);
    shard.produce(0, batch(id(0), 4, 0, 1));
    shard.now += 5;
    shard.produce(0, batch(id(0), 5, 0, 1));
    let Judgement::Refuse(Refusal::Fenced { sent, current, since, .. }) =
        shard.produce(0, batch(id(0), 4, 1, 1))
    else {
        panic!("an older epoch is fenced");
    };
    assert_eq!((sent.epoch.get(), current.map(|current| current.epoch.get())), (4, Some(5)));
    assert_eq!(since, Some(now(shard.now)));
}

#[test]
fn s10_a_batch_that_overtakes_the_first_one_waits_for_it() {
    let mut shard = Shard::new(1);
    assert_eq!(code(&shard.produce(0, batch(id(0), 0, 1, 1))), 45);
    assert_eq!(shard.produce(0, batch(id(0), 0, 0, 1)), Judgement::Append);
    assert_eq!(shard.produce(0, batch(id(0), 0, 1, 1)), Judgement::Append);
}

#[test]
fn s11_a_retry_older_than_the_window_is_known_to_be_stored() {
    let mut shard = Shard::new(1);
    for first in 0..7 {
        assert_eq!(shard.produce(0, batch(id(0), 0, first, 1)), Judgement::Append);
    }
    let judgement = shard.produce(0, batch(id(0), 0, 0, 1));
    assert!(matches!(judgement, Judgement::Refuse(Refusal::AlreadyStored { .. })), "{judgement:?}");
    for (first, code_is) in [(1, 46), (2, 0), (6, 0)] {
        assert_eq!(code(&shard.produce(0, batch(id(0), 0, first, 1))), code_is);
    }
}

#[test]
fn s12_all_five_batches_are_known_after_a_restart() {
    let mut shard = Shard::new(1);
    let times: Vec<i64> = (0..5)
        .map(|first| {
            shard.now += 100;
            assert_eq!(shard.produce(0, batch(id(0), 0, first * 3, 3)), Judgement::Append);
            shard.now
        })
        .collect();
    let mut bytes = Vec::new();
    shard.state.encode(&mut bytes);
    shard.state = semel_eos::State::decode(&mut semel_events::Reader::new(&bytes)).expect("as written");
    shard.start(2, false);
    for (first, at) in (0..5).zip(times) {
        assert_eq!(shard.produce(0, batch(id(0), 0, first * 3, 3)), duplicate_at(first * 3, at));
    }
}

#[test]
fn s15_an_id_that_was_never_issued_here_is_told_to_start_again_unless_it_starts_at_0() {
    let mut shard = Shard::new(1);
    let foreign = ProducerId::new(5);
    let judgement = shard.produce(0, batch(foreign, 0, 3, 1));
    assert!(matches!(judgement, Judgement::Refuse(Refusal::ForgottenProducer { .. })), "{judgement:?}");
    assert_eq!(shard.produce(0, batch(foreign, 1, 0, 1)), Judgement::Append);
    assert_eq!(shard.produce(0, batch(foreign, 1, 0, 1)), duplicate_at(0, shard.now));
    assert_eq!(code(&shard.produce(0, batch(foreign, 0, 3, 1))), 47);
}

#[test]
fn s16_silence_shrinks_a_producer_without_forgetting_it() {
    let mut shard = Shard::new(1);
    for first in 0..3 {
        shard.produce(0, batch(id(0), 4, first, 1));
    }
    shard.wait_for_expiry();
    shard.expire();
    assert_eq!((shard.state.producers().entries(), shard.state.producers().stubs()), (0, 1));
    assert_eq!(code(&shard.produce(0, batch(id(0), 3, 3, 1))), 47);
    assert_eq!(code(&shard.produce(0, batch(id(0), 4, 4, 1))), 45);
    assert_eq!(shard.produce(0, batch(id(0), 4, 3, 1)), Judgement::Append);
    for first in 0..3 {
        assert_eq!(code(&shard.produce(0, batch(id(0), 4, first, 1))), 46);
    }
}

#[test]
fn s17_a_topic_made_anew_tells_a_live_producer_to_start_again() {
    let mut shard = Shard::new(1);
    shard.apply(semel_events::ProducerIdsReserved { first: id(1000), end: id(2000) }.into());
    shard.produce(0, batch(id(0), 0, 0, 1));
    let next_unissued = shard.delete_topic(0, 1);
    shard.create_topic(10, 1, next_unissued);
    assert_eq!(code(&shard.produce(0, batch(id(0), 0, 1, 1))), 3);
    let judgement = shard.produce(10, batch(id(0), 0, 1, 1));
    assert!(matches!(judgement, Judgement::Refuse(Refusal::ForgottenProducer { .. })), "{judgement:?}");
    assert_eq!(shard.produce(10, batch(id(0), 1, 0, 1)), Judgement::Append);
}

#[test]
fn s17_an_id_issued_after_the_deletion_is_not_suspected() {
    let mut shard = Shard::new(1);
    let next_unissued = shard.delete_topic(0, 1);
    shard.apply(semel_events::ProducerIdsReserved { first: id(1000), end: id(2000) }.into());
    shard.create_topic(10, 1, next_unissued);
    assert_eq!(code(&shard.produce(10, batch(id(1500), 0, 1, 1))), 45);
    assert_eq!(code(&shard.produce(10, batch(id(999), 0, 1, 1))), 59);
    assert_eq!(shard.state.partition(handle(10)).expect("exists").may_have_forgotten(), id(1000));
}

#[test]
fn s20_halves_of_a_stored_batch_are_stored() {
    let mut shard = Shard::new(1);
    let whole = batch(id(0), 0, 0, 2);
    assert_eq!(shard.produce(0, whole), Judgement::Append);
    assert_eq!(shard.produce(0, whole), duplicate_at(0, shard.now));
    assert_eq!(code(&shard.produce(0, batch(id(0), 0, 0, 1))), 46);
    assert_eq!(code(&shard.produce(0, batch(id(0), 0, 1, 1))), 46);
    assert_eq!(shard.next_offset(0), 2);
}
