//! Reading batches: planned under the view's read lock, read without it.
//!
//! Purpose: a [`ReadPlan`] is one partition's part of a cut: positions, where the bytes lie, what was aborted. Reading
//! it gives whole batches, from the one that holds the offset, bounded by what the reader may see. Invariants: LOG-22
//! (nothing at or past the bound of the cut is ever returned: the last stable offset for read_committed, the high
//! watermark else), LOG-23 (the aborted list is exact: an entry is there once, in order of its marker, exactly if its
//! marker is at or past the fetch offset and its first record before the end of what is returned), LOG-32 (no batch is
//! returned whose bytes are not those stored: it has the offset after the one before, a length that fits, and its
//! checksum holds. All are checked, wherever their bytes came from). What it does not do: wait for data, choose between
//! memory and disk (the caller says which it may use).

use std::{fmt, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use semel_events::AbortedTransaction;
use semel_types::{
    Offset, PartitionHandle,
    mutation::{Mutation, mutated},
};

use crate::{
    batches::{BatchHeader, HEADER, Pieces, damaged},
    cache::{Block, BlockCache, BlockFile, Pinned, WINDOW, counted},
    extents::{FileNumber, LogPosition, Placed},
    file_uses::ReadPin,
    side_file::{Run, SideFile},
    view::{PartitionView, View},
};

/// Slices below this are copied together, so that an answer is not written in crumbs.
const COPIED_BELOW: usize = 4 << 10;

/// Most extents of one plan; a read that would need more is shorter.
const EXTENTS_MAX: usize = 4096;

/// What a reader may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Everything up to the high watermark, aborted and undecided records included.
    ReadUncommitted,
    /// Everything up to the last stable offset.
    ReadCommitted,
}

/// What one partition of a Fetch asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// Which partition.
    pub partition: PartitionHandle,
    /// First offset wanted.
    pub offset: Offset,
    /// At most this many bytes, in whole batches.
    pub max_bytes: usize,
    /// Give one whole batch even if it is larger than `max_bytes`.
    pub at_least_one: bool,
    /// What the reader may see.
    pub isolation: Isolation,
}

/// Why nothing can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadRefusal {
    /// The offset is before the log start or past the end.
    OffsetOutOfRange {
        /// Oldest offset still there.
        log_start: Offset,
        /// Offset after the newest visible record.
        high_watermark: Offset,
    },
    /// No such partition.
    UnknownPartition,
}

impl fmt::Display for ReadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OffsetOutOfRange { log_start, high_watermark } => {
                write!(f, "the offset is outside of the partition, which has {log_start}..{high_watermark}")
            }
            Self::UnknownPartition => f.write_str("there is no such partition"),
        }
    }
}

impl std::error::Error for ReadRefusal {}

/// Why a planned read gave nothing.
#[derive(Debug)]
pub enum ReadError {
    /// Not in memory: read it again where it may block.
    Cold,
    /// Reads in flight hold all the memory they may: wait for [`BlockCache::wake_when_unpinned`].
    Busy,
    /// The disk failed, or what it holds is not what was written there (`InvalidData`): the error says where.
    Failed(io::Error),
}

impl ReadError {
    /// Says of which partition.
    pub(crate) fn of(self, partition: PartitionHandle) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(io::Error::new(error.kind(), format!("{partition} {error}"))),
            Self::Cold | Self::Busy => self,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold => f.write_str("not in memory"),
            Self::Busy => f.write_str("reads in flight hold all the memory they may"),
            Self::Failed(error) => write!(f, "reading the log failed: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// May a read touch the disk?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// Only memory; [`ReadError::Cold`] if that does not suffice.
    Cached,
    /// The disk too.
    MayBlock,
}

/// What was read of one partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadData {
    /// Whole batches in order, to be sent one after another. Each slice counts as pinned until it is dropped.
    pub batches: Vec<Bytes>,
    /// The offset after the last record in `batches`; the requested offset if there is none.
    pub end_offset: Offset,
    /// Aborted transactions that touch the range, exact, by marker; empty for read_uncommitted.
    pub aborted: Vec<AbortedTransaction>,
}

