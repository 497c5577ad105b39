//! The requests of a scenario in short words, over one connection.
//!
//! `init`, `produce`, `add`, `end`, `dump`: the notation of a scenario as methods. Each sends one request and gives
//! what came, error codes included; only a failed exchange is an `Err`.

use bytes::Bytes;
use semel_types::{
    ErrorCode, Offset, PartitionIndex, ProducerEpoch, ProducerId, ProducerStamp, Sequence, TopicId,
};
use semel_wire::{
    RawLeaderEpoch, RawOffset, RawProducerEpoch, RawProducerId, Text, WireCode,
    api::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic},
        create_topics::{CreatableTopic, CreateTopicsRequest},
        delete_topics::DeleteTopicsRequest,
        end_txn::EndTxnRequest,
        fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic},
        init_producer_id::InitProducerIdRequest,
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
        metadata::{MetadataRequest, MetadataRequestTopic},
        produce::{ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceTopic},
        txn_offset_commit::{TxnOffsetCommitPartition, TxnOffsetCommitRequest, TxnOffsetCommitTopic},
    },
    batch::{self, Batch, BatchBuilder, NewRecord},
};

use crate::{Client, ClientError};

/// A producer's identity as InitProducerId gave it.
pub type Identity = ProducerStamp;

/// Versions used unless a scenario asks for others: what a scenario's notation calls RAW.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// Produce.
    pub produce: i16,
    /// EndTxn.
    pub end_txn: i16,
    /// InitProducerId.
    pub init_producer_id: i16,
    /// AddPartitionsToTxn and AddOffsetsToTxn.
    pub add: i16,
    /// TxnOffsetCommit.
    pub txn_offset_commit: i16,
}

impl Versions {
    /// The classic protocol.
    pub const CLASSIC: Self =
        Self { produce: 9, end_txn: 3, init_producer_id: 4, add: 3, txn_offset_commit: 3 };
    /// `transaction.version` 2 (KIP-890).
    pub const VERSION_2: Self =
        Self { produce: 12, end_txn: 5, init_producer_id: 5, add: 3, txn_offset_commit: 5 };
    /// Those of librdkafka 2.
    pub const LIBRDKAFKA: Self =
        Self { produce: 10, end_txn: 1, init_producer_id: 4, add: 0, txn_offset_commit: 3 };
    /// The oldest that clients still use (aiokafka).
    pub const OLDEST: Self =
        Self { produce: 7, end_txn: 0, init_producer_id: 0, add: 0, txn_offset_commit: 0 };
}

/// A partition by name and number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub index: i32,
}

impl Place {
    /// Partition `index` of `topic`.
    #[must_use]
    pub fn of(topic: &str, index: i32) -> Self {
        Self { topic: topic.to_owned(), index }
    }
}

/// What a produce was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produced {
    /// The code.
    pub code: WireCode,
    /// The first record's offset.
    pub base_offset: RawOffset,
    /// The partition's first offset, or -1.
    pub log_start_offset: RawOffset,
    /// What people are told.
    pub message: Option<String>,
}

/// How EndTxn was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The code.
    pub code: WireCode,
    /// The identity from here on, where the version tells it.
    pub identity: Option<Identity>,
}

/// One batch to be produced.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who writes; `None` for a producer without an identity.
    pub identity: Option<Identity>,
    /// Sequence of the first record.
    pub sequence: i32,
    /// The records' values.
    pub values: &'a [&'a [u8]],
    /// The transactional id, for a batch that is part of a transaction.
    pub transactional_id: Option<&'a str>,
}

impl Write<'_> {
    /// The batch.
    #[must_use]
    pub fn batch(&self) -> Batch {
        let mut builder = BatchBuilder::new();
        if let Some(identity) = self.identity {
            let sequence = Sequence::from_wire(self.sequence).unwrap_or_default();
            builder = builder.stamped(identity, sequence);
        }
        if self.transactional_id.is_some() {
            builder = builder.transactional();
        }
        builder.records(self.values.iter().map(|value| NewRecord::of(value))).build()
    }
}

/// Which isolation a reader asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Everything up to the high watermark.
    Uncommitted,
    /// Up to the last stable offset, without aborted records.
    Committed,
}

impl Isolation {
    pub(crate) const fn wire(self) -> i8 {
        match self {
            Self::Uncommitted => 0,
            Self::Committed => 1,
        }
    }
}

