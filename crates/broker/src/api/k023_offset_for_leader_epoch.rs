//! OffsetForLeaderEpoch (key 23), versions 2 to 4.
//!
//! Behaviour: where a leader epoch ended in a partition (KIP-320): the largest epoch at or below the one asked for, and
//! the offset after its last record; -1 and -1 for an epoch above all known ones. Unknown topic or partition 3, leader
//! epoch behind 74 or ahead 75.
//! Version notes: 3 names the follower, ignored; 4 is flexible.

use semel_log::View;
use semel_types::{ErrorCode, TopicName};
use semel_wire::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopicResponse,
};

use super::{Reply, k001_fetch::partition_of};
use crate::{call::Asked, common::check_leader_epoch, facts::Facts};

pub(super) fn answer(facts: &Facts, view: &View, asked: &Asked<OffsetForLeaderEpochRequest>) -> Reply {
    let topics = asked.body.topics.iter().map(|topic| {
        let name = TopicName::new(&topic.topic);
        let partitions = topic.partitions.iter().map(|asked| {
            let partition = asked.partition;
            end(facts, view, &name, asked).unwrap_or_else(|code| EpochEndOffset {
                error_code: code.into(),
                partition,
                ..Default::default()
            })
        });
        OffsetForLeaderTopicResponse { topic: topic.topic.clone(), partitions: partitions.collect() }
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }.into()
}

fn end(
    facts: &Facts,
    view: &View,
    name: &TopicName,
    asked: &OffsetForLeaderPartition,
) -> Result<EpochEndOffset, ErrorCode> {
    let handle = view.topic(name).and_then(|topic| partition_of(topic, asked.partition));
    let handle = handle.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    check_leader_epoch(asked.current_leader_epoch, facts.leader_epoch)?;
    let end = asked.leader_epoch.known().and_then(|epoch| view.offset_for_leader_epoch(handle, epoch));
    let mut found = EpochEndOffset { partition: asked.partition, ..Default::default() };
    if let Some(end) = end {
        found.leader_epoch = end.epoch.into();
        found.end_offset = end.end_offset.into();
    }
    Ok(found)
}
