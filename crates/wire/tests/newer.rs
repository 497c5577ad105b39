//! The versions that the oracle crate lacks, against bytes that Apache Kafka's own Java library 4.4.0 wrote for the same
//! values.

use semel_types::{ErrorCode, PartitionIndex, TopicId};
use semel_wire::{
    Message, RawCoordinatorEpoch, RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, Reader, Text,
    WireCode,
    api::{
        api_versions::*, init_producer_id::*, list_offsets::*, offset_commit::*, offset_fetch::*,
        streams_group_describe::*, streams_group_heartbeat::*, txn_offset_commit::*, write_txn_markers::*,
    },
};

const ID: TopicId = TopicId::new([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
const PARTITION: PartitionIndex = PartitionIndex::new(2);

fn text(text: &str) -> Text {
    Text::from(text)
}

fn code(code: ErrorCode) -> WireCode {
    code.into()
}

/// Written as Java writes it, and read back.
fn check<M: Message>(message: &M, version: i16, hex: &str) {
    let mut bytes = Vec::new();
    message.encode_into(version, &mut bytes).expect("encodes");
    let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, hex, "{} {version}", M::NAME);
    assert_eq!(M::decode_body(&mut Reader::new(bytes), version).as_ref(), Ok(message));
}

#[test]
fn list_offsets_11() {
    let partition = ListOffsetsPartition {
        partition_index: PARTITION,
        current_leader_epoch: RawLeaderEpoch(3),
        timestamp: -6,
    };
    let topic = ListOffsetsTopic { name: text("t"), partitions: vec![partition] };
    let request =
        ListOffsetsRequest { replica_id: -1, isolation_level: 1, topics: vec![topic], timeout_ms: 30_000 };
    check(&request, 11, "ffffffff01020274020000000200000003fffffffffffffffa00000000753000");

    let partition = ListOffsetsPartitionResponse {
        partition_index: PARTITION,
        error_code: code(ErrorCode::NotLeaderOrFollower),
        timestamp: 77,
        offset: RawOffset(88),
        leader_epoch: RawLeaderEpoch(4),
    };
    let topic = ListOffsetsTopicResponse { name: text("t"), partitions: vec![partition] };
    let response = ListOffsetsResponse { throttle_time_ms: 9, topics: vec![topic] };
    check(&response, 11, "0000000902027402000000020006000000000000004d000000000000005800000004000000");
}

#[test]
fn offset_commit_10() {
    let partition = OffsetCommitPartition {
        partition_index: PARTITION,
        committed_offset: RawOffset(88),
        committed_leader_epoch: RawLeaderEpoch(4),
        committed_metadata: Some(text("x")),
    };
    let topic = OffsetCommitTopic { topic_id: ID, partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: text("g"),
        generation_id_or_member_epoch: 5,
        member_id: text("m"),
        group_instance_id: Some(text("i")),
        topics: vec![topic],
        ..Default::default()
    };
    check(
        &request,
        10,
        "026700000005026d0269020102030405060708090a0b0c0d0e0f1002000000020000000000000058000000040278000000",
    );

    let partition = OffsetCommitPartitionResponse {
        partition_index: PARTITION,
        error_code: code(ErrorCode::UnknownTopicId),
    };
    let topic = OffsetCommitTopicResponse { topic_id: ID, partitions: vec![partition], ..Default::default() };
    let response = OffsetCommitResponse { throttle_time_ms: 9, topics: vec![topic] };
    check(&response, 10, "00000009020102030405060708090a0b0c0d0e0f1002000000020064000000");
}

#[test]
fn offset_fetch_10() {
    let topic = OffsetFetchGroupTopic {
        topic_id: ID,
        partition_indexes: vec![PARTITION, PARTITION.next()],
        ..Default::default()
    };
    let group = OffsetFetchGroup {
        group_id: text("g"),
        member_id: Some(text("m")),
        member_epoch: 5,
        topics: Some(vec![topic]),
    };
    let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
    check(&request, 10, "020267026d00000005020102030405060708090a0b0c0d0e0f1003000000020000000300000100");

    let partition = OffsetFetchPartitionResponse {
        partition_index: PARTITION,
        committed_offset: RawOffset(88),
        committed_leader_epoch: RawLeaderEpoch(4),
        metadata: Some(text("x")),
        error_code: code(ErrorCode::UnknownTopicId),
    };
    let topic =
        OffsetFetchGroupTopicResponse { topic_id: ID, partitions: vec![partition], ..Default::default() };
    let group = OffsetFetchGroupResponse {
        group_id: text("g"),
        topics: vec![topic],
        error_code: code(ErrorCode::UnstableOffsetCommit),
    };
    let response = OffsetFetchResponse { throttle_time_ms: 9, groups: vec![group], ..Default::default() };
    check(
        &response,
        10,
        "00000009020267020102030405060708090a0b0c0d0e0f10020000000200000000000000580000000402780064000000580000",
    );
}

#[test]
fn api_versions_5() {
    let request = ApiVersionsRequest {
        client_software_name: text("n"),
        client_software_version: text("v"),
        cluster_id: Some(text("c")),
        node_id: 7,
    };
    check(&request, 5, "026e027602630000000700");

    let api = ApiVersion { api_key: 18, min_version: 0, max_version: 5 };
    let supported = SupportedFeature { name: text("s"), min_version: 0, max_version: 2 };
    let finalized = FinalizedFeature { name: text("s"), max_version_level: 2, min_version_level: 1 };
    let response = ApiVersionsResponse {
        api_keys: vec![api],
        throttle_time_ms: 9,
        supported_features: vec![supported],
        finalized_features_epoch: 3,
        finalized_features: vec![finalized],
        ..Default::default()
    };
    check(
        &response,
        5,
        "000002001200000005000000000903000802027300000002000108000000000000000302080202730002000100",
    );
}

#[test]
fn init_producer_id_6() {
    let request = InitProducerIdRequest {
        transactional_id: Some(text("t")),
        transaction_timeout_ms: 60_000,
        producer_id: RawProducerId(7),
        producer_epoch: RawProducerEpoch(3),
        enable_two_phase_commit: true,
        keep_prepared_transaction: false,
    };
    check(&request, 6, "02740000ea6000000000000000070003010000");

    let response = InitProducerIdResponse {
        throttle_time_ms: 9,
        error_code: WireCode::NONE,
        producer_id: RawProducerId(7),
        producer_epoch: RawProducerEpoch(3),
        ongoing_transaction_producer_id: RawProducerId(5),
        ongoing_transaction_producer_epoch: RawProducerEpoch(2),
    };
    check(&response, 6, "000000090000000000000000000700030000000000000005000200");
}

#[test]
fn write_txn_markers_2() {
    let topic = WritableTxnMarkerTopic { name: text("t"), partition_indexes: vec![PARTITION] };
    let marker = WritableTxnMarker {
        producer_id: RawProducerId(7),
        producer_epoch: RawProducerEpoch(3),
        transaction_result: true,
        topics: vec![topic],
        coordinator_epoch: RawCoordinatorEpoch(11),
        transaction_version: 2,
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker] };
    check(&request, 2, "0200000000000000070003010202740200000002000000000b020000");

    let partition = WritableTxnMarkerPartitionResult {
        partition_index: PARTITION,
        error_code: code(ErrorCode::InvalidProducerEpoch),
    };
    let topic = WritableTxnMarkerTopicResult { name: text("t"), partitions: vec![partition] };
    let marker = WritableTxnMarkerResult { producer_id: RawProducerId(7), topics: vec![topic] };
    let response = WriteTxnMarkersResponse { markers: vec![marker] };
    check(&response, 2, "0200000000000000070202740200000002002f00000000");
}