/// A connection with the words of a scenario.
pub struct Session {
    /// The connection itself, for what has no word here.
    pub client: Client,
    /// Versions of the requests.
    pub versions: Versions,
}

impl Session {
    /// Connects, with the classic protocol.
    ///
    /// # Errors
    /// [`ClientError::Io`] if nobody listens.
    pub fn connect(address: &str) -> Result<Self, ClientError> {
        Ok(Self { client: Client::connect(address)?, versions: Versions::CLASSIC })
    }

    /// Uses other versions from here on.
    #[must_use]
    pub fn speaking(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Creates a topic; the code.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn create_topic(&mut self, name: &str, partitions: i32) -> Result<WireCode, ClientError> {
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let response = self.client.call(&request, 7)?;
        Ok(response.topics.first().map_or(WireCode::NONE, |topic| topic.error_code))
    }

    /// Deletes a topic; the code.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn delete_topic(&mut self, name: &str) -> Result<WireCode, ClientError> {
        let request =
            DeleteTopicsRequest { topic_names: vec![name.into()], timeout_ms: 10_000, ..Default::default() };
        let response = self.client.call(&request, 4)?;
        Ok(response.responses.first().map_or(WireCode::NONE, |topic| topic.error_code))
    }

    /// A topic's id.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn topic_id(&mut self, name: &str) -> Result<TopicId, ClientError> {
        let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        // Asking must not make a topic that is not there.
        let request = MetadataRequest {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: false,
            ..Default::default()
        };
        let response = self.client.call(&request, 12)?;
        Ok(response.topics.first().map(|topic| topic.topic_id).unwrap_or_default())
    }

    /// InitProducerId without a pair, once: code and identity.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn try_init(
        &mut self,
        transactional_id: Option<&str>,
        timeout_ms: i32,
        pair: Option<Identity>,
    ) -> Result<(WireCode, Option<Identity>), ClientError> {
        let request = InitProducerIdRequest {
            transactional_id: transactional_id.map(Text::from),
            transaction_timeout_ms: timeout_ms,
            producer_id: pair.map_or(RawProducerId::NONE, |pair| pair.id.into()),
            producer_epoch: pair.map_or(RawProducerEpoch::NONE, |pair| pair.epoch.into()),
            ..Default::default()
        };
        let response = self.client.call(&request, self.versions.init_producer_id)?;
        Ok((response.error_code, identity(response.producer_id, response.producer_epoch)))
    }

    /// InitProducerId, retried while the broker says that it is busy (14, 15, 16, 51).
    ///
    /// # Errors
    /// [`ClientError`]; a refusal is an I/O error that names the code.
    pub fn init(&mut self, transactional_id: Option<&str>) -> Result<Identity, ClientError> {
        loop {
            match self.try_init(transactional_id, 60_000, None)? {
                (WireCode::NONE, Some(identity)) => return Ok(identity),
                (code, _) if is_busy(code) => std::thread::sleep(std::time::Duration::from_millis(20)),
                (code, _) => return Err(std::io::Error::other(format!("InitProducerId: {code}")).into()),
            }
        }
    }

    /// Produces one batch with acks -1.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn produce(&mut self, place: &Place, write: Write<'_>) -> Result<Produced, ClientError> {
        let request = produce_request(&[(place, write.batch())], write.transactional_id);
        let response = self.client.call(&request, self.versions.produce)?;
        let partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
        Ok(partitions.map(produced).next().expect("one partition was asked for"))
    }

    /// AddPartitionsToTxn; the codes in order.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn add(
        &mut self,
        transactional_id: &str,
        identity: Identity,
        places: &[Place],
    ) -> Result<Vec<WireCode>, ClientError> {
        let topics = places.iter().map(|place| AddPartitionsToTxnTopic {
            name: place.topic.as_str().into(),
            partitions: vec![PartitionIndex::new(place.index)],
        });
        let request = AddPartitionsToTxnRequest {
            transactional_id: transactional_id.into(),
            producer_id: identity.id.into(),
            producer_epoch: identity.epoch.into(),
            topics: topics.collect(),
            ..Default::default()
        };
        let response = self.client.call(&request, self.versions.add)?;
        let results = response.results_by_topic.into_iter().flat_map(|topic| topic.results_by_partition);
        Ok(results.map(|result| result.partition_error_code).collect())
    }

    /// AddOffsetsToTxn; the code.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn add_offsets(
        &mut self,
        id: &str,
        identity: Identity,
        group: &str,
    ) -> Result<WireCode, ClientError> {
        let request = AddOffsetsToTxnRequest {
            transactional_id: id.into(),
            producer_id: identity.id.into(),
            producer_epoch: identity.epoch.into(),
            group_id: group.into(),
        };
        Ok(self.client.call(&request, self.versions.add)?.error_code)
    }

    /// TxnOffsetCommit of one partition by a client without membership; the code.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn commit_offset(
        &mut self,
        id: &str,
        identity: Identity,
        group: &str,
        (place, offset): (&Place, Offset),
    ) -> Result<WireCode, ClientError> {
        let partition = TxnOffsetCommitPartition {
            partition_index: PartitionIndex::new(place.index),
            committed_offset: offset.into(),
            committed_leader_epoch: RawLeaderEpoch::NONE,
            ..Default::default()
        };
        let name = place.topic.as_str().into();
        let topic = TxnOffsetCommitTopic { name, partitions: vec![partition], ..Default::default() };
        let request = TxnOffsetCommitRequest {
            transactional_id: id.into(),
            group_id: group.into(),
            producer_id: identity.id.into(),
            producer_epoch: identity.epoch.into(),
            topics: vec![topic],
            ..Default::default()
        };
        let response = self.client.call(&request, self.versions.txn_offset_commit)?;
        let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
        Ok(partitions.next().map_or(WireCode::NONE, |partition| partition.error_code))
    }

    /// EndTxn.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end(&mut self, id: &str, identity: Identity, commit: bool) -> Result<Ended, ClientError> {
        let request = EndTxnRequest {
            transactional_id: id.into(),
            producer_id: identity.id.into(),
            producer_epoch: identity.epoch.into(),
            committed: commit,
        };
        let response = self.client.call(&request, self.versions.end_txn)?;
        let after = self::identity(response.producer_id, response.producer_epoch);
        Ok(Ended { code: response.error_code, identity: after })
    }

    /// One Fetch from an offset, waiting for nothing.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn fetch(
        &mut self,
        place: &Place,
        offset: Offset,
        isolation: Isolation,
    ) -> Result<FetchPartitionResponse, ClientError> {
        let partition = FetchPartition {
            partition: PartitionIndex::new(place.index),
            fetch_offset: offset.into(),
            partition_max_bytes: 64 << 20,
            ..Default::default()
        };
        let topic = place.topic.as_str().into();
        let topics = vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }];
        let isolation_level = isolation.wire();
        let request =
            FetchRequest { min_bytes: 0, max_wait_ms: 0, isolation_level, topics, ..Default::default() };
        let response = self.client.call(&request, 12)?;
        let mut partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
        Ok(partitions.next().expect("one partition was asked for"))
    }

    /// Every batch from the log start to the high watermark, control batches included.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal or a damaged batch is an I/O error.
    pub fn dump(&mut self, place: &Place) -> Result<Vec<Batch>, ClientError> {
        let mut batches: Vec<Batch> = Vec::new();
        let mut offset = Offset::ZERO;
        loop {
            let answer = self.fetch(place, offset, Isolation::Uncommitted)?;
            check(answer.error_code, "Fetch")?;
            let before = batches.len();
            batches.extend(whole_batches(&answer)?);
            let Some(last) = batches[before..].last() else { return Ok(batches) };
            offset = Offset::new(last.last_offset().get() + 1);
        }
    }

    /// The values that a reader of this isolation delivers, in order: aborted transactions are filtered as clients
    /// do, by the answer's own list.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal or a damaged batch is an I/O error.
    pub fn read(&mut self, place: &Place, isolation: Isolation) -> Result<Vec<Bytes>, ClientError> {
        let mut values = Vec::new();
        let mut offset = Offset::ZERO;
        loop {
            let answer = self.fetch(place, offset, isolation)?;
            check(answer.error_code, "Fetch")?;
            let batches = whole_batches(&answer)?;
            let Some(last) = batches.last() else { return Ok(values) };
            offset = Offset::new(last.last_offset().get() + 1);
            values.extend(deliver(&answer, &batches)?);
        }
    }

    /// ListOffsets of the end; -1 for a refusal.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end_offset(&mut self, place: &Place, isolation: Isolation) -> Result<RawOffset, ClientError> {
        let partition_index = PartitionIndex::new(place.index);
        let partition = ListOffsetsPartition { partition_index, timestamp: -1, ..Default::default() };
        let topic = ListOffsetsTopic { name: place.topic.as_str().into(), partitions: vec![partition] };
        let isolation_level = isolation.wire();
        let request =
            ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic], ..Default::default() };
        let response = self.client.call(&request, 7)?;
        let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
        Ok(partitions.next().map_or(RawOffset::NONE, |partition| partition.offset))
    }
}