impl ReadData {
    /// Bytes of all batches.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// What will be read, and the positions of the same cut. Stays valid after the guard is dropped, but keeps files from
/// being recycled: read it or drop it, a parked poll plans anew.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// What was asked.
    pub request: ReadRequest,
    /// Oldest offset still there.
    pub log_start: Offset,
    /// Offset after the newest visible record.
    pub high_watermark: Offset,
    /// Bound of read_committed.
    pub last_stable: Offset,
    lies: Lies,
    /// Where the readable part of the log ends.
    tail: LogPosition,
    /// Aborted transactions that may touch the range, from memory.
    aborted: Vec<AbortedTransaction>,
    _pin: ReadPin,
}

/// Where the bytes of a plan lie.
#[derive(Clone, Debug)]
enum Lies {
    /// Extents from memory, the first of which holds the offset.
    InMemory(Vec<Placed>),
    /// A run of a side file that holds the offset, and those after it that hold aborted transactions.
    InSideFiles(Vec<(Arc<SideFile>, Run)>),
}

impl View {
    /// Plans a read.
    ///
    /// # Errors
    /// [`ReadRefusal`] says what is wrong with the request.
    pub fn plan(&self, request: &ReadRequest) -> Result<ReadPlan, ReadRefusal> {
        let view = self.partition(request.partition).ok_or(ReadRefusal::UnknownPartition)?;
        let (log_start, high_watermark) = (view.log_start, view.high_watermark);
        if request.offset < log_start || request.offset > high_watermark {
            return Err(ReadRefusal::OffsetOutOfRange { log_start, high_watermark });
        }
        let mut plan = ReadPlan {
            request: *request,
            log_start,
            high_watermark,
            last_stable: view.last_stable,
            lies: Lies::InMemory(Vec::new()),
            tail: self.files.tail(),
            aborted: Vec::new(),
            _pin: self.files.pin(),
        };
        if request.offset < plan.bound() && request.max_bytes.max(usize::from(request.at_least_one)) > 0 {
            self.locate(view, &mut plan);
        }
        Ok(plan)
    }

    /// Plans the reads of a Fetch in one cut: together at most `max_bytes`, and the first partition that has
    /// something gives at least one batch, if its request allows it. Partitions past the bound get an empty plan.
    pub fn plan_all(&self, requests: &[ReadRequest], max_bytes: usize) -> Vec<Result<ReadPlan, ReadRefusal>> {
        let (mut left, mut first) = (max_bytes, true);
        let plan = |request: &ReadRequest| {
            let at_least_one = request.at_least_one && first;
            let request = ReadRequest { max_bytes: request.max_bytes.min(left), at_least_one, ..*request };
            let plan = self.plan(&request)?;
            let bytes = plan.bytes_available();
            first &= plan.is_empty();
            left = left.saturating_sub(bytes);
            Ok(plan)
        };
        requests.iter().map(plan).collect()
    }

    pub(crate) fn with_side(&self, run: &Run) -> (Arc<SideFile>, Run) {
        (Arc::clone(self.sides.get(run.side)), *run)
    }

    fn locate(&self, view: &PartitionView, plan: &mut ReadPlan) {
        let committed = plan.request.isolation == Isolation::ReadCommitted;
        let offset = plan.request.offset;
        let index = view.runs.partition_point(|run| run.end_offset <= offset);
        let end = if let Some(run) = view.runs.get(index) {
            let later = view.runs[index + 1..].iter().filter(|run| committed && run.aborted > 0);
            let runs = std::iter::once(run).chain(later);
            plan.lies = Lies::InSideFiles(runs.map(|run| self.with_side(run)).collect());
            run.end_offset
        } else {
            let extents = wanted(view, plan);
            let end = extents.last().map_or(offset, Placed::end_offset);
            plan.lies = Lies::InMemory(extents);
            end
        };
        if committed {
            collect_aborted(&view.aborted, offset, end.min(plan.bound()), &mut plan.aborted);
        }
    }
}

