//! Side files: the index of sealed log files, on disk.
//!
//! Purpose: extents and aborted transactions of sealed log files in pages that are searched where they lie, so that
//! memory holds one [`Run`] per partition and side file. Format: `docs/formats/side-file.md`. Invariants: LOG-25 (side
//! files tile the log files from the first live one on without hole or overlap; each page has its own checksum and a
//! page that fails it is an error, never an answer). A side file can be rebuilt from the log files it covers. What it
//! does not do: decide when to seal or merge (`upkeep`).

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    io::{self, Write},
    sync::Arc,
};

use bytes::{Buf, BufMut, Bytes};
use semel_events::AbortedTransaction;
use semel_types::{Offset, PartitionHandle, ProducerId};

use crate::{
    batches::damaged,
    cache::{Block, BlockFile, BlockSource},
    extents::{FileNumber, FileRange, Placed},
    read::{Blocks, ReadError, collect_aborted},
};

/// Bytes of a page: checksum (CRC32C of the rest), then entries of one fixed size.
pub(crate) const PAGE: usize = 4096;
const ROOM: usize = PAGE - 4;
const MAGIC: [u8; 8] = *b"semelidx";
const VERSION: u16 = 1;

const PAIR: usize = 64;
const EXTENT: usize = 40;
const ABORTED: usize = 32;

/// What a side file holds of one partition in one log file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair {
    pub partition: PartitionHandle,
    pub file: FileNumber,
    pub base_offset: Offset,
    pub end_offset: Offset,
    pub bytes: u64,
    pub max_timestamp: i64,
    pub first_extent: u32,
    pub extents: u32,
    pub first_aborted: u32,
    pub aborted: u32,
}

/// What a side file holds of one partition, in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub side: SideNumber,
    pub base_offset: Offset,
    pub end_offset: Offset,
    pub max_timestamp: i64,
    pub first_pair: u32,
    pub pairs: u32,
    pub first_extent: u32,
    pub extents: u32,
    pub first_aborted: u32,
    pub aborted: u32,
}

impl Run {
    pub(crate) const fn extents_end(&self) -> u32 {
        self.first_extent + self.extents
    }

    /// The run that begins with a pair, the `number`th of its side file.
    pub(crate) const fn starting(side: SideNumber, number: u32, pair: &Pair) -> Self {
        Self {
            side,
            base_offset: pair.base_offset,
            end_offset: pair.end_offset,
            max_timestamp: pair.max_timestamp,
            first_pair: number,
            pairs: 1,
            first_extent: pair.first_extent,
            extents: pair.extents,
            first_aborted: pair.first_aborted,
            aborted: pair.aborted,
        }
    }

    /// The same run where its pairs are counted from another one on.
    pub(crate) const fn numbered_from(mut self, first: u32) -> Self {
        self.first_pair += first;
        self
    }

    /// Adds the partition's next pair of the same side file.
    pub(crate) fn extend(&mut self, pair: &Pair) {
        assert!(self.end_offset == pair.base_offset, "LOG-20: pairs of a partition are contiguous");
        self.end_offset = pair.end_offset;
        self.max_timestamp = self.max_timestamp.max(pair.max_timestamp);
        self.pairs += 1;
        self.extents += pair.extents;
        self.aborted += pair.aborted;
    }
}

/// Names an open side file while this process runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct SideNumber(u32);

/// Runs of a deleted partition: the use of files by them must be taken back.
#[derive(Clone, Debug)]
pub(crate) struct Reap {
    pub runs: Vec<(Arc<SideFile>, Run)>,
    pub reaped_to: Offset,
}

/// The side files of a view.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    next: SideNumber,
    by_number: HashMap<SideNumber, Arc<SideFile>>,
    /// Those in use from here on, oldest first: they tile the log files.
    pub tiles: Vec<SideNumber>,
    /// While a log is being restored: side files whose entries are still to be brought in.
    pub restoring: Vec<SideFile>,
    /// Deleted partitions' runs.
    pub reap: Vec<Reap>,
    /// Partitions whose log start moved into or past their runs.
    pub trimmed: BTreeSet<PartitionHandle>,
}

impl Sides {
    /// An open side file.
    ///
    /// # Panics
    /// If it is not: a run outlived its side file.
    pub(crate) fn get(&self, side: SideNumber) -> &Arc<SideFile> {
        self.by_number.get(&side).expect("LOG-25: a run points at an open side file")
    }

