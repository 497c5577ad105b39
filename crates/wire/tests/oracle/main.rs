//! Every API and version that crate `kafka-protocol` knows, against it: what we write it reads as the same values
//! under the same names, and what it writes we read as the same message, byte for byte.

mod batches;
mod values;

use bytes::{Bytes, BytesMut};
use kafka_protocol::{
    messages as theirs,
    protocol::{Decodable, Encodable, Message as TheirMessage},
};
use semel_wire::{API_TABLE, ApiKey, ApiSpec, Message, Reader, Request, Samples, api};

use values::Value;

/// Random messages for each API and version.
const ROUNDS: u64 = 60;

/// Newer than the oracle: (API, version) of each request and response that it cannot read. Their layout is pinned in
/// `tests/newer.rs`.
const UNKNOWN_TO_THE_ORACLE: &[(&str, i16)] = &[
    ("ListOffsetsRequest", 11),
    ("ListOffsetsResponse", 11),
    ("OffsetCommitRequest", 10),
    ("OffsetFetchRequest", 10),
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("InitProducerIdRequest", 6),
    ("WriteTxnMarkersRequest", 2),
    ("WriteTxnMarkersResponse", 2),
    ("TxnOffsetCommitRequest", 6),
    ("TxnOffsetCommitResponse", 6),
];

/// APIs that the oracle lacks altogether; their layout is pinned in `tests/newer.rs`, too.
const APIS_UNKNOWN_TO_THE_ORACLE: &[ApiKey] = &[ApiKey::StreamsGroupHeartbeat, ApiKey::StreamsGroupDescribe];

/// The rows of the table that the oracle has something to say about.
fn known_to_the_oracle() -> impl Iterator<Item = &'static ApiSpec> {
    API_TABLE.iter().filter(|spec| !APIS_UNKNOWN_TO_THE_ORACLE.contains(&spec.key))
}

