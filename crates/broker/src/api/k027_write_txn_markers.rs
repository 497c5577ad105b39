//! WriteTxnMarkers (key 27), versions 1 and 2.
//!
//! Behaviour: here only administrators send it (KIP-664); the broker's own markers are part of one event. For an owned
//! producer id an *abort* makes the coordinator abort the whole transaction with an epoch bump, a *commit* is refused
//! (48), an epoch that is not current is 47, and with nothing open the answer is 0. The coordinator epoch that the
//! request carries is never stored. A partition that does not exist is 3; the partitions of `__consumer_offsets` that
//! DescribeTransactions names stand for the groups whose offsets the transaction carries.
//! Version notes: 2 carries the transaction version (KIP-1228), which changes nothing: the coordinator knows it.
//! Unlike Kafka: no single partition can be ended by itself, so that a transaction is never torn (stricter S8, S9).

use semel_eos::txn::Command;
use semel_events::Outcome;
use semel_log::RoomClass;
use semel_types::{ErrorCode, GroupId, PartitionIndex, ProducerStamp};
use semel_wire::{
    ApiKey,
    api::write_txn_markers::{
        WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult,
        WritableTxnMarkerTopicResult, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
    },
};

use super::answer::At;
use crate::{
    call::Asked,
    common::{COORDINATOR_BYTES, Denied, claimed, find, no_room_or, room},
    node::{Handled, Step},
    offsets_topic,
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<WriteTxnMarkersRequest>) -> Handled {
    let at = At { api: ApiKey::WriteTxnMarkers, version: asked.version };
    let bytes = COORDINATOR_BYTES * (1 + asked.body.markers.len() as u64) + (2 << 20);
    let full = ErrorCode::NotLeaderOrFollower;
    if let Err(no_room) = room(step, bytes, RoomClass::Reserve, full) {
        return no_room_or(no_room, |code| {
            let markers = asked.body.markers.iter().map(|marker| result(step, marker, code)).collect();
            WriteTxnMarkersResponse { markers }.into()
        });
    }
    let mut markers = Vec::with_capacity(asked.body.markers.len());
    for marker in &asked.body.markers {
        let code = match decide(step, marker, at) {
            Ok(()) => ErrorCode::None,
            Err(denied) => match denied.code(at) {
                Some(code) => code,
                None => return Handled::Close,
            },
        };
        markers.push(result(step, marker, code));
    }
    WriteTxnMarkersResponse { markers }.into()
}

fn decide(step: &mut Step<'_>, marker: &WritableTxnMarker, at: At) -> Result<(), Denied> {
    let catalog = &step.state().catalog;
    let stamp = claimed(marker.producer_id, marker.producer_epoch, at)?;
    let command = Command::WriteMarker {
        stamp,
        outcome: if marker.transaction_result { Outcome::Commit } else { Outcome::Abort },
        partitions: named(marker).filter_map(|(topic, index)| find(catalog, topic, index)).collect(),
        groups: groups(step, marker, stamp),
        author: step.client().author(ApiKey::WriteTxnMarkers.spec().name),
    };
    step.decide(command)?;
    Ok(())
}

fn named(marker: &WritableTxnMarker) -> impl Iterator<Item = (&str, PartitionIndex)> {
    marker
        .topics
        .iter()
        .flat_map(|topic| topic.partition_indexes.iter().map(move |index| (topic.name.as_str(), *index)))
}

/// The groups of the open transaction that Kafka would keep in the partitions named.
fn groups(step: &Step<'_>, marker: &WritableTxnMarker, stamp: ProducerStamp) -> Vec<GroupId> {
    let named: Vec<_> = named(marker).filter(|(topic, _)| *topic == offsets_topic::NAME).collect();
    let open = step.state().eos.open_transaction_of(stamp.id).filter(|_| !named.is_empty());
    let groups = open.into_iter().flat_map(|open| open.groups.as_slice());
    let is_named =
        |group: &&GroupId| named.iter().any(|(_, index)| *index == offsets_topic::partition_of(group));
    groups.filter(is_named).cloned().collect()
}

fn result(step: &Step<'_>, marker: &WritableTxnMarker, code: ErrorCode) -> WritableTxnMarkerResult {
    let catalog = &step.state().catalog;
    let topics = marker.topics.iter().map(|topic| WritableTxnMarkerTopicResult {
        name: topic.name.clone(),
        partitions: (topic.partition_indexes.iter())
            .map(|index| {
                let known =
                    find(catalog, &topic.name, *index).is_some() || offsets_topic::has(&topic.name, *index);
                let code = if known { code } else { ErrorCode::UnknownTopicOrPartition };
                WritableTxnMarkerPartitionResult { partition_index: *index, error_code: code.into() }
            })
            .collect(),
    });
    WritableTxnMarkerResult { producer_id: marker.producer_id, topics: topics.collect() }
}
