//! The log's files: which there are, the one prepared next, spares, and the reserve.
//!
//! Invariants: a file is handed to the writer only when its blocks, header page and directory entry are synced; two
//! files never bear one number; zeros are written to the prepared file only while nobody has taken it. What it does
//! not do: write groups, or decide which file is dead.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, atomic::Ordering},
};

use bytes::Bytes;
use semel_types::ShardId;

use crate::{
    BlockSource, Durability, FileNumber, FileRange, Options, SideStore,
    crash::crash_point,
    disk::{BLOCK, Disk, DiskFile, WriteMode, is_full},
    format::file::{FIRST_GROUP, FileHeader},
    room::{ReserveTaken, RoomBook},
};

/// Bytes zeroed in one step: the longest time a file change waits for it.
const FILL: u64 = 64 << 10;
/// How the reserve's name begins, also when it has become a log file.
pub const RESERVE: &str = "reserve";
/// The smallest reserve that is taken where the disk has no more.
const RESERVE_MIN: u64 = 1 << 20;
/// Spare files kept for reuse; more are deleted.
const SPARES: usize = 1;

/// One log file.
#[derive(Clone)]
pub struct LogFile {
    /// Its number, as its header page says.
    pub number: FileNumber,
    /// Its name, which says nothing.
    pub name: String,
    /// Its bytes.
    pub file: Arc<dyn DiskFile>,
    /// Its length in bytes.
    pub length: u64,
    /// It was made of the reserve.
    pub is_reserve: bool,
    /// Everything before this position has been written before, with zeros or as another file's content; the rest may
    /// only be allocated.
    pub filled: u64,
}

/// A file that may be given a new number.
pub struct Spare {
    /// Its name.
    pub name: String,
    /// The number in its header page, if that is readable.
    pub number: Option<FileNumber>,
    /// Its bytes.
    pub file: Arc<dyn DiskFile>,
}

/// All files that hold groups, and the side files, for readers.
pub struct Files {
    disk: Arc<dyn Disk>,
    files: RwLock<BTreeMap<FileNumber, LogFile>>,
    sides: Mutex<BTreeMap<FileRange, Arc<dyn DiskFile>>>,
}

/// A side file while it is written.
const SIDE_DRAFT: &str = "side.draft";

/// The name of the side file of these log files.
pub fn side_name(files: FileRange) -> String {
    format!("{:012}-{:012}.side", files.first.get(), files.last.get())
}

/// The log files that a side file of this name covers.
pub fn side_range(name: &str) -> Option<FileRange> {
    let (first, last) = name.strip_suffix(".side")?.split_once('-')?;
    let number = |text: &str| text.parse().ok().map(FileNumber::new);
    Some(FileRange { first: number(first)?, last: number(last)? })
}

impl Files {
    /// None yet.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, files: RwLock::default(), sides: Mutex::default() }
    }

    fn sides(&self) -> MutexGuard<'_, BTreeMap<FileRange, Arc<dyn DiskFile>>> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn side(&self, files: FileRange) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.sides().get(&files) {
            return Ok(file.clone());
        }
        let file = self.disk.open(&side_name(files), WriteMode::Buffered)?;
        self.sides().insert(files, file.clone());
        Ok(file)
    }

    /// Adds a file.
    pub fn insert(&self, file: LogFile) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).insert(file.number, file);
    }

    /// Takes a file away from readers.
    pub fn remove(&self, number: FileNumber) -> Option<LogFile> {
        self.files.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }

    /// The file of this number.
    pub fn get(&self, number: FileNumber) -> Option<LogFile> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// The files up to this one, in order.
    pub fn through(&self, last: FileNumber) -> Vec<FileNumber> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.range(..=last).map(|(number, _)| *number).collect()
    }

    fn found(&self, number: FileNumber) -> io::Result<LogFile> {
        self.get(number)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("log {number} is gone")))
    }
}

