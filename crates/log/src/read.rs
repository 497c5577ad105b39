//! Reading batches: plan under the view's read lock, read without it.

use std::{fmt, io};

use bytes::Bytes;
use semel_events::AbortedTransaction;
use semel_types::{Offset, PartitionHandle};

use crate::{BlockCache, Extent, View};

/// What a reader may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Everything up to the high watermark.
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
    OffsetOutOfRange,
    /// No such partition.
    UnknownPartition,
}

impl fmt::Display for ReadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OffsetOutOfRange => "the offset is outside of the partition",
            Self::UnknownPartition => "there is no such partition",
        })
    }
}

impl std::error::Error for ReadRefusal {}

/// What will be read and the positions of the same cut.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// What was asked.
    pub request: ReadRequest,
    /// Extents to read, in order.
    pub extents: Vec<Extent>,
    /// Oldest offset still there.
    pub log_start: Offset,
    /// Offset after the newest visible record.
    pub high_watermark: Offset,
    /// Bound of read_committed.
    pub last_stable: Offset,
    /// Aborted transactions that touch the range, exact; empty for read_uncommitted.
    pub aborted: Vec<AbortedTransaction>,
}

/// May a read touch the disk?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// Only memory; `WouldBlock` if that does not suffice.
    Cached,
    /// The disk too.
    MayBlock,
}

impl View {
    /// Plans a read; the plan stays valid after the guard is dropped.
    ///
    /// # Errors
    /// [`ReadRefusal`] says what is wrong with the request.
    pub fn plan(&self, request: &ReadRequest) -> Result<ReadPlan, ReadRefusal> {
        let view = self
            .partition(request.partition)
            .ok_or(ReadRefusal::UnknownPartition)?;
        if request.offset < view.log_start || request.offset > view.high_watermark {
            return Err(ReadRefusal::OffsetOutOfRange);
        }
        Ok(ReadPlan {
            request: *request,
            extents: Vec::new(),
            log_start: view.log_start,
            high_watermark: view.high_watermark,
            last_stable: view.last_stable,
            aborted: Vec::new(),
        })
    }
}

impl ReadPlan {
    /// Bytes that the plan will give at most.
    #[must_use]
    pub fn bytes_available(&self) -> usize {
        self.extents.iter().map(|extent| extent.length as usize).sum()
    }
}

/// Reads what was planned: for each plan its whole batches in order.
///
/// # Errors
/// The disk's error, or `WouldBlock` in [`ReadMode::Cached`].
pub fn read_all(plans: &[ReadPlan], cache: &BlockCache, mode: ReadMode) -> io::Result<Vec<Vec<Bytes>>> {
    let read = |extent: &Extent| match mode {
        ReadMode::MayBlock => cache
            .source()
            .read(extent.file, extent.position, extent.length as usize),
        ReadMode::Cached => cache
            .source()
            .try_read_cached(extent.file, extent.position, extent.length as usize)?
            .ok_or_else(|| io::ErrorKind::WouldBlock.into()),
    };
    plans
        .iter()
        .map(|plan| plan.extents.iter().map(read).collect())
        .collect()
}
