//! JoinGroup (key 11), versions 0 to 9.
//!
//! Behaviour: the answer waits until the group has its members together; the leader, told of all of them, is the one
//! that led before, else the first to come. A new member of an empty group waits `group.initial.rebalance.delay.ms`
//! for others. Refused are: an empty group id (24), a session timeout out of bounds (26), a group that is full (81,
//! also when its members' metadata take too many bytes together), a protocol that nobody else knows (23), an unknown
//! member (25), a static member that was replaced (82). Without room 15. A member that was never in a generation is
//! forgotten when its connection closes.
//! Version notes: 0 has no rebalance timeout, the session's is taken; from 4 on a new dynamic member is sent away with
//! an id (79, KIP-394); 5 has static members; 9 tells a static leader that came back that nothing has to be assigned.

use std::sync::Arc;

use semel_events::{Blob, GroupProtocol};
use semel_groups::classic::{Command, Join};
use semel_log::RoomClass;
use semel_types::{DurationMs, ErrorCode, GroupId};
use semel_wire::api::join_group::JoinGroupRequest;

use crate::{
    call::Asked,
    common::{no_room_or, room},
    groups,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<JoinGroupRequest>) -> Handled {
    let group = GroupId::new(&asked.body.group_id);
    let more: usize = asked.body.protocols.iter().map(|one| one.name.len() + one.metadata.len()).sum();
    let bytes = groups::bytes(step, &group) + more as u64;
    if let Err(no_room) = room(step, bytes, RoomClass::Identity, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| groups::join_refused(code, &asked.body.member_id).into());
    }
    let join = join(step, asked);
    match step.decide_group(group, Command::Join(join)) {
        Some(answer) => Handled::Reply(groups::reply(answer)),
        None => Handled::Parked,
    }
}

fn join(step: &Step<'_>, asked: &Asked<JoinGroupRequest>) -> Join {
    let request = &asked.body;
    let client = step.client();
    let rebalance_timeout_ms =
        if asked.version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms };
    let protocols = request.protocols.iter().map(|one| GroupProtocol {
        name: groups::shared(&one.name),
        metadata: Blob::from(&one.metadata[..]),
    });
    Join {
        claim: groups::claim(&request.member_id, request.group_instance_id.as_ref()),
        client_id: Arc::clone(&client.client_id),
        client_host: groups::host(&client.address),
        session_timeout: DurationMs::from_ms(request.session_timeout_ms.into()),
        rebalance_timeout: DurationMs::from_ms(rebalance_timeout_ms.max(0).into()),
        protocol_type: groups::shared(&request.protocol_type),
        protocols: protocols.collect(),
        id_comes_first: asked.version >= 4,
        may_skip_assignment: asked.version >= 9,
    }
}
