//! Offsets as OffsetCommit and TxnOffsetCommit name them, turned into what a group keeps.

use std::sync::Arc;

use semel_events::CommittedOffset;
use semel_groups::Member;
use semel_types::{ErrorCode, PartitionHandle, PartitionIndex, TopicId};
use semel_wire::{RawLeaderEpoch, RawOffset};

use crate::{
    common::{COORDINATOR_BYTES, ITEM_BYTES},
    node::Step,
};

/// One offset as a request names it.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    /// The topic's id, in the versions that name topics so.
    pub(crate) id: Option<TopicId>,
    pub(crate) index: PartitionIndex,
    pub(crate) offset: RawOffset,
    pub(crate) leader_epoch: RawLeaderEpoch,
    pub(crate) metadata: &'a str,
}

/// The offsets of a request: those that can be kept, and what is wrong with the others.
pub(crate) struct Offsets {
    /// Offsets that can be kept.
    pub(crate) good: Vec<CommittedOffset>,
    /// For each partition, in the request's order: what is wrong with it.
    faults: Vec<Option<ErrorCode>>,
}

impl Offsets {
    pub(crate) fn collect<'a>(step: &Step<'_>, named: impl Iterator<Item = Named<'a>>) -> Self {
        let mut offsets = Self { good: Vec::new(), faults: Vec::new() };
        for named in named {
            match check(step, &named) {
                Ok(offset) => {
                    offsets.good.push(offset);
                    offsets.faults.push(None);
                }
                Err(code) => offsets.faults.push(Some(code)),
            }
        }
        offsets
    }

    /// The code of each partition, in the request's order, if those that can be kept came to `outcome`.
    pub(crate) fn codes(&self, outcome: ErrorCode) -> impl Iterator<Item = ErrorCode> + '_ {
        self.faults.iter().map(move |fault| fault.unwrap_or(outcome))
    }

    /// Bytes of the events that keep them, at most.
    pub(crate) fn bytes(&self) -> u64 {
        let notes: usize = self.good.iter().map(|offset| offset.metadata.len()).sum();
        COORDINATOR_BYTES + self.good.len() as u64 * ITEM_BYTES + notes as u64
    }
}

fn check(step: &Step<'_>, named: &Named<'_>) -> Result<CommittedOffset, ErrorCode> {
    let partition = handle(step, named)?;
    if named.metadata.len() > step.limits.offset_metadata_max_bytes {
        return Err(ErrorCode::OffsetMetadataTooLarge);
    }
    let offset = named.offset.known().ok_or(ErrorCode::InvalidRequest)?;
    let metadata = Arc::from(named.metadata);
    Ok(CommittedOffset { partition, offset, leader_epoch: named.leader_epoch.known(), metadata })
}

fn handle(step: &Step<'_>, named: &Named<'_>) -> Result<PartitionHandle, ErrorCode> {
    let catalog = &step.state().catalog;
    let topic = match named.id {
        Some(id) => catalog.topic_by_id(id).ok_or(ErrorCode::UnknownTopicId)?,
        None => catalog.topic(named.name).ok_or(ErrorCode::UnknownTopicOrPartition)?,
    };
    topic.partition(named.index).ok_or(ErrorCode::UnknownTopicOrPartition)
}

/// Who claims to commit. A negative generation claims none.
pub(crate) fn member<'a>(generation: i32, member_id: &'a str, instance: Option<&'a str>) -> Member<'a> {
    let generation = (generation >= 0).then_some(generation);
    Member { generation, member_id, instance, transactional: false, knows_epochs: true }
}
