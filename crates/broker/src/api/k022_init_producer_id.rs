//! InitProducerId (key 22), versions 0 to 5.
//!
//! Behaviour: gives an identity (design section 4). Without a transactional id: a fresh producer id, whatever else was
//! sent. With one: a new id, the next epoch after a takeover (what was open is aborted in the same durable group, so
//! 51 never occurs), or KIP-360's recovery by the pair carried. Half a pair, a number below -1 and the empty id are
//! 42; a timeout out of range is 50; without room 15.
//! Version notes: 3 carries a pair (KIP-360); 4 knows 90; 5 knows 120; 6 (two-phase commit, KIP-939) is not served.

use semel_eos::{
    Refusal,
    txn::{Command, Reply as Done, carried_pair},
};
use semel_log::RoomClass;
use semel_types::{DurationMs, ErrorCode, ProducerStamp, TransactionalId};
use semel_wire::{
    ApiKey,
    api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
};

use super::{Reply, answer::At};
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, Denied, no_room_or, room},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<InitProducerIdRequest>) -> Handled {
    let at = At { api: ApiKey::InitProducerId, version: asked.version };
    let full = ErrorCode::CoordinatorNotAvailable;
    if let Err(no_room) = room(step, COORDINATOR_BYTES, RoomClass::Identity, full) {
        return no_room_or(no_room, |code| respond(code, None));
    }
    match decide(step, &asked.body) {
        Ok(identity) => respond(ErrorCode::None, Some(identity)),
        Err(denied) => denied.code(at).map_or(Handled::Close, |code| respond(code, None)),
    }
}

fn decide(step: &mut Step<'_>, request: &InitProducerIdRequest) -> Result<ProducerStamp, Denied> {
    if request.producer_id.is_nonsense() || request.producer_epoch.is_nonsense() {
        return Err(Denied::Code(ErrorCode::InvalidRequest));
    }
    let carried = carried_pair(request.producer_id.known(), request.producer_epoch.known())?;
    let command = Command::InitProducerId {
        transactional_id: request.transactional_id.as_deref().map(TransactionalId::new),
        timeout: DurationMs::from_ms(i64::from(request.transaction_timeout_ms)),
        carried,
        author: step.client().author(ApiKey::InitProducerId.spec().name),
    };
    match step.decide(command) {
        Ok(Done::Identity(identity) | Done::Ended(identity)) => Ok(identity),
        Ok(Done::Done) => unreachable!("InitProducerId is answered with an identity"),
        Err(refusal) => Err(Refusal::into(refusal)),
    }
}

fn respond(code: ErrorCode, identity: Option<ProducerStamp>) -> Handled {
    Handled::Reply(Reply::from(InitProducerIdResponse {
        error_code: code.into(),
        producer_id: identity.map(|identity| identity.id).into(),
        producer_epoch: identity.map(|identity| identity.epoch).into(),
        ..Default::default()
    }))
}
