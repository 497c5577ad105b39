//! What idle groups cost: 10,000 of them, in bytes each. `--nocapture` prints it.

use std::{fs, hint::black_box, sync::Arc};

use semel_events::{
    Blob, CommittedOffset, Event, GroupAssigned, GroupAssignment, GroupGenerationStarted, GroupMember,
    GroupProtocol, OffsetsCommitted,
};
use semel_groups::{Sessions, State, Volatile};
use semel_types::{DurationMs, GroupId, LogSequence, Now, Offset, PartitionHandle};

const GROUPS: u64 = 10_000;

/// Committed offsets of each group.
const OFFSETS: u32 = 6;

const NOW: Now = Now::from_ms(1);

fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux tells how much memory a process holds");
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    resident.expect("the second number is resident pages") * 4096
}

fn offsets(group: &GroupId) -> Event {
    let offset = |partition| CommittedOffset {
        partition: PartitionHandle::new(partition),
        offset: Offset::new(1_000),
        leader_epoch: None,
        metadata: Arc::from(""),
    };
    OffsetsCommitted { group: group.clone(), offsets: (0..OFFSETS).map(offset).collect(), now: NOW }.into()
}

/// One member that has all partitions of a topic.
fn members(group: &GroupId) -> [Event; 2] {
    let id: Arc<str> = Arc::from("consumer-app-1-6f1c2a34-55aa-4c1e-9f00-0123456789ab");
    let member = GroupMember {
        id: Arc::clone(&id),
        instance: None,
        client_id: Arc::from("consumer-app-1"),
        client_host: Arc::from("10.0.0.7"),
        session_timeout: DurationMs::from_ms(45_000),
        rebalance_timeout: DurationMs::from_ms(300_000),
        protocols: vec![GroupProtocol { name: Arc::from("range"), metadata: Blob::from(&[7; 40][..]) }],
    };
    let started = GroupGenerationStarted {
        group: group.clone(),
        generation: 1,
        protocol_type: Arc::from("consumer"),
        protocol: Arc::from("range"),
        leader: Arc::clone(&id),
        members: vec![member],
        now: NOW,
    };
    let assignments = vec![GroupAssignment { member: id, assignment: Blob::from(&[7; 60][..]) }];
    let assigned = GroupAssigned { group: group.clone(), generation: 1, assignments, now: NOW };
    [started.into(), assigned.into()]
}

/// Bytes of each group.
fn cost(with_member: bool) -> u64 {
    let before = resident_bytes();
    let mut state = State::new();
    let mut sequence = LogSequence::default();
    for number in 0..GROUPS {
        let group = GroupId::new(&format!("group-{number}"));
        let members = if with_member { members(&group).to_vec() } else { Vec::new() };
        for event in members.into_iter().chain([offsets(&group)]) {
            sequence = sequence.next();
            state.apply(sequence, &event);
        }
    }
    let session = DurationMs::from_ms(45_000);
    let volatile = Volatile::start(&state, |_| Sessions { consumer: session, streams: session }, NOW);
    let bytes = resident_bytes().saturating_sub(before) / GROUPS;
    // What is measured must not be freed before.
    std::mem::forget(black_box((state, volatile)));
    bytes
}

#[test]
fn an_idle_group_costs_at_most_four_kibibytes() {
    let (empty, with_member) = (cost(false), cost(true));
    println!("{empty} bytes a group of {OFFSETS} offsets without members, {with_member} with one member");
    assert!(empty <= 2048 && with_member <= 4096, "{empty} and {with_member} bytes");
}
