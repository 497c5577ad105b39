//! Every event survives its written form; foreign bytes are refused with a reason.

use alloc::{string::ToString, sync::Arc, vec, vec::Vec};

use semel_types::{
    ClusterId, DurationMs, GroupId, LeaderEpoch, Now, Offset, PartitionHandle, PartitionIndex,
    PayloadChecksum, ProducerEpoch, ProducerId, ProducerStamp, Sequence, ShardEpoch, ShardId, TopicId,
    TopicName, TransactionNumber, TransactionalId, WallTime,
};

use super::*;

fn stamp(id: i64, epoch: i16) -> ProducerStamp {
    ProducerStamp { id: ProducerId::new(id), epoch: ProducerEpoch::new(epoch) }
}

fn author() -> Author {
    Author {
        client_id: Arc::from("app-2"),
        software: Arc::from("java 4.4.0"),
        address: Arc::from("10.0.0.7:51544"),
        api: "InitProducerId".to_string(),
    }
}

fn offset() -> CommittedOffset {
    CommittedOffset {
        partition: PartitionHandle::new(7),
        offset: Offset::new(1 << 40),
        leader_epoch: Some(LeaderEpoch::new(3)),
        metadata: Arc::from("note"),
    }
}

fn member() -> GroupMember {
    GroupMember {
        id: Arc::from("app-1-7f"),
        instance: Some(Arc::from("app-1")),
        client_id: Arc::from("app"),
        client_host: Arc::from("10.0.0.7"),
        session_timeout: DurationMs::from_ms(45_000),
        rebalance_timeout: DurationMs::from_ms(300_000),
        protocols: vec![GroupProtocol { name: Arc::from("range"), metadata: Blob::from(&[0, 255, 7][..]) }],
    }
}

fn setting() -> Setting {
    Setting { name: "retention.ms".to_string(), value: "1".to_string() }
}

/// Those of what an administrator changes.
fn admin_samples() -> Vec<Event> {
    let (now, id) = (Now::from_ms(6), TopicId::new([8; 16]));
    let partition = PartitionHandle::new(u32::MAX);
    vec![
        RecordsDeleted { starts: vec![LogStart { partition, offset: Offset::new(1 << 50) }], now }.into(),
        TopicSettingsChanged { id, settings: vec![setting()], now }.into(),
        PartitionsAdded { id, partitions: vec![partition], may_have_forgotten: ProducerId::new(77), now }
            .into(),
    ]
}

/// Those of groups.
fn group_samples() -> Vec<Event> {
    let (now, group) = (Now::from_ms(5), GroupId::from("g"));
    vec![
        GroupGenerationStarted {
            group: group.clone(),
            generation: i32::MAX,
            protocol_type: Arc::from("consumer"),
            protocol: Arc::from("range"),
            leader: Arc::from("app-1-7f"),
            members: vec![member()],
            now,
        }
        .into(),
        GroupAssigned {
            group: group.clone(),
            generation: 3,
            assignments: vec![GroupAssignment { member: Arc::from("m"), assignment: Blob::from(&[200][..]) }],
            now,
        }
        .into(),
        GroupMemberReplaced { group: group.clone(), old: Arc::from("m"), member: member(), now }.into(),
        GroupMembersRemoved { group: group.clone(), members: vec![Arc::from("m")], now }.into(),
        GroupDeleted { group: group.clone(), now }.into(),
        OffsetsDeleted { group: group.clone(), partitions: vec![PartitionHandle::new(3)], now }.into(),
        GroupSettingsChanged { group, settings: vec![setting()], now }.into(),
    ]
}

