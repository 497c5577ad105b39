//! DeleteGroups (key 42), versions 0 to 2.
//!
//! Behaviour: forgets groups without members, and their offsets. A group that does not exist is 69, one with members
//! 68, and so is one for which an undecided transaction carries offsets: they must not vanish from under it. No room
//! is 15. A group that is made anew starts from generation 1.

use semel_groups::classic::{Answer, Command};
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    Text,
    api::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse},
};

use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, ITEM_BYTES, no_room_or, room},
    groups,
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<DeleteGroupsRequest>) -> Handled {
    let names = &asked.body.groups_names;
    let texts: usize = names.iter().map(|name| name.len()).sum();
    let bytes = COORDINATOR_BYTES + names.len() as u64 * ITEM_BYTES + texts as u64;
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, |code| respond(names.iter().map(|name| (name, code))));
    }
    let mut results = Vec::with_capacity(names.len());
    for name in names {
        results.push((name, delete(step, name)));
    }
    respond(results.into_iter())
}

fn delete(step: &mut Step<'_>, name: &Text) -> ErrorCode {
    match step.decide_group(GroupId::new(name), Command::Delete) {
        Some(Answer::Delete(result)) => groups::code(result),
        other => unreachable!("a deletion is answered at once, as itself: {other:?}"),
    }
}

fn respond<'a>(results: impl Iterator<Item = (&'a Text, ErrorCode)>) -> Handled {
    let results =
        results.map(|(name, code)| DeletableGroupResult { group_id: name.clone(), error_code: code.into() });
    DeleteGroupsResponse { results: results.collect(), ..Default::default() }.into()
}