    /// The last log file whose entries stand in a side file; 0 if none.
    pub(crate) fn covered_through(&self) -> FileNumber {
        let restoring = self.restoring.last().map(SideFile::files);
        let last = self.tiles.last().map(|side| self.get(*side).files());
        last.max(restoring).map_or(FileNumber::default(), |files| files.last)
    }

    /// Opens a side file to runs; it is no tile yet.
    pub(crate) fn open(&mut self, side: SideFile) -> SideNumber {
        self.next = SideNumber(self.next.0 + 1);
        self.by_number.insert(self.next, Arc::new(side));
        self.next
    }

    /// Closes a side file that no run points at any more.
    pub(crate) fn close(&mut self, side: SideNumber) {
        self.by_number.remove(&side);
        self.tiles.retain(|tile| *tile != side);
    }
}

/// One side file, open: where its sections lie. Entries are read through the block cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideFile {
    files: FileRange,
    level: u16,
    pairs: u32,
    extents: u32,
    aborted: u32,
}

/// Pages that `entries` of a size take.
const fn pages(entries: u32, size: usize) -> u64 {
    (entries as u64).div_ceil((ROOM / size) as u64)
}

impl SideFile {
    /// The log files it covers.
    #[must_use]
    pub const fn files(&self) -> FileRange {
        self.files
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        (1 + pages(self.pairs, PAIR) + pages(self.extents, EXTENT) + pages(self.aborted, ABORTED))
            * PAGE as u64
    }

    /// 0 when made of a log file's entries; one more with each merge.
    pub(crate) const fn level(&self) -> u16 {
        self.level
    }

    /// Reads entries of it.
    pub(crate) fn read<'a>(&'a self, blocks: &'a Blocks<'a>) -> SideReader<'a> {
        SideReader { side: self, blocks, page: RefCell::default() }
    }

    /// Opens a side file and checks the checksum of every page.
    ///
    /// # Errors
    /// The source's error; `InvalidData` if it is damaged, of a newer version, or of other files: rebuild it.
    pub fn open(source: &dyn BlockSource, files: FileRange) -> io::Result<Self> {
        let header = source.read_side(files, 0, PAGE)?;
        let side = Self::decode_header(files, entries_of(&header, files, 0)?)?;
        let mut position = PAGE as u64;
        while position < side.length() {
            let length = (side.length() - position).min(1 << 20);
            let bytes = source.read_side(files, position, length as usize)?;
            for (number, page) in (position / PAGE as u64..).zip(bytes.chunks(PAGE)) {
                entries_of(page, files, number)?;
            }
            position += length;
        }
        Ok(side)
    }

    fn decode_header(files: FileRange, mut header: &[u8]) -> io::Result<Self> {
        let wrong = |what: &str| damaged(format!("the side file of {files} {what}"));
        if header.len() < ROOM || header[..8] != MAGIC {
            return Err(wrong("is none"));
        }
        header.advance(8);
        let version = header.get_u16_le();
        if version != VERSION {
            return Err(wrong(&format!("has version {version}; this build knows {VERSION}")));
        }
        let (first, last) = (FileNumber::new(header.get_u64_le()), FileNumber::new(header.get_u64_le()));
        if (FileRange { first, last }) != files {
            return Err(wrong(&format!("says it is of {first} to {last}")));
        }
        let level = header.get_u16_le();
        let (pairs, extents, aborted) = (header.get_u32_le(), header.get_u32_le(), header.get_u32_le());
        Ok(Self { files, level, pairs, extents, aborted })
    }

    fn encode_header(&self) -> Vec<u8> {
        let mut entries = Vec::with_capacity(ROOM);
        entries.put_slice(&MAGIC);
        entries.put_u16_le(VERSION);
        entries.put_u64_le(self.files.first.get());
        entries.put_u64_le(self.files.last.get());
        entries.put_u16_le(self.level);
        entries.put_u32_le(self.pairs);
        entries.put_u32_le(self.extents);
        entries.put_u32_le(self.aborted);
        entries
    }
}

/// Reads entries of a side file; keeps the last page at hand.
pub(crate) struct SideReader<'a> {
    side: &'a SideFile,
    blocks: &'a Blocks<'a>,
    page: RefCell<Option<(u64, Bytes)>>,
}