/// The extents in memory that a plan needs.
fn wanted(view: &PartitionView, plan: &ReadPlan) -> Vec<Placed> {
    let extents = view.extents.as_slice();
    let first = view.extents.first_ending_after(plan.request.offset);
    take_wanted(extents[first..].iter().map(|extent| Ok(*extent)), plan).unwrap_or_default()
}

/// From the extent that holds the offset on: as many as may be returned. The first does not count, for most of it may
/// lie before the offset.
fn take_wanted(
    extents: impl Iterator<Item = Result<Placed, ReadError>>,
    plan: &ReadPlan,
) -> Result<Vec<Placed>, ReadError> {
    let mut taken = Vec::new();
    let mut bytes = 0;
    for extent in extents {
        let extent = extent?;
        let enough = !taken.is_empty() && (bytes >= plan.request.max_bytes || taken.len() == EXTENTS_MAX);
        if enough || extent.base_offset >= plan.bound() {
            break;
        }
        bytes += if taken.is_empty() { 0 } else { extent.length as usize };
        taken.push(extent);
    }
    Ok(taken)
}

/// Adds the entries, which are in order of their markers, that touch `from..to`; true if later ones cannot.
pub(crate) fn collect_aborted<'a>(
    entries: impl IntoIterator<Item = &'a AbortedTransaction>,
    from: Offset,
    to: Offset,
    into: &mut Vec<AbortedTransaction>,
) -> bool {
    for entry in entries {
        if entry.last_offset >= from && entry.first_offset < to {
            into.push(entry.clone());
        }
        // Every transaction that ends later began at or past the last stable offset of that moment.
        if entry.last_stable_offset >= to {
            return true;
        }
    }
    false
}

impl ReadPlan {
    /// The offset that nothing returned reaches past.
    #[must_use]
    pub fn bound(&self) -> Offset {
        match self.request.isolation {
            Isolation::ReadUncommitted => self.high_watermark,
            Isolation::ReadCommitted if mutated(Mutation::FetchPastStable) => self.high_watermark,
            Isolation::ReadCommitted => self.last_stable,
        }
    }

    /// Bytes that the plan will give, at most. For a read of history, which is never worth waiting in, that is
    /// `max_bytes`: compare with a Fetch's `min_bytes`.
    #[must_use]
    pub fn bytes_available(&self) -> usize {
        let max = self.request.max_bytes;
        match &self.lies {
            Lies::InMemory(extents) => {
                extents.iter().map(|extent| extent.length as usize).sum::<usize>().min(max)
            }
            Lies::InSideFiles(_) => max,
        }
    }

    /// Where it begins in the log, as far as known without reading.
    fn starts_at(&self) -> LogPosition {
        match &self.lies {
            Lies::InMemory(extents) => extents.first().map(Placed::at).unwrap_or_default(),
            Lies::InSideFiles(runs) => {
                let file = runs.first().map(|(side, _)| side.files().first).unwrap_or_default();
                LogPosition { file, position: 0 }
            }
        }
    }