/// Compares one message type with theirs in all versions; returns the versions that they lack.
fn compare<Ours, Theirs>() -> Vec<(&'static str, i16)>
where
    Ours: Message,
    Theirs: TheirMessage + Decodable + Encodable + std::fmt::Debug,
{
    let mut unknown = Vec::new();
    for version in Ours::API.spec().decodable() {
        if version < Theirs::VERSIONS.min || version > Theirs::VERSIONS.max {
            unknown.push((Ours::NAME, version));
            continue;
        }
        for round in 0..ROUNDS {
            let mut samples = Samples::new(round << 32 | (version as u64) << 16 | Ours::API.get() as u64);
            let ours = Ours::sample_body(&mut samples, version).expect("a version of the table");
            compare_one::<Ours, Theirs>(&ours, version);
        }
        compare_one::<Ours, Theirs>(&Ours::default(), version);
    }
    unknown
}

fn compare_one<Ours, Theirs>(ours: &Ours, version: i16)
where
    Ours: Message,
    Theirs: Decodable + Encodable + std::fmt::Debug,
{
    let context = format!("{} {version}: {ours:?}", Ours::NAME);
    let mut bytes = Vec::new();
    ours.encode_into(version, &mut bytes).expect("encodes");

    let mut rest = Bytes::from(bytes.clone());
    let theirs = Theirs::decode(&mut rest, version).unwrap_or_else(|error| panic!("{error} in {context}"));
    assert!(rest.is_empty(), "{} bytes were not read in {context}", rest.len());
    if let Err(difference) = Value::of(ours).is_theirs(&Value::of(&theirs)) {
        panic!("{difference}\nours:   {ours:?}\ntheirs: {theirs:?}\nversion {version}");
    }

    let mut written = BytesMut::new();
    theirs.encode(&mut written, version).unwrap_or_else(|error| panic!("{error} in {context}"));
    assert_eq!(written, bytes, "{context}");
    let again = Ours::decode_body(&mut Reader::new(written), version);
    assert_eq!(again.as_ref(), Ok(ours), "{context}");
}

macro_rules! compare_all {
    ($($module:ident: $request:ident, $response:ident;)*) => {{
        let mut unknown = Vec::new();
        let mut compared = Vec::new();
        $(
            compared.push(api::$module::$request::API);
            unknown.extend(compare::<api::$module::$request, theirs::$request>());
            unknown.extend(compare::<<api::$module::$request as Request>::Response, theirs::$response>());
        )*
        (compared, unknown)
    }};
}

#[test]
fn every_api_and_version_agrees_with_the_oracle() {
    let (compared, unknown) = compare_all! {
        produce: ProduceRequest, ProduceResponse;
        fetch: FetchRequest, FetchResponse;
        list_offsets: ListOffsetsRequest, ListOffsetsResponse;
        metadata: MetadataRequest, MetadataResponse;
        offset_commit: OffsetCommitRequest, OffsetCommitResponse;
        offset_fetch: OffsetFetchRequest, OffsetFetchResponse;
        find_coordinator: FindCoordinatorRequest, FindCoordinatorResponse;
        join_group: JoinGroupRequest, JoinGroupResponse;
        heartbeat: HeartbeatRequest, HeartbeatResponse;
        leave_group: LeaveGroupRequest, LeaveGroupResponse;
        sync_group: SyncGroupRequest, SyncGroupResponse;
        describe_groups: DescribeGroupsRequest, DescribeGroupsResponse;
        list_groups: ListGroupsRequest, ListGroupsResponse;
        api_versions: ApiVersionsRequest, ApiVersionsResponse;
        create_topics: CreateTopicsRequest, CreateTopicsResponse;
        delete_topics: DeleteTopicsRequest, DeleteTopicsResponse;
        delete_records: DeleteRecordsRequest, DeleteRecordsResponse;
        init_producer_id: InitProducerIdRequest, InitProducerIdResponse;
        offset_for_leader_epoch: OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
        add_partitions_to_txn: AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
        add_offsets_to_txn: AddOffsetsToTxnRequest, AddOffsetsToTxnResponse;
        end_txn: EndTxnRequest, EndTxnResponse;
        write_txn_markers: WriteTxnMarkersRequest, WriteTxnMarkersResponse;
        txn_offset_commit: TxnOffsetCommitRequest, TxnOffsetCommitResponse;
        describe_configs: DescribeConfigsRequest, DescribeConfigsResponse;
        alter_configs: AlterConfigsRequest, AlterConfigsResponse;
        create_partitions: CreatePartitionsRequest, CreatePartitionsResponse;
        delete_groups: DeleteGroupsRequest, DeleteGroupsResponse;
        incremental_alter_configs: IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
        offset_delete: OffsetDeleteRequest, OffsetDeleteResponse;
        describe_cluster: DescribeClusterRequest, DescribeClusterResponse;
        describe_producers: DescribeProducersRequest, DescribeProducersResponse;
        describe_transactions: DescribeTransactionsRequest, DescribeTransactionsResponse;
        list_transactions: ListTransactionsRequest, ListTransactionsResponse;
        consumer_group_heartbeat: ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse;
        consumer_group_describe: ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse;
        list_config_resources: ListConfigResourcesRequest, ListConfigResourcesResponse;
    };
    let table: Vec<_> = known_to_the_oracle().map(|spec| spec.key).collect();
    assert_eq!(compared, table, "every API is compared");
    assert_eq!(unknown, UNKNOWN_TO_THE_ORACLE, "versions that the oracle lacks");
}

#[test]
fn header_versions_agree_with_the_oracle() {
    for key in APIS_UNKNOWN_TO_THE_ORACLE {
        assert!(theirs::ApiKey::try_from(key.get()).is_err(), "the oracle knows {key} by now");
    }
    for spec in known_to_the_oracle() {
        let key = theirs::ApiKey::try_from(spec.key.get()).expect("the oracle has the API");
        let known = key.valid_versions();
        for version in spec.decodable().filter(|version| (known.min..=known.max).contains(version)) {
            let ours = (spec.key.request_header_version(version), spec.key.response_header_version(version));
            let theirs = (key.request_header_version(version), key.response_header_version(version));
            assert_eq!(ours, theirs, "{} {version}", spec.name);
        }
    }
}
