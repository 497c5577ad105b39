//! AddPartitionsToTxn (key 24), versions 0 to 5.
//!
//! Behaviour: adds partitions to the open transaction, or starts it. If one partition does not exist (3) the others of
//! its transaction are 55 and nothing is added. All partitions of a transaction get the same code.
//! Version notes: 0 to 3 come from clients of the classic protocol; 2 knows 90; 4 and 5 carry several transactions,
//! each perhaps only to be verified (from brokers; nobody needs a right for that while there are no ACLs): a partition
//! outside of the transaction is 120 there.

use semel_eos::txn::Command;
use semel_events::Protocol;
use semel_log::RoomClass;
use semel_types::{ErrorCode, PartitionHandle};
use semel_wire::{
    ApiKey, RawProducerEpoch, RawProducerId, Text, WireCode,
    api::add_partitions_to_txn::{
        AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
        AddPartitionsToTxnResult, AddPartitionsToTxnTopic, AddPartitionsToTxnTopicResult,
        AddPartitionsToTxnTransaction,
    },
};

use super::answer::At;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, Denied, ITEM_BYTES, claimed, find, no_room_or, room, transactional_id},
    node::{Handled, Step},
};

/// One transaction's part of a request.
struct Part<'a> {
    id: &'a Text,
    producer_id: RawProducerId,
    producer_epoch: RawProducerEpoch,
    verify_only: bool,
    topics: &'a [AddPartitionsToTxnTopic],
}

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<AddPartitionsToTxnRequest>) -> Handled {
    let request = &asked.body;
    let at = At { api: ApiKey::AddPartitionsToTxn, version: asked.version };
    let full = ErrorCode::CoordinatorNotAvailable;
    if let Err(no_room) = room(step, worst_case_bytes(request), RoomClass::Identity, full) {
        return no_room_or(no_room, |code| respond_all(request, at, code));
    }
    if at.version < 4 {
        let results = add(step, &classic(request), at);
        return results.map_or(Handled::Close, |results_by_topic| {
            AddPartitionsToTxnResponse { results_by_topic, ..Default::default() }.into()
        });
    }
    let mut results_by_transaction = Vec::with_capacity(request.transactions.len());
    for transaction in &request.transactions {
        let Some(topic_results) = add(step, &batched(transaction), at) else { return Handled::Close };
        let transactional_id = transaction.transactional_id.clone();
        results_by_transaction.push(AddPartitionsToTxnResult { transactional_id, topic_results });
    }
    AddPartitionsToTxnResponse { results_by_transaction, ..Default::default() }.into()
}

fn classic(request: &AddPartitionsToTxnRequest) -> Part<'_> {
    Part {
        id: &request.transactional_id,
        producer_id: request.producer_id,
        producer_epoch: request.producer_epoch,
        verify_only: false,
        topics: &request.topics,
    }
}

fn batched(transaction: &AddPartitionsToTxnTransaction) -> Part<'_> {
    Part {
        id: &transaction.transactional_id,
        producer_id: transaction.producer_id,
        producer_epoch: transaction.producer_epoch,
        verify_only: transaction.verify_only,
        topics: &transaction.topics,
    }
}

fn worst_case_bytes(request: &AddPartitionsToTxnRequest) -> u64 {
    let batched = request.transactions.iter().flat_map(|transaction| &transaction.topics);
    let topics = request.topics.iter().chain(batched);
    let partitions: usize = topics.map(|topic| topic.partitions.len()).sum();
    COORDINATOR_BYTES * (1 + request.transactions.len() as u64) + partitions as u64 * ITEM_BYTES
}

/// `None` if the connection is to be closed.
fn add(step: &mut Step<'_>, part: &Part<'_>, at: At) -> Option<Vec<AddPartitionsToTxnTopicResult>> {
    let outcome = match decide(step, part, at) {
        Ok(()) => ErrorCode::None,
        Err(denied) => denied.code(at)?,
    };
    // Only an unknown partition is told by itself; whatever holds for the transaction holds for all of them.
    let catalog = &step.state().catalog;
    let some_unknown = outcome == ErrorCode::OperationNotAttempted;
    let results = part.topics.iter().map(|topic| {
        topic_result(topic, |index| {
            let unknown = some_unknown && find(catalog, &topic.name, index).is_none();
            if unknown { ErrorCode::UnknownTopicOrPartition } else { outcome }
        })
    });
    Some(results.collect())
}

fn decide(step: &mut Step<'_>, part: &Part<'_>, at: At) -> Result<(), Denied> {
    let id = transactional_id(part.id)?;
    let partitions = partitions(step, part).ok_or(Denied::Code(ErrorCode::OperationNotAttempted))?;
    let stamp = claimed(part.producer_id, part.producer_epoch, at)?;
    let protocol = if at.version >= 4 { Protocol::Version2 } else { Protocol::Classic };
    let verify_only = part.verify_only;
    step.decide(Command::AddPartitions { id, stamp, partitions, verify_only, protocol })?;
    Ok(())
}

/// All partitions named, or `None` if one does not exist.
fn partitions(step: &Step<'_>, part: &Part<'_>) -> Option<Vec<PartitionHandle>> {
    let catalog = &step.state().catalog;
    let named =
        part.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |index| (topic, *index)));
    named.map(|(topic, index)| find(catalog, &topic.name, index)).collect()
}

fn topic_result(
    topic: &AddPartitionsToTxnTopic,
    code: impl Fn(semel_types::PartitionIndex) -> ErrorCode,
) -> AddPartitionsToTxnTopicResult {
    let results = topic.partitions.iter().map(|index| AddPartitionsToTxnPartitionResult {
        partition_index: *index,
        partition_error_code: WireCode::from(code(*index)),
    });
    AddPartitionsToTxnTopicResult { name: topic.name.clone(), results_by_partition: results.collect() }
}

fn respond_all(request: &AddPartitionsToTxnRequest, at: At, code: ErrorCode) -> Handled {
    let all = |topics: &[AddPartitionsToTxnTopic]| -> Vec<_> {
        topics.iter().map(|topic| topic_result(topic, |_| code)).collect()
    };
    if at.version >= 4 {
        return AddPartitionsToTxnResponse { error_code: code.into(), ..Default::default() }.into();
    }
    AddPartitionsToTxnResponse { results_by_topic: all(&request.topics), ..Default::default() }.into()
}
