//! Reading back: raw batches, and what a read_committed consumer would deliver.

use std::collections::BTreeSet;

use bytes::Bytes;
use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, Text,
    api::fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopic},
    batch::{Batch, Marker, MarkerKind, split},
};

use super::{Broker, Place};

/// What stands at an offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A record with this value.
    Record(i64, String),
    /// A COMMIT marker.
    Commit(i64),
    /// An ABORT marker.
    Abort(i64),
}

/// A Fetch of one partition, version 12.
pub fn fetch_request(place: Place<'_>, offset: i64, isolation: i8, max_bytes: i32) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        isolation_level: isolation,
        topics: vec![FetchTopic {
            topic: Text::from(place.0),
            partitions: vec![FetchPartition {
                partition: PartitionIndex::new(place.1),
                fetch_offset: RawOffset(offset),
                partition_max_bytes: max_bytes,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The batches of an answer.
pub fn batches(response: &FetchPartitionResponse) -> Vec<Batch> {
    let bytes = response.records.as_ref().map(semel_wire::Records::to_bytes).unwrap_or_default();
    split(bytes).map(|batch| batch.expect("answers hold whole batches")).collect()
}

/// What a batch holds.
pub fn entries(batch: &Batch) -> Vec<Entry> {
    match Marker::parse(batch).expect("markers are well formed") {
        Some(marker) => {
            let offset = batch.base_offset().get();
            vec![match marker.kind {
                MarkerKind::Commit => Entry::Commit(offset),
                MarkerKind::Abort => Entry::Abort(offset),
            }]
        }
        None => records(batch).into_iter().map(|(offset, value)| Entry::Record(offset, value)).collect(),
    }
}

fn records(batch: &Batch) -> Vec<(i64, String)> {
    let text = |bytes: Option<Bytes>| String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap();
    let records = batch.records().unwrap().map(Result::unwrap);
    records.map(|record| (record.offset.get(), text(record.value))).collect()
}

impl Broker {
    /// Fetch of one partition.
    pub fn fetch(&mut self, place: Place<'_>, offset: i64, isolation: i8) -> FetchPartitionResponse {
        self.fetch_at_most(place, offset, isolation, 50 << 20)
    }

    /// The same with a bound.
    pub fn fetch_at_most(
        &mut self,
        place: Place<'_>,
        offset: i64,
        isolation: i8,
        max_bytes: i32,
    ) -> FetchPartitionResponse {
        let on = self.connect();
        let request = fetch_request(place, offset, isolation, max_bytes);
        let response: FetchResponse = self.ask(on, 12, &request).answer();
        assert_eq!(response.error_code.get(), 0);
        response.responses[0].partitions[0].clone()
    }

    /// Every entry from the start to the high watermark.
    pub fn dump(&mut self, place: Place<'_>) -> Vec<Entry> {
        let mut all = Vec::new();
        let mut next = 0;
        loop {
            let response = self.fetch(place, next, 0);
            assert_eq!(response.error_code.get(), 0);
            let batches = batches(&response);
            let Some(last) = batches.last() else { return all };
            next = last.last_offset().get() + 1;
            all.extend(batches.iter().flat_map(entries));
        }
    }

    /// Values of the dump's records.
    pub fn values(&mut self, place: Place<'_>) -> Vec<String> {
        let entries = self.dump(place).into_iter();
        let value = |entry| match entry {
            Entry::Record(_, value) => Some(value),
            Entry::Commit(_) | Entry::Abort(_) => None,
        };
        entries.filter_map(value).collect()
    }

    /// Offset and value of what a read_committed consumer delivers from `offset` on: the algorithm of the Java
    /// client, driven by the aborted lists of the answers.
    pub fn committed_from(&mut self, place: Place<'_>, offset: i64, max_bytes: i32) -> Vec<(i64, String)> {
        let mut delivered = Vec::new();
        let mut next = offset;
        loop {
            let response = self.fetch_at_most(place, next, 1, max_bytes);
            assert_eq!(response.error_code.get(), 0);
            let batches = batches(&response);
            if batches.is_empty() {
                assert!(next >= response.last_stable_offset.get(), "a reader is stuck at {next}");
                return delivered;
            }
            deliver(&response, &batches, &mut next, &mut delivered);
        }
    }

    /// What read_committed delivers from the start, values only.
    pub fn committed(&mut self, place: Place<'_>) -> Vec<String> {
        self.committed_from(place, 0, 50 << 20).into_iter().map(|(_, value)| value).collect()
    }
}

fn deliver(
    response: &FetchPartitionResponse,
    batches: &[Batch],
    next: &mut i64,
    delivered: &mut Vec<(i64, String)>,
) {
    let listed = response.aborted_transactions.as_deref().expect("level 1 has a list");
    let mut waiting: Vec<_> =
        listed.iter().map(|entry| (entry.first_offset.get(), entry.producer_id.get())).collect();
    waiting.sort_unstable();
    waiting.reverse();
    let mut aborted = BTreeSet::new();
    for batch in batches {
        while let Some((first, producer)) = waiting.last().copied() {
            if first > batch.last_offset().get() {
                break;
            }
            aborted.insert(producer);
            waiting.pop();
        }
        let producer = batch.raw_producer_id().get();
        match Marker::parse(batch).unwrap() {
            Some(marker) => {
                if marker.kind == MarkerKind::Abort {
                    aborted.remove(&producer);
                }
            }
            None if batch.attributes().is_transactional() && aborted.contains(&producer) => {}
            None => delivered.extend(records(batch).into_iter().filter(|(offset, _)| offset >= next)),
        }
        *next = batch.last_offset().get() + 1;
    }
}