    /// True if there is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.lies {
            Lies::InMemory(extents) => extents.is_empty(),
            Lies::InSideFiles(_) => false,
        }
    }

    /// Reads from memory only.
    ///
    /// # Errors
    /// [`ReadError::Cold`] if that does not suffice; [`ReadError`].
    pub fn try_read_cached(&self, cache: &BlockCache) -> Result<ReadData, ReadError> {
        self.read(cache, ReadMode::Cached)
    }

    /// Reads from memory and disk: call it where blocking is allowed.
    ///
    /// # Errors
    /// [`ReadError`], never [`ReadError::Cold`].
    pub fn read_blocking(&self, cache: &BlockCache) -> Result<ReadData, ReadError> {
        self.read(cache, ReadMode::MayBlock)
    }

    fn read(&self, cache: &BlockCache, mode: ReadMode) -> Result<ReadData, ReadError> {
        self.read_checked(cache, mode).map_err(|error| error.of(self.request.partition))
    }

    fn read_checked(&self, cache: &BlockCache, mode: ReadMode) -> Result<ReadData, ReadError> {
        let blocks = Blocks { cache, mode, tail: self.tail };
        let extents = self.extents(&blocks)?;
        // Never more is returned: the first batch lies in the first extent.
        let first = extents.first().map_or(0, |extent| extent.length as usize);
        let want: usize = extents.iter().map(|extent| extent.length as usize).sum();
        let want = want.min(self.request.max_bytes.max(first));
        let mut pinned = cache.pin(want).ok_or(ReadError::Busy)?;
        let mut taken = Taken { offset: self.request.offset, ..Taken::default() };
        for extent in &extents {
            if !self.take(extent, &blocks, &mut taken)? {
                break;
            }
        }
        pinned.shrink(taken.bytes);
        let aborted = self.aborted(&blocks, taken.offset)?;
        let batches = joined(taken.slices, pinned);
        Ok(ReadData { batches, end_offset: taken.offset, aborted })
    }

    fn extents(&self, blocks: &Blocks<'_>) -> Result<Vec<Placed>, ReadError> {
        match &self.lies {
            Lies::InMemory(extents) => Ok(extents.clone()),
            Lies::InSideFiles(runs) => {
                let Some((side, run)) = runs.first() else { return Ok(Vec::new()) };
                let side = side.read(blocks);
                let first = side.first_ending_after(run, self.request.offset)?;
                take_wanted((first..run.extents_end()).map(|index| side.extent(index)), self)
            }
        }
    }

    fn aborted(&self, blocks: &Blocks<'_>, end: Offset) -> Result<Vec<AbortedTransaction>, ReadError> {
        let from = self.request.offset;
        let mut aborted = Vec::new();
        if end <= from || self.request.isolation == Isolation::ReadUncommitted {
            return Ok(aborted);
        }
        if let Lies::InSideFiles(runs) = &self.lies {
            for (side, run) in runs {
                if side.read(blocks).collect_aborted(run, from, end, &mut aborted)? {
                    return Ok(aborted);
                }
            }
        }
        collect_aborted(&self.aborted, from, end, &mut aborted);
        Ok(aborted)
    }

    /// Takes what is wanted of one extent; false if the read ends in it. What stands before damage is taken: the next
    /// read, which begins there, fails.
    fn take(&self, extent: &Placed, blocks: &Blocks<'_>, taken: &mut Taken) -> Result<bool, ReadError> {
        let mut walk = Walk::new(extent, blocks);
        let mut part = Part { start: None, end: 0, reached: taken.offset };
        let goes_on = match self.find(&mut walk, taken, &mut part) {
            Err(ReadError::Failed(_)) if taken.bytes > 0 || part.end > 0 => false,
            outcome => outcome?,
        };
        if let Some(start) = part.start.filter(|start| *start < part.end) {
            taken.add(part.reached, walk.slice(start, part.end)?);
        }
        Ok(goes_on)
    }

    /// Finds what is wanted of one extent, and checks it; false if the read ends in it.
    fn find(&self, walk: &mut Walk<'_>, taken: &Taken, part: &mut Part) -> Result<bool, ReadError> {
        let left = self.request.max_bytes.saturating_sub(taken.bytes);
        let extent = walk.extent;
        let whole = extent.base_offset >= taken.offset && extent.end_offset() <= self.bound();
        if whole && extent.length as usize <= left {
            walk.reach_all()?;
        }
        while let Some((at, header)) = walk.next()? {
            if header.end_offset <= taken.offset {
                continue;
            }
            let from = *part.start.get_or_insert(at);
            let bytes = at + header.length - from;
            let first = taken.bytes == 0 && from == at && self.request.at_least_one;
            if header.end_offset > self.bound() || (bytes > left && !first) {
                return Ok(false);
            }
            walk.check(at, &header)?;
            (part.end, part.reached) = (at + header.length, header.end_offset);
        }
        Ok(true)
    }
}

