//! Offsets by time and by epoch: ListOffsets and OffsetForLeaderEpoch.
//!
//! Purpose: the log's ends are known from the view; a timestamp is searched in the extents, then in the batches of one
//! of them. Invariants: an answer lies below the bound of its isolation (upstream `Partition.fetchOffsetForTimestamp`:
//! what lies at or past it is not found). Deviation: in a compressed batch a timestamp is answered with the batch's
//! first offset (and first timestamp, or largest where that is asked for), for records are not decompressed here: the
//! consumer then meets some earlier records, and misses none. What it does not do: wire codes, permissions.

use std::sync::Arc;

use bytes::Bytes;
use semel_types::{
    LeaderEpoch, Offset, PartitionHandle,
    mutation::{Mutation, mutated},
};

use crate::{
    batches::{BatchHeader, RecordStamp, record_stamps},
    cache::BlockCache,
    extents::{LogPosition, Placed},
    file_uses::ReadPin,
    read::{Blocks, Isolation, ReadError, ReadMode, Walk},
    side_file::{Run, SideFile},
    view::{PartitionView, View},
};

/// What ListOffsets asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetQuery {
    /// The oldest offset still there (-2, and -4: nothing is tiered).
    Earliest,
    /// The bound of the isolation (-1).
    Latest,
    /// The first record with the largest timestamp (-3).
    MaxTimestamp,
    /// The first record with this timestamp or a larger one, in milliseconds.
    Timestamp(i64),
}

/// An offset that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedOffset {
    /// The offset.
    pub offset: Offset,
    /// Its record's timestamp, where the query is about timestamps.
    pub timestamp: Option<i64>,
    /// The leader epoch it was written in; for the end of the log, the one this node leads in.
    pub leader_epoch: Option<LeaderEpoch>,
}

/// What OffsetForLeaderEpoch answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    /// The largest epoch known that is not above the requested one.
    pub epoch: LeaderEpoch,
    /// The offset after its last record.
    pub end_offset: Offset,
}

/// A search for an offset, planned in one cut. Keeps files from being recycled until it is dropped.
#[derive(Clone, Debug)]
pub struct OffsetSearch {
    known: Option<Option<ListedOffset>>,
    query: OffsetQuery,
    partition: PartitionHandle,
    log_start: Offset,
    bound: Offset,
    runs: Vec<(Arc<SideFile>, Run)>,
    /// The extents in memory that may hold the answer, in order: one that the log start cuts, and one more.
    extents: Vec<Placed>,
    tail: LogPosition,
    _pin: ReadPin,
}

impl View {
    /// Plans what ListOffsets asks for; `None` if there is no such partition.
    #[must_use]
    pub fn list_offset(
        &self,
        partition: PartitionHandle,
        query: OffsetQuery,
        isolation: Isolation,
    ) -> Option<OffsetSearch> {
        let view = self.partition(partition)?;
        let bound = match isolation {
            Isolation::ReadUncommitted => view.high_watermark,
            Isolation::ReadCommitted if mutated(Mutation::ListPastStable) => view.high_watermark,
            Isolation::ReadCommitted => view.last_stable,
        };
        let end = |offset| ListedOffset { offset, timestamp: None, leader_epoch: view.epoch_at(offset) };
        let mut search = OffsetSearch {
            known: None,
            query,
            partition,
            log_start: view.log_start,
            bound,
            runs: Vec::new(),
            extents: Vec::new(),
            tail: self.files.tail(),
            _pin: self.files.pin(),
        };
        match query {
            OffsetQuery::Earliest => search.known = Some(Some(end(view.log_start))),
            OffsetQuery::Latest => {
                let leader_epoch = self.leader_epoch.or_else(|| view.epoch_at(bound));
                search.known = Some(Some(ListedOffset { leader_epoch, ..end(bound) }));
            }
            OffsetQuery::MaxTimestamp => self.locate_largest(view, &mut search),
            OffsetQuery::Timestamp(timestamp) => self.locate_timestamp(view, timestamp, &mut search),
        }
        Some(search)
    }

