//! DescribeGroups (key 15), versions 0 to 6.
//!
//! Behaviour: state, protocol and members of each group, from a copy of the state; what members said and got is told
//! when the group is stable, as Kafka does. A group that does not exist, or speaks another protocol, is told as Dead.
//! Version notes: 3 has authorized operations (all: there are no ACLs yet); 4 has static members; 6 tells a group that
//! does not exist with 69.

use semel_groups::{Live, Membership, Phase, Seat};
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    Text,
    api::describe_groups::{
        DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
    },
};

use super::Reply;
use crate::{call::Asked, groups::wire_bytes, inquiry::Cut};

/// READ, DELETE, DESCRIBE, as bits (upstream `AclOperation`).
pub(super) const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8;

pub(super) fn answer(cut: &Cut, asked: &Asked<DescribeGroupsRequest>) -> Reply {
    let groups = asked.body.groups.iter().map(|id| {
        let mut group = describe(cut, id, asked.version);
        if asked.body.include_authorized_operations {
            group.authorized_operations = ALL_OPERATIONS;
        }
        group
    });
    DescribeGroupsResponse { groups: groups.collect(), ..Default::default() }.into()
}

fn describe(cut: &Cut, id: &Text, version: i16) -> DescribedGroup {
    let key = GroupId::new(id);
    let live = cut.groups.group(&key).map(|live| &**live);
    let nobody = Membership::default();
    let membership = match (cut.state.groups.group(&key), live) {
        (Some(group), _) => match group.classic() {
            Some(membership) => membership,
            None => return unknown(id, version),
        },
        (None, Some(live)) if live.is_rebalancing() => &nobody,
        (None, _) => return unknown(id, version),
    };
    let phase = Phase::of(membership, live);
    let stable = phase == Phase::Stable;
    let seated = membership.seats().map(|(_, seat)| member(seat, membership.protocol(), stable));
    let joining = live.into_iter().flat_map(Live::joining).filter(|member| !membership.has(&member.id));
    let joining = joining.map(|one| DescribedGroupMember {
        member_id: Text::from(&*one.id),
        group_instance_id: one.instance.as_deref().map(Text::from),
        client_id: Text::from(&*one.client_id),
        client_host: Text::from(&*one.client_host),
        ..Default::default()
    });
    DescribedGroup {
        group_id: id.clone(),
        group_state: Text::from(phase.name()),
        protocol_type: Text::from(&**membership.protocol_type()),
        protocol_data: Text::from(if stable { &**membership.protocol() } else { "" }),
        members: seated.chain(joining).collect(),
        ..Default::default()
    }
}

fn unknown(id: &Text, version: i16) -> DescribedGroup {
    let group = DescribedGroup {
        group_id: id.clone(),
        group_state: Text::from(Phase::Dead.name()),
        ..Default::default()
    };
    if version < 6 {
        return group;
    }
    let error_message = Some(Text::from("there is no such classic group"));
    DescribedGroup { error_code: ErrorCode::GroupIdNotFound.into(), error_message, ..group }
}

fn member(seat: &Seat, protocol: &str, stable: bool) -> DescribedGroupMember {
    let member = &seat.member;
    let chosen = member.protocols.iter().find(|one| stable && *one.name == *protocol);
    DescribedGroupMember {
        member_id: Text::from(&*member.id),
        group_instance_id: member.instance.as_deref().map(Text::from),
        client_id: Text::from(&*member.client_id),
        client_host: Text::from(&*member.client_host),
        member_metadata: chosen.map(|one| wire_bytes(&one.metadata)).unwrap_or_default(),
        member_assignment: if stable { wire_bytes(&seat.assignment) } else { Default::default() },
    }
}