/// Those of consumer groups (KIP-848).
fn consumer_samples() -> Vec<Event> {
    let (now, group) = (Now::from_ms(5), GroupId::from("g"));
    let traits =
        ClassicTraits { session_timeout: DurationMs::from_ms(45_000), protocols: member().protocols };
    let consumer = ConsumerMember {
        id: Arc::from("app-1-7f"),
        instance: Some(Arc::from("app-1")),
        rack: None,
        client_id: Arc::from("app"),
        client_host: Arc::from("10.0.0.7"),
        rebalance_timeout: DurationMs::from_ms(300_000),
        topics: vec![Arc::from("a"), Arc::from("b")],
        pattern: Arc::from("c.*"),
        assignor: Some(Arc::from("range")),
        classic: Some(traits),
    };
    let owned = OwnedPartition { partition: PartitionHandle::new(3), since: 7 };
    let target = ConsumerTarget { member: Arc::from("m"), partitions: vec![PartitionHandle::new(u32::MAX)] };
    vec![
        ConsumerMemberChanged { group: group.clone(), member: consumer.clone(), now }.into(),
        ConsumerEpochStarted {
            group: group.clone(),
            epoch: i32::MAX,
            topics_hash: u64::MAX,
            assignor: Arc::from("uniform"),
            targets: vec![target],
            now,
        }
        .into(),
        ConsumerMemberReconciled {
            group: group.clone(),
            member: Arc::from("m"),
            epoch: -2,
            previous_epoch: 4,
            progress: ConsumerProgress::Revoking,
            assigned: vec![owned.clone()],
            revoking: vec![owned],
            now,
        }
        .into(),
        ConsumerMembersRemoved { group: group.clone(), members: vec![Arc::from("m")], now }.into(),
        ConsumerMemberReplaced { group: group.clone(), old: Arc::from("m"), member: consumer, now }.into(),
        GroupKindChanged { group, kind: GroupKind::Streams, epoch: 9, now }.into(),
    ]
}

fn task(partition: i32) -> StreamsTaskId {
    StreamsTaskId { subtopology: Arc::from("0"), partition: PartitionIndex::new(partition) }
}

fn held(since: i32) -> StreamsHeldTasks {
    StreamsHeldTasks {
        active: vec![StreamsActiveTask { task: task(1), since }],
        standby: vec![task(2), task(i32::MAX)],
        warmup: vec![],
    }
}

fn topology() -> StreamsTopology {
    let pair = StreamsPair { key: Arc::from("cleanup.policy"), value: Arc::from("compact") };
    let topic = |partitions| StreamsInternalTopic {
        name: Arc::from("app-store-changelog"),
        partitions,
        copies: -1,
        settings: vec![pair.clone()],
    };
    let part = StreamsSubtopology {
        id: Arc::from("0"),
        sources: vec![Arc::from("in")],
        repartition_sources: vec![topic(3)],
        repartition_sinks: vec![Arc::from("app-repartition")],
        changelogs: vec![topic(0)],
        copartitions: vec![StreamsCopartition { sources: vec![0], repartition_sources: vec![0] }],
    };
    StreamsTopology { epoch: 0, subtopologies: vec![part] }
}

fn streams_member() -> StreamsMember {
    StreamsMember {
        id: Arc::from("m-1"),
        instance: Some(Arc::from("app-1")),
        rack: None,
        client_id: Arc::from("app"),
        client_host: Arc::from("/10.0.0.7"),
        rebalance_timeout: DurationMs::from_ms(300_000),
        topology_epoch: -1,
        process: Arc::from("p"),
        endpoint: Some(StreamsEndpoint { host: Arc::from("h"), port: u16::MAX }),
        tags: vec![StreamsPair { key: Arc::from("zone"), value: Arc::from("a") }],
    }
}

/// Those of streams groups.
fn streams_samples() -> Vec<Event> {
    let (now, group, member) = (Now::from_ms(6), GroupId::from("g"), Arc::<str>::from("m-1"));
    let known = StreamsKnownTopic {
        name: Arc::from("in"),
        runs: vec![StreamsHandleRun { first: PartitionHandle::new(u32::MAX), count: 1 }],
    };
    let target = StreamsTarget { member: Arc::clone(&member), active: vec![task(0)], standby: vec![task(1)] };
    vec![
        StreamsTopologySet { group: group.clone(), topology: topology(), now }.into(),
        StreamsMemberChanged {
            group: group.clone(),
            member: streams_member(),
            replaces: Some(Arc::from("m-0")),
            now,
        }
        .into(),
        StreamsEpochStarted {
            group: group.clone(),
            epoch: i32::MAX,
            topics: vec![known],
            standby_replicas: u32::MAX,
            tags: vec![Arc::from("zone")],
            now,
        }
        .into(),
        StreamsTargetSet { group: group.clone(), epoch: 3, targets: vec![target], now }.into(),
        StreamsMemberReconciled {
            group: group.clone(),
            member: Arc::clone(&member),
            epoch: -2,
            previous_epoch: 2,
            progress: StreamsProgress::Waiting,
            assigned: held(i32::MAX),
            revoking: held(0),
            now,
        }
        .into(),
        StreamsMembersRemoved { group, members: vec![member], epoch: 4, now }.into(),
    ]
}

