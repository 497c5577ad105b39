//! `semel txn abort`: ends the open transaction of an id, at the coordinator and in its partitions together.
//!
//! One WriteTxnMarkers that names the identity: Semel's coordinator then aborts the whole transaction with an epoch
//! bump, and the producer learns of it by its next request. Offsets of groups are named as they are described: by the
//! partition of `__consumer_offsets` that Kafka would keep the group in.

use clap::Args;
use semel_types::PartitionIndex;
use semel_wire::{
    RawCoordinatorEpoch, WireCode,
    api::{
        describe_transactions::TransactionDescription,
        write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest},
    },
};
use serde_json::json;

use super::describe::{described, partitions};
use crate::{
    cli::ask::{AskError, Bootstrap, Said, kafka::Kafka},
    units,
};

/// Abort the open transaction of an id, at the coordinator and in all its partitions.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel txn abort orders
  semel txn abort orders --bootstrap broker.example:9092

Its producer is fenced: its next request is refused, and clients that can recover do. With nothing open nothing is
done. It asks in Kafka's protocol (DescribeTransactions, WriteTxnMarkers).

Exit status: 0 aborted, or nothing was open; 1 failed; 2 wrong usage; 3 no such id; 4 nobody answers at the address.")]
pub struct Abort {
    /// The transactional id.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version of WriteTxnMarkers.
const MARKERS: i16 = 1;

/// The topic by which a group's offsets stand in a description.
const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Asks.
pub fn ask(abort: &Abort) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&abort.bootstrap.bootstrap)?;
    let found = described(&mut kafka, &abort.id)?;
    let state = found.transaction_state.as_str();
    if state != "Ongoing" {
        let json = json!({ "transactional_id": abort.id, "aborted": false, "state": state });
        return Ok(Said::new(json, vec![format!("Nothing to abort: {:?} is {state}.", abort.id)]));
    }
    let places: Vec<_> = partitions(&found).filter(|(topic, _)| *topic != OFFSETS_TOPIC).collect();
    mark(&mut kafka, &found)?;
    let (producer, epoch) = (found.producer_id.get(), found.producer_epoch.get());
    let after = described(&mut kafka, &abort.id)?;
    let still_open = after.transaction_state.as_str() == "Ongoing"
        && (after.producer_id.get(), after.producer_epoch.get()) == (producer, epoch);
    if still_open {
        return Err(AskError::Refused(format!("the transaction of {:?} is still open", abort.id)));
    }
    let json = json!({
        "transactional_id": abort.id, "aborted": true, "state": after.transaction_state.as_str(),
        "producer_id": producer, "epoch": epoch, "partitions": places.len(),
    });
    let line = format!(
        "Aborted the transaction of {:?}: producer {producer} epoch {epoch} is fenced, {} released.",
        abort.id,
        units::count(places.len() as u64, "partition")
    );
    Ok(Said::new(json, vec![line]))
}

/// Aborts by a marker for every partition.
fn mark(kafka: &mut Kafka, found: &TransactionDescription) -> Result<(), AskError> {
    let topics = found.topics.iter().map(|topic| WritableTxnMarkerTopic {
        name: topic.topic.clone(),
        partition_indexes: topic.partitions.iter().map(|index| PartitionIndex::new(index.get())).collect(),
    });
    let marker = WritableTxnMarker {
        producer_id: found.producer_id,
        producer_epoch: found.producer_epoch,
        transaction_result: false,
        topics: topics.collect(),
        coordinator_epoch: RawCoordinatorEpoch(0),
        ..Default::default()
    };
    let answer = kafka.call(&WriteTxnMarkersRequest { markers: vec![marker] }, MARKERS)?;
    let results = answer.markers.iter().flat_map(|marker| &marker.topics).flat_map(|topic| &topic.partitions);
    results.map(|result| result.error_code).try_for_each(|code| check("WriteTxnMarkers", code))
}

fn check(what: &str, code: WireCode) -> Result<(), AskError> {
    if code.is_error() { Err(AskError::code(what, code)) } else { Ok(()) }
}
