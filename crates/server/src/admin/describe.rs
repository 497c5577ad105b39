//! The state as JSON: field names and units are those of `docs/admin-api.yaml`.

use std::sync::Arc;

use semel_broker::{State, catalog::Catalog};
use semel_eos::{
    PartitionState, Refused, RefusedRequest,
    txn::{Aborted, Fence, FenceCause, OpenTransaction, Phase, TransactionalIdEntry},
};
use semel_events::{Author, EndCause, Outcome, Protocol};
use semel_types::{
    Offset, PartitionHandle, PartitionIndex, ProducerId, ProducerStamp, TransactionalId, WallTime,
};
use serde_json::{Value, json};

use super::{reply::Failure, route::FenceFilter, story};
use crate::node_thread::Inspected;

/// Holders of a last stable offset that one answer names.
const HOLDERS_MAX: usize = 100;

/// A partition as people write it; its topic may be gone.
pub fn place(catalog: &Catalog, handle: PartitionHandle) -> String {
    match catalog.locate(handle) {
        Some((topic, index)) => format!("{}-{index}", topic.name()),
        None => format!("{handle} of a deleted topic"),
    }
}

/// The same as JSON; null for a topic that is gone.
pub fn place_json(catalog: &Catalog, handle: PartitionHandle) -> Value {
    let located = catalog.locate(handle);
    let topic = located.map(|(topic, _)| topic.name().as_str());
    json!({ "topic": topic, "partition": located.map(|(_, index)| index.get()) })
}

fn stamp(stamp: ProducerStamp) -> Value {
    json!({ "producer_id": stamp.id.get(), "epoch": stamp.epoch.get() })
}

fn author(author: &Author) -> Value {
    json!({
        "client_id": &*author.client_id, "software": &*author.software,
        "address": &*author.address, "api": author.api,
    })
}

fn cause(cause: FenceCause) -> &'static str {
    match cause {
        FenceCause::Takeover => "takeover",
        FenceCause::Recovery => "recovery",
        FenceCause::Rotation => "rotation",
        FenceCause::Timeout => "timeout",
        FenceCause::Admin => "admin",
        FenceCause::UncleanStart => "unclean_start",
        FenceCause::Expiry => "expiry",
    }
}

fn fence(catalog: &Catalog, number: u64, fence: &Fence) -> Value {
    json!({
        "number": number,
        "transactional_id": fence.id.as_str(),
        "cause": cause(fence.cause),
        "at": fence.wall.to_string(),
        "at_ms": fence.wall.as_ms(),
        "victim": stamp(fence.victim),
        "victim_client": author(&fence.owner),
        "successor": fence.successor.map(stamp),
        "author": fence.author.as_ref().map(author),
        "aborted": fence.aborted.as_ref().map(|aborted| self::aborted(catalog, aborted)),
        "text": fence.to_string(),
    })
}

fn aborted(catalog: &Catalog, aborted: &Aborted) -> Value {
    let written = &aborted.written;
    let partitions: Vec<_> = written.partitions.iter().map(|one| place_json(catalog, *one)).collect();
    json!({
        "transaction": aborted.number.get(),
        "age_ms": aborted.age.as_ms(),
        "partitions": partitions,
        "partition_count": written.partition_count,
        "group_count": written.group_count,
    })
}

/// The newest fences that pass the filter, the oldest first.
pub fn fences(seen: &Inspected, filter: &FenceFilter) -> Vec<Value> {
    let state = &seen.inspection.state;
    let log = state.eos.transactions().fences();
    let of_id = filter.id.iter().flat_map(|id| log.numbered_of(id));
    let all = filter.id.is_none().then(|| log.after(filter.after)).into_iter().flatten();
    let passes = |number: u64, fence: &Arc<Fence>| {
        number > filter.after && filter.since_ms.is_none_or(|since_ms| fence.wall.as_ms() >= since_ms)
    };
    let found: Vec<_> = of_id.chain(all).filter(|(number, fence)| passes(*number, fence)).collect();
    let newest = found.len().saturating_sub(filter.limit);
    found[newest..].iter().map(|(number, one)| fence(&state.catalog, *number, one)).collect()
}

