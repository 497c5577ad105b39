//! WriteTxnMarkers from a client: an administrator ends a hanging transaction (KIP-664).
//!
//! With coordinator and partitions in one shard, no transaction can hang in one partition alone, so an abort ends
//! the whole of it with an epoch bump, and the producer learns of it by its next request. The request's coordinator
//! epoch is never stored, so it cannot wedge the partition.

use semel_events::{Author, EndCause, Outcome};
use semel_types::{GroupId, PartitionHandle, ProducerStamp, TransactionalId};

use super::{OpenTransaction, Reply, TransactionalIdEntry, draft::Draft, timeout::abort};
use crate::{Refusal, fence};

/// Aborts the whole transaction of an identity.
pub(super) fn decide(
    draft: &mut Draft<'_>,
    stamp: ProducerStamp,
    outcome: Outcome,
    named: (&[PartitionHandle], &[GroupId]),
    author: &Author,
) -> Result<Reply, Refusal> {
    let Some(slot) = draft.state.producers.owned(stamp.id) else {
        return Ok(Reply::Done); // An id without owner has no transaction: nothing is open.
    };
    let id = slot.owner.clone();
    let entry = match draft.state.transactions.get(&id) {
        Some(entry) if fence::is_same(entry.identity, stamp) => entry,
        entry => return Err(wrong_epoch(draft, &id, stamp, entry)),
    };
    let Some(open) = entry.open() else { return Ok(Reply::Done) };
    match outcome {
        Outcome::Commit => Err(Refusal::CommitByMarker { id }),
        Outcome::Abort if holds_any(open, named) => {
            abort(draft, &id, entry, EndCause::Admin, Some(author));
            Ok(Reply::Done)
        }
        Outcome::Abort => Ok(Reply::Done),
    }
}

/// The administrator saw a transaction in these partitions and groups. One that holds none of them is a later one: nothing of
/// what was seen is open.
fn holds_any(open: &OpenTransaction, (partitions, groups): (&[PartitionHandle], &[GroupId])) -> bool {
    partitions.iter().any(|partition| open.partitions.contains(partition))
        || groups.iter().any(|group| open.groups.contains(group))
}

fn wrong_epoch(
    draft: &Draft<'_>,
    id: &TransactionalId,
    stamp: ProducerStamp,
    entry: Option<&TransactionalIdEntry>,
) -> Refusal {
    let current = entry.map(|entry| entry.identity).filter(|current| fence::is_producer(*current, stamp.id));
    fence::fenced(id, stamp, current, draft.state.transactions.fences())
}