    fn locate_timestamp(&self, view: &PartitionView, timestamp: i64, search: &mut OffsetSearch) {
        let start = view.log_start;
        let in_runs = view.runs.iter().filter(|run| run.end_offset > start && run.max_timestamp >= timestamp);
        search.runs = in_runs.map(|run| self.with_side(run)).collect();
        let first = view.extents.first_ending_after(start);
        let in_memory = view.extents.as_slice()[first..].iter();
        // Of an extent that the log start cuts, the record may be gone: then the next one has it.
        search.extents =
            in_memory.filter(|extent| extent.max_timestamp >= timestamp).take(2).copied().collect();
    }

    /// Keeps the places that may have the largest timestamp: those that the log start cuts, of which it may be gone,
    /// and the first of the largest of the others.
    fn locate_largest(&self, view: &PartitionView, search: &mut OffsetSearch) {
        let start = view.log_start;
        let runs = view.runs.iter().filter(|run| run.end_offset > start);
        let (cut, whole): (Vec<&Run>, Vec<&Run>) = runs.partition(|run| run.base_offset < start);
        let largest = whole.into_iter().rev().max_by_key(|run| run.max_timestamp);
        search.runs = cut.into_iter().chain(largest).map(|run| self.with_side(run)).collect();
        let first = view.extents.first_ending_after(start);
        let extents = view.extents.as_slice()[first..].iter();
        let (cut, whole): (Vec<&Placed>, Vec<&Placed>) =
            extents.partition(|extent| extent.base_offset < start);
        let largest = whole.into_iter().rev().max_by_key(|extent| extent.max_timestamp);
        search.extents = cut.into_iter().chain(largest).copied().collect();
    }

    /// Where a leader epoch ended in a partition (upstream `LeaderEpochFileCache.endOffsetFor`); `None` if the epoch
    /// is above all known ones, or there is no such partition.
    ///
    /// The epoch this node leads in counts as known from the end of the log on, as upstream, where a leader notes
    /// its epoch before it writes.
    #[must_use]
    pub fn offset_for_leader_epoch(
        &self,
        partition: PartitionHandle,
        requested: LeaderEpoch,
    ) -> Option<EpochEnd> {
        let view = self.partition(partition)?;
        let newest = view.leader_epochs.last().map(|(epoch, _)| *epoch).max(self.leader_epoch)?;
        if requested == newest {
            return Some(EpochEnd { epoch: requested, end_offset: view.high_watermark });
        }
        if requested > newest {
            return None;
        }
        let after = view.leader_epochs.partition_point(|(epoch, _)| *epoch <= requested);
        let end_offset = view.leader_epochs.get(after).map_or(view.high_watermark, |(_, first)| *first);
        let epoch = after.checked_sub(1).map_or(requested, |index| view.leader_epochs[index].0);
        Some(EpochEnd { epoch, end_offset })
    }
}

impl OffsetSearch {
    /// The answer if it needs no reading.
    #[must_use]
    pub const fn known(&self) -> Option<Option<ListedOffset>> {
        self.known
    }