fn refused_request(seen: &Inspected, request: &RefusedRequest) -> Value {
    json!({
        "at": seen.wall(request.now).to_string(),
        "connection": request.connection.get(),
        "by": request.by.as_ref().map(author),
        "reason": request.refusal.to_string(),
    })
}

fn refused_of(seen: &Inspected, id: &TransactionalId, refused: &Refused) -> Value {
    let last: Vec<_> = refused.last.iter().map(|request| refused_request(seen, request)).collect();
    json!({ "transactional_id": id.as_str(), "count": refused.count, "last": last })
}

/// What was refused since the start, of one id or of each.
pub fn refused(seen: &Inspected, id: Option<&TransactionalId>, limit: usize) -> Result<Value, Failure> {
    let all = &seen.inspection.refused;
    let found: Vec<_> = match id {
        Some(id) => all.get(id).map(|refused| refused_of(seen, id, refused)).into_iter().collect(),
        None => all.iter().take(limit).map(|(id, refused)| refused_of(seen, id, refused)).collect(),
    };
    Ok(json!({ "refused": found, "ids": all.size() }))
}

/// Everything about one transactional id, its story last.
pub fn transaction(seen: &Inspected, id: &TransactionalId) -> Result<Value, Failure> {
    let state = &seen.inspection.state;
    let transactions = state.eos.transactions();
    let entry = transactions.get(id);
    let log = transactions.fences();
    if entry.is_none() && log.len_of(id) == 0 {
        let message = format!("transactional id {id:?} is unknown here: never initialized, or forgotten");
        return Err(Failure::not_found(message));
    }
    let fences: Vec<_> =
        log.numbered_of(id).map(|(number, one)| fence(&state.catalog, number, one)).collect();
    let refused = seen.inspection.refused.get(id);
    let story: Vec<_> = story::tell(seen, id)
        .into_iter()
        .map(|sentence| json!({ "at": sentence.at.to_string(), "text": sentence.text }))
        .collect();
    Ok(json!({
        "transactional_id": id.as_str(),
        "state": entry.map_or("Forgotten", |entry| entry.state().name()),
        "identity": entry.map(|entry| stamp(entry.identity)),
        "timeout_ms": entry.map(|entry| entry.timeout.as_ms()),
        "client": entry.map(|entry| author(&entry.owner)),
        "client_since": entry.map(|entry| entry.owned_since.to_string()),
        "updated": entry.map(|entry| seen.wall(entry.updated).to_string()),
        "last_transaction": entry.map(|entry| entry.last_number.get()),
        "open": entry.and_then(|entry| open(seen, entry)),
        "last_end": entry.and_then(|entry| last_end(&entry.phase, seen.wall(entry.updated))),
        "fences": fences,
        "refused": refused.map(|refused| refused_of(seen, id, refused)),
        "story": story,
    }))
}

fn open(seen: &Inspected, entry: &TransactionalIdEntry) -> Option<Value> {
    let state = &seen.inspection.state;
    let open = entry.open()?;
    let partitions: Vec<_> = open
        .partitions
        .as_slice()
        .iter()
        .map(|handle| {
            let mut place = place_json(&state.catalog, *handle);
            place["first_offset"] = first_offset(state, *handle, entry.identity.id).map(Offset::get).into();
            place
        })
        .collect();
    let groups: Vec<_> = open.groups.as_slice().iter().map(|group| group.as_str()).collect();
    Some(json!({
        "transaction": open.number.get(),
        "started": seen.wall(open.started).to_string(),
        "age_ms": seen.now.since(open.started).as_ms(),
        "ends_at": seen.wall(open.started.plus(entry.timeout)).to_string(),
        "protocol": protocol(open),
        "partitions": partitions,
        "groups": groups,
    }))
}

