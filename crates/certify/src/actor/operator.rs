//! What operators ask: transactions, producers, markers by hand.

use semel_types::PartitionIndex;
use semel_wire::{
    RawCoordinatorEpoch, RawOffset, WireCode,
    api::{
        delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic},
        describe_producers::{DescribeProducersRequest, DescribeProducersTopic, ProducerDescription},
        describe_transactions::{DescribeTransactionsRequest, TransactionDescription},
        write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest},
    },
};

use super::{Actor, Outcome, Producer, said, wait_for};
use crate::{Answer, Failure, scenario::Kept, session::Place};

/// A marker by hand, as an admin client sends it.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    /// Whose transaction.
    pub producer: &'a Producer,
    /// How it ends.
    pub outcome: Outcome,
    /// Coordinator epoch in the request.
    pub coordinator_epoch: i32,
}

impl Actor {
    /// DescribeTransactions of one id.
    pub fn describe(&mut self, id: &str) -> Answer<TransactionDescription> {
        let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
        let answer = self.ask(&format!("DescribeTransactions({id})"), &request, 0, |response| {
            response.transaction_states.first().map_or(WireCode(-1), |state| state.error_code)
        });
        answer.map(|mut response| response.transaction_states.pop().unwrap_or_default())
    }

    /// In the end the coordinator says one of these states of an id. What is complete may be called Empty again, as some
    /// brokers do: a promise about the name itself looks at [`Actor::describe`].
    ///
    /// # Errors
    /// It says another one.
    pub fn comes_to(&mut self, id: &str, due: &[&str]) -> Kept<TransactionDescription> {
        let is_due = |seen: &TransactionDescription| {
            let state = seen.transaction_state.as_str();
            let is_over = due.iter().any(|due| due.starts_with("Complete"));
            due.contains(&state) || (is_over && state == "Empty")
        };
        let seen = wait_for(|| self.describe(id).is(0), is_due)?;
        if is_due(&seen) {
            return Ok(seen);
        }
        let state = seen.transaction_state.as_str().to_owned();
        Err(Failure::broken(format!("DescribeTransactions({id})"), state, due.join(" or ")))
    }

    /// DeleteRecords of one partition up to an offset; gives the new start of the log.
    pub fn delete_records(&mut self, place: &Place, offset: i64) -> Answer<i64> {
        let partition_index = PartitionIndex::new(place.index);
        let partitions = vec![DeleteRecordsPartition { partition_index, offset: RawOffset(offset) }];
        let topics = vec![DeleteRecordsTopic { name: place.topic.as_str().into(), partitions }];
        let request = DeleteRecordsRequest { topics, timeout_ms: 10_000 };
        let answer =
            self.ask(&format!("DeleteRecords {} to {offset}", said(&[place])), &request, 1, |response| {
                let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
                partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
            });
        answer.map(|response| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(-1, |partition| partition.low_watermark.get())
        })
    }

    /// DescribeProducers of one partition.
    pub fn describe_producers(&mut self, place: &Place) -> Answer<Vec<ProducerDescription>> {
        let partition_indexes = vec![PartitionIndex::new(place.index)];
        let topics = vec![DescribeProducersTopic { name: place.topic.as_str().into(), partition_indexes }];
        let request = DescribeProducersRequest { topics };
        let answer = self.ask(&format!("DescribeProducers {}", said(&[place])), &request, 0, |response| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
        });
        answer.map(|response| {
            let partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
            partitions.flat_map(|partition| partition.active_producers).collect()
        })
    }

    /// WriteTxnMarkers for one partition.
    pub fn write_marker(&mut self, place: &Place, marker: Marker<'_>, version: i16) -> Answer<()> {
        let partition_indexes = vec![PartitionIndex::new(place.index)];
        let topics = vec![WritableTxnMarkerTopic { name: place.topic.as_str().into(), partition_indexes }];
        let written = WritableTxnMarker {
            producer_id: marker.producer.stamp.id.into(),
            producer_epoch: marker.producer.stamp.epoch.into(),
            transaction_result: marker.outcome == Outcome::Commit,
            topics,
            coordinator_epoch: RawCoordinatorEpoch(marker.coordinator_epoch),
            transaction_version: if version >= 2 { 2 } else { 0 },
        };
        let request = WriteTxnMarkersRequest { markers: vec![written] };
        let said = format!(
            "WriteTxnMarkers({:?}, {}, coordinator epoch {}) to {}",
            marker.outcome,
            marker.producer.said(),
            marker.coordinator_epoch,
            said(&[place])
        );
        let answer = self.ask(&said, &request, version, |response| {
            let topics = response.markers.iter().flat_map(|marker| &marker.topics);
            let mut partitions = topics.flat_map(|topic| &topic.partitions);
            partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
        });
        answer.map(|_| ())
    }
}
