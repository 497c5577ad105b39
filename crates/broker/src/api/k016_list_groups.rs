//! ListGroups (key 16), versions 0 to 5.
//!
//! Behaviour: every group with members, offsets, or members on their way, from a copy of the state. Names of states
//! and types in the filters are compared without regard to case; unknown ones match nothing.
//! Version notes: 4 has states, 5 types; all groups here are `classic`.

use std::collections::BTreeMap;

use semel_groups::{Membership, Phase};
use semel_types::GroupId;
use semel_wire::{
    Text,
    api::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup},
};

use super::Reply;
use crate::inquiry::Cut;

const TYPE: &str = "classic";

pub(super) fn answer(cut: &Cut, request: &ListGroupsRequest) -> Reply {
    let nobody = Membership::default();
    let rebalancing = cut.groups.groups().filter(|(_, live)| live.is_rebalancing());
    let mut all: BTreeMap<&GroupId, &Membership> = rebalancing.map(|(id, _)| (id, &nobody)).collect();
    all.extend(cut.state.groups.groups().map(|(id, group)| (id, group.membership())));
    let listed = all.into_iter().map(|(id, membership)| {
        let phase = Phase::of(membership, cut.groups.group(id).map(|live| &**live));
        ListedGroup {
            group_id: Text::from(id.as_str()),
            protocol_type: Text::from(&**membership.protocol_type()),
            group_state: Text::from(phase.name()),
            group_type: Text::from(TYPE),
        }
    });
    let wanted = |group: &ListedGroup| {
        passes(&request.states_filter, &group.group_state) && passes(&request.types_filter, TYPE)
    };
    ListGroupsResponse { groups: listed.filter(wanted).collect(), ..Default::default() }.into()
}

fn passes(filter: &[Text], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|one| one.as_str().eq_ignore_ascii_case(value))
}
