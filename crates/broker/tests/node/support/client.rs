//! Requests in a few words. Codes are plain numbers here: tests read like the scenarios.

use bytes::Bytes;
use semel_types::{ConnectionNumber, PartitionIndex, ProducerStamp, Sequence, WallTime};
use semel_wire::{
    RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, Text,
    api::{
        add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse},
        add_partitions_to_txn::{
            AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopic,
        },
        create_topics::{CreatableConfig, CreatableTopic, CreateTopicsRequest, CreateTopicsResponse},
        delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse},
        end_txn::{EndTxnRequest, EndTxnResponse},
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        list_offsets::{
            ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
            ListOffsetsTopic,
        },
        offset_commit::{
            OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic,
        },
        offset_fetch::{OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopic},
        produce::{
            ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopic,
        },
        txn_offset_commit::{
            TxnOffsetCommitPartition, TxnOffsetCommitRequest, TxnOffsetCommitResponse, TxnOffsetCommitTopic,
        },
        write_txn_markers::{
            WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
        },
    },
    batch::{BatchBuilder, NewRecord},
};

use super::{Broker, Outcome};

/// Produce in the classic protocol, as the scenarios' default.
pub const CLASSIC: i16 = 9;
/// Produce of version 2 (KIP-890).
pub const V2: i16 = 12;

/// A partition.
pub type Place<'a> = (&'a str, i32);

/// The same producer id with the next epoch.
pub fn bumped(stamp: ProducerStamp) -> ProducerStamp {
    ProducerStamp { epoch: stamp.epoch.next(), ..stamp }
}

/// A batch of these values.
pub fn batch(stamp: ProducerStamp, sequence: i32, values: &[&str]) -> BatchBuilder {
    let sequence = Sequence::from_wire(sequence).expect("a sequence is not negative");
    values.iter().fold(BatchBuilder::new().stamped(stamp, sequence), |batch, value| {
        batch.record(NewRecord {
            value: Some(value.as_bytes()),
            timestamp: Some(WallTime::from_ms(1000)),
            ..NewRecord::default()
        })
    })
}

/// A plain batch.
pub fn plain(stamp: ProducerStamp, sequence: i32, values: &[&str]) -> Bytes {
    batch(stamp, sequence, values).build().into_bytes()
}

/// A transactional batch.
pub fn transactional(stamp: ProducerStamp, sequence: i32, values: &[&str]) -> Bytes {
    batch(stamp, sequence, values).transactional().build().into_bytes()
}

/// A batch of no idempotent producer.
pub fn anonymous(values: &[&str]) -> Bytes {
    anonymous_at(1000, values)
}

/// The same with a time.
pub fn anonymous_at(timestamp_ms: i64, values: &[&str]) -> Bytes {
    let records = values.iter().map(|value| NewRecord {
        value: Some(value.as_bytes()),
        timestamp: Some(WallTime::from_ms(timestamp_ms)),
        ..NewRecord::default()
    });
    BatchBuilder::new().records(records).build().into_bytes()
}

