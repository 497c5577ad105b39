//! EndTxn, classic and version 2 side by side (KIP-98, KIP-890; upstream `TransactionCoordinator.endTransaction`).
//!
//! A retry is recognised by the remembered pair alone (EOS-34): an old owner never gets its successor's identity.

use semel_events::{Author, EndCause, Outcome, Protocol};
use semel_types::{
    ProducerStamp, TransactionalId,
    mutation::{Mutation, mutated},
};

use super::{
    MadeBy, Remembered, Reply, TransactionState, TransactionalIdEntry,
    draft::{Draft, End},
};
use crate::{
    OrderedApi, Refusal,
    fence::{self, IdentityStanding},
};

/// What an end needs of the request.
struct Asked<'a> {
    id: &'a TransactionalId,
    stamp: ProducerStamp,
    outcome: Outcome,
    author: &'a Author,
}

/// What the current pair may do in a state, by protocol and outcome.
enum Move {
    /// End the open transaction.
    End,
    /// Abort nothing, but bump: a client of version 2 cannot know whether its first write arrived.
    AbortNothing,
    /// It was ended so already.
    Repeat,
    /// 48.
    Wrong,
}

/// Ends a transaction.
pub(super) fn decide(
    draft: &mut Draft<'_>,
    id: &TransactionalId,
    stamp: ProducerStamp,
    outcome: Outcome,
    protocol: Protocol,
    author: &Author,
) -> Result<Reply, Refusal> {
    let entry = draft.entry(id)?;
    let asked = Asked { id, stamp, outcome, author };
    match fence::identity(entry, stamp) {
        IdentityStanding::Current => current(draft, entry, &asked, protocol),
        _ if mutated(Mutation::EndTxnAnyEpoch) => current(draft, entry, &asked, protocol),
        IdentityStanding::Remembered(pair) => remembered(draft, entry, &asked, pair),
        IdentityStanding::OtherProducer | IdentityStanding::Fenced => {
            Err(draft.wrong_identity(id, stamp, entry))
        }
    }
}

/// By the owner, as the state says.
fn current(
    draft: &mut Draft<'_>,
    entry: &TransactionalIdEntry,
    asked: &Asked<'_>,
    protocol: Protocol,
) -> Result<Reply, Refusal> {
    // Version 2, too: a commit of nothing is refused and bumps nothing, so a late copy of it has the epoch of the
    // transaction that follows.
    draft.in_order(asked.id, OrderedApi::EndTxn)?;
    let next = match protocol {
        Protocol::Classic => classic_move(entry.state(), asked.outcome),
        Protocol::Version2 => version2_move(entry.state(), asked.outcome),
    };
    match next {
        Move::End | Move::AbortNothing => Ok(end(draft, entry, asked, protocol)),
        Move::Repeat => Ok(Reply::Ended(entry.identity)),
        Move::Wrong => {
            Err(Refusal::WrongState { id: asked.id.clone(), state: entry.state(), asked: asked.outcome })
        }
    }
}

/// Classic: the epoch stays, so a repeated end of the same kind is a retry.
fn classic_move(state: TransactionState, outcome: Outcome) -> Move {
    match (state, outcome) {
        (TransactionState::Ongoing, Outcome::Commit | Outcome::Abort) => Move::End,
        (TransactionState::CompleteCommit, Outcome::Commit)
        | (TransactionState::CompleteAbort, Outcome::Abort) => Move::Repeat,
        (TransactionState::CompleteCommit, Outcome::Abort)
        | (TransactionState::CompleteAbort, Outcome::Commit)
        | (
            TransactionState::Empty
            | TransactionState::PrepareCommit
            | TransactionState::PrepareAbort
            | TransactionState::PrepareEpochFence
            | TransactionState::Dead,
            Outcome::Commit | Outcome::Abort,
        ) => Move::Wrong,
    }
}

/// Version 2: each end bumps, so the current pair never repeats an end; an abort always succeeds.
fn version2_move(state: TransactionState, outcome: Outcome) -> Move {
    match (state, outcome) {
        (TransactionState::Ongoing, Outcome::Commit | Outcome::Abort) => Move::End,
        (
            TransactionState::Empty | TransactionState::CompleteCommit | TransactionState::CompleteAbort,
            Outcome::Abort,
        ) => Move::AbortNothing,
        (
            TransactionState::Empty | TransactionState::CompleteCommit | TransactionState::CompleteAbort,
            Outcome::Commit,
        )
        | (
            TransactionState::PrepareCommit
            | TransactionState::PrepareAbort
            | TransactionState::PrepareEpochFence
            | TransactionState::Dead,
            Outcome::Commit | Outcome::Abort,
        ) => Move::Wrong,
    }
}

/// Classic markers carry the current epoch, which stays; those of version 2 the bumped one (KIP-890, KIP-1228).
fn end(draft: &mut Draft<'_>, entry: &TransactionalIdEntry, asked: &Asked<'_>, protocol: Protocol) -> Reply {
    let (marker_stamp, identity_after) = match protocol {
        Protocol::Classic => (entry.identity, entry.identity),
        Protocol::Version2 if mutated(Mutation::Version2KeepsEpoch) => (entry.identity, entry.identity),
        Protocol::Version2 if mutated(Mutation::MarkerWithOldEpoch) => {
            (entry.identity, draft.successor(entry.identity))
        }
        Protocol::Version2 => (fence::bumped_marker(entry.identity), draft.successor(entry.identity)),
    };
    let end = End {
        id: asked.id,
        outcome: asked.outcome,
        cause: EndCause::EndTxn,
        protocol,
        marker_stamp,
        identity_after,
        author: Some(asked.author.clone()),
    };
    draft.end(entry, end);
    Reply::Ended(identity_after)
}

/// By the pair that was current before: a retry, or the victim of an abort that it did not ask for.
fn remembered(
    draft: &Draft<'_>,
    entry: &TransactionalIdEntry,
    asked: &Asked<'_>,
    pair: Remembered,
) -> Result<Reply, Refusal> {
    let id = asked.id;
    match (pair.made_by, asked.outcome) {
        (MadeBy::EndTxn(outcome), asked) if outcome == asked => Ok(Reply::Ended(entry.identity)),
        (MadeBy::Abort, Outcome::Abort) => Ok(Reply::Ended(entry.identity)),
        (MadeBy::Abort, Outcome::Commit) => {
            let fence = draft.state.transactions.fences().of_victim(id, asked.stamp);
            Err(Refusal::AbortedMeanwhile { id: id.clone(), fence })
        }
        (MadeBy::EndTxn(_) | MadeBy::Recovery, Outcome::Commit | Outcome::Abort) => {
            Err(draft.wrong_identity(id, asked.stamp, entry))
        }
    }
}
