//! What the APIs of groups share: claims off the wire, answers on it.

use std::sync::Arc;

use semel_events::Blob;
use semel_groups::{
    Group, MemberId, Refusal,
    classic::{Answer, Assigned, Claim, JoinedGeneration},
    consumer::{Roster, Seat},
};
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    Text,
    api::{
        delete_groups::DeleteGroupsResponse,
        heartbeat::HeartbeatResponse,
        join_group::{JoinGroupResponse, JoinGroupResponseMember},
        leave_group::LeaveGroupResponse,
        sync_group::SyncGroupResponse,
    },
};

use crate::api::{Reply, answer::group_code};
use crate::{common::COORDINATOR_BYTES, node::Step};

/// Who a request says it is.
pub(crate) fn claim(member: &Text, instance: Option<&Text>) -> Claim {
    Claim { member: MemberId::from(member.as_str()), instance: instance.map(shared) }
}

pub(crate) fn shared(text: &Text) -> Arc<str> {
    Arc::from(text.as_str())
}

/// The address without its port, as Kafka tells it.
pub(crate) fn host(address: &str) -> Arc<str> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    Arc::from(format!("/{host}"))
}

/// Bytes of the events that a request to this group may cause, at most, apart from what it brings.
pub(crate) fn bytes(step: &Step<'_>, group: &GroupId) -> u64 {
    let found = step.state().groups.group(group);
    if let Some(roster) = found.and_then(Group::consumer) {
        return roster_bytes(step, roster);
    }
    let classic = found.and_then(Group::classic);
    let seats = classic.into_iter().flat_map(|membership| membership.seats());
    let joining = step.groups().group(group).into_iter().flat_map(|live| live.joining());
    let members = seats.map(|(_, seat)| &seat.member).chain(joining);
    let of = |member: &semel_events::GroupMember| {
        let protocols = member.protocols.iter().map(protocol_bytes);
        let names = 2 * member.id.len() + member.client_id.len() + member.client_host.len();
        protocols.sum::<usize>() + names + member.instance.as_ref().map_or(0, |name| name.len()) + 64
    };
    COORDINATOR_BYTES + members.map(of).sum::<usize>() as u64 + all_partitions(step) * PARTITION_BYTES
}

fn protocol_bytes(protocol: &semel_events::GroupProtocol) -> usize {
    protocol.name.len() + protocol.metadata.len() + 16
}

/// A partition stands in the targets, and in what a member has and gives up.
const PARTITION_BYTES: u64 = 24;

fn all_partitions(step: &Step<'_>) -> u64 {
    step.state().catalog.topics().map(|topic| topic.partitions().len() as u64).sum()
}

/// A new epoch of a consumer group, or its change into a classic one.
fn roster_bytes(step: &Step<'_>, roster: &Roster) -> u64 {
    let of = |seat: &Seat| {
        let member = &seat.member;
        let protocols = member.classic.iter().flat_map(|traits| &traits.protocols).map(protocol_bytes);
        let names = 3 * member.id.len() + member.client_id.len() + member.client_host.len();
        (protocols.sum::<usize>() + names + member.instance.as_ref().map_or(0, |name| name.len()) + 128)
            as u64
    };
    let members = roster.seats().map(|(_, seat)| of(seat)).sum::<u64>();
    COORDINATOR_BYTES + members + all_partitions(step) * PARTITION_BYTES
}

/// Bytes of the event that tells one member of a consumer group what it has, at most.
pub(crate) fn seat_bytes(step: &Step<'_>, group: &GroupId, member: &str) -> u64 {
    let roster = step.state().groups.group(group).and_then(Group::consumer);
    let seat = roster.and_then(|roster| roster.seat(member));
    let partitions = seat.map_or(0, |seat| seat.target.len() + seat.assigned.len() + seat.revoking.len());
    COORDINATOR_BYTES + partitions as u64 * PARTITION_BYTES
}

/// An answer of a group on the wire; of a request that is answered alone in its API.
pub(crate) fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Join(Ok(joined)) => join_response(joined).into(),
        Answer::Join(Err((refusal, member))) => join_refused(group_code(refusal), &member).into(),
        Answer::Sync(Ok(assigned)) => sync_response(assigned).into(),
        Answer::Sync(Err(refusal)) => sync_refused(group_code(refusal)).into(),
        Answer::Heartbeat(result) => {
            HeartbeatResponse { error_code: code(result).into(), ..Default::default() }.into()
        }
        // These two are never parked: their handlers build the whole answer from several of these.
        Answer::Leave(results) => {
            let first = results.into_iter().next().map_or(ErrorCode::None, code);
            LeaveGroupResponse { error_code: first.into(), ..Default::default() }.into()
        }
        Answer::Delete(_) => DeleteGroupsResponse::default().into(),
    }
}

pub(crate) fn code(result: Result<(), Refusal>) -> ErrorCode {
    result.map_or_else(group_code, |()| ErrorCode::None)
}

fn join_response(joined: JoinedGeneration) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|told| JoinGroupResponseMember {
        member_id: Text::from(&*told.member),
        group_instance_id: told.instance.as_deref().map(Text::from),
        metadata: wire_bytes(&told.metadata),
    });
    JoinGroupResponse {
        generation_id: joined.generation,
        protocol_type: Some(Text::from(&*joined.protocol_type)),
        protocol_name: Some(Text::from(&*joined.protocol)),
        leader: Text::from(&*joined.leader),
        skip_assignment: joined.skip_assignment,
        member_id: Text::from(&*joined.member),
        members: members.collect(),
        ..Default::default()
    }
}

pub(crate) fn join_refused(code: ErrorCode, member: &str) -> JoinGroupResponse {
    JoinGroupResponse { error_code: code.into(), member_id: Text::from(member), ..Default::default() }
}

fn sync_response(assigned: Assigned) -> SyncGroupResponse {
    SyncGroupResponse {
        protocol_type: Some(Text::from(&*assigned.protocol_type)),
        protocol_name: Some(Text::from(&*assigned.protocol)),
        assignment: wire_bytes(&assigned.assignment),
        ..Default::default()
    }
}

pub(crate) fn sync_refused(code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: code.into(), ..Default::default() }
}

pub(crate) fn wire_bytes(blob: &Blob) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(blob)
}