/// One of each kind, with fields at their edges.
fn samples() -> Vec<Event> {
    let (now, wall) = (Now::from_ms(i64::MAX), WallTime::from_ms(-1));
    let id = TransactionalId::from("orders-1");
    let partitions = vec![PartitionHandle::new(0), PartitionHandle::new(u32::MAX)];
    vec![
        ShardStarted {
            shard: ShardId::new(0),
            cluster: ClusterId::new([3; 16]),
            shard_epoch: ShardEpoch::new(9),
            now,
            wall,
            may_have_lost_writes: true,
            software: "0.1.0".to_string(),
        }
        .into(),
        ProducerIdsReserved { first: ProducerId::new(1 << 38), end: ProducerId::new((1 << 38) + 1000) }
            .into(),
        TopicCreated {
            id: TopicId::new([7; 16]),
            name: TopicName::from("orders"),
            partitions: partitions.clone(),
            settings: vec![setting()],
            may_have_forgotten: ProducerId::new(0),
            now,
        }
        .into(),
        TopicDeleted {
            id: TopicId::new([7; 16]),
            partitions: partitions.clone(),
            next_unissued: ProducerId::new(12),
            now,
        }
        .into(),
        BatchAppended {
            partition: PartitionHandle::new(1),
            base_offset: Offset::new(i64::MAX),
            count: u32::MAX,
            producer: Some(BatchProducer {
                stamp: stamp(1, 2),
                first_sequence: Sequence::MAX,
                checksum: PayloadChecksum(0xdead_beef),
                transaction: Some(TransactionNumber::new(5)),
            }),
            now,
        }
        .into(),
        ProducersShrunk { first: ProducerId::new(0), end: ProducerId::new(64), idle_since: now }.into(),
        StubsDropped { producers: vec![ProducerId::new(3)], partitions: partitions.clone() }.into(),
        TransactionalIdInitialized {
            id: id.clone(),
            cause: InitCause::Recovery,
            identity: stamp(1, 3),
            carried: Some(stamp(1, 2)),
            timeout: DurationMs::from_ms(60_000),
            author: author(),
            now,
            wall,
        }
        .into(),
        TransactionExtended {
            id: id.clone(),
            number: TransactionNumber::new(1),
            protocol: Protocol::Version2,
            partitions,
            groups: vec![GroupId::from("g")],
            now,
        }
        .into(),
        TransactionEnded {
            id: id.clone(),
            number: TransactionNumber::new(1),
            outcome: Outcome::Commit,
            cause: EndCause::EndTxn,
            version2: true,
            marker_stamp: stamp(1, 4),
            markers: vec![Marker { partition: PartitionHandle::new(1), offset: Offset::new(8) }],
            groups: vec![GroupId::from("g")],
            identity_before: stamp(1, 3),
            identity_after: stamp(1, 4),
            author: Some(author()),
            now,
            wall,
        }
        .into(),
        TransactionalIdExpired { id: id.clone(), identity: stamp(1, 4), now }.into(),
        OffsetsCommitted { group: GroupId::from("g"), offsets: vec![offset()], now }.into(),
        PendingOffsetsAdded {
            group: GroupId::from("g"),
            id,
            stamp: stamp(1, 4),
            number: TransactionNumber::new(2),
            offsets: vec![offset(), offset()],
            now,
        }
        .into(),
    ]
}

#[test]
fn every_event_survives_its_written_form() {
    for event in samples()
        .into_iter()
        .chain(group_samples())
        .chain(consumer_samples())
        .chain(streams_samples())
        .chain(admin_samples())
    {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Event::decode(&mut reader).as_ref(), Ok(&event), "{}", event.name());
        assert!(reader.is_empty(), "{} left bytes", event.name());
    }
}

#[test]
fn an_event_cut_anywhere_is_refused() {
    for event in samples()
        .into_iter()
        .chain(group_samples())
        .chain(consumer_samples())
        .chain(streams_samples())
        .chain(admin_samples())
    {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Event::decode(&mut Reader::new(&bytes[..cut])).is_err(), "{} cut at {cut}", event.name());
        }
    }
}

#[test]
fn an_unknown_event_and_a_newer_version_are_named() {
    assert_eq!(Event::decode(&mut Reader::new(&[99, 1])), Err(DecodeError::UnknownEvent { number: 99 }));
    let newer = Event::decode(&mut Reader::new(&[4, 2]));
    assert_eq!(newer, Err(DecodeError::NewerEvent { event: "TopicDeleted", version: 2 }));
}

#[test]
fn a_hostile_length_is_refused_before_anything_is_reserved() {
    let bytes = [0xff, 0xff, 0xff, 0xff, 0x7f];
    assert!(matches!(Vec::<u64>::decode(&mut Reader::new(&bytes)), Err(DecodeError::Truncated { .. })));
}