/// A Produce request for one topic.
pub fn produce_request(
    version: i16,
    acks: i16,
    id: Option<&str>,
    batches: &[(Place<'_>, Bytes)],
    broker: &Broker,
) -> ProduceRequest {
    let topics = batches.iter().map(|((topic, index), records)| ProduceTopic {
        name: Text::from(*topic),
        topic_id: if version >= 13 {
            broker.state().catalog.topic(topic).map(|topic| topic.id()).unwrap_or_default()
        } else {
            Default::default()
        },
        partitions: vec![ProducePartition {
            index: PartitionIndex::new(*index),
            records: Some(records.clone()),
        }],
    });
    ProduceRequest { transactional_id: id.map(Text::from), acks, timeout_ms: 1000, topics: topics.collect() }
}

impl Broker {
    /// Makes a topic.
    pub fn topic(&mut self, name: &str, partitions: i32) {
        self.topic_with(name, partitions, &[]);
    }

    /// Makes a topic with settings.
    pub fn topic_with(&mut self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let configs = settings.iter().map(|(name, value)| CreatableConfig {
            name: Text::from(*name),
            value: Some(Text::from(*value)),
        });
        let topic = CreatableTopic {
            name: Text::from(name),
            num_partitions: partitions,
            replication_factor: -1,
            configs: configs.collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
        let on = self.connect();
        let response: CreateTopicsResponse = self.ask(on, 7, &request).answer();
        assert_eq!(response.topics[0].error_code.get(), 0, "{:?}", response.topics[0].error_message);
    }

    /// Deletes a topic.
    pub fn delete_topic(&mut self, name: &str) {
        let request = DeleteTopicsRequest { topic_names: vec![Text::from(name)], ..Default::default() };
        let on = self.connect();
        let response: DeleteTopicsResponse = self.ask(on, 5, &request).answer();
        assert_eq!(response.responses[0].error_code.get(), 0);
    }

    /// InitProducerId without transactional id.
    pub fn init_idempotent(&mut self, on: ConnectionNumber) -> ProducerStamp {
        identity(&self.init_raw(on, 4, None, 60_000, None))
    }

    /// InitProducerId without a pair.
    #[track_caller]
    pub fn init(&mut self, on: ConnectionNumber, id: &str, timeout_ms: i32) -> ProducerStamp {
        identity(&self.init_raw(on, 4, Some(id), timeout_ms, None))
    }

    /// InitProducerId, whatever comes back.
    pub fn init_raw(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: Option<&str>,
        timeout_ms: i32,
        carried: Option<ProducerStamp>,
    ) -> InitProducerIdResponse {
        self.try_init(on, version, id, timeout_ms, carried).answer()
    }

    /// InitProducerId, also if the connection is closed.
    pub fn try_init(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: Option<&str>,
        timeout_ms: i32,
        carried: Option<ProducerStamp>,
    ) -> Outcome<InitProducerIdResponse> {
        let request = InitProducerIdRequest {
            transactional_id: id.map(Text::from),
            transaction_timeout_ms: timeout_ms,
            producer_id: carried.map(|stamp| stamp.id).into(),
            producer_epoch: carried.map_or(RawProducerEpoch::NONE, |stamp| stamp.epoch.into()),
            ..Default::default()
        };
        self.ask(on, version, &request)
    }

    /// Produce of one plain batch, version 9, acks -1.
    pub fn send(&mut self, on: ConnectionNumber, to: Place<'_>, batch: Bytes) -> ProducePartitionResponse {
        self.produce(on, CLASSIC, None, to, batch).answer()
    }

    /// Produce of one transactional batch, version 9, acks -1.
    pub fn send_in(
        &mut self,
        on: ConnectionNumber,
        id: &str,
        to: Place<'_>,
        batch: Bytes,
    ) -> ProducePartitionResponse {
        self.produce(on, CLASSIC, Some(id), to, batch).answer()
    }

    /// Produce of one batch.
    pub fn produce(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: Option<&str>,
        to: Place<'_>,
        batch: Bytes,
    ) -> Outcome<ProducePartitionResponse> {
        match self.produce_all(on, version, id, &[(to, batch)]) {
            Outcome::Answer(mut all) => Outcome::Answer(all.remove(0)),
            Outcome::Silence => Outcome::Silence,
            Outcome::Closed => Outcome::Closed,
        }
    }

    /// Produce of several batches in one request.
    pub fn produce_all(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: Option<&str>,
        batches: &[(Place<'_>, Bytes)],
    ) -> Outcome<Vec<ProducePartitionResponse>> {
        let request = produce_request(version, -1, id, batches, self);
        match self.ask::<_, ProduceResponse>(on, version, &request) {
            Outcome::Answer(response) => {
                let partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
                Outcome::Answer(partitions.collect())
            }
            Outcome::Silence => Outcome::Silence,
            Outcome::Closed => Outcome::Closed,
        }
    }

    /// AddPartitionsToTxn version 3: the code of every partition.
    pub fn add_all(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: &str,
        stamp: ProducerStamp,
        places: &[Place<'_>],
    ) -> Outcome<Vec<i16>> {
        let topics = places.iter().map(|(topic, index)| AddPartitionsToTxnTopic {
            name: Text::from(*topic),
            partitions: vec![PartitionIndex::new(*index)],
        });
        let request = AddPartitionsToTxnRequest {
            transactional_id: Text::from(id),
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            topics: topics.collect(),
            ..Default::default()
        };
        match self.ask::<_, AddPartitionsToTxnResponse>(on, version, &request) {
            Outcome::Answer(response) => {
                let results = response.results_by_topic.iter().flat_map(|topic| &topic.results_by_partition);
                Outcome::Answer(results.map(|result| result.partition_error_code.get()).collect())
            }
            Outcome::Silence => Outcome::Silence,
            Outcome::Closed => Outcome::Closed,
        }
    }

    /// AddPartitionsToTxn version 3 of one partition.
    pub fn add(&mut self, on: ConnectionNumber, id: &str, stamp: ProducerStamp, place: Place<'_>) -> i16 {
        self.add_all(on, 3, id, stamp, &[place]).answer()[0]
    }

    /// AddOffsetsToTxn.
    pub fn add_offsets(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: &str,
        stamp: ProducerStamp,
        group: &str,
    ) -> i16 {
        let request = AddOffsetsToTxnRequest {
            transactional_id: Text::from(id),
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            group_id: Text::from(group),
        };
        self.ask::<_, AddOffsetsToTxnResponse>(on, version, &request).answer().error_code.get()
    }

    /// TxnOffsetCommit from outside of the group: the code of every partition.
    pub fn txn_offset_commit(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: &str,
        stamp: ProducerStamp,
        group: &str,
        offsets: &[(Place<'_>, i64)],
    ) -> Outcome<Vec<i16>> {
        let request = txn_offset_commit_request(id, stamp, group, offsets);
        self.ask_txn_offset_commit(on, version, &request)
    }

    /// TxnOffsetCommit as given: the code of every partition.
    pub fn ask_txn_offset_commit(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        request: &TxnOffsetCommitRequest,
    ) -> Outcome<Vec<i16>> {
        match self.ask::<_, TxnOffsetCommitResponse>(on, version, request) {
            Outcome::Answer(response) => {
                let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
                Outcome::Answer(partitions.map(|partition| partition.error_code.get()).collect())
            }
            Outcome::Silence => Outcome::Silence,
            Outcome::Closed => Outcome::Closed,
        }
    }

    /// EndTxn.
    pub fn end_raw(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        id: &str,
        stamp: ProducerStamp,
        commit: bool,
    ) -> Outcome<EndTxnResponse> {
        let request = EndTxnRequest {
            transactional_id: Text::from(id),
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            committed: commit,
        };
        self.ask(on, version, &request)
    }

    /// EndTxn version 3, commit.
    pub fn commit(&mut self, on: ConnectionNumber, id: &str, stamp: ProducerStamp) -> i16 {
        self.end_raw(on, 3, id, stamp, true).answer().error_code.get()
    }

    /// EndTxn version 3, abort.
    pub fn abort(&mut self, on: ConnectionNumber, id: &str, stamp: ProducerStamp) -> i16 {
        self.end_raw(on, 3, id, stamp, false).answer().error_code.get()
    }

    /// EndTxn version 5: the identity to go on with.
    #[track_caller]
    pub fn end_v2(
        &mut self,
        on: ConnectionNumber,
        id: &str,
        stamp: ProducerStamp,
        commit: bool,
    ) -> ProducerStamp {
        let response = self.end_raw(on, 5, id, stamp, commit).answer();
        assert_eq!(response.error_code.get(), 0);
        pair(response.producer_id, response.producer_epoch)
    }

    /// WriteTxnMarkers version 1 for one partition.
    pub fn write_marker(
        &mut self,
        on: ConnectionNumber,
        stamp: ProducerStamp,
        commit: bool,
        coordinator_epoch: i32,
        place: Place<'_>,
    ) -> i16 {
        let marker = WritableTxnMarker {
            producer_id: stamp.id.into(),
            producer_epoch: stamp.epoch.into(),
            transaction_result: commit,
            topics: vec![WritableTxnMarkerTopic {
                name: Text::from(place.0),
                partition_indexes: vec![PartitionIndex::new(place.1)],
            }],
            coordinator_epoch: semel_wire::RawCoordinatorEpoch(coordinator_epoch),
            ..Default::default()
        };
        let request = WriteTxnMarkersRequest { markers: vec![marker] };
        let response: WriteTxnMarkersResponse = self.ask(on, 1, &request).answer();
        response.markers[0].topics[0].partitions[0].error_code.get()
    }

    /// OffsetCommit version 8 from outside of the group.
    pub fn offset_commit(&mut self, on: ConnectionNumber, group: &str, place: Place<'_>, offset: i64) -> i16 {
        let request = OffsetCommitRequest {
            group_id: Text::from(group),
            topics: vec![OffsetCommitTopic {
                name: Text::from(place.0),
                partitions: vec![OffsetCommitPartition {
                    partition_index: PartitionIndex::new(place.1),
                    committed_offset: RawOffset(offset),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response: OffsetCommitResponse = self.ask(on, 8, &request).answer();
        response.topics[0].partitions[0].error_code.get()
    }

    /// OffsetFetch version 7: code and offset of one partition.
    pub fn offset_fetch(&mut self, group: &str, place: Place<'_>, stable: bool) -> (i16, i64) {
        let topic = OffsetFetchTopic {
            name: Text::from(place.0),
            partition_indexes: vec![PartitionIndex::new(place.1)],
        };
        let request = OffsetFetchRequest {
            group_id: Text::from(group),
            topics: Some(vec![topic]),
            require_stable: stable,
            ..Default::default()
        };
        let on = self.connect();
        let response: OffsetFetchResponse = self.ask(on, 7, &request).answer();
        let partition = &response.topics[0].partitions[0];
        (partition.error_code.get(), partition.committed_offset.get())
    }

    /// ListOffsets version 7 of one partition.
    pub fn list_offset_raw(
        &mut self,
        place: Place<'_>,
        timestamp: i64,
        isolation: i8,
    ) -> ListOffsetsPartitionResponse {
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: isolation,
            topics: vec![ListOffsetsTopic {
                name: Text::from(place.0),
                partitions: vec![ListOffsetsPartition {
                    partition_index: PartitionIndex::new(place.1),
                    current_leader_epoch: RawLeaderEpoch::NONE,
                    timestamp,
                }],
            }],
            ..Default::default()
        };
        let on = self.connect();
        let response: ListOffsetsResponse = self.ask(on, 7, &request).answer();
        response.topics[0].partitions[0].clone()
    }

    /// The end of a partition: high watermark at isolation 0, last stable offset at 1.
    pub fn end_offset(&mut self, place: Place<'_>, isolation: i8) -> i64 {
        self.list_offset_raw(place, -1, isolation).offset.get()
    }

    /// A transaction is opened by hand: classic, one record.
    #[track_caller]
    pub fn open_with(
        &mut self,
        on: ConnectionNumber,
        id: &str,
        stamp: ProducerStamp,
        to: Place<'_>,
        value: &str,
    ) {
        assert_eq!(self.add(on, id, stamp, to), 0);
        let sent = self.send_in(on, id, to, transactional(stamp, 0, &[value]));
        assert_eq!(sent.error_code.get(), 0, "{:?}", sent.error_message);
    }
}

/// A TxnOffsetCommit request from outside of the group.
pub fn txn_offset_commit_request(
    id: &str,
    stamp: ProducerStamp,
    group: &str,
    offsets: &[(Place<'_>, i64)],
) -> TxnOffsetCommitRequest {
    let topics = offsets.iter().map(|((topic, index), offset)| TxnOffsetCommitTopic {
        name: Text::from(*topic),
        partitions: vec![TxnOffsetCommitPartition {
            partition_index: PartitionIndex::new(*index),
            committed_offset: RawOffset(*offset),
            ..Default::default()
        }],
        ..Default::default()
    });
    TxnOffsetCommitRequest {
        transactional_id: Text::from(id),
        group_id: Text::from(group),
        producer_id: stamp.id.into(),
        producer_epoch: stamp.epoch.into(),
        topics: topics.collect(),
        ..Default::default()
    }
}

#[track_caller]
fn identity(response: &InitProducerIdResponse) -> ProducerStamp {
    assert_eq!(response.error_code.get(), 0);
    pair(response.producer_id, response.producer_epoch)
}

/// The pair of an answer.
pub fn pair(id: RawProducerId, epoch: RawProducerEpoch) -> ProducerStamp {
    let known = id.known().zip(epoch.known());
    let (id, epoch) = known.expect("an answer without error has an identity");
    ProducerStamp { id, epoch }
}

/// Code and base offset of an answer.
pub fn fate(response: &ProducePartitionResponse) -> (i16, i64) {
    (response.error_code.get(), response.base_offset.get())
}