#[test]
fn txn_offset_commit_6() {
    let partition = TxnOffsetCommitPartition {
        partition_index: PARTITION,
        committed_offset: RawOffset(88),
        committed_leader_epoch: RawLeaderEpoch(4),
        committed_metadata: Some(text("x")),
    };
    let topic = TxnOffsetCommitTopic { topic_id: ID, partitions: vec![partition], ..Default::default() };
    let request = TxnOffsetCommitRequest {
        transactional_id: text("x"),
        group_id: text("g"),
        producer_id: RawProducerId(7),
        producer_epoch: RawProducerEpoch(3),
        generation_id_or_member_epoch: 5,
        member_id: text("m"),
        group_instance_id: None,
        topics: vec![topic],
    };
    let hex = "027802670000000000000007000300000005026d00020102030405060708090a0b0c0d0e0f10\
               02000000020000000000000058000000040278000000";
    check(&request, 6, hex);

    let partition = TxnOffsetCommitPartitionResponse {
        partition_index: PARTITION,
        error_code: code(ErrorCode::InvalidProducerEpoch),
    };
    let topic =
        TxnOffsetCommitTopicResponse { topic_id: ID, partitions: vec![partition], ..Default::default() };
    let response = TxnOffsetCommitResponse { throttle_time_ms: 9, topics: vec![topic] };
    check(&response, 6, "00000009020102030405060708090a0b0c0d0e0f100200000002002f000000");
}

