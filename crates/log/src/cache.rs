//! The block cache: windows of files in memory, bounded and counted.
//!
//! Purpose: the tail of the log is read from memory, history by windows of 1 MiB. Invariants: LOG-28 (cached bytes
//! never pass the bound by more than one window and what is being inserted), LOG-29 (bytes held by reads in flight
//! have a bound of their own), LOG-30 (only published bytes are cached, and published bytes never change, so a cached
//! window is never stale; a window found damaged is dropped, so it is read anew). What it does not do: know extents, partitions or offsets.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

use crate::extents::{FileNumber, FileRange};

/// The unit that history is read in, in bytes.
pub const WINDOW: u64 = 1 << 20;

/// Pieces up to this size share their window's buffer; larger ones are kept as they come.
const SHARED_PIECE: usize = 64 << 10;

/// Most windows read ahead of a reader that goes through a file in order.
const READ_AHEAD: u64 = 4;

/// Where blocks of log files come from.
pub trait BlockSource: Send + Sync {
    /// Reads exactly `length` bytes; may block on the disk.
    ///
    /// # Errors
    /// The disk's error; `UnexpectedEof` past the file's end, `NotFound` for a file that is gone.
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes>;

    /// The same, only if it needs no disk.
    ///
    /// # Errors
    /// As [`BlockSource::read`].
    fn try_read_cached(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Option<Bytes>>;

    /// Reads exactly `length` bytes of the side file of these log files; may block on the disk.
    ///
    /// # Errors
    /// As [`BlockSource::read`]. A source without side files answers `NotFound`.
    fn read_side(&self, files: FileRange, position: u64, length: usize) -> io::Result<Bytes> {
        let _ = (position, length);
        Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no side file of {files}")))
    }
}

/// A file that blocks are read from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum BlockFile {
    Log(FileNumber),
    Side(FileRange),
}

/// A range of a file. `limit` is where the readable part of the file ends, as far as known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub file: BlockFile,
    pub position: u64,
    pub length: u64,
    pub limit: u64,
}

impl Block {
    const fn end(&self) -> u64 {
        self.position + self.length
    }
}

/// Figures of the cache since it was made, and as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheFigures {
    /// Blocks that were in memory.
    pub hits: u64,
    /// Blocks that were not.
    pub misses: u64,
    /// Bytes in cached windows.
    pub bytes: usize,
    /// Bytes held by reads in flight.
    pub pinned_bytes: usize,
    /// Bytes read from the source.
    pub read_bytes: u64,
}

/// A bounded cache of file blocks.
pub struct BlockCache {
    source: Arc<dyn BlockSource>,
    capacity: usize,
    windows: Mutex<Windows>,
    pins: Arc<Pins>,
    hits: AtomicU64,
    misses: AtomicU64,
    read_bytes: AtomicU64,
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockCache").field(&self.figures()).finish()
    }
}

type Key = (BlockFile, u64);

#[derive(Default)]
struct Windows {
    by_key: HashMap<Key, Window>,
    /// Keys in the order of eviction (second chance); may name windows that are gone.
    clock: VecDeque<Key>,
    bytes: usize,
    tail: Option<Tail>,
    /// Per file, the window after the last one read: a reader that comes there reads in order.
    ahead: VecDeque<(BlockFile, u64, u64)>,
}

#[derive(Default)]
struct Window {
    /// By position in the window; they do not overlap.
    pieces: Vec<Piece>,
    charged: usize,
    used: bool,
}

struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// The window that small groups are being added to: they share one buffer, so that adding one copies that one only.
struct Tail {
    key: Key,
    room: BytesMut,
}

/// What a look into the cache gives.
pub(crate) enum Found {
    /// All of it, in order.
    Whole(Vec<Bytes>),
    /// The first hole in it, widened to everything missing around it in its window.
    Hole(Range<u64>),
}

impl Window {
    /// The bytes of `wanted`, or the first hole in them; `within` bounds the hole.
    fn find(&self, wanted: Range<u64>, within: Range<u64>) -> Found {
        let first = self.pieces.partition_point(|piece| piece.end() <= wanted.start);
        let mut at = wanted.start;
        let mut found = Vec::new();
        for piece in &self.pieces[first..] {
            if piece.start > at {
                break;
            }
            let (from, to) = (at - piece.start, piece.end().min(wanted.end) - piece.start);
            found.push(piece.bytes.slice(from as usize..to as usize));
            at = piece.end();
            if at >= wanted.end {
                return Found::Whole(found);
            }
        }
        let before = self.pieces.partition_point(|piece| piece.end() <= at);
        let start = before.checked_sub(1).map_or(within.start, |index| self.pieces[index].end());
        let end = self.pieces.get(before).map_or(within.end, |piece| piece.start);
        Found::Hole(start.max(within.start)..end.min(within.end))
    }

