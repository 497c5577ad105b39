//! InitProducerId (KIP-98, KIP-360; upstream `TransactionCoordinator.handleInitProducerId`).
//!
//! A request that is refused or repeated touches nothing (EOS-38): it never aborts, bumps, fences or changes a
//! timeout. What a request may do is judged before anything is decided.

use semel_events::{Author, EndCause, InitCause, Outcome, TransactionalIdInitialized};
use semel_types::{
    DurationMs, ProducerStamp, TransactionalId,
    mutation::{Mutation, mutated},
};

use super::{
    Reply, TransactionalIdEntry,
    draft::{Draft, End},
};
use crate::{
    Change, OrderedApi, Refusal, Settings,
    dropped::{Rule, keeps},
    fence::{self, IdentityStanding},
};

/// What every kind of identity needs of the request.
struct Asked<'a> {
    id: &'a TransactionalId,
    timeout: DurationMs,
    carried: Option<ProducerStamp>,
    author: &'a Author,
}

/// Gives an identity.
pub(super) fn decide(
    draft: &mut Draft<'_>,
    settings: &Settings,
    id: Option<&TransactionalId>,
    timeout: DurationMs,
    carried: Option<ProducerStamp>,
    author: &Author,
) -> Result<Reply, Refusal> {
    let Some(id) = id else {
        return Ok(Reply::Identity(draft.fresh()));
    };
    if id.as_str().is_empty() {
        return Err(Refusal::EmptyTransactionalId);
    }
    let max = settings.transaction_max_timeout;
    if (timeout.as_ms() <= 0 || timeout > max) && !mutated(Mutation::TimeoutNotBounded) {
        return Err(Refusal::InvalidTimeout { timeout, max });
    }
    let asked = Asked { id, timeout, carried, author };
    match (draft.state.transactions.get(id), carried) {
        (None, Some(_)) => Ok(first(draft, &asked)),
        (None, None) => {
            draft.in_order(id, OrderedApi::InitProducerId)?;
            Ok(first(draft, &asked))
        }
        (Some(entry), None) => {
            draft.in_order(id, OrderedApi::InitProducerId)?;
            Ok(replace(draft, entry, &asked, InitCause::Takeover))
        }
        (Some(entry), Some(pair)) => recover(draft, entry, &asked, pair),
    }
}

/// The id is new here, or was forgotten: a new producer id, whatever pair was carried.
fn first(draft: &mut Draft<'_>, asked: &Asked<'_>) -> Reply {
    let identity = draft.fresh();
    initialized(draft, asked, identity, InitCause::New)
}

/// KIP-360: judged by the carried pair alone, in every state.
fn recover(
    draft: &mut Draft<'_>,
    entry: &TransactionalIdEntry,
    asked: &Asked<'_>,
    pair: ProducerStamp,
) -> Result<Reply, Refusal> {
    match fence::identity(entry, pair) {
        IdentityStanding::Current => Ok(replace(draft, entry, asked, InitCause::Recovery)),
        _ if !keeps(Rule::RecoveryByPair) => Ok(replace(draft, entry, asked, InitCause::Recovery)),
        IdentityStanding::Remembered(_) => Ok(Reply::Identity(entry.identity)),
        IdentityStanding::OtherProducer | IdentityStanding::Fenced => {
            Err(draft.fenced(asked.id, pair, entry))
        }
    }
}

/// Aborts what is open, then gives the next identity: both in one decision.
fn replace(
    draft: &mut Draft<'_>,
    entry: &TransactionalIdEntry,
    asked: &Asked<'_>,
    cause: InitCause,
) -> Reply {
    if let Some(open) = entry.open().filter(|_| keeps(Rule::TakeoverAborts)) {
        let end = End {
            id: asked.id,
            outcome: Outcome::Abort,
            cause: if cause == InitCause::Recovery { EndCause::Recovery } else { EndCause::Takeover },
            protocol: open.protocol,
            marker_stamp: fence::bumped_marker(entry.identity),
            identity_after: entry.identity,
            author: Some(asked.author.clone()),
        };
        draft.end(entry, end);
    }
    let next = draft.successor(entry.identity);
    let identity = if mutated(Mutation::InitKeepsEpoch) { entry.identity } else { next };
    initialized(draft, asked, identity, cause)
}

fn initialized(draft: &mut Draft<'_>, asked: &Asked<'_>, identity: ProducerStamp, cause: InitCause) -> Reply {
    let event = TransactionalIdInitialized {
        id: asked.id.clone(),
        cause,
        identity,
        carried: asked.carried,
        timeout: asked.timeout,
        author: asked.author.clone(),
        now: draft.context.now,
        wall: draft.context.wall,
    };
    draft.events.push(event.into());
    draft.changes.push(Change::IdentityChanged(asked.id.clone()));
    Reply::Identity(identity)
}
