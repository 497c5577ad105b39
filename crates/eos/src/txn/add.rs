//! AddPartitionsToTxn, and what every way of growing a transaction shares (KIP-98, KIP-890).

use alloc::vec::Vec;

use semel_events::{Protocol, TransactionExtended};
use semel_types::{
    GroupId, MAX_PARTITIONS_PER_TRANSACTION, Now, PartitionHandle, ProducerStamp, TransactionNumber,
    TransactionalId,
    mutation::{Mutation, mutated},
};

use super::{Reply, TransactionalIdEntry, draft::Draft};
use crate::{OrderedApi, Refusal};

/// What a transaction is to hold besides what it holds.
pub(crate) struct Growth<'a> {
    /// Partitions to be written to.
    pub(crate) partitions: &'a [PartitionHandle],
    /// A group whose offsets it is to carry.
    pub(crate) group: Option<&'a GroupId>,
    /// The client's protocol.
    pub(crate) protocol: Protocol,
}

/// Adds partitions, or asks whether they were added.
pub(super) fn decide(
    draft: &mut Draft<'_>,
    id: &TransactionalId,
    stamp: ProducerStamp,
    partitions: &[PartitionHandle],
    verify_only: bool,
    protocol: Protocol,
) -> Result<Reply, Refusal> {
    let entry =
        if mutated(Mutation::AddPartitionsAnyEpoch) { draft.entry(id)? } else { draft.owned(id, stamp)? };
    if verify_only {
        return verify(entry, partitions);
    }
    draft.in_order(id, OrderedApi::AddPartitions)?;
    grow(draft, entry, id, &Growth { partitions, group: None, protocol })?;
    Ok(Reply::Done)
}

/// Starts nothing, raises nothing.
fn verify(entry: &TransactionalIdEntry, partitions: &[PartitionHandle]) -> Result<Reply, Refusal> {
    let missing =
        |partition: &&PartitionHandle| entry.open().is_none_or(|open| !open.partitions.contains(partition));
    match partitions.iter().find(missing) {
        Some(&partition) => Err(Refusal::NotInTransaction { partition }),
        None => Ok(Reply::Done),
    }
}

/// Grows the transaction in this decision, if it does not hold everything already.
pub(super) fn grow(
    draft: &mut Draft<'_>,
    entry: &TransactionalIdEntry,
    id: &TransactionalId,
    growth: &Growth<'_>,
) -> Result<(), Refusal> {
    draft.events.extend(extension(entry, id, growth, draft.context.now)?.map(Into::into));
    Ok(())
}

/// The event that makes the transaction of a current identity hold more; starts it if none is open. `None` if it
/// holds everything already. Also asked for by the first Produce of version 2.
///
/// # Errors
/// [`Refusal::TooManyPartitions`]: here, when it is added, never at the commit (EOS-33).
pub(crate) fn extension(
    entry: &TransactionalIdEntry,
    id: &TransactionalId,
    growth: &Growth<'_>,
    now: Now,
) -> Result<Option<TransactionExtended>, Refusal> {
    let open = entry.open();
    let mut partitions: Vec<PartitionHandle> = growth.partitions.to_vec();
    partitions.sort_unstable();
    partitions.dedup();
    partitions.retain(|partition| open.is_none_or(|open| !open.partitions.contains(partition)));
    let new_group = growth.group.filter(|group| open.is_none_or(|open| !open.groups.contains(*group)));
    let groups: Vec<GroupId> = new_group.into_iter().cloned().collect();
    let added = partitions.len() + groups.len();
    if added == 0 {
        return Ok(None);
    }
    let limit = MAX_PARTITIONS_PER_TRANSACTION;
    if open.map_or(0, |open| open.size()) + added > limit {
        return Err(Refusal::TooManyPartitions { id: id.clone(), limit });
    }
    let number = open.map_or_else(|| next_number(entry), |open| open.number);
    Ok(Some(TransactionExtended {
        id: id.clone(),
        number,
        protocol: growth.protocol,
        partitions,
        groups,
        now,
    }))
}

/// The number of the transaction that would start now.
const fn next_number(entry: &TransactionalIdEntry) -> TransactionNumber {
    entry.last_number.next()
}
