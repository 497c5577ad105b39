//! InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn.

use semel_types::{PartitionIndex, ProducerEpoch, ProducerId};
use semel_wire::{
    RawOffset, RawProducerEpoch, RawProducerId, Text, WireCode,
    api::{
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic},
        end_txn::EndTxnRequest,
        init_producer_id::InitProducerIdRequest,
        txn_offset_commit::{TxnOffsetCommitPartition, TxnOffsetCommitRequest, TxnOffsetCommitTopic},
    },
};

use super::{Actor, Producer, said};
use crate::{Answer, ClientError, Identity, scenario::Kept, session::Place};

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// EndTxn(commit).
    Commit,
    /// EndTxn(abort).
    Abort,
}

impl Outcome {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Commit => Self::Abort,
            Self::Abort => Self::Commit,
        }
    }
}

/// InitProducerId as it goes over the wire.
#[must_use]
pub fn init_request(id: Option<&str>, timeout_ms: i32, pair: Option<Identity>) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: id.map(Text::from),
        transaction_timeout_ms: timeout_ms,
        producer_id: pair.map_or(RawProducerId::NONE, |pair| pair.id.into()),
        producer_epoch: pair.map_or(RawProducerEpoch::NONE, |pair| pair.epoch.into()),
        ..Default::default()
    }
}

/// EndTxn as it goes over the wire.
#[must_use]
pub fn end_request(producer: &Producer, outcome: Outcome) -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: producer.id_or_empty().into(),
        producer_id: producer.stamp.id.into(),
        producer_epoch: producer.stamp.epoch.into(),
        committed: outcome == Outcome::Commit,
    }
}

/// AddPartitionsToTxn as it goes over the wire.
#[must_use]
pub fn add_request(producer: &Producer, places: &[&Place]) -> AddPartitionsToTxnRequest {
    let topics = places.iter().map(|place| AddPartitionsToTxnTopic {
        name: place.topic.as_str().into(),
        partitions: vec![PartitionIndex::new(place.index)],
    });
    AddPartitionsToTxnRequest {
        transactional_id: producer.id_or_empty().into(),
        producer_id: producer.stamp.id.into(),
        producer_epoch: producer.stamp.epoch.into(),
        topics: topics.collect(),
        ..Default::default()
    }
}

/// TxnOffsetCommit of one partition, by a client that names no membership.
#[must_use]
pub fn offset_commit_request(
    producer: &Producer,
    group: &str,
    (place, offset): (&Place, i64),
) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitPartition {
        partition_index: PartitionIndex::new(place.index),
        committed_offset: RawOffset(offset),
        ..Default::default()
    };
    let name = place.topic.as_str().into();
    let topics = vec![TxnOffsetCommitTopic { name, partitions: vec![partition], ..Default::default() }];
    TxnOffsetCommitRequest {
        transactional_id: producer.id_or_empty().into(),
        group_id: group.into(),
        producer_id: producer.stamp.id.into(),
        producer_epoch: producer.stamp.epoch.into(),
        topics,
        ..Default::default()
    }
}

impl Actor {
    /// `init(null)`: a fresh idempotent producer.
    ///
    /// # Errors
    /// It was refused.
    pub fn init_plain(&mut self) -> Kept<Producer> {
        self.until_free(|actor| actor.try_init(None, 60_000, None)).is(0)
    }

    /// `init(TID)`: takes a transactional id, asked again while the broker is busy.
    ///
    /// # Errors
    /// It was refused.
    pub fn init(&mut self, id: &str) -> Kept<Producer> {
        self.init_within(id, 60_000)
    }

    /// `init(TID, timeout)`.
    ///
    /// # Errors
    /// It was refused.
    pub fn init_within(&mut self, id: &str, timeout_ms: i32) -> Kept<Producer> {
        self.until_free(|actor| actor.try_init(Some(id), timeout_ms, None)).is(0)
    }

    /// InitProducerId with a pair (KIP-360), asked again while the broker is busy.
    pub fn renew(&mut self, producer: &Producer) -> Answer<Producer> {
        self.until_free(|actor| actor.try_init(producer.id.as_deref(), 60_000, Some(producer.stamp)))
    }

    /// InitProducerId, once. Without an identity in the answer the producer is the null one (id 0, epoch 0).
    pub fn try_init(
        &mut self,
        id: Option<&str>,
        timeout_ms: i32,
        pair: Option<Identity>,
    ) -> Answer<Producer> {
        let version = self.session.versions.init_producer_id;
        let came = self.session.client.call(&init_request(id, timeout_ms, pair), version);
        let named = id.map_or("null".to_owned(), |id| format!("{id:?}"));
        let with = pair
            .map_or(String::new(), |pair| format!(", producer {} epoch {}", pair.id.get(), pair.epoch.get()));
        let id = id.map(str::to_owned);
        let came = came.and_then(|response| {
            let given = identity(response.producer_id, response.producer_epoch);
            // A refusal names nobody; what stands in for it is never looked at.
            let stamp = match given {
                Some(stamp) => stamp,
                None if response.error_code.is_error() => NOBODY,
                None => return Err(std::io::Error::other("0 without an identity").into()),
            };
            Ok((response.error_code, Producer { id, stamp }))
        });
        self.noted(format!("InitProducerId({named}, {timeout_ms} ms{with}) v{version}"), came)
    }

    /// `add(...)`, asked again while the last transaction is being completed.
    ///
    /// # Errors
    /// It was refused.
    pub fn add(&mut self, producer: &Producer, places: &[&Place]) -> Kept {
        self.until_free(|actor| actor.try_add(producer, places)).is(0)
    }

