//! Offsets in and out of transactions.

use alloc::{sync::Arc, vec, vec::Vec};

use semel_events::{
    CommittedOffset, EndCause, Event, Outcome, PendingOffsetsAdded, Reader, TopicDeleted, TransactionEnded,
};
use semel_types::{
    GroupId, LogSequence, Now, Offset, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp, TopicId,
    TransactionNumber, TransactionalId, WallTime,
};

use super::*;

const NOW: Now = Now::from_ms(1);
const PARTITION: PartitionHandle = PartitionHandle::new(3);

fn group() -> GroupId {
    GroupId::from("g")
}

fn stamp() -> ProducerStamp {
    ProducerStamp { id: ProducerId::new(9), epoch: ProducerEpoch::ZERO }
}

fn offsets(offset: i64) -> Vec<CommittedOffset> {
    let (partition, offset) = (PARTITION, Offset::new(offset));
    vec![CommittedOffset { partition, offset, leader_epoch: None, metadata: Arc::from("") }]
}

fn pending(number: u64, offset: i64) -> Event {
    PendingOffsetsAdded {
        group: group(),
        id: TransactionalId::from("t"),
        stamp: stamp(),
        number: TransactionNumber::new(number),
        offsets: offsets(offset),
        now: NOW,
    }
    .into()
}

fn ended(number: u64, outcome: Outcome) -> Event {
    TransactionEnded {
        id: TransactionalId::from("t"),
        number: TransactionNumber::new(number),
        outcome,
        cause: EndCause::EndTxn,
        version2: false,
        marker_stamp: stamp(),
        markers: vec![],
        groups: vec![group()],
        identity_before: stamp(),
        identity_after: stamp(),
        author: None,
        now: NOW,
        wall: WallTime::from_ms(1),
    }
    .into()
}

struct Log {
    state: State,
    sequence: LogSequence,
}

impl Log {
    fn new() -> Self {
        Self { state: State::new(), sequence: LogSequence::default() }
    }

    fn apply(&mut self, event: &Event) {
        self.sequence = self.sequence.next();
        self.state.apply(self.sequence, event);
        assert_eq!(self.state.check(self.sequence), Ok(()));
    }

    fn commit(&mut self, offset: i64) {
        let decided = self.state.commit(&Volatile::default(), &group(), Member::NONE, offsets(offset), NOW);
        self.apply(&decided.expect("no member claimed").0);
    }

    fn offset(&self) -> Option<i64> {
        self.state.offset(&group(), PARTITION).map(|stored| stored.committed.offset.get())
    }

    fn restarted(&self) -> State {
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        State::decode(&mut Reader::new(&bytes)).expect("own bytes are readable")
    }
}

#[test]
fn offsets_of_an_open_transaction_are_unstable_and_not_served() {
    let mut log = Log::new();
    log.commit(10);
    log.apply(&pending(1, 20));
    assert_eq!(log.offset(), Some(10));
    assert!(log.state.is_unstable(&group(), PARTITION));
    assert!(log.restarted().is_unstable(&group(), PARTITION));
}

#[test]
fn a_commit_makes_pending_offsets_visible_and_an_abort_drops_them() {
    for (outcome, due) in [(Outcome::Commit, Some(20)), (Outcome::Abort, Some(10))] {
        let mut log = Log::new();
        log.commit(10);
        log.apply(&pending(1, 20));
        log.apply(&ended(1, outcome));
        assert_eq!(log.offset(), due, "{outcome:?}");
        assert!(!log.state.is_unstable(&group(), PARTITION));
    }
}

#[test]
fn a_pending_offset_loses_to_a_later_plain_commit() {
    let mut log = Log::new();
    log.apply(&pending(1, 20));
    log.commit(15);
    log.apply(&ended(1, Outcome::Commit));
    assert_eq!(log.offset(), Some(15));
}

#[test]
fn only_the_ended_transactions_offsets_are_settled() {
    let mut log = Log::new();
    log.apply(&pending(1, 20));
    log.apply(&pending(2, 30));
    log.apply(&ended(1, Outcome::Abort));
    assert!(log.state.is_unstable(&group(), PARTITION));
    log.apply(&ended(2, Outcome::Commit));
    assert_eq!(log.offset(), Some(30));
}

#[test]
fn a_deleted_topic_takes_its_offsets_with_it() {
    let mut log = Log::new();
    log.commit(10);
    let (partitions, next_unissued) = (vec![PARTITION], ProducerId::new(0));
    log.apply(&TopicDeleted { id: TopicId::new([1; 16]), partitions, next_unissued, now: NOW }.into());
    assert_eq!(log.offset(), None);
    assert_eq!(log.state.offsets(&group()).count(), 0);
    assert_eq!(log.restarted().group(&group()).map(|group| group.offsets().count()), Some(0));
}

#[test]
fn a_claimed_membership_is_refused_and_changes_nothing() {
    let mut log = Log::new();
    let check = |state: &State, member| {
        classic::check_commit(state, &Volatile::default(), &group(), member, NOW)
            .map(|change| change.is_none())
    };
    let member = Member { generation: Some(3), member_id: "m", ..Member::NONE };
    assert_eq!(check(&log.state, member), Err(Refusal::UnknownGeneration));
    log.commit(10);
    assert_eq!(check(&log.state, member), Err(Refusal::UnknownMember));
    let nameless = Member { generation: Some(3), ..Member::NONE };
    assert_eq!(check(&log.state, nameless), Err(Refusal::UnknownMember));
    assert_eq!(log.offset(), Some(10));
}

#[test]
fn everything_survives_a_snapshot() {
    let mut log = Log::new();
    log.commit(10);
    log.apply(&pending(1, 20));
    let mut state = log.restarted();
    state.apply(log.sequence.next(), &ended(1, Outcome::Commit));
    assert_eq!(state.offset(&group(), PARTITION).map(|stored| stored.committed.offset.get()), Some(20));
    assert!(State::decode(&mut Reader::new(&[9])).is_err());
}
