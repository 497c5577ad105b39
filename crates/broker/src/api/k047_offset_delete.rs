//! OffsetDelete (key 47), version 0.
//!
//! Behaviour: forgets committed offsets. A group that does not exist is 69; one with members that are no consumers 68.
//! By partition: an unknown one is 3, one of a topic that a member reads 86, one for which an undecided transaction
//! carries an offset 88. No room is 15.

use semel_events::OffsetsDeleted;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId, PartitionHandle};
use semel_wire::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use super::answer::group_code;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, find, no_room_or, room},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<OffsetDeleteRequest>) -> Handled {
    let request = &asked.body;
    let partitions: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let bytes = COORDINATOR_BYTES + 16 * partitions as u64;
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, ErrorCode::CoordinatorNotAvailable) {
        return no_room_or(no_room, refused);
    }
    let group = GroupId::new(&request.group_id);
    if let Err(refusal) = step.state().groups.check_offset_delete(step.groups(), &group) {
        return refused(group_code(refusal));
    }
    let mut good = Vec::new();
    let topics = request.topics.iter().map(|topic| judge(step, &group, topic, &mut good)).collect();
    if !good.is_empty() {
        let now = step.context.now;
        step.apply(OffsetsDeleted { group, partitions: good, now }.into());
    }
    OffsetDeleteResponse { topics, ..Default::default() }.into()
}

fn judge(
    step: &Step<'_>,
    group: &GroupId,
    topic: &OffsetDeleteRequestTopic,
    good: &mut Vec<PartitionHandle>,
) -> OffsetDeleteResponseTopic {
    let (groups, volatile) = (&step.state().groups, step.groups());
    let mut code = |index| {
        let Some(handle) = find(&step.state().catalog, &topic.name, index) else {
            return ErrorCode::UnknownTopicOrPartition;
        };
        match groups.check_offset_of(volatile, group, &topic.name, handle) {
            Ok(()) => {
                good.push(handle);
                ErrorCode::None
            }
            Err(refusal) => group_code(refusal),
        }
    };
    let partitions = topic.partitions.iter().map(|partition| OffsetDeleteResponsePartition {
        partition_index: partition.partition_index,
        error_code: code(partition.partition_index).into(),
    });
    let partitions = partitions.collect();
    OffsetDeleteResponseTopic { name: topic.name.clone(), partitions }
}

fn refused(code: ErrorCode) -> Handled {
    OffsetDeleteResponse { error_code: code.into(), ..Default::default() }.into()
}