impl BlockSource for Files {
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.found(file)?.file.read(position, &mut bytes)?;
        Ok(bytes.into())
    }

    fn try_read_cached(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Option<Bytes>> {
        let mut bytes = vec![0; length];
        let read = self.found(file)?.file.try_read(position, &mut bytes)?;
        Ok(read.then(|| bytes.into()))
    }

    fn read_side(&self, files: FileRange, position: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.side(files)?.read(position, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl SideStore for Files {
    fn write_side(
        &self,
        files: FileRange,
        length: u64,
        fill: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut content = Vec::with_capacity(length.next_multiple_of(BLOCK as u64) as usize);
        fill(&mut content)?;
        content.resize(content.len().next_multiple_of(BLOCK), 0);
        if self.disk.list()?.iter().any(|name| name == SIDE_DRAFT) {
            self.disk.remove(SIDE_DRAFT)?;
        }
        let file = self.disk.create(SIDE_DRAFT, WriteMode::Buffered)?;
        file.write(0, &[&content])?;
        file.sync()?;
        self.disk.rename(SIDE_DRAFT, &side_name(files))?;
        self.disk.sync_directory()?;
        self.sides().insert(files, file);
        Ok(())
    }

    fn remove_side(&self, files: FileRange) -> io::Result<()> {
        self.sides().remove(&files);
        match self.disk.remove(&side_name(files)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// How files are made.
#[derive(Clone, Copy, Debug)]
pub struct FileRules {
    /// The data directory's identity.
    pub identity: u64,
    /// Whose log.
    pub shard: ShardId,
    /// How files are opened.
    pub mode: WriteMode,
    /// Size of the first file.
    pub bytes_min: u64,
    /// Largest size that is not asked for.
    pub bytes_max: u64,
    /// Size of the reserve.
    pub reserve_bytes: u64,
    /// Bytes at the end of a file that records do not get.
    pub kept_bytes: u64,
    /// Fill prepared files with zeros.
    pub fill: bool,
}

/// Makes the next file ahead of time.
pub struct Preparer {
    disk: Arc<dyn Disk>,
    book: Arc<RoomBook>,
    rules: FileRules,
    state: Mutex<State>,
}

struct State {
    next: Option<LogFile>,
    filled: u64,
    number: FileNumber,
    length: u64,
    spares: Vec<Spare>,
    reserve: Option<Spare>,
    /// Bytes of the reserve's file.
    reserve_length: u64,
    /// The reserve was taken as large as the disk gave; from then on it grows when nothing else is to be done.
    reserve_tried: bool,
}

/// What one step of preparation did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// There is a new file, or more reserve.
    Prepared,
    /// Some zeros were written; go on a little later.
    Filled,
    /// The disk is full; try again later.
    Full,
    /// Everything is ready.
    Idle,
}

impl FileRules {
    /// The rules that options ask for.
    pub fn new(options: &Options, identity: u64) -> Self {
        let durable = options.durability == Durability::Sync;
        let in_memory = options.durability == Durability::Memory;
        Self {
            identity,
            shard: options.shard,
            mode: if durable { WriteMode::Durable } else { WriteMode::Buffered },
            bytes_min: options.file_bytes_min,
            bytes_max: options.file_bytes_max,
            reserve_bytes: if in_memory { 0 } else { options.reserve_bytes },
            kept_bytes: if in_memory { 0 } else { options.kept_bytes },
            fill: options.fill && !in_memory,
        }
    }

    /// Size of the file after one of this size.
    pub fn next_length(&self, length: u64) -> u64 {
        (length * 2).clamp(self.bytes_min, self.bytes_max.max(self.bytes_min))
    }
}

/// A length, half of it, half of that, in whole blocks, and at last `least`.
fn halves(length: u64, least: u64) -> impl Iterator<Item = u64> {
    let block = BLOCK as u64;
    let least = least.next_multiple_of(block).min(length);
    std::iter::successors(Some(length), move |length| {
        (*length > least).then(|| (length / 2 / block * block).max(least))
    })
}

/// The first attempt that a full disk does not refuse; its refusal if it refuses all.
fn first_that_fits(mut attempts: impl Iterator<Item = io::Result<()>>) -> io::Result<()> {
    let mut last = Err(io::ErrorKind::StorageFull.into());
    while last.as_ref().is_err_and(is_full) {
        let Some(next) = attempts.next() else { break };
        last = next;
    }
    last
}

impl Preparer {
    /// Will make file `number` of `length` bytes next.
    pub fn new(
        disk: Arc<dyn Disk>,
        book: Arc<RoomBook>,
        rules: FileRules,
        (number, length): (FileNumber, u64),
        (spares, reserve): (Vec<Spare>, Option<Spare>),
    ) -> Self {
        let reserve_length = reserve.as_ref().and_then(|spare| spare.file.length().ok()).unwrap_or(0);
        book.reserve.store(reserve_length.saturating_sub(FIRST_GROUP), Ordering::Release);
        book.kept.store(rules.kept_bytes, Ordering::Release);
        let reserve_tried = false;
        let state =
            State { next: None, filled: 0, number, length, spares, reserve, reserve_length, reserve_tried };
        Self { disk, book, rules, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one bounded piece of work.
    ///
    /// # Errors
    /// The disk failed; being full is no failure.
    pub fn step(&self) -> io::Result<Progress> {
        let mut state = self.state();
        let wanted = self.book.wanted.swap(0, Ordering::AcqRel) + FIRST_GROUP;
        // A little of the reserve comes before everything, the rest of it after the next file.
        let is_urgent = state.reserve_length == 0 && (state.next.is_none() || !state.reserve_tried);
        if is_urgent && self.grow_reserve(&mut state, &[self.reserve_min()])? {
            self.book.wanted.fetch_max(wanted - FIRST_GROUP, Ordering::AcqRel);
            return Ok(Progress::Prepared);
        }
        let done = match &state.next {
            None => {
                state.length = state.length.max(wanted).next_multiple_of(BLOCK as u64);
                self.make(&mut state, self.rules.bytes_min).map(|file| self.hold(&mut state, file))
            }
            Some(next) if next.length < wanted => self.lengthen(&mut state, wanted),
            Some(_) if !state.reserve_tried => self.take_reserve(&mut state),
            Some(next) if self.rules.fill && state.filled < next.length => return self.fill(&mut state),
            Some(_) => return self.enlarge_reserve(&mut state),
        };
        match done {
            Ok(()) => {
                self.book.full.store(false, Ordering::Release);
                Ok(Progress::Prepared)
            }
            Err(error) if is_full(&error) => {
                self.book.full.store(true, Ordering::Release);
                if !state.reserve_tried {
                    self.take_reserve(&mut state)?;
                }
                Ok(Progress::Full)
            }
            Err(error) => Err(error),
        }
    }

    fn hold(&self, state: &mut State, file: LogFile) {
        self.book.prepared_is_reserve.store(file.is_reserve, Ordering::Release);
        self.book.prepared.store(file.length - FIRST_GROUP, Ordering::Release);
        state.next = Some(file);
    }

    /// Makes the next file if there is none. False if the disk has no room for it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn prepare_now(&self) -> io::Result<bool> {
        let mut state = self.state();
        if state.next.is_some() {
            return Ok(true);
        }
        match self.make(&mut state, self.rules.bytes_min) {
            Ok(file) => self.hold(&mut state, file),
            Err(error) if is_full(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Hands the next file to the writer, with at least `bytes` for groups; makes it now if need be, of the reserve
    /// if the disk is full.
    ///
    /// # Errors
    /// The disk failed, or is full and the reserve is used up.
    pub fn take(&self, bytes: u64) -> io::Result<LogFile> {
        crash_point("file_change_before");
        let mut state = self.state();
        let length = (bytes + FIRST_GROUP).next_multiple_of(BLOCK as u64);
        if state.next.as_ref().is_some_and(|next| next.length < length) {
            match self.lengthen(&mut state, length) {
                Err(error) if is_full(&error) => self.discard_next(&mut state)?,
                done => done?,
            }
        }
        if state.next.is_none() {
            state.length = state.length.max(length).next_multiple_of(BLOCK as u64);
            let file = self.make_at_least(&mut state, length)?;
            self.hold(&mut state, file);
        }
        let mut file = state.next.take().expect("a file was just made");
        file.filled = if self.rules.fill { state.filled } else { u64::MAX };
        state.number = file.number.next();
        state.length = self.rules.next_length(file.length);
        self.book.prepared.store(0, Ordering::Release);
        self.book.current_is_reserve.store(file.is_reserve, Ordering::Release);
        crash_point("file_change_after");
        Ok(file)
    }

    /// A file for a group that is decided already: smaller than others where the disk gives no more, then the
    /// reserve, then one for this group alone.
    fn make_at_least(&self, state: &mut State, length: u64) -> io::Result<LogFile> {
        match self.make(state, length + self.rules.kept_bytes) {
            Err(error) if is_full(&error) => {}
            made => return made,
        }
        self.book.full.store(true, Ordering::Release);
        match self.make_of_reserve(state, length)? {
            Some(file) => Ok(file),
            None => {
                state.length = length;
                self.make(state, length)
            }
        }
    }

    /// The prepared file is too short and cannot grow: another one gets its number.
    fn discard_next(&self, state: &mut State) -> io::Result<()> {
        let next = state.next.take().expect("there is a next file");
        self.book.prepared.store(0, Ordering::Release);
        drop(next.file);
        self.disk.remove(&next.name)?;
        self.disk.sync_directory()
    }

    /// Gives a spare, or a new name, the wanted number; of the wanted length, or half of it, or half of that, as the
    /// disk gives, but not less than `least` bytes.
    fn make(&self, state: &mut State, least: u64) -> io::Result<LogFile> {
        let spare = self.spare(state)?;
        let lengths = halves(state.length, least);
        let allocated = lengths.map(|length| spare.file.allocate(length));
        match first_that_fits(allocated) {
            Ok(()) => self.number(state, spare, false),
            Err(error) => {
                if is_full(&error) && spare.number.is_none() {
                    self.disk.remove(&spare.name)?;
                } else {
                    state.spares.push(spare);
                }
                Err(error)
            }
        }
    }

    /// The reserve as a log file, if it holds as much.
    fn make_of_reserve(&self, state: &mut State, length: u64) -> io::Result<Option<LogFile>> {
        if state.reserve_length < length {
            return Ok(None);
        }
        let Some(reserve) = self.drop_reserve(state) else { return Ok(None) };
        self.number(state, reserve, true).map(Some)
    }

    fn drop_reserve(&self, state: &mut State) -> Option<Spare> {
        state.reserve_length = 0;
        state.reserve_tried = false;
        self.book.reserve.store(0, Ordering::Release);
        state.reserve.take()
    }

    /// Gives the reserve's blocks back to the disk for something more urgent, unless something is promised that may
    /// need them. True if there are more blocks now.
    ///
    /// # Errors
    /// The disk failed.
    pub fn give_reserve_up(&self) -> io::Result<bool> {
        let mut state = self.state();
        if self.book.promised.load(Ordering::Acquire) > 0 {
            return Ok(false);
        }
        let Some(reserve) = self.drop_reserve(&mut state) else { return Ok(false) };
        drop(reserve.file);
        self.disk.remove(&reserve.name)?;
        Ok(true)
    }

    /// Writes the header page and makes everything durable: only then is it a log file.
    fn number(&self, state: &mut State, spare: Spare, is_reserve: bool) -> io::Result<LogFile> {
        let length = spare.file.length()?;
        let (identity, shard) = (self.rules.identity, self.rules.shard);
        let header = FileHeader { identity, shard, number: state.number, length };
        spare.file.write(0, &[&header.page()])?;
        spare.file.sync()?;
        self.disk.sync_directory()?;
        // A recycled file has written blocks already.
        state.filled = if spare.number.is_some() { u64::MAX } else { FIRST_GROUP };
        let filled = state.filled;
        Ok(LogFile { number: state.number, name: spare.name, file: spare.file, length, is_reserve, filled })
    }

    /// A spare that bears the wanted number, so that no two files ever do; else any; else a new file.
    fn spare(&self, state: &mut State) -> io::Result<Spare> {
        let same = state.spares.iter().position(|spare| spare.number == Some(state.number));
        if let Some(index) = same {
            return Ok(state.spares.swap_remove(index));
        }
        if let Some(spare) = state.spares.pop() {
            return Ok(spare);
        }
        self.create(&format!("{:012}", state.number.get()))
    }

    fn create(&self, stem: &str) -> io::Result<Spare> {
        let names = self.disk.list()?;
        let candidates =
            (1_u64..).map(|n| if n == 1 { format!("{stem}.log") } else { format!("{stem}-{n}.log") });
        let name = candidates.into_iter().find(|name| !names.contains(name)).expect("some name is free");
        let file = self.disk.create(&name, self.rules.mode)?;
        Ok(Spare { name, number: None, file })
    }

    fn lengthen(&self, state: &mut State, length: u64) -> io::Result<()> {
        let next = state.next.as_mut().expect("there is a next file");
        next.file.allocate(length.next_multiple_of(BLOCK as u64))?;
        next.file.sync()?;
        next.length = next.file.length()?;
        self.book.prepared.store(next.length - FIRST_GROUP, Ordering::Release);
        Ok(())
    }

    fn reserve_min(&self) -> u64 {
        RESERVE_MIN.min(self.rules.reserve_bytes)
    }

    /// Takes the reserve as large as the disk gives.
    fn take_reserve(&self, state: &mut State) -> io::Result<()> {
        let lengths: Vec<u64> = halves(self.rules.reserve_bytes, self.reserve_min()).collect();
        self.grow_reserve(state, &lengths)?;
        self.note_reserve(state);
        Ok(())
    }

    /// What the start got is known.
    fn note_reserve(&self, state: &mut State) {
        state.reserve_tried = true;
        let (wanted_bytes, got_bytes) = (self.rules.reserve_bytes, state.reserve_length);
        self.book.reserve_taken.get_or_init(|| ReserveTaken { wanted_bytes, got_bytes });
    }

    /// Room may have come back: one step on the way to the whole reserve.
    fn enlarge_reserve(&self, state: &mut State) -> io::Result<Progress> {
        let length = (state.reserve_length * 2).clamp(self.reserve_min(), self.rules.reserve_bytes);
        let grown = self.grow_reserve(state, &[length])?;
        Ok(if grown { Progress::Prepared } else { Progress::Idle })
    }

    /// Makes the reserve as long as the first of these lengths that the disk gives. True if it is longer now.
    fn grow_reserve(&self, state: &mut State, lengths: &[u64]) -> io::Result<bool> {
        let longer = lengths.iter().filter(|length| **length > state.reserve_length);
        let mut longer = longer.copied().peekable();
        if longer.peek().is_none() {
            return Ok(false);
        }
        let (reserve, is_new) = match state.reserve.take() {
            Some(reserve) => (reserve, false),
            None => (self.create(RESERVE)?, true),
        };
        let grown = first_that_fits(longer.map(|length| reserve.file.allocate(length)));
        match grown {
            Ok(()) => {
                reserve.file.sync()?;
                self.disk.sync_directory()?;
                state.reserve_length = reserve.file.length()?;
            }
            Err(error) if is_full(&error) && is_new => {
                drop(reserve.file);
                self.disk.remove(&reserve.name)?;
                return Ok(false);
            }
            Err(error) if is_full(&error) => {
                state.reserve = Some(reserve);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        state.reserve = Some(reserve);
        self.book.reserve.store(state.reserve_length.saturating_sub(FIRST_GROUP), Ordering::Release);
        Ok(true)
    }

    fn fill(&self, state: &mut State) -> io::Result<Progress> {
        let next = state.next.as_ref().expect("there is a next file");
        let length = FILL.min(next.length - state.filled);
        next.file.fill(state.filled, length as usize / BLOCK * BLOCK)?;
        state.filled = if length < FILL { u64::MAX } else { state.filled + length };
        if state.filled >= next.length {
            next.file.sync()?;
        }
        Ok(Progress::Filled)
    }

    /// Takes a dead file back: as a spare, or deletes it.
    ///
    /// # Errors
    /// The disk failed.
    pub fn give_back(&self, file: LogFile) -> io::Result<()> {
        let mut state = self.state();
        if state.spares.len() < SPARES {
            state.spares.push(Spare { name: file.name, number: Some(file.number), file: file.file });
            return Ok(());
        }
        drop(state);
        drop(file.file);
        self.disk.remove(&file.name)
    }
}
