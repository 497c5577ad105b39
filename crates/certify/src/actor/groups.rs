//! Committed offsets of groups.

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, WireCode,
    api::{
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        offset_fetch::{OffsetFetchRequest, OffsetFetchTopic},
    },
};

use super::{Actor, said, wait_for};
use crate::{Answer, Failure, scenario::Kept, session::Place};

/// What a group's offset of one partition was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupOffset {
    /// The partition's code; 88 for offsets of an open transaction where stable ones were asked for.
    pub code: i16,
    /// The offset, or -1.
    pub offset: i64,
}

impl Actor {
    /// OffsetCommit of one partition by a client without membership.
    pub fn commit_group_offset(&mut self, group: &str, (place, offset): (&Place, i64)) -> Answer<()> {
        let partition = OffsetCommitPartition {
            partition_index: PartitionIndex::new(place.index),
            committed_offset: RawOffset(offset),
            ..Default::default()
        };
        let name = place.topic.as_str().into();
        let topics = vec![OffsetCommitTopic { name, partitions: vec![partition], ..Default::default() }];
        let request = OffsetCommitRequest { group_id: group.into(), topics, ..Default::default() };
        let said = format!("OffsetCommit {} -> {offset} in {group}", said(&[place]));
        self.until_free(|actor| {
            let answer = actor.ask(&said, &request, 7, |response| {
                let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
                partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
            });
            answer.map(|_| ())
        })
    }

    /// `OF(stable)`, once.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn group_offset(&mut self, group: &str, place: &Place, is_stable: bool) -> Kept<GroupOffset> {
        let partition_indexes = vec![PartitionIndex::new(place.index)];
        let topic = OffsetFetchTopic { name: place.topic.as_str().into(), partition_indexes };
        let request = OffsetFetchRequest {
            group_id: group.into(),
            topics: Some(vec![topic]),
            require_stable: is_stable,
            ..Default::default()
        };
        let response = self.session.client.call(&request, 7)?;
        let whole = response.error_code;
        let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
        let seen = partitions.next().filter(|_| !whole.is_error());
        let seen = seen.map_or(GroupOffset { code: whole.get(), offset: -1 }, |partition| GroupOffset {
            code: partition.error_code.get(),
            offset: partition.committed_offset.get(),
        });
        let sent = format!("{}: OffsetFetch {} of {group}, stable {is_stable}", self.name, said(&[place]));
        self.trace.add(&sent, format!("{} offset {}", WireCode(seen.code), seen.offset));
        Ok(seen)
    }

    /// In the end the group stands at this offset, and nothing is pending.
    ///
    /// # Errors
    /// It stands elsewhere, or something stays pending.
    pub fn group_stands_at(&mut self, group: &str, place: &Place, due: i64) -> Kept {
        let seen = wait_for(
            || self.group_offset(group, place, true),
            |seen| !matches!(seen.code, 14 | 15 | 16 | 88) && seen.offset == due,
        )?;
        // A group that was never made stands nowhere: some brokers say 0 and -1, others that there is none.
        let is_nowhere = due == -1 && seen.code == 69;
        if seen == (GroupOffset { code: 0, offset: due }) || is_nowhere {
            return Ok(());
        }
        Err(Failure::broken(
            format!("OffsetFetch {} of {group}, stable offsets only", said(&[place])),
            format!("{} offset {}", WireCode(seen.code), seen.offset),
            format!("NONE (0) offset {due}"),
        ))
    }
}