fn key_value() -> StreamsKeyValue {
    StreamsKeyValue { key: text("k"), value: text("v") }
}

fn task_ids(partitions: &[i32]) -> Vec<StreamsTaskIds> {
    let partitions = partitions.iter().map(|index| PartitionIndex::new(*index)).collect();
    vec![StreamsTaskIds { subtopology_id: text("0"), partitions }]
}

fn topology() -> StreamsTopology {
    let changelog = StreamsTopicInfo {
        name: text("c"),
        partitions: 0,
        replication_factor: 1,
        topic_configs: vec![key_value()],
    };
    let repartition = StreamsTopicInfo { name: text("r"), partitions: 3, ..Default::default() };
    let copartition_group = StreamsCopartitionGroup {
        source_topics: vec![0],
        source_topic_regex: vec![],
        repartition_source_topics: vec![0],
    };
    let subtopology = StreamsSubtopology {
        subtopology_id: text("0"),
        source_topics: vec![text("s")],
        source_topic_regex: vec![],
        state_changelog_topics: vec![changelog],
        repartition_sink_topics: vec![text("q")],
        repartition_source_topics: vec![repartition],
        copartition_groups: vec![copartition_group],
    };
    StreamsTopology { epoch: 7, subtopologies: vec![subtopology] }
}

#[test]
fn streams_group_heartbeat_request_0_and_1() {
    let offset = StreamsTaskOffset { subtopology_id: text("0"), partition: PARTITION, offset: RawOffset(88) };
    let request = StreamsGroupHeartbeatRequest {
        group_id: text("g"),
        member_id: text("m"),
        member_epoch: 0,
        endpoint_information_epoch: -1,
        instance_id: Some(text("i")),
        rebalance_timeout_ms: 300_000,
        topology: Some(topology()),
        active_tasks: Some(vec![]),
        standby_tasks: Some(task_ids(&[1, 2])),
        warmup_tasks: Some(vec![]),
        process_id: Some(text("p")),
        user_endpoint: Some(StreamsEndpoint { host: text("h"), port: 65_535 }),
        client_tags: Some(vec![key_value()]),
        task_offsets: Some(vec![offset]),
        shutdown_application: true,
        ..Default::default()
    };
    for version in [0, 1] {
        check(
            &request,
            version,
            "0267026d00000000ffffffff026900000493e001000000070202300202730102026300000000000102026b0276000002\
             0271020272000000030000010002020000010200000000000102023003000000010000000200010270010268ffff0002\
             026b02760002023000000002000000000000005800000100",
        );
    }
    let plain = StreamsGroupHeartbeatRequest {
        group_id: text("g"),
        member_id: text("m"),
        member_epoch: 5,
        ..Default::default()
    };
    check(&plain, 1, "0267026d00000005000000000000ffffffffff00000000ff0000000000");
}

