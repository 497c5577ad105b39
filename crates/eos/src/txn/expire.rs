//! Expiry of transactional ids (`transactional.id.expiration.ms`). Never with an open transaction: only ids without
//! one stand in the index of idle ids (EOS-32).

use semel_events::TransactionalIdExpired;

use super::draft::Draft;
use crate::{Change, Settings};

/// Ids forgotten in one step, at most.
const IDS_PER_STEP: usize = 1000;

/// Forgets ids that were idle for too long; true if some are left over.
pub(super) fn forget_idle(draft: &mut Draft<'_>, settings: &Settings) -> bool {
    let (now, limit) = (draft.context.now, settings.transactional_id_expiration);
    let mut due = draft.state.transactions.idle().take_while(|(since, _)| since.plus(limit) <= now);
    for (_, id) in due.by_ref().take(IDS_PER_STEP) {
        let Ok(entry) = draft.entry(id) else { continue };
        let event = TransactionalIdExpired { id: id.clone(), identity: entry.identity, now };
        draft.events.push(event.into());
        draft.changes.push(Change::Forgotten(id.clone()));
    }
    due.next().is_some()
}
