//! LeaveGroup (key 13), versions 0 to 5.
//!
//! Behaviour: the members are gone from the moment of the answer on, and the others rebalance; what they commit
//! afterwards is refused. A static member may be named by an administrator without its id. Without room 15.
//! Version notes: up to 2 one member, told in the answer's own code; from 3 on several, each with its code; 5 has a
//! reason, which is ignored.

use semel_groups::classic::{Answer, Claim, Command};
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, LeftMember};

use crate::{
    call::Asked,
    common::{no_room_or, room},
    groups,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<LeaveGroupRequest>) -> Handled {
    let group = GroupId::new(&asked.body.group_id);
    let bytes = groups::bytes(step, &group);
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| refused(code).into());
    }
    if group.as_str().is_empty() {
        return refused(ErrorCode::InvalidGroupId).into();
    }
    let claims = claims(asked);
    let answer = step.decide_group(group, Command::Leave(claims));
    let Some(Answer::Leave(results)) = answer else { unreachable!("leaving is answered at once, as itself") };
    let codes: Vec<_> = results.into_iter().map(groups::code).collect();
    if asked.version < 3 {
        return refused(codes.first().copied().unwrap_or(ErrorCode::None)).into();
    }
    let members = asked.body.members.iter().zip(codes).map(|(member, code)| LeftMember {
        member_id: member.member_id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        error_code: code.into(),
    });
    LeaveGroupResponse { members: members.collect(), ..Default::default() }.into()
}

fn claims(asked: &Asked<LeaveGroupRequest>) -> Vec<Claim> {
    if asked.version < 3 {
        return vec![groups::claim(&asked.body.member_id, None)];
    }
    let members = asked.body.members.iter();
    members.map(|member| groups::claim(&member.member_id, member.group_instance_id.as_ref())).collect()
}

fn refused(code: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse { error_code: code.into(), ..Default::default() }
}