#[test]
fn streams_group_heartbeat_response_0_and_1() {
    let source = StreamsTopicPartitions { topic: text("s"), partitions: vec![PartitionIndex::new(1)] };
    let served = StreamsEndpointToPartitions {
        user_endpoint: StreamsEndpoint { host: text("h"), port: 80 },
        active_partitions: vec![source],
        standby_partitions: vec![],
    };
    let response = StreamsGroupHeartbeatResponse {
        throttle_time_ms: 9,
        error_code: code(ErrorCode::FencedMemberEpoch),
        error_message: Some(text("e")),
        member_id: text("m"),
        member_epoch: 3,
        heartbeat_interval_ms: 5000,
        task_offset_interval_ms: 60_000,
        status: Some(vec![StreamsStatus { status_code: 3, status_detail: text("d") }]),
        active_tasks: Some(task_ids(&[1])),
        standby_tasks: Some(vec![]),
        warmup_tasks: None,
        endpoint_information_epoch: 4,
        partitions_by_user_endpoint: Some(vec![served]),
        ..Default::default()
    };
    check(
        &response,
        0,
        "00000009006e0265026d0000000300001388000000000000ea6002030264000202300200000001000100000000040202680050\
         00020273020000000100010000",
    );
    let response = StreamsGroupHeartbeatResponse {
        acceptable_recovery_lag: 10_000,
        topology_description_required: true,
        ..response
    };
    check(
        &response,
        1,
        "00000009006e0265026d00000003000013880000ea600000000000002710020302640002023002000000010001000100000004\
         020268005000020273020000000100010000",
    );
}

#[test]
fn streams_group_describe_request_0_and_1() {
    let request = StreamsGroupDescribeRequest {
        group_ids: vec![text("g")],
        include_authorized_operations: true,
        include_topology_description: false,
    };
    check(&request, 0, "0202670100");
    check(&StreamsGroupDescribeRequest { include_topology_description: true, ..request }, 1, "020267010100");
}

fn described() -> DescribedStreamsGroup {
    let subtopology = DescribedStreamsSubtopology {
        subtopology_id: text("0"),
        source_topics: vec![text("s")],
        state_changelog_topics: vec![StreamsTopicInfo {
            name: text("c"),
            partitions: 3,
            ..Default::default()
        }],
        ..Default::default()
    };
    let member = DescribedStreamsMember {
        member_id: text("m"),
        member_epoch: 3,
        client_id: text("c"),
        client_host: text("/h"),
        topology_epoch: 7,
        process_id: text("p"),
        user_endpoint: Some(StreamsEndpoint { host: text("h"), port: 80 }),
        assignment: StreamsTasks { active_tasks: task_ids(&[1]), ..Default::default() },
        target_assignment: StreamsTasks { standby_tasks: task_ids(&[1]), ..Default::default() },
        ..Default::default()
    };
    DescribedStreamsGroup {
        group_id: text("g"),
        group_state: text("Stable"),
        group_epoch: 3,
        assignment_epoch: 3,
        topology: Some(DescribedStreamsTopology { epoch: 7, subtopologies: Some(vec![subtopology]) }),
        members: vec![member],
        ..Default::default()
    }
}

#[test]
fn streams_group_describe_response_0_and_1() {
    let response = |group| StreamsGroupDescribeResponse { groups: vec![group], ..Default::default() };
    check(
        &response(described()),
        0,
        "0000000002000000026707537461626c6500000003000000030100000007020230020273010202630000000300000100\
             01000002026d0000000300000263032f6800000007027001026800500001010102023002000000010001010001020230\
             02000000010001000000800000000000",
    );

    let node = StreamsTopologyNode {
        name: text("n"),
        node_type: 1,
        source_topics: vec![text("s")],
        successors: vec![text("x")],
        ..Default::default()
    };
    let subtopology = StreamsSubtopologyDescription { subtopology_id: text("0"), nodes: vec![node.clone()] };
    let store = StreamsGlobalStore { source: node.clone(), processor: node };
    let description =
        StreamsTopologyDescription { subtopologies: vec![subtopology], global_stores: vec![store] };
    let group = DescribedStreamsGroup {
        topology_description: Some(description),
        topology_description_status: 3,
        assignor_name: Some(text("sticky")),
        ..described()
    };
    check(
        &response(group),
        1,
        "0000000002000000026707537461626c6500000003000000030100000007020230020273010202630000000300000100\
             01000002026d0000000300000263032f6800000007027001026800500001010102023002000000010001010001020230\
             02000000010001000000800000000102023002026e010202730001020278000002026e01020273000102027800026e01\
             02027300010202780000000307737469636b790000",
    );
}
