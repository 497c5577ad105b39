//! Fetch (key 1), versions 4 to 18.
//!
//! Behaviour: one cut of all partitions named; whole batches from the one that holds the offset, up to the last stable
//! offset (isolation 1) or the high watermark (isolation 0, aborted and undecided records included). The aborted list
//! is exact at level 1 and null at level 0. At most `max_bytes`, except that the first partition with data gives at
//! least one batch, so that a reader is never stuck. Waiting for `min_bytes` is the server's: see [`FetchPlan`].
//! Records that the disk does not give back as they were stored are 56 for their partition, which Kafka sends out
//! unchecked; what stands before them is given.
//! An offset outside of the partition is 1; an unknown topic or partition 3, an unknown id 100; a leader epoch behind
//! ours 74, ahead of it 75. Without any partition named the answer comes at once.
//! Sessions (KIP-227) are not kept: the answer's session id is always 0, which clients take as "send all next time";
//! a request within a session is 70, so that the client starts anew.
//! Version notes: 9 carries the leader epoch; 13 names topics by id; 15 to 18 differ for followers only, and nobody
//! follows a single node: a follower's fields are ignored.

use semel_log::{
    BlockCache, Isolation, ReadData, ReadError, ReadMode, ReadPlan, ReadRefusal, ReadRequest, TopicView,
    View, read_all,
};
use semel_types::{ErrorCode, PartitionHandle, PartitionIndex, TopicName};
use semel_wire::{
    RawOffset, Records,
    api::fetch::{
        FetchAbortedTransaction, FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse,
        FetchTopic, FetchTopicResponse,
    },
};

use super::Finished;
use crate::{call::Asked, common::check_leader_epoch, facts::Facts};

/// What one Fetch will read, planned in one cut.
///
/// The server reads and makes the answer with [`FetchPlan::finish`] as soon as [`FetchPlan::is_ready`], or when
/// [`FetchPlan::max_wait_ms`] have passed since the request came; until then it drops the plan, waits for a change of [`FetchPlan::partitions`], and plans anew.
#[derive(Debug)]
pub struct FetchPlan {
    isolation: Isolation,
    min_bytes: usize,
    max_wait_ms: u64,
    /// What went wrong with the request as a whole.
    error: ErrorCode,
    topics: Vec<PlannedTopic>,
    reads: Vec<ReadPlan>,
}

#[derive(Debug)]
struct PlannedTopic {
    /// For the server's log.
    name: TopicName,
    response: FetchTopicResponse,
    partitions: Vec<(PartitionIndex, Planned)>,
}

/// What will be answered for one partition.
#[derive(Debug)]
enum Planned {
    /// The read with this place in the plan's reads.
    Read(usize),
    /// This code.
    Refused(ErrorCode),
}

pub(super) fn plan(facts: &Facts, view: &View, asked: &Asked<FetchRequest>) -> FetchPlan {
    let request = &asked.body;
    let mut plan = FetchPlan {
        isolation: isolation(request.isolation_level),
        min_bytes: usize::try_from(request.min_bytes).unwrap_or(0),
        max_wait_ms: u64::try_from(request.max_wait_ms).unwrap_or(0),
        error: session_error(request),
        topics: Vec::new(),
        reads: Vec::new(),
    };
    if plan.error != ErrorCode::None {
        return plan;
    }
    let mut wanted = Vec::new();
    for topic in &request.topics {
        let partitions = topic.partitions.iter().map(|partition| {
            let planned = match read_request(facts, view, asked.version, plan.isolation, topic, partition) {
                Ok(read) => {
                    wanted.push(read);
                    Planned::Read(wanted.len() - 1)
                }
                Err(code) => Planned::Refused(code),
            };
            (partition.partition, planned)
        });
        let partitions = partitions.collect();
        let (asked, topic_id) = (topic.topic.clone(), topic.topic_id);
        let name =
            view.topic_by_id(topic_id).map_or_else(|| TopicName::new(&asked), |found| found.name.clone());
        let response = FetchTopicResponse { topic: asked, topic_id, partitions: Vec::new() };
        plan.topics.push(PlannedTopic { name, response, partitions });
    }
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(facts.settings.fetch_max_bytes());
    plan.set_reads(view.plan_all(&wanted, max_bytes));
    plan
}

/// Anything but 0 is read_committed: an unknown level must not show undecided records.
pub(super) const fn isolation(level: i8) -> Isolation {
    if level == 0 { Isolation::ReadUncommitted } else { Isolation::ReadCommitted }
}

const fn session_error(request: &FetchRequest) -> ErrorCode {
    match (request.session_id, request.session_epoch) {
        (0, ..=0) => ErrorCode::None,
        (0, _) => ErrorCode::InvalidFetchSessionEpoch,
        _ => ErrorCode::FetchSessionIdNotFound,
    }
}