    /// Adds those parts of `bytes` that are not there; gives how many bytes that is.
    fn fill(&mut self, start: u64, bytes: &Bytes) -> usize {
        let end = start + bytes.len() as u64;
        let (mut at, mut index, mut added) = (start, 0, 0);
        while at < end {
            while self.pieces.get(index).is_some_and(|piece| piece.end() <= at) {
                index += 1;
            }
            let next = self.pieces.get(index).map_or(u64::MAX, |piece| piece.start);
            if next <= at {
                at = self.pieces[index].end();
                continue;
            }
            let to = next.min(end);
            let part = bytes.slice((at - start) as usize..(to - start) as usize);
            added += part.len();
            self.pieces.insert(index, Piece { start: at, bytes: part });
            at = to;
        }
        added
    }
}

impl Windows {
    fn window(&mut self, key: Key) -> &mut Window {
        let clock = &mut self.clock;
        self.by_key.entry(key).or_insert_with(|| {
            clock.push_back(key);
            Window::default()
        })
    }

    fn charge(&mut self, key: Key, bytes: usize) {
        self.window(key).charged += bytes;
        self.bytes += bytes;
    }

    fn insert(&mut self, key: Key, start: u64, bytes: &Bytes) {
        let added = self.window(key).fill(start, bytes);
        self.charge(key, added);
    }

    /// Adds a small piece to the buffer that its window's small pieces share.
    fn append(&mut self, key: Key, start: u64, bytes: &[u8]) {
        if self.tail.as_ref().is_none_or(|tail| tail.key != key || tail.room.capacity() < bytes.len()) {
            let left = WINDOW as usize - (start % WINDOW) as usize;
            self.tail = Some(Tail { key, room: BytesMut::with_capacity(left) });
            self.charge(key, left);
        }
        let Some(tail) = &mut self.tail else { return };
        tail.room.extend_from_slice(bytes);
        let piece = tail.room.split().freeze();
        self.window(key).fill(start, &piece);
    }

    fn evict(&mut self, capacity: usize) {
        while self.bytes > capacity {
            let Some(key) = self.clock.pop_front() else { return };
            match self.by_key.get_mut(&key) {
                Some(window) if window.used => {
                    window.used = false;
                    self.clock.push_back(key);
                }
                Some(_) => self.remove(key),
                None => {}
            }
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(window) = self.by_key.remove(&key) {
            self.bytes -= window.charged;
        }
        if self.tail.as_ref().is_some_and(|tail| tail.key == key) {
            self.tail = None;
        }
    }

    /// How many windows to read from this one on: more, the longer a reader has gone in order.
    fn read_ahead(&mut self, file: BlockFile, window: u64) -> u64 {
        let in_order = self.ahead.iter().position(|(of, next, _)| (*of, *next) == (file, window));
        let depth = in_order.and_then(|index| self.ahead.remove(index)).map_or(1, |(.., depth)| depth * 2);
        let depth = depth.min(READ_AHEAD);
        self.ahead.push_back((file, window + depth, depth));
        if self.ahead.len() > 64 {
            self.ahead.pop_front();
        }
        depth
    }
}

/// Bytes that reads in flight hold.
struct Pins {
    limit: usize,
    held: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
}

/// Room for the bytes of one read; given back when the last of its slices is dropped.
pub(crate) struct Pinned {
    pins: Arc<Pins>,
    bytes: usize,
}

impl Pinned {
    /// Gives back what turned out not to be needed.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.pins.release(self.bytes - bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.pins.release(self.bytes);
    }
}

impl Pins {
    fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::AcqRel);
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes room for `bytes`. A read larger than the whole bound is let in alone.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Pinned> {
        let fits =
            |held: usize| (held == 0 || held.saturating_add(bytes) <= self.limit).then_some(held + bytes);
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).ok()?;
        Some(Pinned { pins: Arc::clone(self), bytes })
    }
}