/// The part of an extent that a read takes: bytes from its start, and the offset after the last record.
struct Part {
    start: Option<usize>,
    end: usize,
    reached: Offset,
}

#[derive(Default)]
struct Taken {
    offset: Offset,
    bytes: usize,
    slices: Vec<Bytes>,
}

impl Taken {
    fn add(&mut self, end: Offset, mut slices: Vec<Bytes>) {
        self.bytes += slices.iter().map(Bytes::len).sum::<usize>();
        self.slices.append(&mut slices);
        self.offset = end;
    }
}

/// Makes slices that count as pinned; neighbours below 4 KiB are copied together.
fn joined(slices: Vec<Bytes>, pinned: Pinned) -> Vec<Bytes> {
    let pinned = Arc::new(pinned);
    let mut joined = Vec::with_capacity(slices.len().min(64));
    let mut small = BytesMut::new();
    let flush = |small: &mut BytesMut, into: &mut Vec<Bytes>| {
        if !small.is_empty() {
            into.push(counted(small.split().freeze(), &pinned));
        }
    };
    for slice in slices {
        if slice.len() < COPIED_BELOW {
            small.extend_from_slice(&slice);
        } else {
            flush(&mut small, &mut joined);
            joined.push(counted(slice, &pinned));
        }
    }
    flush(&mut small, &mut joined);
    joined
}

/// Where a read gets its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    pub cache: &'a BlockCache,
    pub mode: ReadMode,
    pub tail: LogPosition,
}

impl Blocks<'_> {
    pub(crate) fn get(&self, block: &Block) -> Result<Vec<Bytes>, ReadError> {
        match self.mode {
            ReadMode::Cached => self.cache.get_cached(block)?.ok_or(ReadError::Cold),
            ReadMode::MayBlock => Ok(self.cache.get(block)?),
        }
    }

    fn limit(&self, file: FileNumber) -> u64 {
        if file == self.tail.file { self.tail.position } else { u64::MAX }
    }

    /// Bytes `from..to` of an extent.
    fn extent(&self, extent: &Placed, from: usize, to: usize) -> Result<Vec<Bytes>, ReadError> {
        let position = extent.position + from as u64;
        let block = Block {
            file: BlockFile::Log(extent.file),
            position,
            length: (to - from) as u64,
            limit: self.limit(extent.file),
        };
        self.get(&block).map_err(|error| match error {
            ReadError::Failed(error) => {
                ReadError::Failed(io::Error::new(error.kind(), at(extent, extent.base_offset, from, &error)))
            }
            ReadError::Cold | ReadError::Busy => error,
        })
    }
}

/// Goes through the batches of an extent, getting its bytes window by window.
pub(crate) struct Walk<'a> {
    extent: &'a Placed,
    blocks: &'a Blocks<'a>,
    /// The bytes of the extent from its start to `at_hand`.
    pieces: Pieces,
    at_hand: usize,
    at: usize,
    expect: Offset,
}

/// Words for trouble with a batch: `byte` counts from the extent's start.
fn at(extent: &Placed, offset: Offset, byte: usize, what: &dyn fmt::Display) -> String {
    format!("at offset {offset}, {} at byte {}: {what}", extent.file, extent.position + byte as u64)
}

impl<'a> Walk<'a> {
    pub(crate) fn new(extent: &'a Placed, blocks: &'a Blocks<'a>) -> Self {
        let (pieces, expect) = (Pieces::default(), extent.base_offset);
        Self { extent, blocks, pieces, at_hand: 0, at: 0, expect }
    }

    /// Gets all bytes at once.
    fn reach_all(&mut self) -> Result<(), ReadError> {
        let length = self.extent.length as usize;
        self.pieces.0 = self.blocks.extent(self.extent, 0, length)?;
        self.at_hand = length;
        Ok(())
    }

