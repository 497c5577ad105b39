//! OffsetCommit (key 8), versions 2 to 10.
//!
//! Behaviour: stores offsets of a group; first the member (22, 25, 82, 27 while the group waits for assignments). Without a
//! generation only while the group has no members, whatever member is named, else 25. An unknown topic (3, from 10 on 100), a note that is too
//! long (12) and a negative offset (42) are told for their partition alone. Without room 15. A commit counts as a
//! heartbeat.
//! Version notes: 2 to 4 carry a retention time, which is ignored as in Kafka; 7 names static members; 9 knows 69;
//! 10 names topics by id.

use semel_groups::Member;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    ApiKey,
    api::offset_commit::{
        OffsetCommitPartitionResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopicResponse,
    },
};

use super::answer::{At, group_answer};
use crate::{
    call::Asked,
    common::{no_room_or, room},
    node::{Handled, Step},
    offsets::{Named, Offsets, member},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<OffsetCommitRequest>) -> Handled {
    let request = &asked.body;
    let at = At { api: ApiKey::OffsetCommit, version: asked.version };
    let offsets = collect(step, request, at);
    let full = ErrorCode::CoordinatorNotAvailable;
    if let Err(no_room) = room(step, offsets.bytes(), RoomClass::Identity, full) {
        return no_room_or(no_room, |code| respond(request, &offsets, code));
    }
    let instance = request.group_instance_id.as_deref();
    let member = Member {
        knows_epochs: asked.version >= 9,
        ..member(request.generation_id_or_member_epoch, &request.member_id, instance)
    };
    let (group, now) = (GroupId::new(&request.group_id), step.context.now);
    let decided = step.state().groups.commit(step.groups(), &group, member, offsets.good.clone(), now);
    let outcome = match decided {
        Ok((event, alive)) => {
            step.note_alive(alive);
            if !offsets.good.is_empty() {
                step.apply(event);
            }
            ErrorCode::None
        }
        Err(refusal) => group_answer(refusal, at),
    };
    respond(request, &offsets, outcome)
}

fn collect(step: &Step<'_>, request: &OffsetCommitRequest, at: At) -> Offsets {
    let by_id = at.version >= 10;
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

fn respond(request: &OffsetCommitRequest, offsets: &Offsets, outcome: ErrorCode) -> Handled {
    let mut codes = offsets.codes(outcome);
    let topics = request.topics.iter().map(|topic| OffsetCommitTopicResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: (topic.partitions.iter().zip(&mut codes))
            .map(|(partition, code)| OffsetCommitPartitionResponse {
                partition_index: partition.partition_index,
                error_code: code.into(),
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }.into()
}
