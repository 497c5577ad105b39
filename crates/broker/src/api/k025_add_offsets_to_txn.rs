//! AddOffsetsToTxn (key 25), versions 0 to 4.
//!
//! Behaviour: announces that offsets of a group will come with the open transaction, or starts it. The group need not
//! exist. The empty transactional id is 42.
//! Version notes: 2 knows 90 (librdkafka and aiokafka stay at 0 and rest on 47); 4 knows 120.

use semel_eos::txn::Command;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    ApiKey,
    api::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse},
};

use super::answer::At;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, Denied, claimed, no_room_or, room, transactional_id},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<AddOffsetsToTxnRequest>) -> Handled {
    let at = At { api: ApiKey::AddOffsetsToTxn, version: asked.version };
    let full = ErrorCode::CoordinatorNotAvailable;
    if let Err(no_room) = room(step, COORDINATOR_BYTES, RoomClass::Identity, full) {
        return no_room_or(no_room, respond);
    }
    match decide(step, &asked.body, at) {
        Ok(()) => respond(ErrorCode::None),
        Err(denied) => denied.code(at).map_or(Handled::Close, respond),
    }
}

fn decide(step: &mut Step<'_>, request: &AddOffsetsToTxnRequest, at: At) -> Result<(), Denied> {
    let id = transactional_id(&request.transactional_id)?;
    let stamp = claimed(request.producer_id, request.producer_epoch, at)?;
    step.decide(Command::AddOffsets { id, stamp, group: GroupId::new(&request.group_id) })?;
    Ok(())
}

fn respond(code: ErrorCode) -> Handled {
    AddOffsetsToTxnResponse { error_code: code.into(), ..Default::default() }.into()
}
