//! The roster: one owner for each partition, and its written form.

use alloc::{sync::Arc, vec, vec::Vec};

use semel_events::{
    ConsumerEpochStarted, ConsumerMember, ConsumerMemberChanged, ConsumerMemberReconciled, ConsumerProgress,
    ConsumerTarget, Event, GroupKind, GroupKindChanged, OwnedPartition, Reader,
};
use semel_types::{DurationMs, GroupId, LogSequence, Now, PartitionHandle};

use crate::{Kind, State};

const NOW: Now = Now::from_ms(1);
const PARTITION: PartitionHandle = PartitionHandle::new(3);

fn group() -> GroupId {
    GroupId::from("g")
}

fn member(id: &str) -> ConsumerMember {
    ConsumerMember {
        id: Arc::from(id),
        instance: None,
        rack: None,
        client_id: Arc::from("c"),
        client_host: Arc::from("/h"),
        rebalance_timeout: DurationMs::from_ms(1_000),
        topics: vec![Arc::from("t")],
        pattern: Arc::from(""),
        assignor: None,
        classic: None,
    }
}

fn reconciled(id: &str) -> Event {
    ConsumerMemberReconciled {
        group: group(),
        member: Arc::from(id),
        epoch: 1,
        previous_epoch: 0,
        progress: ConsumerProgress::Stable,
        assigned: vec![OwnedPartition { partition: PARTITION, since: 1 }],
        revoking: vec![],
        now: NOW,
    }
    .into()
}

fn state() -> State {
    let mut state = State::new();
    let target = ConsumerTarget { member: Arc::from("a"), partitions: vec![PARTITION] };
    let events: [Event; 5] = [
        GroupKindChanged { group: group(), kind: GroupKind::Consumer, epoch: 0, now: NOW }.into(),
        ConsumerMemberChanged { group: group(), member: member("a"), now: NOW }.into(),
        ConsumerMemberChanged { group: group(), member: member("b"), now: NOW }.into(),
        ConsumerEpochStarted {
            group: group(),
            epoch: 1,
            topics_hash: 7,
            assignor: Arc::from("uniform"),
            targets: vec![target],
            now: NOW,
        }
        .into(),
        reconciled("a"),
    ];
    events.iter().for_each(|event| state.apply(LogSequence::default(), event));
    state
}

#[test]
fn a_roster_survives_a_snapshot_as_a_group_of_its_kind() {
    let state = state();
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    let back = State::decode(&mut Reader::new(&bytes)).expect("own bytes are readable");
    assert_eq!(
        back.group(&group()).map(|found| found.kind()),
        state.group(&group()).map(|found| found.kind())
    );
    assert!(matches!(back.group(&group()).map(|found| found.kind()), Some(Kind::Consumer(_))));
    assert_eq!(back.check(LogSequence::default()), Ok(()));
}

#[test]
fn grp_09_a_partition_with_two_owners_is_found() {
    let mut state = state();
    state.apply(LogSequence::default(), &reconciled("b"));
    let found = state.check(LogSequence::default()).expect_err("two members have it");
    assert!(found.0.starts_with("GRP-09"), "{}", found.0);
}
