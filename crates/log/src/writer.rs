//! Writes groups: lays them out one after another, writes adjacent ones at once, syncs, publishes.
//!
//! Purpose: the part of the log thread that touches the disk, as a plain struct that tests step as well. Invariants:
//! nothing is published before it is as durable as the durability promises; one write is in flight; after an error
//! nothing more is written. What it does not do: wait, keep time, or decide when a group closes.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use semel_events::Visible;
use semel_types::{
    LogSequence,
    mutation::{Mutation, mutated},
};

use crate::{
    BlockCache, Durability, Extent, FileNumber, LogPosition as Place, Published,
    buffer::{Aligned, Pool},
    crash::crash_point,
    disk::BLOCK,
    files::{Files, LogFile, Preparer},
    format::{
        file::FIRST_GROUP,
        group::Kind,
        snapshot::{After, Boundary},
    },
    open_group::{Chain, ClosedGroup, OpenGroup},
    room::RoomBook,
    syncer::{Mark, Ticket},
};

/// Writes up to this size also fill blocks behind them that were never written.
const SMALL_WRITE: u64 = 64 << 10;
/// How many bytes they fill.
const ZEROS_AHEAD: usize = 512 << 10;

/// Everything that the writer shares with readers and with the background.
#[derive(Clone)]
pub struct Parts {
    /// Files for readers.
    pub files: Arc<Files>,
    /// Makes the next file.
    pub preparer: Arc<Preparer>,
    /// What the node may know of room.
    pub book: Arc<RoomBook>,
    /// What readers see.
    pub published: Arc<Published>,
    /// Where readers get bytes.
    pub cache: Arc<BlockCache>,
    /// How far the writer is.
    pub progress: Arc<Progress>,
}

/// How far the writer is, for the background.
#[derive(Debug, Default)]
pub struct Progress {
    /// Last durable sequence.
    durable: AtomicU64,
    /// The newest file that is full, durable and published.
    sealed: AtomicU64,
}

impl Progress {
    /// Everything up to here is durable.
    pub fn note_durable(&self, sequence: LogSequence) {
        self.durable.fetch_max(sequence.get(), Ordering::AcqRel);
    }

    /// Last durable sequence.
    pub fn durable(&self) -> LogSequence {
        LogSequence::new(self.durable.load(Ordering::Acquire))
    }

    /// The newest file that is full, durable and published; 0 if there is none.
    pub fn sealed(&self) -> FileNumber {
        FileNumber::new(self.sealed.load(Ordering::Acquire))
    }
}

/// How groups are written.
#[derive(Clone, Copy, Debug)]
pub struct WriteRules {
    /// When an outcome may be reported.
    pub durability: Durability,
    /// Groups larger than this bypass the cache.
    pub cached_max: usize,
}

/// The writer. See the module.
pub struct Writer {
    parts: Parts,
    rules: WriteRules,
    pool: Arc<Pool>,
    current: LogFile,
    chain: Chain,
    /// The current file has bytes that are written and not synced.
    unsynced: bool,
    /// Up to here the current file's blocks have been written before.
    zeroed: u64,
    zeros: Option<Aligned>,
    last_kind: Kind,
}

/// Adjacent groups on their way to the disk.
#[derive(Default)]
struct Run {
    start: Place,
    groups: Vec<ClosedGroup>,
    places: Vec<Place>,
}

impl Writer {
    /// Goes on where `chain` ends, in `current`.
    pub fn new(parts: Parts, rules: WriteRules, current: LogFile, chain: Chain) -> Self {
        let writer = Self {
            parts,
            rules,
            pool: Arc::new(Pool::default()),
            zeroed: current.filled,
            zeros: None,
            current,
            chain,
            unsynced: false,
            last_kind: Kind::Rest,
        };
        writer.note_room();
        writer.note_progress();
        writer
    }

    /// True if something is written that a sync would make durable.
    pub fn is_unsynced(&self) -> bool {
        self.unsynced
    }

