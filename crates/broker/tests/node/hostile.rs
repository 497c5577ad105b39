//! Requests of every API with bytes changed at random: an answer or a closed connection, never a panic, and whatever
//! was taken is there again after a replay.

use bytes::Bytes;
use semel_types::{PartitionIndex, TopicId};
use semel_wire::{
    Message, Text,
    api::{
        add_offsets_to_txn::*, add_partitions_to_txn::*, api_versions::*, create_topics::*, delete_topics::*,
        describe_cluster::*, describe_configs::*, describe_producers::*, describe_transactions::*,
        end_txn::*, find_coordinator::*, init_producer_id::*, list_offsets::*, list_transactions::*,
        metadata::*, offset_commit::*, offset_fetch::*, offset_for_leader_epoch::*, write_txn_markers::*,
    },
    frame,
};

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn bytes_of<M: Message>(body: &M, out: &mut Vec<Vec<u8>>) {
    for version in M::API.spec().decodable() {
        if let Ok(bytes) = frame::request(body, version, 7, Some("test")) {
            out.push(bytes[frame::PREFIX_BYTES..].to_vec());
        }
    }
}

/// A sound request of every API in every version.
fn corpus(broker: &mut Broker) -> Vec<Vec<u8>> {
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let (text, index) = (Text::from("t"), PartitionIndex::new(0));
    let mut out = Vec::new();
    let batches = [(T, transactional(stamp, 0, &["a", "b"])), (T, anonymous(&["c"]))];
    bytes_of(&produce_request(12, -1, Some("tx"), &batches, broker), &mut out);
    bytes_of(&fetch_request(T, 0, 1, 1000), &mut out);
    let partition = ListOffsetsPartition { partition_index: index, timestamp: 5, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: text.clone(), partitions: vec![partition] }];
    bytes_of(&ListOffsetsRequest { topics, ..Default::default() }, &mut out);
    let topics = Some(vec![MetadataRequestTopic { name: Some(Text::from("made")), ..Default::default() }]);
    bytes_of(&MetadataRequest { topics, ..Default::default() }, &mut out);
    let topics = Some(vec![OffsetFetchTopic { name: text.clone(), partition_indexes: vec![index] }]);
    bytes_of(&OffsetFetchRequest { group_id: Text::from("g"), topics, ..Default::default() }, &mut out);
    let groups = vec![OffsetFetchGroup { group_id: Text::from("g"), topics: None, ..Default::default() }];
    bytes_of(&OffsetFetchRequest { groups, ..Default::default() }, &mut out);
    bytes_of(&FindCoordinatorRequest { key: text.clone(), ..Default::default() }, &mut out);
    bytes_of(&ApiVersionsRequest::default(), &mut out);
    let config = CreatableConfig { name: Text::from("retention.ms"), value: Some(Text::from("5")) };
    let topic = CreatableTopic {
        name: Text::from("created"),
        num_partitions: 2,
        replication_factor: 1,
        configs: vec![config],
        ..Default::default()
    };
    bytes_of(&CreateTopicsRequest { topics: vec![topic], ..Default::default() }, &mut out);
    bytes_of(&DeleteTopicsRequest { topic_names: vec![Text::from("made")], ..Default::default() }, &mut out);
    let topics = vec![DeleteTopic { name: Some(Text::from("created")), topic_id: TopicId::ZERO }];
    bytes_of(&DeleteTopicsRequest { topics, ..Default::default() }, &mut out);
    let init = InitProducerIdRequest { transaction_timeout_ms: 1000, ..Default::default() };
    bytes_of(&InitProducerIdRequest { transactional_id: Some(Text::from("tx")), ..init }, &mut out);
    let topics = vec![AddPartitionsToTxnTopic { name: text.clone(), partitions: vec![index] }];
    bytes_of(
        &AddPartitionsToTxnRequest { transactional_id: Text::from("tx"), topics, ..Default::default() },
        &mut out,
    );
    bytes_of(&txn_offset_commit_request("tx", stamp, "g", &[(T, 5)]), &mut out);
    let (transactional_id, group_id) = (Text::from("tx"), Text::from("g"));
    let (producer_id, producer_epoch) = (stamp.id.into(), stamp.epoch.into());
    let end = EndTxnRequest { transactional_id, producer_id, producer_epoch, committed: true };
    bytes_of(&end, &mut out);
    let transactional_id = Text::from("tx");
    let add = AddOffsetsToTxnRequest { transactional_id, producer_id, producer_epoch, group_id };
    bytes_of(&add, &mut out);
    let topic = OffsetCommitTopic {
        name: text.clone(),
        partitions: vec![OffsetCommitPartition { partition_index: index, ..Default::default() }],
        ..Default::default()
    };
    let commit = OffsetCommitRequest { group_id: Text::from("g"), topics: vec![topic], ..Default::default() };
    bytes_of(&commit, &mut out);
    let partition = OffsetForLeaderPartition { partition: index, ..Default::default() };
    let topics = vec![OffsetForLeaderTopic { topic: text.clone(), partitions: vec![partition] }];
    bytes_of(&OffsetForLeaderEpochRequest { topics, ..Default::default() }, &mut out);
    let topics = vec![WritableTxnMarkerTopic { name: text.clone(), partition_indexes: vec![index] }];
    let marker = WritableTxnMarker { producer_id: stamp.id.into(), topics, ..Default::default() };
    bytes_of(&WriteTxnMarkersRequest { markers: vec![marker] }, &mut out);
    let resource =
        DescribeConfigsResource { resource_type: 2, resource_name: text, configuration_keys: None };
    bytes_of(&DescribeConfigsRequest { resources: vec![resource], ..Default::default() }, &mut out);
    bytes_of(&DescribeClusterRequest::default(), &mut out);
    let topics = vec![DescribeProducersTopic { name: Text::from("t"), partition_indexes: vec![index] }];
    bytes_of(&DescribeProducersRequest { topics }, &mut out);
    bytes_of(&DescribeTransactionsRequest { transactional_ids: vec![Text::from("tx")] }, &mut out);
    let transactional_id_pattern = Some(Text::from("t(x|y)[a-z]*"));
    bytes_of(&ListTransactionsRequest { transactional_id_pattern, ..Default::default() }, &mut out);
    out
}

#[test]
fn changed_requests_are_answered_or_close_the_connection_and_replay_agrees() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut dice = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % bound
    };
    let mut broker = Broker::new();
    broker.topic("t", 2);
    let corpus = corpus(&mut broker);
    assert!(corpus.len() > 100);
    let mut answered = 0;
    for round in 0..20_000 {
        let mut bytes = corpus[dice(corpus.len())].clone();
        for _ in 0..dice(4) {
            let at = dice(bytes.len());
            match dice(4) {
                0 => bytes[at] = 0xff,
                1 => bytes[at] = 0,
                2 => bytes.truncate(at.max(1)),
                _ => bytes[at] ^= 1 << dice(8),
            }
        }
        let on = broker.connect();
        answered += usize::from(!broker.ask_raw(on, Bytes::from(bytes)).is_closed());
        if round % 5_000 == 4_999 {
            broker.restart();
        }
    }
    assert!(answered > 5_000, "most of it was understood: {answered}");
}