/// A Produce request with acks -1 of one batch per partition.
#[must_use]
pub fn produce_request(batches: &[(&Place, Batch)], transactional_id: Option<&str>) -> ProduceRequest {
    let topics = batches.iter().map(|(place, batch)| {
        let (index, records) = (PartitionIndex::new(place.index), Some(batch.bytes().clone()));
        let partitions = vec![ProducePartition { index, records }];
        ProduceTopic { name: place.topic.as_str().into(), partitions, ..Default::default() }
    });
    let transactional_id = transactional_id.map(Text::from);
    ProduceRequest { transactional_id, acks: -1, timeout_ms: 30_000, topics: topics.collect() }
}

/// What one partition was answered.
#[must_use]
pub fn produced(answer: ProducePartitionResponse) -> Produced {
    Produced {
        code: answer.error_code,
        base_offset: answer.base_offset,
        log_start_offset: answer.log_start_offset,
        message: answer.error_message.map(|text| text.as_str().to_owned()),
    }
}

fn identity(id: RawProducerId, epoch: RawProducerEpoch) -> Option<Identity> {
    let id: Option<ProducerId> = id.known();
    let epoch: Option<ProducerEpoch> = epoch.known();
    Some(Identity { id: id?, epoch: epoch? })
}

fn is_busy(code: WireCode) -> bool {
    [
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotCoordinator,
        ErrorCode::ConcurrentTransactions,
    ]
    .iter()
    .any(|busy| code.known() == Some(*busy))
}

