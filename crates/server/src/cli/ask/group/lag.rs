//! How many records a reader of committed records still gets between two offsets.
//!
//! Markers take offsets and are no records, and neither are records of aborted transactions: only reading tells. So the
//! range is fetched and its batches are counted by their headers, without unpacking them.

use std::collections::BTreeSet;

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, Text,
    api::fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic},
    batch::{Batch, Marker, MarkerKind, split},
};

use crate::cli::ask::{AskError, kafka::Kafka};

/// Version of Fetch: the last that names topics.
const VERSION: i16 = 12;

/// Level read_committed.
const READ_COMMITTED: i8 = 1;

/// Largest answer to ask for.
const MAX_BYTES: i32 = 16 << 20;

/// A range of one partition: from an offset up to the last stable offset.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub from: i64,
    /// The offset after the last.
    pub end: i64,
}

/// Counts the records of a range that a reader of committed records gets.
///
/// # Errors
/// The exchange failed, or the partition cannot be read.
pub fn count(kafka: &mut Kafka, range: Range<'_>) -> Result<u64, AskError> {
    let mut next = range.from;
    let mut records = 0;
    while next < range.end {
        let answer = fetch(kafka, &range, next)?;
        let bytes = answer.records.as_ref().map(semel_wire::Records::to_bytes).unwrap_or_default();
        let mut aborted = Aborted::of(&answer);
        let before = next;
        for batch in split(bytes) {
            let damaged = |error| AskError::Refused(format!("{}-{}: {error}", range.topic, range.partition));
            let batch = batch.map_err(damaged)?;
            if batch.base_offset().get() >= range.end {
                return Ok(records);
            }
            if aborted.delivers(&batch) {
                records += in_range(&batch, next, range.end);
            }
            next = batch.last_offset().get() + 1;
        }
        if next == before {
            return Ok(records);
        }
    }
    Ok(records)
}

/// Records of a batch within the range: offsets in a batch are dense.
fn in_range(batch: &Batch, from: i64, end: i64) -> u64 {
    let (first, last) = (batch.base_offset().get().max(from), batch.last_offset().get().min(end - 1));
    let inside = u64::try_from(last - first + 1).unwrap_or(0);
    inside.min(u64::from(batch.record_count().unsigned_abs()))
}

fn fetch(kafka: &mut Kafka, range: &Range<'_>, from: i64) -> Result<FetchPartitionResponse, AskError> {
    let partition = FetchPartition {
        partition: PartitionIndex::new(range.partition),
        fetch_offset: RawOffset(from),
        partition_max_bytes: MAX_BYTES,
        ..Default::default()
    };
    let topic =
        FetchTopic { topic: Text::from(range.topic), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        min_bytes: 1,
        max_bytes: MAX_BYTES,
        isolation_level: READ_COMMITTED,
        topics: vec![topic],
        ..Default::default()
    };
    let answer = kafka.call(&request, VERSION)?;
    let found = answer.responses.into_iter().flat_map(|topic| topic.partitions).next();
    let found = found.ok_or_else(|| AskError::Refused("Fetch: an empty answer".to_owned()))?;
    if found.error_code.is_error() {
        let what = format!("Fetch of {}-{} at {from}", range.topic, range.partition);
        return Err(AskError::code(&what, found.error_code));
    }
    Ok(found)
}

/// Which transactions of an answer were aborted (upstream `CompletedFetch`).
struct Aborted {
    /// First offset and producer, the last first.
    waiting: Vec<(i64, i64)>,
    now: BTreeSet<i64>,
}

impl Aborted {
    fn of(answer: &FetchPartitionResponse) -> Self {
        let listed = answer.aborted_transactions.as_deref().unwrap_or_default();
        let mut waiting: Vec<_> =
            listed.iter().map(|entry| (entry.first_offset.get(), entry.producer_id.get())).collect();
        waiting.sort_unstable_by(|one, other| other.cmp(one));
        Self { waiting, now: BTreeSet::new() }
    }

    /// Does a reader of committed records get this batch? Batches come in order.
    fn delivers(&mut self, batch: &Batch) -> bool {
        while let Some((_, producer)) = self.waiting.pop_if(|(first, _)| *first <= batch.last_offset().get())
        {
            self.now.insert(producer);
        }
        let producer = batch.raw_producer_id().get();
        if batch.attributes().is_control() {
            let kind = Marker::parse(batch).ok().flatten().map(|marker| marker.kind);
            if kind == Some(MarkerKind::Abort) {
                self.now.remove(&producer);
            }
            return false;
        }
        !(batch.attributes().is_transactional() && self.now.contains(&producer))
    }
}