/// A slice that is counted as pinned until it is dropped.
struct Counted {
    bytes: Bytes,
    _pinned: Arc<Pinned>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Makes a slice count as pinned until its last clone is dropped.
pub(crate) fn counted(bytes: Bytes, pinned: &Arc<Pinned>) -> Bytes {
    Bytes::from_owner(Counted { bytes, _pinned: Arc::clone(pinned) })
}

impl BlockCache {
    /// A cache of at most `cache_bytes`, with at most `pinned_bytes` held by reads in flight.
    #[must_use]
    pub fn new(source: Arc<dyn BlockSource>, cache_bytes: usize, pinned_bytes: usize) -> Self {
        Self {
            source,
            capacity: cache_bytes,
            windows: Mutex::default(),
            pins: Arc::new(Pins {
                limit: pinned_bytes,
                held: AtomicUsize::new(0),
                waiting: Mutex::default(),
            }),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
        }
    }

    /// Where its blocks come from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn BlockSource> {
        &self.source
    }

    /// Figures for metrics.
    #[must_use]
    pub fn figures(&self) -> CacheFigures {
        CacheFigures {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            bytes: self.windows.lock().bytes,
            pinned_bytes: self.pins.held.load(Ordering::Acquire),
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
        }
    }

    /// Takes the bytes of a group that just became durable, so that the tail is read from memory. Pieces above
    /// 64 KiB are kept as they are: hand over memory that is not written again.
    pub fn insert_written(&self, file: FileNumber, position: u64, bytes: Bytes) {
        let mut windows = self.windows.lock();
        let (mut position, mut rest) = (position, bytes);
        while !rest.is_empty() {
            let room = WINDOW - position % WINDOW;
            let part = rest.split_to(rest.len().min(room as usize));
            let key = (BlockFile::Log(file), position / WINDOW);
            if part.len() <= SHARED_PIECE {
                windows.append(key, position, &part);
            } else {
                windows.insert(key, position, &part);
            }
            position += part.len() as u64;
        }
        windows.evict(self.capacity);
    }

    /// Drops the cached blocks of a file that is about to be recycled.
    pub fn forget_file(&self, file: FileNumber) {
        self.forget(BlockFile::Log(file));
    }

    pub(crate) fn forget(&self, file: BlockFile) {
        let mut windows = self.windows.lock();
        let keys: Vec<_> = windows.by_key.keys().filter(|(of, _)| *of == file).copied().collect();
        keys.into_iter().for_each(|key| windows.remove(key));
        windows.clock.retain(|(of, _)| *of != file);
    }

    /// Drops the cached windows that a range of a file touches: what they hold is not what was written there.
    pub(crate) fn forget_range(&self, file: BlockFile, range: Range<u64>) {
        let mut windows = self.windows.lock();
        let touched = range.start / WINDOW..range.end.div_ceil(WINDOW);
        touched.clone().for_each(|window| windows.remove((file, window)));
        windows.clock.retain(|(of, window)| *of != file || !touched.contains(window));
    }

