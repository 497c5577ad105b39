//! What time alone brings about: silent producers are fenced, idle ids forgotten. A bounded part per step.
//!
//! The clock of a transaction starts with its first partition or group and never restarts inside it (upstream
//! `TransactionStateManager.timedOutTransactions`).

use semel_events::{Author, EndCause, Outcome};
use semel_types::{MAX_PARTITIONS_PER_TRANSACTION, Now, TransactionalId};

use super::{
    Decision, TransactionalIdEntry,
    draft::{Draft, End},
    expire,
};
use crate::{
    Settings, State,
    dropped::{Rule, keeps},
    fence,
};

/// Transactions aborted in one step, at most.
const ABORTS_PER_STEP: usize = 256;

/// When the next transaction is overdue, or the next id idle for too long; the caller sends a
/// [`super::Command::Tick`] then.
#[must_use]
pub fn next_wake(state: &State, settings: &Settings) -> Option<Now> {
    let deadline = state.transactions.deadlines().next().map(|(deadline, _)| deadline);
    let idle = state.transactions.idle().next();
    let expiry = idle.map(|(since, _)| since.plus(settings.transactional_id_expiration));
    [deadline, expiry].into_iter().flatten().min()
}

/// Aborts overdue transactions, then forgets idle ids. What is left over is due at once.
pub(super) fn tick(mut draft: Draft<'_>, settings: &Settings) -> Decision {
    let now = draft.context.now;
    let overdue = draft.state.transactions.deadlines().take_while(|(deadline, _)| *deadline <= now);
    let mut room = MAX_PARTITIONS_PER_TRANSACTION;
    let (mut aborted, mut left_over) = (0, false);
    for (_, id) in overdue {
        let Ok(entry) = draft.entry(id) else { continue };
        let size = entry.open().map_or(0, |open| open.size());
        if aborted == ABORTS_PER_STEP || (size > room && aborted > 0) {
            left_over = true;
            break;
        }
        (aborted, room) = (aborted + 1, room.saturating_sub(size));
        abort(&mut draft, id, entry, EndCause::Timeout, None);
    }
    left_over |= expire::forget_idle(&mut draft, settings);
    let aborted_expire = (aborted > 0).then(|| now.plus(settings.transactional_id_expiration));
    let next = || next_after(draft.state, settings, now).into_iter().chain(aborted_expire).min();
    let wake_at = if left_over { Some(now) } else { next() };
    Decision { events: draft.events, changes: draft.changes, answers: alloc::vec::Vec::new(), wake_at }
}

/// The first moment after this step at which something is due.
fn next_after(state: &State, settings: &Settings, now: Now) -> Option<Now> {
    let mut deadlines = state.transactions.deadlines().map(|(deadline, _)| deadline);
    let next_deadline = deadlines.find(|deadline| *deadline > now);
    let mut expiries =
        state.transactions.idle().map(|(since, _)| since.plus(settings.transactional_id_expiration));
    let next_expiry = expiries.find(|expiry| *expiry > now);
    [next_deadline, next_expiry].into_iter().flatten().min()
}

/// Aborts an open transaction that its producer did not end, with a bump: the producer is fenced, and its pair
/// remembered, so that one that can recover does. Also for administrators and unclean starts.
pub(super) fn abort(
    draft: &mut Draft<'_>,
    id: &TransactionalId,
    entry: &TransactionalIdEntry,
    cause: EndCause,
    author: Option<&Author>,
) {
    let Some(open) = entry.open() else { return };
    let identity_after =
        if keeps(Rule::AbortBumps) { draft.successor(entry.identity) } else { entry.identity };
    let end = End {
        id,
        outcome: Outcome::Abort,
        cause,
        protocol: open.protocol,
        marker_stamp: fence::bumped_marker(entry.identity),
        identity_after,
        author: author.cloned(),
    };
    draft.end(entry, end);
}
