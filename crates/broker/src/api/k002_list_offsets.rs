//! ListOffsets (key 2), versions 1 to 11.
//!
//! Behaviour: the end (-1: last stable offset at isolation 1, high watermark at 0), the start (-2, and -4: nothing is
//! tiered), the record with the largest timestamp (-3), or the first record at or after a time; what lies at or past
//! the bound of the isolation is not found (-1 and -1). -5 and -6 ask for tiered offsets, of which there are none.
//! Unknown topic or partition 3, leader epoch behind 74 or ahead 75, a special number that the version lacks 35.
//! A search by time may read batches: see [`OffsetsPlan`].
//! Version notes: 2 has the isolation; 4 leader epochs; 7, 8, 9 and 11 add -3, -4, -5 and -6; 10 a timeout for remote
//! storage, ignored.
//! Unlike Kafka: in a compressed batch a time is answered with the batch's first record.

use semel_log::{BlockCache, Isolation, ListedOffset, OffsetQuery, OffsetSearch, ReadError, ReadMode, View};
use semel_types::{ErrorCode, PartitionIndex, TopicName};
use semel_wire::{
    RawOffset,
    api::list_offsets::{
        ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
        ListOffsetsTopicResponse,
    },
};

use super::{
    Finished,
    k001_fetch::{isolation, partition_of},
};
use crate::{call::Asked, common::check_leader_epoch, facts::Facts};

/// What one ListOffsets will look up, planned in one cut: the server finishes it where it may read.
#[derive(Debug)]
pub struct OffsetsPlan {
    topics: Vec<(ListOffsetsTopicResponse, Vec<(PartitionIndex, Planned)>)>,
}

/// What will be answered for one partition.
#[derive(Debug)]
enum Planned {
    Search(Box<OffsetSearch>),
    /// There is no such offset.
    Nothing,
    Refused(ErrorCode),
}

/// A special timestamp, or a time.
enum Asks {
    For(OffsetQuery),
    /// A tiered offset.
    Tiered,
}

pub(super) fn plan(facts: &Facts, view: &View, asked: &Asked<ListOffsetsRequest>) -> OffsetsPlan {
    let isolation = isolation(asked.body.isolation_level);
    let topics = asked.body.topics.iter().map(|topic| {
        let name = TopicName::new(&topic.name);
        let partitions = topic.partitions.iter().map(|partition| {
            let planned = search(facts, view, asked.version, isolation, &name, partition);
            (partition.partition_index, planned.unwrap_or_else(Planned::Refused))
        });
        let partitions = partitions.collect();
        (ListOffsetsTopicResponse { name: topic.name.clone(), partitions: Vec::new() }, partitions)
    });
    OffsetsPlan { topics: topics.collect() }
}

fn search(
    facts: &Facts,
    view: &View,
    version: i16,
    isolation: Isolation,
    name: &TopicName,
    partition: &ListOffsetsPartition,
) -> Result<Planned, ErrorCode> {
    let handle = view.topic(name).and_then(|topic| partition_of(topic, partition.partition_index));
    let handle = handle.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    check_leader_epoch(partition.current_leader_epoch, facts.leader_epoch)?;
    match query(partition.timestamp, version)? {
        Asks::Tiered => Ok(Planned::Nothing),
        Asks::For(query) => {
            let search = view.list_offset(handle, query, isolation);
            search.map(|search| Planned::Search(Box::new(search))).ok_or(ErrorCode::UnknownTopicOrPartition)
        }
    }
}

const fn query(timestamp: i64, version: i16) -> Result<Asks, ErrorCode> {
    let (asks, since) = match timestamp {
        0.. => (Asks::For(OffsetQuery::Timestamp(timestamp)), 1),
        -1 => (Asks::For(OffsetQuery::Latest), 1),
        -2 => (Asks::For(OffsetQuery::Earliest), 1),
        -3 => (Asks::For(OffsetQuery::MaxTimestamp), 7),
        -4 => (Asks::For(OffsetQuery::Earliest), 8),
        -5 => (Asks::Tiered, 9),
        -6 => (Asks::Tiered, 11),
        _ => return Err(ErrorCode::UnsupportedVersion),
    };
    if version >= since { Ok(asks) } else { Err(ErrorCode::UnsupportedVersion) }
}

impl OffsetsPlan {
    /// Looks up and makes the answer. A read that fails is 56 for its partition.
    ///
    /// # Errors
    /// [`ReadError::Cold`] or [`ReadError::Busy`]: the same again where it may block, or later.
    pub fn finish(&self, cache: &BlockCache, mode: ReadMode) -> Result<Finished, ReadError> {
        let mut topics = Vec::with_capacity(self.topics.len());
        let mut failures = Vec::new();
        for (topic, partitions) in &self.topics {
            let mut found = Vec::with_capacity(partitions.len());
            for (index, planned) in partitions {
                found.push(match planned.finish(cache, mode) {
                    Ok((code, offset)) => response(*index, code, offset),
                    Err(ReadError::Failed(error)) => {
                        failures.push(Finished::failure(&TopicName::new(&topic.name), *index, &error));
                        response(*index, ErrorCode::KafkaStorageError, None)
                    }
                    Err(error @ (ReadError::Cold | ReadError::Busy)) => return Err(error),
                });
            }
            topics.push(ListOffsetsTopicResponse { name: topic.name.clone(), partitions: found });
        }
        Ok(Finished { reply: ListOffsetsResponse { topics, ..Default::default() }.into(), failures })
    }
}

impl Planned {
    fn finish(
        &self,
        cache: &BlockCache,
        mode: ReadMode,
    ) -> Result<(ErrorCode, Option<ListedOffset>), ReadError> {
        match self {
            Self::Refused(code) => Ok((*code, None)),
            Self::Nothing => Ok((ErrorCode::None, None)),
            Self::Search(search) => Ok((ErrorCode::None, search.search(cache, mode)?)),
        }
    }
}

fn response(
    partition_index: PartitionIndex,
    code: ErrorCode,
    found: Option<ListedOffset>,
) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index,
        error_code: code.into(),
        timestamp: found.and_then(|found| found.timestamp).unwrap_or(-1),
        offset: found.map_or(RawOffset::NONE, |found| found.offset.into()),
        leader_epoch: found.and_then(|found| found.leader_epoch).into(),
    }
}
