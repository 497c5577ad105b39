//! SyncGroup (key 14), versions 0 to 5.
//!
//! Behaviour: members wait for the leader's assignments, which are one event; a member that asks later gets its part
//! at once. A member that does not ask within the rebalance timeout is removed. Another generation is 22, another
//! protocol 23, a rebalance 27, a member that is none 25, a replaced static one 82; assignments that are too large
//! together 42. Without room 15.
//! Version notes: 3 has static members; 5 names the protocol.

use semel_events::{Blob, GroupAssignment};
use semel_groups::classic::Command;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::api::sync_group::SyncGroupRequest;

use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, no_room_or, room},
    groups,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<SyncGroupRequest>) -> Handled {
    let request = &asked.body;
    let parts = request.assignments.iter().map(|one| one.member_id.len() + one.assignment.len() + 16);
    let bytes = COORDINATOR_BYTES + parts.sum::<usize>() as u64;
    if let Err(no_room) = room(step, bytes, RoomClass::Identity, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| groups::sync_refused(code).into());
    }
    let assignments = request.assignments.iter().map(|one| GroupAssignment {
        member: groups::shared(&one.member_id),
        assignment: Blob::from(&one.assignment[..]),
    });
    let protocol = (
        request.protocol_type.as_ref().map(groups::shared),
        request.protocol_name.as_ref().map(groups::shared),
    );
    let command = Command::Sync {
        claim: groups::claim(&request.member_id, request.group_instance_id.as_ref()),
        generation: request.generation_id,
        protocol,
        assignments: assignments.collect(),
    };
    match step.decide_group(GroupId::new(&request.group_id), command) {
        Some(answer) => Handled::Reply(groups::reply(answer)),
        None => Handled::Parked,
    }
}
