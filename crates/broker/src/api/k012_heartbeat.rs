//! Heartbeat (key 12), versions 0 to 4.
//!
//! Behaviour: a member's session starts anew. 27 asks it to join again, 22 and 25 tell it that it has missed a
//! generation or is no member, 82 that another one has taken its static name. Makes no event.
//! Version notes: 3 has static members.

use semel_groups::classic::Command;
use semel_types::GroupId;
use semel_wire::api::heartbeat::HeartbeatRequest;

use crate::{
    call::Asked,
    groups,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<HeartbeatRequest>) -> Handled {
    let request = &asked.body;
    let claim = groups::claim(&request.member_id, request.group_instance_id.as_ref());
    let command = Command::Heartbeat { claim, generation: request.generation_id };
    let answer = step.decide_group(GroupId::new(&request.group_id), command);
    Handled::Reply(groups::reply(answer.expect("a heartbeat is answered at once")))
}