    /// AddPartitionsToTxn, once; the code of the first partition.
    pub fn try_add(&mut self, producer: &Producer, places: &[&Place]) -> Answer<()> {
        let version = self.session.versions.add;
        let came = self.session.client.call(&add_request(producer, places), version).map(|response| {
            let mut results = response.results_by_topic.iter().flat_map(|topic| &topic.results_by_partition);
            (results.next().map_or(response.error_code, |result| result.partition_error_code), ())
        });
        self.noted(format!("AddPartitionsToTxn {} ({}) v{version}", said(places), producer.said()), came)
    }

    /// AddOffsetsToTxn, asked again while the broker is busy.
    ///
    /// # Errors
    /// It was refused.
    pub fn add_offsets(&mut self, producer: &Producer, group: &str) -> Kept {
        self.until_free(|actor| actor.try_add_offsets(producer, group)).is(0)
    }

    /// AddOffsetsToTxn, once.
    pub fn try_add_offsets(&mut self, producer: &Producer, group: &str) -> Answer<()> {
        let request = AddOffsetsToTxnRequest {
            transactional_id: producer.id_or_empty().into(),
            producer_id: producer.stamp.id.into(),
            producer_epoch: producer.stamp.epoch.into(),
            group_id: group.into(),
        };
        let version = self.session.versions.add;
        let came = self.session.client.call(&request, version);
        self.noted(
            format!("AddOffsetsToTxn {group} ({}) v{version}", producer.said()),
            came.map(|response| (response.error_code, ())),
        )
    }

    /// TxnOffsetCommit of one partition without membership, asked again while the broker is busy.
    pub fn commit_offset(
        &mut self,
        producer: &Producer,
        group: &str,
        (place, offset): (&Place, i64),
    ) -> Answer<()> {
        let request = offset_commit_request(producer, group, (place, offset));
        let said = format!("TxnOffsetCommit {} -> {offset} in {group} ({})", said(&[place]), producer.said());
        self.until_free(|actor| actor.send_offsets(&said, &request))
    }

    /// Any TxnOffsetCommit, once; the code of the first partition. From [`IDS_SINCE`] on its topics have the ids that the
    /// broker tells.
    pub fn send_offsets(&mut self, said: &str, request: &TxnOffsetCommitRequest) -> Answer<()> {
        let version = self.session.versions.txn_offset_commit;
        let came = self.with_ids(request).and_then(|request| self.session.client.call(&request, version));
        let came = came.map(|response| {
            let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
            (partitions.next().map_or(WireCode(-1), |partition| partition.error_code), ())
        });
        self.noted(format!("{said} v{version}"), came)
    }

    fn with_ids(&mut self, request: &TxnOffsetCommitRequest) -> Result<TxnOffsetCommitRequest, ClientError> {
        let mut request = request.clone();
        if self.session.versions.txn_offset_commit >= IDS_SINCE {
            for topic in &mut request.topics {
                topic.topic_id = self.session.topic_id(topic.name.as_str())?;
            }
        }
        Ok(request)
    }

    /// `end(commit|abort)`, asked again while the broker is busy; gives who the producer is from here on.
    pub fn end(&mut self, producer: &Producer, outcome: Outcome) -> Answer<Producer> {
        self.until_free(|actor| actor.try_end(producer, outcome))
    }

    /// EndTxn, once; gives who the producer is from here on, which only version 5 changes.
    pub fn try_end(&mut self, producer: &Producer, outcome: Outcome) -> Answer<Producer> {
        let version = self.session.versions.end_txn;
        let came = self.session.client.call(&end_request(producer, outcome), version);
        let said = format!("EndTxn({outcome:?}) ({}) v{version}", producer.said());
        let came = came.map(|response| {
            let stamp = identity(response.producer_id, response.producer_epoch).unwrap_or(producer.stamp);
            (response.error_code, Producer { id: producer.id.clone(), stamp })
        });
        self.noted(said, came)
    }

    /// A whole transaction of one record: added (by version), written, ended.
    ///
    /// # Errors
    /// Any of it was refused.
    pub fn transact(
        &mut self,
        place: &Place,
        producer: &Producer,
        (sequence, value): (i32, &str),
        outcome: Outcome,
    ) -> Kept<Producer> {
        if !self.is_version_2() {
            self.add(producer, &[place])?;
        }
        self.produce_when_free(place, producer, sequence, &[value]).is(0)?;
        self.end(producer, outcome).is(0)
    }

    /// Whether this actor's requests add partitions by themselves.
    #[must_use]
    pub const fn is_version_2(&self) -> bool {
        self.session.versions.produce >= 12
    }

    /// Takes a transactional id and opens a transaction of one record in it.
    ///
    /// # Errors
    /// Any of it was refused.
    pub fn open(&mut self, place: &Place, id: &str, value: &str) -> Kept<Producer> {
        let producer = self.init(id)?;
        if !self.is_version_2() {
            self.add(&producer, &[place])?;
        }
        self.produce_when_free(place, &producer, 0, &[value]).is(0)?;
        Ok(producer)
    }
}

/// The version of TxnOffsetCommit from which on topics are named by their ids.
const IDS_SINCE: i16 = 6;

/// Stands where a refusal has no identity.
const NOBODY: Identity = Identity { id: ProducerId::new(0), epoch: ProducerEpoch::ZERO };

fn identity(id: RawProducerId, epoch: RawProducerEpoch) -> Option<Identity> {
    Some(Identity { id: id.known()?, epoch: epoch.known()? })
}
