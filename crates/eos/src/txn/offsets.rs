//! AddOffsetsToTxn and TxnOffsetCommit (KIP-98, KIP-447, KIP-890).
//!
//! The broker asks the group first: what the group refuses (22, 25) never comes here and adds nothing.

use alloc::vec::Vec;

use semel_events::{CommittedOffset, PendingOffsetsAdded, Protocol};
use semel_types::{
    GroupId, ProducerStamp, TransactionNumber, TransactionalId,
    mutation::{Mutation, mutated},
};

use super::{
    Reply, TransactionalIdEntry,
    add::{Growth, grow},
    draft::Draft,
};
use crate::{OrderedApi, Refusal};

/// Lets the transaction carry a group's offsets; classic clients announce them here.
pub(super) fn decide_add(
    draft: &mut Draft<'_>,
    id: &TransactionalId,
    stamp: ProducerStamp,
    group: &GroupId,
) -> Result<Reply, Refusal> {
    let entry =
        if mutated(Mutation::AddOffsetsAnyEpoch) { draft.entry(id)? } else { draft.owned(id, stamp)? };
    draft.in_order(id, OrderedApi::AddOffsets)?;
    let growth = Growth { partitions: &[], group: Some(group), protocol: Protocol::Classic };
    grow(draft, entry, id, &growth)?;
    Ok(Reply::Done)
}

/// Takes offsets into the transaction; version 2 adds the group by itself.
pub(super) fn decide_commit(
    draft: &mut Draft<'_>,
    id: &TransactionalId,
    stamp: ProducerStamp,
    group: &GroupId,
    offsets: &[CommittedOffset],
    protocol: Protocol,
) -> Result<Reply, Refusal> {
    let entry =
        if mutated(Mutation::TxnOffsetCommitAnyEpoch) { draft.entry(id)? } else { draft.owned(id, stamp)? };
    draft.in_order(id, OrderedApi::TxnOffsetCommit)?;
    match protocol {
        Protocol::Version2 => {
            grow(draft, entry, id, &Growth { partitions: &[], group: Some(group), protocol })?
        }
        Protocol::Classic => holds(entry, id, group)?,
    }
    if !offsets.is_empty() {
        let event = PendingOffsetsAdded {
            group: group.clone(),
            id: id.clone(),
            stamp,
            number: number(entry),
            offsets: Vec::from(offsets),
            now: draft.context.now,
        };
        draft.events.push(event.into());
    }
    Ok(Reply::Done)
}

fn holds(entry: &TransactionalIdEntry, id: &TransactionalId, group: &GroupId) -> Result<(), Refusal> {
    match entry.open() {
        Some(open) if open.groups.contains(group) => Ok(()),
        Some(_) | None => Err(Refusal::GroupNotInTransaction { id: id.clone(), group: group.clone() }),
    }
}

/// The number of the open transaction, or of the one that this decision starts.
fn number(entry: &TransactionalIdEntry) -> TransactionNumber {
    entry.open().map_or_else(|| entry.last_number.next(), |open| open.number)
}