    /// Gets the bytes up to `to` at least, to the end of their window.
    fn reach(&mut self, to: usize) -> Result<(), ReadError> {
        while self.at_hand < to {
            let position = self.extent.position + self.at_hand as u64;
            let window_left = (WINDOW - position % WINDOW) as usize;
            let end = (self.at_hand + window_left).min(self.extent.length as usize);
            self.pieces.0.extend(self.blocks.extent(self.extent, self.at_hand, end)?);
            self.at_hand = end;
        }
        Ok(())
    }

    /// The next batch: where it begins in the extent, and its header.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, BatchHeader)>, ReadError> {
        let length = self.extent.length as usize;
        if self.at == length {
            return self.end();
        }
        self.reach((self.at + HEADER).min(length))?;
        let bytes = self
            .pieces
            .header(self.at)
            .ok_or_else(|| self.damaged("the extent ends inside a batch header"))?;
        let header = BatchHeader::parse(&bytes)
            .ok_or_else(|| self.damaged("there is no record batch where one was stored"))?;
        if header.base_offset != self.expect {
            return Err(self.damaged("the batch has another offset than it was given"));
        }
        if header.length > length - self.at {
            return Err(self.damaged("the batch is longer than what was stored"));
        }
        if header.end_offset > self.extent.end_offset() {
            return Err(self.damaged("the batch has more records than were stored"));
        }
        let at = self.at;
        self.at += header.length;
        self.expect = header.end_offset;
        Ok(Some((at, header)))
    }

    /// Compares the checksum of the batch at `at` with its bytes.
    pub(crate) fn check(&mut self, at: usize, header: &BatchHeader) -> Result<(), ReadError> {
        let end = at + header.length;
        self.reach(end)?;
        if self.pieces.checksum(at, end) == header.checksum {
            return Ok(());
        }
        Err(self.damaged_at(header.base_offset, at, "the batch and its checksum do not agree"))
    }

    fn end(&self) -> Result<Option<(usize, BatchHeader)>, ReadError> {
        if self.expect == self.extent.end_offset() {
            return Ok(None);
        }
        Err(self.damaged("there are fewer records than were stored"))
    }

    /// Bytes of the extent, whole batches that were walked over.
    pub(crate) fn slice(&mut self, from: usize, to: usize) -> Result<Vec<Bytes>, ReadError> {
        self.reach(to)?;
        Ok(self.pieces.slice(from, to))
    }

    fn damaged(&self, what: &str) -> ReadError {
        self.damaged_at(self.expect, self.at, what)
    }

    /// The error, and the cache is rid of what it came from.
    fn damaged_at(&self, offset: Offset, byte: usize, what: &str) -> ReadError {
        let start = self.extent.position;
        self.blocks.cache.forget_range(BlockFile::Log(self.extent.file), start..start + self.at_hand as u64);
        ReadError::Failed(damaged(at(self.extent, offset, byte, &what)))
    }
}

/// Reads what was planned, in the order in which it lies in the log; gives it in the order of the plans. What finds no
/// room beside what was read before it is left empty, so that a Fetch larger than the bound comes forward.
///
/// One that fails is its own: the others give what they have.
///
/// # Errors
/// [`ReadError::Cold`] if one of them is; [`ReadError::Busy`] only if nothing could be read.
pub fn read_all(
    plans: &[ReadPlan],
    cache: &BlockCache,
    mode: ReadMode,
) -> Result<Vec<io::Result<ReadData>>, ReadError> {
    let mut order: Vec<_> = (0..plans.len()).collect();
    order.sort_by_key(|index| plans[*index].starts_at());
    let nothing = |plan: &ReadPlan| Ok(ReadData { end_offset: plan.request.offset, ..ReadData::default() });
    let mut read: Vec<io::Result<_>> = plans.iter().map(nothing).collect();
    for index in order {
        match plans[index].read(cache, mode) {
            Ok(data) => read[index] = Ok(data),
            Err(ReadError::Failed(error)) => read[index] = Err(error),
            Err(ReadError::Busy) if read.iter().flatten().any(|data| !data.batches.is_empty()) => {}
            Err(error @ (ReadError::Cold | ReadError::Busy)) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