    /// Wakes `waker` when bytes held by reads in flight are next given back, at once if nothing is held: after
    /// [`crate::ReadError::Busy`], to try again.
    pub fn wake_when_unpinned(&self, waker: &Waker) {
        let mut waiting = self.pins.waiting.lock();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        drop(waiting);
        // Asked after the registration: what is held now meets it when it is given back.
        if self.pins.held.load(Ordering::Acquire) == 0 {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn pin(&self, bytes: usize) -> Option<Pinned> {
        self.pins.take(bytes)
    }

    /// The block if it is in memory, else the first hole in it.
    pub(crate) fn look(&self, block: &Block) -> Found {
        let mut windows = self.windows.lock();
        let mut found = Vec::new();
        let mut at = block.position;
        while at < block.end() {
            let window = at / WINDOW;
            let within = window * WINDOW..((window + 1) * WINDOW).min(block.limit.max(block.end()));
            let wanted = at..block.end().min(within.end);
            at = wanted.end;
            match windows.by_key.get_mut(&(block.file, window)) {
                Some(cached) => {
                    cached.used = true;
                    match cached.find(wanted, within) {
                        Found::Whole(mut part) => found.append(&mut part),
                        hole @ Found::Hole(_) => return hole,
                    }
                }
                None => return Found::Hole(within),
            }
        }
        Found::Whole(found)
    }

    fn look_counted(&self, block: &Block) -> Found {
        let found = self.look(block);
        let counter = if matches!(found, Found::Whole(_)) { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The block without touching the disk: from memory, or from the operating system's.
    pub(crate) fn get_cached(&self, block: &Block) -> io::Result<Option<Vec<Bytes>>> {
        let BlockFile::Log(file) = block.file else {
            return Ok(match self.look_counted(block) {
                Found::Whole(found) => Some(found),
                Found::Hole(_) => None,
            });
        };
        self.assemble(block, |hole| {
            let length = (hole.end - hole.start) as usize;
            match self.source.try_read_cached(file, hole.start, length) {
                Ok(bytes) => Ok(bytes.map(|bytes| (hole.start, bytes))),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// The block, from the disk where it is not in memory.
    pub(crate) fn get(&self, block: &Block) -> io::Result<Vec<Bytes>> {
        // What would push out a large part of the cache goes past it, in one read.
        if block.length as usize > self.capacity / 4 {
            return self.get_past_cache(block);
        }
        let found = self.assemble(block, |hole| self.read_hole(block, hole).map(Some))?;
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn get_past_cache(&self, block: &Block) -> io::Result<Vec<Bytes>> {
        match self.look_counted(block) {
            Found::Whole(bytes) => Ok(bytes),
            Found::Hole(_) => Ok(vec![self.read_source(block.file, block.position..block.end())?]),
        }
    }

    /// The block out of what is cached and what `read` gives for its holes; `None` as soon as that gives nothing.
    fn assemble(
        &self,
        block: &Block,
        read: impl Fn(Range<u64>) -> io::Result<Option<(u64, Bytes)>>,
    ) -> io::Result<Option<Vec<Bytes>>> {
        // What was read is kept at hand: a cache smaller than the block may have dropped the start of it again.
        let mut at_hand = Window::default();
        let mut found = self.look_counted(block);
        loop {
            let hole = match found {
                Found::Whole(bytes) => return Ok(Some(bytes)),
                Found::Hole(hole) => hole,
            };
            let Some((start, bytes)) = read(hole)? else { return Ok(None) };
            at_hand.fill(start, &bytes);
            self.insert_read(block.file, start, bytes);
            found = self.look_beside(block, &mut at_hand);
        }
    }

    /// Brings what the cache has of the block to hand; gives the first hole that is left.
    fn look_beside(&self, block: &Block, at_hand: &mut Window) -> Found {
        let whole = block.position..block.end();
        loop {
            let hole = match at_hand.find(whole.clone(), whole.clone()) {
                Found::Whole(bytes) => return Found::Whole(bytes),
                Found::Hole(hole) => hole,
            };
            let window_end = (hole.start / WINDOW + 1) * WINDOW;
            let part =
                Block { position: hole.start, length: hole.end.min(window_end) - hole.start, ..*block };
            match self.look(&part) {
                Found::Whole(bytes) => {
                    let mut at = part.position;
                    for piece in bytes {
                        at_hand.fill(at, &piece);
                        at += piece.len() as u64;
                    }
                }
                hole @ Found::Hole(_) => return hole,
            }
        }
    }

    /// Reads a hole, which lies in one window, and windows after it for a reader that goes in order.
    fn read_hole(&self, block: &Block, hole: Range<u64>) -> io::Result<(u64, Bytes)> {
        let window = hole.start / WINDOW;
        // A small cache would drop what was read ahead before it is met.
        let has_room = self.capacity as u64 >= 4 * READ_AHEAD * WINDOW;
        let depth = if has_room { self.windows.lock().read_ahead(block.file, window) } else { 1 };
        let bytes = match self.read_source(block.file, hole.clone()) {
            // The readable part of a file may end before its last window does.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let needed = hole.start.max(block.position)..hole.end.min(block.end());
                return Ok((needed.start, self.read_source(block.file, needed)?));
            }
            other => other?,
        };
        for next in (window + 1..window + depth).map(|next| next * WINDOW) {
            let ahead = next..(next + WINDOW).min(block.limit);
            if ahead.is_empty() || !self.read_if_absent(block.file, ahead) {
                break;
            }
        }
        Ok((hole.start, bytes))
    }

    /// Reads ahead; whatever goes wrong there is met again by who needs it.
    fn read_if_absent(&self, file: BlockFile, range: Range<u64>) -> bool {
        if self.windows.lock().by_key.contains_key(&(file, range.start / WINDOW)) {
            return true;
        }
        let start = range.start;
        self.read_source(file, range).map(|bytes| self.insert_read(file, start, bytes)).is_ok()
    }

    fn read_source(&self, file: BlockFile, range: Range<u64>) -> io::Result<Bytes> {
        let length = (range.end - range.start) as usize;
        let bytes = match file {
            BlockFile::Log(file) => self.source.read(file, range.start, length)?,
            BlockFile::Side(files) => self.source.read_side(files, range.start, length)?,
        };
        if bytes.len() != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    fn insert_read(&self, file: BlockFile, start: u64, bytes: Bytes) {
        let mut windows = self.windows.lock();
        windows.insert((file, start / WINDOW), start, &bytes);
        windows.evict(self.capacity);
    }
}

#[cfg(test)]
mod tests;