    /// True if the last group needs no witness any more.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.last_kind, Kind::Rest | Kind::Stop)
    }

    fn left(&self) -> u64 {
        self.current.length.saturating_sub(self.chain.place.position)
    }

    fn note_room(&self) {
        self.parts.book.current.store(self.left(), Ordering::Release);
    }

    /// No file follows or can be made, and what is left of this one is for the groups of starts.
    fn is_at_the_last_bytes(&self) -> io::Result<bool> {
        let book = &self.parts.book;
        let follows = [&book.prepared, &book.reserve].iter().any(|bytes| bytes.load(Ordering::Acquire) > 0);
        let kept = book.kept.load(Ordering::Acquire) / 2;
        if follows || self.left() >= kept.max(BLOCK as u64) {
            return Ok(false);
        }
        self.parts.preparer.prepare_now().map(|prepared| !prepared)
    }

    fn note_progress(&self) {
        let progress = &self.parts.progress;
        progress.note_durable(self.chain.durable);
        progress.sealed.store(self.current.number.get() - 1, Ordering::Release);
    }

    /// Writes, syncs as the durability asks, and publishes whole groups. Returns the last sequence that may be
    /// reported durable.
    ///
    /// # Errors
    /// The disk failed: what was written is unknown, and nothing more may be.
    pub fn commit(&mut self, kind: Kind, groups: Vec<OpenGroup>) -> io::Result<LogSequence> {
        crash_point("before_write");
        slow_if(mutated(Mutation::AnswersBeforeWrite));
        let sync = kind != Kind::Events || groups.iter().any(|group| group.sync_now);
        let (mut extents, mut visible) = (Vec::new(), Vec::new());
        let mut run = Run::default();
        let mut promised = 0;
        for mut group in groups {
            self.lay_out(kind, &group, &mut run, &mut extents)?;
            visible.append(&mut group.visible);
            promised += group.promised;
        }
        let written = self.flush(run)?;
        crash_point("after_write");
        if sync || self.rules.durability == Durability::Sync {
            self.sync()?;
        }
        crash_point("after_sync");
        self.note_room();
        self.parts.book.promised.fetch_sub(promised, Ordering::AcqRel);
        self.publish(&extents, visible, written);
        self.note_progress();
        crash_point("after_publish");
        self.last_kind = kind;
        Ok(self.chain.sequence)
    }

    /// Closes one group at the end of the chain; what no longer fits the file goes to the next one.
    fn lay_out(
        &mut self,
        kind: Kind,
        group: &OpenGroup,
        run: &mut Run,
        extents: &mut Vec<Extent>,
    ) -> io::Result<()> {
        let plan = group.plan();
        let total = plan.total as u64;
        if self.chain.place.position + total > self.current.length {
            let written = self.flush(std::mem::take(run))?;
            self.cache(written);
            self.change_file(total)?;
        }
        let closed = group.close(plan, kind, &self.chain, &self.pool);
        if run.groups.is_empty() {
            run.start = self.chain.place;
        }
        run.places.push(self.chain.place);
        self.chain.place.position += total;
        self.chain.sequence = LogSequence::new(self.chain.sequence.get() + u64::from(group.count));
        self.chain.previous = closed.checksum;
        extents.extend_from_slice(&closed.extents);
        run.groups.push(closed);
        Ok(())
    }

    /// Writes adjacent groups with one call.
    fn flush(&mut self, run: Run) -> io::Result<Run> {
        if run.groups.is_empty() {
            return Ok(run);
        }
        let behind = self.zeros_behind(run.start.position);
        let mut pieces: Vec<&[u8]> = run.groups.iter().map(|group| &*group.bytes).collect();
        if let Some(zeros) = self.zeros.as_ref().filter(|_| behind > 0) {
            pieces.push(&zeros[..behind]);
        }
        self.current.file.write(run.start.position, &pieces)?;
        if self.current.file.writes_are_durable() {
            self.note_durable();
        } else {
            self.unsynced = true;
        }
        Ok(run)
    }

    /// How many zeros go behind a write from `start` to the end of the chain. The first write to an allocated block
    /// makes the file system change and commit its own records, which takes longer than the write itself; so a small
    /// write takes the next blocks along, and those that follow are plain overwrites. The background does the same
    /// for the next file, but a burst can reach that file before it is filled.
    fn zeros_behind(&mut self, start: u64) -> usize {
        let end = self.chain.place.position;
        if end <= self.zeroed {
            return 0;
        }
        let small = end - start <= SMALL_WRITE && self.current.file.writes_are_durable();
        let length = self.current.length / BLOCK as u64 * BLOCK as u64;
        self.zeroed = if small { (end + ZEROS_AHEAD as u64).min(length) } else { end };
        if small {
            self.zeros.get_or_insert_with(|| Aligned::zeroed(ZEROS_AHEAD));
        }
        self.zeroed.saturating_sub(end) as usize
    }

    /// What a sync beside the writer would make durable now, if anything.
    pub fn ticket(&self) -> Option<Ticket> {
        let mark = Mark { sequence: self.chain.sequence, place: self.chain.place };
        self.unsynced.then(|| Ticket { file: self.current.file.clone(), mark })
    }

    /// A sync beside the writer is done.
    pub fn note_synced(&mut self, mark: Mark) {
        if mark.place > self.chain.durable_end {
            (self.chain.durable, self.chain.durable_end) = (mark.sequence, mark.place);
        }
        self.unsynced = self.unsynced && mark.place != self.chain.place;
    }

    fn note_durable(&mut self) {
        (self.chain.durable, self.chain.durable_end) = (self.chain.sequence, self.chain.place);
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// The disk failed; never retried.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.current.file.sync()?;
            self.unsynced = false;
        }
        self.note_durable();
        self.parts.progress.note_durable(self.chain.durable);
        Ok(())
    }

    fn change_file(&mut self, bytes: u64) -> io::Result<()> {
        self.sync()?;
        let next = self.parts.preparer.take(bytes)?;
        assert_eq!(next.number, self.current.number.next(), "files follow each other");
        self.parts.files.insert(next.clone());
        self.chain.place = Place { file: next.number, position: FIRST_GROUP };
        self.zeroed = next.filled;
        self.current = next;
        Ok(())
    }

    fn cache(&self, written: Run) {
        for (group, place) in written.groups.into_iter().zip(written.places) {
            if !group.extents.is_empty() && group.bytes.len() <= self.rules.cached_max {
                self.parts.cache.insert_written(place.file, place.position, group.bytes.into_bytes());
            }
        }
    }

    fn publish(&self, extents: &[Extent], mut visible: Vec<Visible>, written: Run) {
        self.cache(written);
        let in_parts = mutated(Mutation::PublishedInParts) && visible.len() > 2;
        let late = if in_parts { visible.split_off(visible.len() / 2) } else { Vec::new() };
        self.parts.published.publish(self.chain.sequence, extents, visible);
        slow_if(in_parts);
        if in_parts {
            self.parts.published.publish(self.chain.sequence, &[], late);
        }
    }

    /// Writes an empty `Rest` group and syncs it: it witnesses everything before. Left out where the disk is full and
    /// the last bytes are for starts.
    ///
    /// # Errors
    /// The disk failed.
    pub fn rest(&mut self) -> io::Result<()> {
        self.sync()?;
        if self.is_at_the_last_bytes()? {
            self.last_kind = Kind::Rest;
            return Ok(());
        }
        self.commit(Kind::Rest, vec![OpenGroup::default()]).map(drop)
    }

    /// Writes the last group of a clean stop. Left out where the disk is full and the last bytes are for starts,
    /// unless answers were given before the sync: the next start must then know that none is missing.
    ///
    /// # Errors
    /// The disk failed.
    pub fn stop(&mut self) -> io::Result<()> {
        self.sync()?;
        let dispensable = !self.chain.answers_early || self.left() < BLOCK as u64;
        if dispensable && self.is_at_the_last_bytes()? {
            return Ok(());
        }
        self.commit(Kind::Stop, vec![OpenGroup::default()]).map(drop)
    }

    /// Where a snapshot of the state after everything written stands; makes the log durable up to there.
    ///
    /// # Errors
    /// The disk failed.
    pub fn boundary(&mut self) -> io::Result<Boundary> {
        self.sync()?;
        Ok(Boundary {
            place: self.chain.place,
            sequence: self.chain.sequence,
            previous: self.chain.previous,
            incarnation: self.chain.incarnation,
            after: After { is_stop: self.last_kind == Kind::Stop, answers_early: self.chain.answers_early },
        })
    }
}

/// A disk so slow that a test sees what does not wait for it.
fn slow_if(mutated: bool) {
    if mutated {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