    /// Searches; `None` if no record qualifies below the bound. Batches that are passed over are checked too: where a
    /// time is found depends on each of them.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn search(&self, cache: &BlockCache, mode: ReadMode) -> Result<Option<ListedOffset>, ReadError> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let blocks = Blocks { cache, mode, tail: self.tail };
        let found = match self.query {
            OffsetQuery::Timestamp(timestamp) => self.first_at_least(timestamp, &blocks),
            OffsetQuery::MaxTimestamp => self.largest(&blocks),
            OffsetQuery::Earliest | OffsetQuery::Latest => Ok(None),
        };
        let found = found.map_err(|error| error.of(self.partition))?;
        Ok(found.filter(|found| found.offset < self.bound))
    }

    fn first_at_least(&self, timestamp: i64, blocks: &Blocks<'_>) -> Result<Option<ListedOffset>, ReadError> {
        for (side, run) in &self.runs {
            let side = side.read(blocks);
            for index in side.first_ending_after(run, self.log_start)?..run.extents_end() {
                let extent = side.extent(index)?;
                if extent.max_timestamp >= timestamp
                    && let Some(found) = self.in_extent(&extent, timestamp, blocks)?
                {
                    return Ok(Some(found));
                }
            }
        }
        for extent in &self.extents {
            if let Some(found) = self.in_extent(extent, timestamp, blocks)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn largest(&self, blocks: &Blocks<'_>) -> Result<Option<ListedOffset>, ReadError> {
        let mut largest = None;
        for (side, run) in &self.runs {
            let side = side.read(blocks);
            let mut whole: Option<Placed> = None;
            for index in side.first_ending_after(run, self.log_start)?..run.extents_end() {
                let extent = side.extent(index)?;
                if extent.base_offset < self.log_start {
                    self.larger_in(&extent, blocks, &mut largest)?;
                } else if whole.is_none_or(|whole| extent.max_timestamp > whole.max_timestamp) {
                    whole = Some(extent);
                }
            }
            whole.iter().try_for_each(|extent| self.larger_in(extent, blocks, &mut largest))?;
        }
        self.extents.iter().try_for_each(|extent| self.larger_in(extent, blocks, &mut largest))?;
        Ok(largest)
    }

    /// Takes the record of an extent with the largest timestamp, if that is larger than `largest`.
    fn larger_in(
        &self,
        extent: &Placed,
        blocks: &Blocks<'_>,
        largest: &mut Option<ListedOffset>,
    ) -> Result<(), ReadError> {
        let at_least = |largest: &Option<ListedOffset>, timestamp| {
            largest.and_then(|found| found.timestamp).is_some_and(|most| most >= timestamp)
        };
        if at_least(largest, extent.max_timestamp) {
            return Ok(());
        }
        let mut walk = Walk::new(extent, blocks);
        while let Some((at, header)) = walk.next()? {
            walk.check(at, &header)?;
            if header.end_offset <= self.log_start || at_least(largest, header.max_timestamp) {
                continue;
            }
            let batch = walk.slice(at, at + header.length)?;
            let found = self.largest_in_batch(header, &batch);
            if let Some((offset, timestamp)) = found.filter(|(_, timestamp)| !at_least(largest, *timestamp)) {
                let leader_epoch = Some(header.leader_epoch);
                *largest = Some(ListedOffset { offset, timestamp: Some(timestamp), leader_epoch });
            }
        }
        Ok(())
    }

    fn largest_in_batch(&self, header: BatchHeader, batch: &[Bytes]) -> Option<(Offset, i64)> {
        if header.is_log_append_time() || header.is_compressed() {
            return Some((header.base_offset.max(self.log_start), header.max_timestamp));
        }
        let batch = batch.concat();
        let left = record_stamps(header, &batch).filter(|record| record.offset >= self.log_start);
        let mut largest: Option<RecordStamp> = None;
        for record in left {
            if largest.is_none_or(|largest| record.timestamp > largest.timestamp) {
                largest = Some(record);
            }
        }
        largest.map(|record| (record.offset, record.timestamp))
    }

    /// The first record of an extent with at least this timestamp, not before the log start.
    fn in_extent(
        &self,
        extent: &Placed,
        timestamp: i64,
        blocks: &Blocks<'_>,
    ) -> Result<Option<ListedOffset>, ReadError> {
        let mut walk = Walk::new(extent, blocks);
        while let Some((at, header)) = walk.next()? {
            walk.check(at, &header)?;
            if header.max_timestamp < timestamp || header.end_offset <= self.log_start {
                continue;
            }
            let batch = walk.slice(at, at + header.length)?;
            if let Some((offset, timestamp)) = self.in_batch(header, &batch, timestamp) {
                let leader_epoch = Some(header.leader_epoch);
                return Ok(Some(ListedOffset { offset, timestamp: Some(timestamp), leader_epoch }));
            }
        }
        Ok(None)
    }

    fn in_batch(&self, header: BatchHeader, batch: &[Bytes], timestamp: i64) -> Option<(Offset, i64)> {
        let first = header.base_offset.max(self.log_start);
        if header.is_log_append_time() {
            return Some((first, header.max_timestamp));
        }
        if header.is_compressed() {
            return Some((first, header.base_timestamp));
        }
        let batch = batch.concat();
        let found = record_stamps(header, &batch)
            .find(|record| record.timestamp >= timestamp && record.offset >= self.log_start)?;
        Some((found.offset, found.timestamp))
    }
}