fn check(code: WireCode, what: &str) -> Result<(), ClientError> {
    if code.is_error() { Err(std::io::Error::other(format!("{what}: {code}")).into()) } else { Ok(()) }
}

/// The whole batches of an answer; a last one cut short is left out, as clients do.
pub(crate) fn whole_batches(answer: &FetchPartitionResponse) -> Result<Vec<Batch>, ClientError> {
    let blob = answer.records.as_ref().map(semel_wire::Records::to_bytes).unwrap_or_default();
    let mut batches = Vec::new();
    for batch in batch::split(blob) {
        match batch {
            Ok(batch) => {
                batch.verify_crc().map_err(|error| std::io::Error::other(error.to_string()))?;
                batches.push(batch);
            }
            Err(error) if batches.is_empty() => return Err(std::io::Error::other(error.to_string()).into()),
            Err(_) => break,
        }
    }
    Ok(batches)
}

/// Filters aborted transactions by the answer's list, as the Java client does: an entry is taken up when a batch
/// reaches its first offset, and laid down by the producer's next ABORT marker.
pub(crate) fn deliver(answer: &FetchPartitionResponse, batches: &[Batch]) -> Result<Vec<Bytes>, ClientError> {
    let mut upcoming = answer.aborted_transactions.clone().unwrap_or_default();
    upcoming.sort_by_key(|entry| entry.first_offset.get());
    let mut aborted: Vec<RawProducerId> = Vec::new();
    let mut values = Vec::new();
    for batch in batches {
        let due =
            upcoming.iter().take_while(|entry| entry.first_offset.get() <= batch.last_offset().get()).count();
        aborted.extend(upcoming.drain(..due).map(|entry| entry.producer_id));
        let producer = batch.raw_producer_id();
        if batch.attributes().is_control() {
            let marker =
                batch::Marker::parse(batch).map_err(|error| std::io::Error::other(error.to_string()))?;
            if marker.is_some_and(|marker| marker.kind == batch::MarkerKind::Abort) {
                aborted.retain(|known| *known != producer);
            }
        } else if !(batch.attributes().is_transactional() && aborted.contains(&producer)) {
            let records = batch.records().map_err(|error| std::io::Error::other(error.to_string()))?;
            values.extend(records.filter_map(Result::ok).filter_map(|record| record.value));
        }
    }
    Ok(values)
}
