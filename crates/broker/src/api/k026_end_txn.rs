//! EndTxn (key 26), versions 0 to 5.
//!
//! Behaviour: commits or aborts. Decision, markers, offsets and completion are one durable group, so the answer comes
//! when all of it is visible and the next transaction never meets 51. A repeated request of an ended transaction is
//! answered as then (design section 4, the remembered pair).
//! Version notes: 2 knows 90; 4 knows 120; 5 (KIP-890 part 2) bumps the epoch and answers the identity to go on with.

use semel_eos::txn::{Command, Reply as Done};
use semel_events::{Outcome, Protocol};
use semel_log::RoomClass;
use semel_types::{ErrorCode, ProducerStamp, TransactionalId};
use semel_wire::{
    ApiKey,
    api::end_txn::{EndTxnRequest, EndTxnResponse},
};

use super::answer::At;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, Denied, ITEM_BYTES, claimed, no_room_or, room, transactional_id},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<EndTxnRequest>) -> Handled {
    let at = At { api: ApiKey::EndTxn, version: asked.version };
    let full = ErrorCode::CoordinatorNotAvailable;
    let bytes = worst_case_bytes(step, &asked.body);
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, full) {
        return no_room_or(no_room, |code| respond(code, None));
    }
    match decide(step, &asked.body, at) {
        Ok(identity) => respond(ErrorCode::None, identity),
        Err(denied) => denied.code(at).map_or(Handled::Close, |code| respond(code, None)),
    }
}

/// A marker's batch and its place in the event for every partition that the transaction holds: a small transaction ends
/// on a small reserve, too.
fn worst_case_bytes(step: &Step<'_>, request: &EndTxnRequest) -> u64 {
    let id = TransactionalId::new(&request.transactional_id);
    let open = step.state().eos.transactions().open(&id);
    COORDINATOR_BYTES + open.map_or(0, |open| open.size() as u64) * ITEM_BYTES / 4
}

fn decide(step: &mut Step<'_>, request: &EndTxnRequest, at: At) -> Result<Option<ProducerStamp>, Denied> {
    let id = transactional_id(&request.transactional_id)?;
    let stamp = claimed(request.producer_id, request.producer_epoch, at)?;
    let command = Command::EndTxn {
        id,
        stamp,
        outcome: if request.committed { Outcome::Commit } else { Outcome::Abort },
        protocol: if at.version >= 5 { Protocol::Version2 } else { Protocol::Classic },
        author: step.client().author(ApiKey::EndTxn.spec().name),
    };
    match step.decide(command)? {
        Done::Ended(identity) | Done::Identity(identity) => Ok(Some(identity)),
        Done::Done => Ok(None),
    }
}

fn respond(code: ErrorCode, identity: Option<ProducerStamp>) -> Handled {
    EndTxnResponse {
        error_code: code.into(),
        producer_id: identity.map(|identity| identity.id).into(),
        producer_epoch: identity.map(|identity| identity.epoch).into(),
        ..Default::default()
    }
    .into()
}
