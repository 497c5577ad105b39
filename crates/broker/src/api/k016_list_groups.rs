//! ListGroups (key 16), versions 0 to 5.
//!
//! Behaviour: every group with members, offsets, or members on their way, from a copy of the state. Names of states
//! and types in the filters are compared without regard to case; unknown ones match nothing.
//! Version notes: 4 has states, 5 types (`classic`, `consumer`, `streams`).

use std::collections::BTreeMap;

use semel_groups::{Group, Kind, Phase, Pulse};
use semel_types::GroupId;
use semel_wire::{
    Text,
    api::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup},
};

use super::Reply;
use crate::inquiry::Cut;

pub(super) fn answer(cut: &Cut, request: &ListGroupsRequest) -> Reply {
    let nobody = Group::default();
    let rebalancing = cut.groups.groups().filter(|(_, pulse)| is_rebalancing(pulse));
    let mut all: BTreeMap<&GroupId, &Group> = rebalancing.map(|(id, _)| (id, &nobody)).collect();
    all.extend(cut.state.groups.groups());
    let listed = all.into_iter().map(|(id, group)| listed(cut, id, group));
    let wanted = |group: &ListedGroup| {
        passes(&request.states_filter, &group.group_state) && passes(&request.types_filter, &group.group_type)
    };
    ListGroupsResponse { groups: listed.filter(wanted).collect(), ..Default::default() }.into()
}

fn is_rebalancing(pulse: &Pulse) -> bool {
    match pulse {
        Pulse::Classic(live) => live.is_rebalancing(),
        Pulse::Consumer(_) | Pulse::Streams(_) => false,
    }
}

fn listed(cut: &Cut, id: &GroupId, group: &Group) -> ListedGroup {
    let (state, protocol_type) = match group.kind() {
        Kind::Classic(membership) => {
            let phase = Phase::of(membership, cut.groups.group(id).map(|live| &**live));
            (phase.name(), &**membership.protocol_type())
        }
        Kind::Consumer(roster) => (roster.phase().name(), "consumer"),
        Kind::Streams(roster) => (roster.phase().name(), "streams"),
    };
    ListedGroup {
        group_id: Text::from(id.as_str()),
        protocol_type: Text::from(protocol_type),
        group_state: Text::from(state),
        group_type: Text::from(group.kind().name()),
    }
}

fn passes(filter: &[Text], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|one| one.as_str().eq_ignore_ascii_case(value))
}