const fn protocol(open: &OpenTransaction) -> &'static str {
    match open.protocol {
        Protocol::Classic => "classic",
        Protocol::Version2 => "version 2",
    }
}

/// Where a producer's open transaction starts in a partition; `None` if it wrote nothing there.
pub fn first_offset(state: &State, partition: PartitionHandle, producer: ProducerId) -> Option<Offset> {
    state.eos.partition(partition)?.open_transaction(producer)
}

fn last_end(phase: &Phase, at: WallTime) -> Option<Value> {
    match phase {
        Phase::Empty | Phase::Ongoing(_) => None,
        Phase::Complete { outcome, cause } => Some(
            json!({ "outcome": outcome_name(*outcome), "cause": end_cause(*cause), "at": at.to_string() }),
        ),
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Abort => "abort",
        Outcome::Commit => "commit",
    }
}

fn end_cause(cause: EndCause) -> &'static str {
    match cause {
        EndCause::EndTxn => "producer",
        EndCause::Takeover => "takeover",
        EndCause::Recovery => "recovery",
        EndCause::Timeout => "timeout",
        EndCause::Admin => "admin",
        EndCause::UncleanStart => "unclean_start",
    }
}

/// What holds the last stable offset of a partition, the oldest first.
pub fn stability(
    seen: &Inspected,
    topic: &str,
    partition: PartitionIndex,
    bootstrap: &str,
) -> Result<Value, Failure> {
    let state = &seen.inspection.state;
    let found = state
        .catalog
        .topic(topic)
        .ok_or_else(|| Failure::not_found(format!("there is no topic {topic:?}")))?;
    let numbers = found.partition(partition).and_then(|handle| state.eos.partition(handle));
    let numbers =
        numbers.ok_or_else(|| Failure::not_found(format!("topic {topic:?} has no partition {partition}")))?;
    let all: Vec<_> = numbers.open_transactions().collect();
    let holders: Vec<_> = all
        .iter()
        .take(HOLDERS_MAX)
        .map(|(first, producer)| holder(seen, *first, *producer, bootstrap))
        .collect();
    Ok(json!({
        "topic": topic,
        "partition": partition.get(),
        "log_start_offset": numbers.log_start().get(),
        "last_stable_offset": numbers.last_stable_offset().get(),
        "high_watermark": numbers.next_offset().get(),
        "records_held": held(numbers),
        "open_transactions": all.len(),
        "held_by": holders,
    }))
}

fn held(numbers: &PartitionState) -> u64 {
    numbers.next_offset().since(numbers.last_stable_offset())
}

/// One open transaction: whose it is and the command that ends it.
fn holder(seen: &Inspected, first: Offset, producer: ProducerId, bootstrap: &str) -> Value {
    let eos = &seen.inspection.state.eos;
    let owner = eos.producers().owned(producer).map(|slot| slot.owner.clone());
    let entry = owner.as_ref().and_then(|id| eos.transactions().get(id));
    let open = entry.and_then(TransactionalIdEntry::open);
    let command = owner.as_ref().map(|id| ["semel", "txn", "abort", id.as_str(), "--bootstrap", bootstrap]);
    json!({
        "transactional_id": owner.as_ref().map(TransactionalId::as_str),
        "identity": entry.map(|entry| stamp(entry.identity)),
        "first_offset": first.get(),
        "client": entry.map(|entry| author(&entry.owner)),
        "transaction": open.map(|open| open.number.get()),
        "since": open.map(|open| seen.wall(open.started).to_string()),
        "age_ms": open.map(|open| seen.now.since(open.started).as_ms()),
        "ends_at": entry.and_then(TransactionalIdEntry::deadline).map(|deadline| seen.wall(deadline).to_string()),
        "command": command,
    })
}
