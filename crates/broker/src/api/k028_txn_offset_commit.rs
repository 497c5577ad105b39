//! TxnOffsetCommit (key 28), versions 0 to 6.
//!
//! Behaviour: offsets that become visible when the transaction commits. First the identity (47 at every version), then
//! the group (22, 25, 82, 69), and only if both agree is anything added: version 5 refused by the group adds nothing to the
//! transaction. An unknown topic (3, from 6 on 100), a note that is too long (12) and a negative offset (42) are told
//! for their partition alone. An empty group id is 24, an empty transactional id 42.
//! Version notes: 3 names the member (KIP-447); 4 knows 120; 5 adds the group by itself (KIP-890 part 2); 6 names
//! topics by id and knows 69.

use semel_eos::txn::Command;
use semel_events::Protocol;
use semel_groups::Member;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    ApiKey,
    api::txn_offset_commit::{
        TxnOffsetCommitPartitionResponse, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
        TxnOffsetCommitTopicResponse,
    },
};

use super::answer::At;
use crate::{
    call::Asked,
    common::{Denied, claimed, no_room_or, room, transactional_id},
    node::{Handled, Step},
    offsets::{Named, Offsets, member},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<TxnOffsetCommitRequest>) -> Handled {
    let at = At { api: ApiKey::TxnOffsetCommit, version: asked.version };
    let offsets = collect(step, &asked.body, at);
    let full = ErrorCode::CoordinatorNotAvailable;
    if let Err(no_room) = room(step, offsets.bytes(), RoomClass::Identity, full) {
        return no_room_or(no_room, |code| respond(&asked.body, &offsets, code));
    }
    if offsets.good.is_empty() {
        return respond(&asked.body, &offsets, ErrorCode::None);
    }
    let outcome = match decide(step, &asked.body, at, &offsets) {
        Ok(()) => Some(ErrorCode::None),
        Err(denied) => denied.code(at),
    };
    outcome.map_or(Handled::Close, |code| respond(&asked.body, &offsets, code))
}

fn decide(
    step: &mut Step<'_>,
    request: &TxnOffsetCommitRequest,
    at: At,
    offsets: &Offsets,
) -> Result<(), Denied> {
    let id = transactional_id(&request.transactional_id)?;
    if request.group_id.is_empty() {
        return Err(Denied::Code(ErrorCode::InvalidGroupId));
    }
    let group = GroupId::new(&request.group_id);
    let member = claims(request, at);
    let command = Command::TxnOffsetCommit {
        id,
        stamp: claimed(request.producer_id, request.producer_epoch, at)?,
        group: group.clone(),
        offsets: offsets.good.clone(),
        protocol: if at.version >= 5 { Protocol::Version2 } else { Protocol::Classic },
    };
    let agreed = |refusal| Denied::Group(refusal);
    let (now, mut alive) = (step.context.now, None);
    step.decide_if_group::<Denied>(command, |state, volatile| {
        let partitions = offsets.good.iter().map(|offset| offset.partition);
        let checked = state.groups.check_commit(volatile, (&group, member), partitions, now);
        alive = checked.map_err(agreed)?;
        Ok(())
    })?;
    step.note_alive(alive);
    Ok(())
}

/// Versions below 3 do not name a member and are taken as from outside of the group.
fn claims(request: &TxnOffsetCommitRequest, at: At) -> Member<'_> {
    if at.version < 3 {
        return Member { transactional: true, ..Member::NONE };
    }
    let instance = request.group_instance_id.as_deref();
    let member = member(request.generation_id_or_member_epoch, &request.member_id, instance);
    Member { transactional: true, ..member }
}

fn collect(step: &Step<'_>, request: &TxnOffsetCommitRequest, at: At) -> Offsets {
    let by_id = at.version >= 6;
    let named = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(move |partition| Named {
            name: &topic.name,
            id: by_id.then_some(topic.topic_id),
            index: partition.partition_index,
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.as_deref().unwrap_or_default(),
        })
    });
    Offsets::collect(step, named)
}

fn respond(request: &TxnOffsetCommitRequest, offsets: &Offsets, outcome: ErrorCode) -> Handled {
    let mut codes = offsets.codes(outcome);
    let topics = request.topics.iter().map(|topic| TxnOffsetCommitTopicResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: (topic.partitions.iter().zip(&mut codes))
            .map(|(partition, code)| TxnOffsetCommitPartitionResponse {
                partition_index: partition.partition_index,
                error_code: code.into(),
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }.into()
}