fn read_request(
    facts: &Facts,
    view: &View,
    version: i16,
    isolation: Isolation,
    topic: &FetchTopic,
    partition: &FetchPartition,
) -> Result<ReadRequest, ErrorCode> {
    let found: Option<&TopicView> = if version >= 13 {
        Some(view.topic_by_id(topic.topic_id).ok_or(ErrorCode::UnknownTopicId)?)
    } else {
        view.topic(&TopicName::new(&topic.topic)).map(|found| &**found)
    };
    let handle = found.and_then(|found| partition_of(found, partition.partition));
    let handle = handle.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    check_leader_epoch(partition.current_leader_epoch, facts.leader_epoch)?;
    Ok(ReadRequest {
        partition: handle,
        offset: partition.fetch_offset.known().ok_or(ErrorCode::OffsetOutOfRange)?,
        max_bytes: usize::try_from(partition.partition_max_bytes).unwrap_or(0),
        at_least_one: true,
        isolation,
    })
}

/// The handle of a topic's partition.
pub(super) fn partition_of(topic: &TopicView, index: PartitionIndex) -> Option<PartitionHandle> {
    topic.partitions.get(usize::try_from(index.get()).ok()?).copied()
}

impl FetchPlan {
    /// Keeps the reads that can be made; the others become refusals.
    fn set_reads(&mut self, planned: Vec<Result<ReadPlan, ReadRefusal>>) {
        let mut places = Vec::with_capacity(planned.len());
        for read in planned {
            places.push(match read {
                Ok(read) => {
                    self.reads.push(read);
                    Planned::Read(self.reads.len() - 1)
                }
                Err(ReadRefusal::OffsetOutOfRange { .. }) => Planned::Refused(ErrorCode::OffsetOutOfRange),
                Err(ReadRefusal::UnknownPartition) => Planned::Refused(ErrorCode::UnknownTopicOrPartition),
            });
        }
        let mut places = places.into_iter();
        let partitions = self.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        for (_, partition) in partitions.filter(|(_, partition)| matches!(partition, Planned::Read(_))) {
            *partition = places.next().expect("one plan for each request");
        }
    }

    /// True if the answer is not to wait: there is enough, something is wrong, or nothing was asked.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        let refused = partitions.any(|(_, planned)| matches!(planned, Planned::Refused(_)));
        refused || self.reads.is_empty() || self.bytes_available() >= self.min_bytes
    }

    /// Bytes that the reads will give, at most.
    #[must_use]
    pub fn bytes_available(&self) -> usize {
        self.reads.iter().map(ReadPlan::bytes_available).sum()
    }

    /// How long the client is ready to wait.
    #[must_use]
    pub const fn max_wait_ms(&self) -> u64 {
        self.max_wait_ms
    }

    /// The partitions whose change may make it ready.
    #[must_use]
    pub fn partitions(&self) -> Vec<PartitionHandle> {
        self.reads.iter().map(|read| read.request.partition).collect()
    }

    /// Reads and makes the answer. A read that fails is 56 for its partition; the others get what they have.
    ///
    /// # Errors
    /// [`ReadError::Cold`] or [`ReadError::Busy`]: the same again where it may block, or later.
    pub fn finish(&self, cache: &BlockCache, mode: ReadMode) -> Result<Finished, ReadError> {
        let mut read: Vec<_> = read_all(&self.reads, cache, mode)?.into_iter().map(Some).collect();
        let mut failures = Vec::new();
        let mut responses = Vec::with_capacity(self.topics.len());
        for topic in &self.topics {
            let partitions = topic.partitions.iter().map(|(index, planned)| match planned {
                Planned::Refused(code) => refused(*index, *code),
                Planned::Read(place) => {
                    let data = read[*place].take().expect("each read is one partition's");
                    data.map_or_else(
                        |error| {
                            failures.push(Finished::failure(&topic.name, *index, &error));
                            refused(*index, ErrorCode::KafkaStorageError)
                        },
                        |data| self::read(*index, &self.reads[*place], self.isolation, data),
                    )
                }
            });
            responses.push(FetchTopicResponse { partitions: partitions.collect(), ..topic.response.clone() });
        }
        let reply = FetchResponse { error_code: self.error.into(), responses, ..Default::default() }.into();
        Ok(Finished { reply, failures })
    }
}

fn refused(partition_index: PartitionIndex, code: ErrorCode) -> FetchPartitionResponse {
    FetchPartitionResponse {
        partition_index,
        error_code: code.into(),
        high_watermark: RawOffset::NONE,
        records: Some(Records::from(Vec::new())),
        ..Default::default()
    }
}

fn read(
    partition_index: PartitionIndex,
    plan: &ReadPlan,
    isolation: Isolation,
    data: ReadData,
) -> FetchPartitionResponse {
    let aborted = data.aborted.iter().map(|aborted| FetchAbortedTransaction {
        producer_id: aborted.producer.into(),
        first_offset: aborted.first_offset.into(),
    });
    FetchPartitionResponse {
        partition_index,
        high_watermark: plan.high_watermark.into(),
        last_stable_offset: plan.last_stable.into(),
        log_start_offset: plan.log_start.into(),
        aborted_transactions: match isolation {
            Isolation::ReadUncommitted => None,
            Isolation::ReadCommitted => Some(aborted.collect()),
        },
        records: Some(Records::from(data.batches)),
        ..Default::default()
    }
}
