//! The transaction coordinator: may this transactional id get an identity, may this transaction move?
//!
//! Purpose: [`decide`] turns a request into events, answers and volatile changes (design section 4, every row of
//! its table); `apply.rs` is the only writer, and runs the same live and on replay. Invariants: EOS-30 and up in
//! `docs/invariants.md`. One decision is atomic: an aborted transaction and the identity that replaces its writer
//! become durable together, so no client ever meets a half-done takeover. What it does not do: no wire codes, no
//! clock, no record bytes; membership of a group is checked by the broker before it asks here.
//!
//! | file | what it decides |
//! |---|---|
//! | `init.rs` | InitProducerId: new ids, takeover, KIP-360 recovery, rotation |
//! | `add.rs` | AddPartitionsToTxn, and the first write of version 2 |
//! | `offsets.rs` | AddOffsetsToTxn, TxnOffsetCommit |
//! | `end.rs` | EndTxn |
//! | `marker.rs` | WriteTxnMarkers from an administrator |
//! | `timeout.rs`, `expire.rs` | silent producers, idle ids |
//! | `start.rs` | what a start adds to the log |
//! | `apply.rs` | the events' effect on [`Coordinator`] |

mod add;
mod apply;
mod check;
mod command;
mod draft;
mod end;
mod expire;
mod fence_log;
mod init;
mod marker;
mod members;
mod offsets;
mod snapshot;
mod start;
mod state;
mod timeout;

pub use command::{Command, Decision, Reply, Request, carried_pair};
pub use fence_log::{
    Aborted, FENCES_IN_ALL, FENCES_PER_ID, Fence, FenceCause, FenceLog, PARTITIONS_PER_FENCE, Written,
};
pub use members::Members;
pub use start::start;
pub use state::{
    Coordinator, MadeBy, OpenTransaction, Phase, Remembered, TransactionState, TransactionalIdEntry,
};
pub use timeout::next_wake;

pub(crate) use apply::written;
pub(crate) use check::check;

use semel_events::Protocol;
use semel_types::{Context, Now, PartitionHandle};

use crate::{
    Admission, BatchStamp, ProduceScope, Refusal, Settings, State, Volatile,
    dropped::{Rule, keeps},
    fence::{self, IdentityStanding},
};
use add::{Growth, extension};
use draft::Draft;

/// Decides one request against a state that holds everything proposed before. Reads only: the caller applies the
/// events and then the changes, and answers once the events are durable.
#[must_use]
pub fn decide(
    state: &State,
    volatile: &Volatile,
    settings: &Settings,
    request: &Request,
    context: &Context,
) -> Decision {
    let mut draft = Draft::new(state, volatile, context, request.connection);
    let answer = match &request.command {
        Command::InitProducerId { transactional_id, timeout, carried, author } => {
            init::decide(&mut draft, settings, transactional_id.as_ref(), *timeout, *carried, author)
        }
        Command::AddPartitions { id, stamp, partitions, verify_only, protocol } => {
            add::decide(&mut draft, id, *stamp, partitions, *verify_only, *protocol)
        }
        Command::AddOffsets { id, stamp, group } => offsets::decide_add(&mut draft, id, *stamp, group),
        Command::TxnOffsetCommit { id, stamp, group, offsets, protocol } => {
            offsets::decide_commit(&mut draft, id, *stamp, group, offsets, *protocol)
        }
        Command::EndTxn { id, stamp, outcome, protocol, author } => {
            end::decide(&mut draft, id, *stamp, *outcome, *protocol, author)
        }
        Command::WriteMarker { stamp, outcome, partitions, groups, author } => {
            marker::decide(&mut draft, *stamp, *outcome, (partitions, groups), author)
        }
        Command::Tick => return timeout::tick(draft, settings),
    };
    draft.answer(request, answer)
}

/// Membership of a transactional batch that would be accepted: is its partition in the open transaction, or does
/// version 2 add it? The identity was judged before; it is asked for again, because an answer about somebody else's
/// transaction must be impossible.
///
/// # Errors
/// [`Refusal::NotInTransaction`], [`Refusal::TooManyPartitions`], or what is wrong with the identity.
pub(crate) fn admit(
    state: &State,
    scope: &ProduceScope<'_>,
    partition: PartitionHandle,
    stamp: &BatchStamp,
    now: Now,
) -> Result<Admission, Refusal> {
    let id = scope.transactional_id.ok_or(Refusal::WrongOwner { owner: None })?;
    let unknown = || Refusal::UnknownTransactionalId { id: id.clone() };
    let entry = state.transactions.get(id).ok_or_else(unknown)?;
    match fence::identity(entry, stamp.producer) {
        IdentityStanding::Current => {}
        _ if !keeps(Rule::OwnersIdentity) => {}
        IdentityStanding::Remembered(_) | IdentityStanding::OtherProducer | IdentityStanding::Fenced => {
            let fences = state.transactions.fences();
            return Err(fence::fenced(id, stamp.producer, Some(entry.identity), fences));
        }
    }
    if let Some(open) = entry.open().filter(|open| open.partitions.contains(&partition)) {
        return Ok(Admission { extension: None, transaction: Some(open.number) });
    }
    match scope.protocol {
        Protocol::Classic if keeps(Rule::Membership) => Err(Refusal::NotInTransaction { partition }),
        Protocol::Classic => Ok(Admission { extension: None, transaction: None }),
        protocol @ Protocol::Version2 => {
            let growth = Growth { partitions: &[partition], group: None, protocol };
            let extension = extension(entry, id, &growth, now)?;
            let transaction = extension.as_ref().map(|extension| extension.number);
            Ok(Admission { extension, transaction })
        }
    }
}