impl SideReader<'_> {
    pub(crate) const fn pairs(&self) -> u32 {
        self.side.pairs
    }

    fn entry(&self, section: u64, index: u32, size: usize) -> Result<[u8; PAIR], ReadError> {
        let per_page = (ROOM / size) as u32;
        let number = section + u64::from(index / per_page);
        let mut page = self.page.borrow_mut();
        if page.as_ref().is_none_or(|(at_hand, _)| *at_hand != number) {
            *page = Some((number, self.page(number)?));
        }
        let start = 4 + (index % per_page) as usize * size;
        let mut entry = [0; PAIR];
        if let Some((_, page)) = &*page {
            entry[..size].copy_from_slice(&page[start..start + size]);
        }
        Ok(entry)
    }

    fn page(&self, number: u64) -> Result<Bytes, ReadError> {
        let (file, position) = (BlockFile::Side(self.side.files), number * PAGE as u64);
        let limit = self.side.length();
        let page = self.blocks.get(&Block { file, position, length: PAGE as u64, limit })?;
        let page = if let [page] = &page[..] { page.clone() } else { Bytes::from(page.concat()) };
        if let Err(error) = entries_of(&page, self.side.files, number) {
            self.blocks.cache.forget_range(file, position..position + PAGE as u64);
            return Err(error.into());
        }
        Ok(page)
    }

    pub(crate) fn pair(&self, index: u32) -> Result<Pair, ReadError> {
        let entry = self.entry(1, index, PAIR)?;
        let mut at = &entry[..];
        Ok(Pair {
            partition: PartitionHandle::new(at.get_u32_le()),
            first_extent: at.get_u32_le(),
            extents: at.get_u32_le(),
            first_aborted: at.get_u32_le(),
            aborted: at.get_u32_le(),
            file: {
                at.advance(4);
                FileNumber::new(at.get_u64_le())
            },
            base_offset: Offset::new(at.get_i64_le()),
            end_offset: Offset::new(at.get_i64_le()),
            bytes: at.get_u64_le(),
            max_timestamp: at.get_i64_le(),
        })
    }

    pub(crate) fn extent(&self, index: u32) -> Result<Placed, ReadError> {
        let entry = self.entry(1 + pages(self.side.pairs, PAIR), index, EXTENT)?;
        let mut at = &entry[..];
        Ok(Placed {
            base_offset: Offset::new(at.get_i64_le()),
            position: at.get_u64_le(),
            max_timestamp: at.get_i64_le(),
            count: at.get_u32_le(),
            length: at.get_u32_le(),
            file: FileNumber::new(at.get_u64_le()),
        })
    }

    pub(crate) fn aborted(&self, index: u32) -> Result<AbortedTransaction, ReadError> {
        let section = 1 + pages(self.side.pairs, PAIR) + pages(self.side.extents, EXTENT);
        let entry = self.entry(section, index, ABORTED)?;
        let mut at = &entry[..];
        Ok(AbortedTransaction {
            producer: ProducerId::new(at.get_i64_le()),
            first_offset: Offset::new(at.get_i64_le()),
            last_offset: Offset::new(at.get_i64_le()),
            last_stable_offset: Offset::new(at.get_i64_le()),
        })
    }

    /// Index of the run's first extent that ends after `offset`.
    pub(crate) fn first_ending_after(&self, run: &Run, offset: Offset) -> Result<u32, ReadError> {
        let ends_before = |index| Ok(self.extent(index)?.end_offset() <= offset);
        partition_point(run.first_extent..run.extents_end(), ends_before)
    }

    /// Adds the run's aborted transactions that touch `from..to`; true if later ones cannot.
    pub(crate) fn collect_aborted(
        &self,
        run: &Run,
        from: Offset,
        to: Offset,
        into: &mut Vec<AbortedTransaction>,
    ) -> Result<bool, ReadError> {
        let all = run.first_aborted..run.first_aborted + run.aborted;
        let first = partition_point(all.clone(), |index| Ok(self.aborted(index)?.last_offset < from))?;
        for index in first..all.end {
            if collect_aborted([&self.aborted(index)?], from, to, into) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// First index of the range that `before` is not true of.
fn partition_point(
    range: std::ops::Range<u32>,
    before: impl Fn(u32) -> Result<bool, ReadError>,
) -> Result<u32, ReadError> {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

/// The entries of a page whose checksum holds.
fn entries_of(page: &[u8], files: FileRange, number: u64) -> io::Result<&[u8]> {
    let (checksum, entries) = page.split_first_chunk::<4>().ok_or_else(|| damaged("a page is cut"))?;
    if page.len() == PAGE && u32::from_le_bytes(*checksum) == crc32c::crc32c(entries) {
        return Ok(entries);
    }
    Err(damaged(format!(
        "the side file of {files} is damaged in page {number}; it is rebuilt at the next start"
    )))
}

/// What a side file is written from: one pair's numbers and entries at a time, in order of (partition, file).
pub(crate) struct SideWriter<'a> {
    out: &'a mut dyn Write,
    page: Vec<u8>,
    left: u64,
}

impl<'a> SideWriter<'a> {
    /// Writes header and pairs; extents and aborted transactions follow in the same order.
    pub(crate) fn start(side: &SideFile, pairs: &[Pair], out: &'a mut dyn Write) -> io::Result<Self> {
        let mut writer = Self { out, page: Vec::with_capacity(ROOM), left: side.length() };
        writer.page = side.encode_header();
        writer.end_page()?;
        for pair in pairs {
            writer.room(PAIR)?;
            writer.put_pair(pair);
        }
        writer.end_section()?;
        Ok(writer)
    }

    fn put_pair(&mut self, pair: &Pair) {
        self.page.put_u32_le(pair.partition.get());
        self.page.put_u32_le(pair.first_extent);
        self.page.put_u32_le(pair.extents);
        self.page.put_u32_le(pair.first_aborted);
        self.page.put_u32_le(pair.aborted);
        self.page.put_u32_le(0);
        self.page.put_u64_le(pair.file.get());
        self.page.put_i64_le(pair.base_offset.get());
        self.page.put_i64_le(pair.end_offset.get());
        self.page.put_u64_le(pair.bytes);
        self.page.put_i64_le(pair.max_timestamp);
    }

    pub(crate) fn extent(&mut self, extent: &Placed) -> io::Result<()> {
        self.room(EXTENT)?;
        self.page.put_i64_le(extent.base_offset.get());
        self.page.put_u64_le(extent.position);
        self.page.put_i64_le(extent.max_timestamp);
        self.page.put_u32_le(extent.count);
        self.page.put_u32_le(extent.length);
        self.page.put_u64_le(extent.file.get());
        Ok(())
    }

    pub(crate) fn aborted(&mut self, aborted: &AbortedTransaction) -> io::Result<()> {
        self.room(ABORTED)?;
        self.page.put_i64_le(aborted.producer.get());
        self.page.put_i64_le(aborted.first_offset.get());
        self.page.put_i64_le(aborted.last_offset.get());
        self.page.put_i64_le(aborted.last_stable_offset.get());
        Ok(())
    }

    /// Ends the extents, or the aborted transactions.
    pub(crate) fn end_section(&mut self) -> io::Result<()> {
        if self.page.is_empty() { Ok(()) } else { self.end_page() }
    }

    /// Everything was written.
    pub(crate) fn finish(self) {
        assert!(self.left == 0 && self.page.is_empty(), "LOG-25: a side file is as long as its header says");
    }

    fn room(&mut self, size: usize) -> io::Result<()> {
        if self.page.len() / size == ROOM / size { self.end_page() } else { Ok(()) }
    }

    fn end_page(&mut self) -> io::Result<()> {
        self.page.resize(ROOM, 0);
        self.out.write_all(&crc32c::crc32c(&self.page).to_le_bytes())?;
        self.out.write_all(&self.page)?;
        self.page.clear();
        self.left -= PAGE as u64;
        Ok(())
    }
}

impl SideFile {
    /// What a side file of these pairs will be.
    pub(crate) fn of(files: FileRange, level: u16, pairs: &[Pair]) -> Self {
        let sum = |count: fn(&Pair) -> u32| pairs.iter().map(count).sum();
        let number = u32::try_from(pairs.len()).expect("fewer than 2^32 pairs, for a handle has 32 bits");
        Self {
            files,
            level,
            pairs: number,
            extents: sum(|pair| pair.extents),
            aborted: sum(|pair| pair.aborted),
        }
    }
}

#[cfg(test)]
mod tests;
