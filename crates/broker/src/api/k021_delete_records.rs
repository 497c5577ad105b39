//! DeleteRecords (key 21), versions 0 to 2.
//!
//! Behaviour: moves the start of each partition up to an offset; -1 is the high watermark. A partition that does not
//! exist is 3, an offset past the high watermark or below -1 is 1, a topic whose `cleanup.policy` lacks `delete` 44. An
//! offset below the present start changes nothing and is answered with the start. One event for the whole request, and
//! what is known of producers and open transactions stays: a retry of a record that is gone is still recognised. The
//! timeout is ignored: when the answer comes, it is done. It draws on the reserve, so that a full disk can be emptied.
//! Without room 56. Files in which nothing lives any more are used again.

use std::collections::BTreeMap;

use semel_events::{LogStart, RecordsDeleted};
use semel_log::RoomClass;
use semel_types::{
    ErrorCode, Offset, PartitionHandle,
    mutation::{Mutation, mutated},
};
use semel_wire::{
    RawOffset,
    api::delete_records::{
        DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse,
        DeleteRecordsTopic, DeleteRecordsTopicResult,
    },
};

use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, no_room_or, room},
    node::{Handled, Step},
    settings::topic::is_deleted,
};

/// Where partitions are to start: by partition, so that one named twice moves once, as far as asked.
type Starts = BTreeMap<PartitionHandle, Offset>;

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<DeleteRecordsRequest>) -> Handled {
    let request = &asked.body;
    let partitions: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let bytes = COORDINATOR_BYTES + 16 * partitions as u64;
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, ErrorCode::KafkaStorageError) {
        return no_room_or(no_room, |code| respond(request, |_, _| Err(code)));
    }
    let mut starts = Starts::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            if let Ok((handle, offset)) = judge(step, topic, partition) {
                let start = starts.entry(handle).or_default();
                *start = offset.max(*start);
            }
        }
    }
    starts.retain(|handle, offset| *offset > log_start(step, *handle));
    let response = respond(request, |topic, partition| {
        let (handle, _) = judge(step, topic, partition)?;
        Ok(starts.get(&handle).copied().unwrap_or_else(|| log_start(step, handle)))
    });
    if !starts.is_empty() && !mutated(Mutation::RecordsNotDeleted) {
        let starts = starts.into_iter().map(|(partition, offset)| LogStart { partition, offset }).collect();
        step.apply(RecordsDeleted { starts, now: step.context.now }.into());
    }
    response
}

fn log_start(step: &Step<'_>, handle: PartitionHandle) -> Offset {
    step.state().eos.partition(handle).map(semel_eos::PartitionState::log_start).unwrap_or_default()
}

/// The partition and where it is to start.
fn judge(
    step: &Step<'_>,
    topic: &DeleteRecordsTopic,
    partition: &DeleteRecordsPartition,
) -> Result<(PartitionHandle, Offset), ErrorCode> {
    let found = step.state().catalog.topic(&topic.name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let handle = found.partition(partition.partition_index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let end = step.state().eos.partition(handle).ok_or(ErrorCode::UnknownTopicOrPartition)?.next_offset();
    if !is_deleted(found.settings(), step.settings) {
        return Err(ErrorCode::PolicyViolation);
    }
    match partition.offset {
        RawOffset::NONE => Ok((handle, end)),
        asked => {
            let asked = asked.known().filter(|offset| *offset <= end);
            Ok((handle, asked.ok_or(ErrorCode::OffsetOutOfRange)?))
        }
    }
}

fn respond(
    request: &DeleteRecordsRequest,
    outcome: impl Fn(&DeleteRecordsTopic, &DeleteRecordsPartition) -> Result<Offset, ErrorCode>,
) -> Handled {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let outcome = outcome(topic, partition);
            DeleteRecordsPartitionResult {
                partition_index: partition.partition_index,
                low_watermark: outcome.map_or(RawOffset::NONE, RawOffset::from),
                error_code: outcome.err().unwrap_or(ErrorCode::None).into(),
            }
        });
        DeleteRecordsTopicResult { name: topic.name.clone(), partitions: partitions.collect() }
    });
    DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }.into()
}
