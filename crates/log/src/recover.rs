//! Recovery: the newest good snapshot, then the log behind it, as far as its groups chain.
//!
//! Invariants: a group is accepted only if sequence, position, incarnation and the CRC of the group before chain,
//! and its events are intact; its payloads are checked too unless a later group proves that it was durable.
//! What is behind the end is searched for proof that acknowledged data is missing; with proof nothing is opened.
//! Nothing is written; what was accepted is synced. What it does not do: repair (see `salvage`).

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    path::PathBuf,
    sync::Arc,
};

use semel_events::{DecodeError, Event, Reader, Visible};
use semel_types::{LogSequence, PartitionHandle, ShardEpoch};

use crate::{
    BlockCache, Corruption, FileNumber, FileRange, IndexEntries, LogPosition as Place, OpenError, Options,
    Published, SideFile, StateMachine,
    disk::{BLOCK, Disk, DiskFile, WriteMode},
    files::{FileRules, Files, LogFile, RESERVE, Spare, side_range},
    format::{
        VERSION,
        file::{self, FIRST_GROUP, FileHeader},
        group::{self, GroupHeader, HEADER, Kind, read_index},
        snapshot::{self as snapshot_format, After, Boundary},
    },
    open_sides,
    snapshot::{self, ENDING, Kept},
};

/// Bytes read at once where groups are small.
const WINDOW: usize = 64 << 10;
/// Bytes read at once where the log is searched.
const SEARCH: usize = 1 << 20;

/// What stands in a directory.
pub struct Directory {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Log files by number.
    pub files: Vec<LogFile>,
    /// Log files whose header page is unreadable.
    pub nameless: Vec<(String, Arc<dyn DiskFile>)>,
    /// Good snapshots, oldest first.
    pub snapshots: Vec<Kept>,
    /// Names of damaged snapshots.
    pub damaged: Vec<String>,
    /// Log files that are shorter than their header page says.
    pub short: Vec<Short>,
    /// Largest sequence that a damaged snapshot's readable header proves durable.
    pub proven: LogSequence,
    /// State and index of the newest good one.
    pub newest: Option<(snapshot_format::SnapshotHeader, Vec<u8>)>,
    /// Log files covered by each side file that is there.
    pub sides: Vec<FileRange>,
    /// Random number of the directory, if any file tells.
    pub identity: Option<u64>,
}

/// A log file that is shorter than it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Short {
    /// Which file.
    pub file: FileNumber,
    /// Its length.
    pub length: u64,
    /// The length it was made with.
    pub made: u64,
}

/// Where the log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Place, sequence, CRC and incarnation of the last group.
    pub boundary: Boundary,
    /// Bytes of events replayed.
    pub event_bytes: u64,
}

/// A group that chains but is not applied yet.
struct Accepted {
    header: GroupHeader,
    section: Vec<u8>,
    before: End,
}

/// Takes accepted groups in order.
pub trait Sink {
    /// One whole group.
    ///
    /// # Errors
    /// Its events cannot be understood.
    fn group(&mut self, header: &GroupHeader, section: &[u8]) -> Result<(), DecodeError>;
}

/// Applies groups to the machine and the published view.
pub struct Replay<'a> {
    /// The state.
    pub machine: &'a mut dyn StateMachine,
    /// The view.
    pub published: &'a Published,
}

impl Sink for Replay<'_> {
    fn group(&mut self, header: &GroupHeader, section: &[u8]) -> Result<(), DecodeError> {
        let (index, events) = section.split_at(header.index_length as usize);
        let index = read_index(header, index)?;
        let mut reader = Reader::new(events);
        let mut visible: Vec<Visible> = Vec::new();
        for number in 0..u64::from(header.count) {
            let sequence = LogSequence::new(header.first_sequence.get() + number);
            let event = Event::decode(&mut reader)?;
            self.machine.apply(sequence, &event, &mut visible);
        }
        self.published.publish(header.last_sequence(), &index.extents, visible);
        Ok(())
    }
}

/// Maps a refusal of the system to what the operator must know.
pub fn lock(disk: &dyn Disk, directory: PathBuf) -> Result<(), OpenError> {
    disk.lock().map_err(|source| {
        if source.kind() == io::ErrorKind::WouldBlock {
            OpenError::InUse { directory, holder: source.to_string() }
        } else {
            OpenError::NotWritable { directory, source }
        }
    })
}

impl Directory {
    /// Reads all header pages and the snapshots.
    ///
    /// # Errors
    /// The disk failed, or a newer Semel wrote something.
    pub fn read(disk: Arc<dyn Disk>, mode: WriteMode) -> Result<Self, OpenError> {
        let mut found = Self {
            disk,
            files: Vec::new(),
            nameless: Vec::new(),
            snapshots: Vec::new(),
            damaged: Vec::new(),
            short: Vec::new(),
            proven: LogSequence::new(0),
            newest: None,
            sides: Vec::new(),
            identity: None,
        };
        let mut names = found.disk.list()?;
        names.sort();
        for name in names {
            if name.ends_with(".log") {
                found.log_file(name, mode)?;
            } else if name.ends_with(ENDING) {
                found.snapshot(name)?;
            } else {
                found.sides.extend(side_range(&name));
            }
        }
        found.files.sort_by_key(|file| file.number);
        found.snapshots.sort_by_key(|kept| kept.boundary.sequence);
        found.newest_snapshot()?;
        Ok(found)
    }

    /// The file of this number, if it is shorter than it was made.
    pub fn short(&self, file: FileNumber) -> Option<Short> {
        self.short.iter().find(|short| short.file == file).copied()
    }

    fn log_file(&mut self, name: String, mode: WriteMode) -> Result<(), OpenError> {
        let opened = self.disk.open(&name, mode)?;
        let length = opened.length()?;
        let mut page = vec![0; BLOCK.min(length as usize)];
        opened.read(0, &mut page)?;
        match FileHeader::read(&page) {
            file::Found::Newer(found) => return Err(OpenError::NewerFormat { name, found, known: VERSION }),
            file::Found::Nothing => self.nameless.push((name, opened)),
            file::Found::Header(header) => {
                if length < header.length {
                    self.short.push(Short { file: header.number, length, made: header.length });
                }
                self.identity = self.identity.or(Some(header.identity));
                let (number, is_reserve) = (header.number, name.starts_with(RESERVE));
                self.files.push(LogFile { number, name, file: opened, length, is_reserve, filled: 0 });
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, name: String) -> Result<(), OpenError> {
        let opened = self.disk.open(&name, WriteMode::Buffered)?;
        match snapshot::read_header(&*opened)? {
            snapshot_format::Found::Newer(found) => {
                Err(OpenError::NewerFormat { name, found, known: VERSION })
            }
            snapshot_format::Found::Nothing => {
                self.damaged.push(name);
                Ok(())
            }
            snapshot_format::Found::Header(header) => {
                self.identity = Some(header.identity);
                let bytes = header.total().unwrap_or(0);
                self.snapshots.push(Kept { name, boundary: header.boundary, bytes });
                Ok(())
            }
        }
    }

    /// Reads snapshots from the newest on until one is good; the damaged ones still witness their sequence.
    fn newest_snapshot(&mut self) -> Result<(), OpenError> {
        while let Some(kept) = self.snapshots.last() {
            let opened = self.disk.open(&kept.name, WriteMode::Buffered)?;
            self.newest = snapshot::read(&*opened)?;
            if self.newest.is_some() {
                break;
            }
            self.proven = self.proven.max(kept.boundary.sequence);
            self.damaged.extend(self.snapshots.pop().map(|kept| kept.name));
        }
        Ok(())
    }

    /// Where the log goes on behind the newest good snapshot.
    pub fn start(&self) -> End {
        let fresh = Boundary {
            place: Place { file: FileNumber::new(1), position: FIRST_GROUP },
            ..Boundary::default()
        };
        let boundary = self.newest.as_ref().map_or(fresh, |(header, _)| header.boundary);
        End { boundary, event_bytes: 0 }
    }

    /// The file of this number.
    pub fn file(&self, number: FileNumber) -> Option<&LogFile> {
        let index = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        self.files.get(index)
    }

    /// Takes state and index of the newest good snapshot.
    ///
    /// # Errors
    /// Its checksum is right, but it cannot be understood; or a side file cannot be made good.
    pub fn restore(
        &mut self,
        machine: &mut dyn StateMachine,
        readers: &Readers<'_>,
    ) -> Result<(), OpenError> {
        let Some((header, content)) = self.newest.take() else {
            let sides = self.open_sides(FileNumber::new(0), readers)?;
            readers.published.restore(LogSequence::new(0), Vec::new(), &IndexEntries::default(), sides);
            return Ok(());
        };
        let name = self.snapshots.last().map(|kept| kept.name.clone()).unwrap_or_default();
        let wrap = |(position, source)| OpenError::Undecodable { name: name.clone(), position, source };
        let (state, index) = content.split_at(header.state_length as usize);
        let at = |offset: usize, reader: &Reader<'_>| (BLOCK + offset + reader.position()) as u64;
        let reader = &mut Reader::new(state);
        machine.restore(reader).map_err(|source| wrap((at(0, reader), source)))?;
        let reader = &mut Reader::new(index);
        let index = IndexEntries::decode(reader, Place::default());
        let index = index.map_err(|source| wrap((at(state.len(), reader), source)))?;
        let mut visible = Vec::new();
        machine.visible(&mut visible);
        let sides = self.open_sides(index.covered_through, readers)?;
        readers.published.restore(header.boundary.sequence, visible, &index, sides);
        Ok(())
    }

    /// The side files to go on with; those up to `covered_through` are made anew where they are damaged or missing.
    fn open_sides(&self, covered_through: FileNumber, readers: &Readers<'_>) -> io::Result<Vec<SideFile>> {
        let first = self.files.first().map_or(FileNumber::new(1), |file| file.number);
        let files = FileRange { first, last: covered_through };
        open_sides(readers.files, &self.sides, files, &mut |file| self.entries_of(file))
    }

    /// The entries of a sealed file, from the directories of its groups.
    fn entries_of(&self, number: FileNumber) -> io::Result<IndexEntries> {
        let mut entries = IndexEntries::default();
        let Some(file) = self.file(number) else { return Ok(entries) };
        let (mut window, mut previous) = (Window::default(), None);
        let mut place = Place { file: number, position: FIRST_GROUP };
        while let Some(bytes) = window.get(file, place, HEADER)? {
            let group::Found::Header(header, checksum) = GroupHeader::read(bytes) else { break };
            let chains = previous.is_none_or(|previous| previous == header.previous);
            if header.place != place || self.identity != Some(header.identity) || !chains {
                break;
            }
            let Some(bytes) = window.get(file, place, header.payload_start())? else { break };
            let index = read_index(&header, &bytes[HEADER..HEADER + header.index_length as usize]);
            let index =
                index.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            entries.extents.extend(index.extents);
            entries.aborted.extend(index.aborted);
            (place, previous) = (header.end(), Some(checksum));
        }
        Ok(entries)
    }
}

/// What recovery rebuilds for readers.
pub struct Readers<'a> {
    /// The view.
    pub published: &'a Published,
    /// The cache over `files`.
    pub cache: &'a BlockCache,
    /// Log files and side files.
    pub files: &'a Files,
}

/// Walks the log from `start` on and gives each group that is surely whole to `sink`.
pub struct Walk<'a> {
    directory: &'a Directory,
    verify_payloads: bool,
    end: End,
    accepted: VecDeque<Accepted>,
    window: Window,
    replayed: BTreeSet<FileNumber>,
}

/// A piece of a file in memory.
#[derive(Default)]
struct Window {
    place: Place,
    bytes: Vec<u8>,
}

impl Window {
    /// `length` bytes at `place`; `None` past the file's end.
    fn get(&mut self, file: &LogFile, place: Place, length: usize) -> io::Result<Option<&[u8]>> {
        if place.position + length as u64 > file.length {
            return Ok(None);
        }
        let ends = self.place.position + self.bytes.len() as u64;
        let inside = self.place.file == place.file && self.place.position <= place.position;
        if !inside || place.position + length as u64 > ends {
            let left = (file.length - place.position) as usize;
            self.bytes.resize(length.max(WINDOW).min(left), 0);
            self.place = place;
            file.file.read(place.position, &mut self.bytes)?;
        }
        let from = (place.position - self.place.position) as usize;
        Ok(Some(&self.bytes[from..from + length]))
    }
}

impl<'a> Walk<'a> {
    /// Starts behind `start`.
    pub fn new(directory: &'a Directory, start: End, options: &Options) -> Self {
        Self {
            directory,
            verify_payloads: options.verify_payloads,
            end: start,
            accepted: VecDeque::new(),
            window: Window::default(),
            replayed: BTreeSet::new(),
        }
    }

    /// Walks to the end of the log.
    ///
    /// # Errors
    /// The disk failed, a newer Semel wrote a group, or an event cannot be understood.
    pub fn run(mut self, sink: &mut dyn Sink) -> Result<(End, BTreeSet<FileNumber>), OpenError> {
        while let Some((header, checksum, section)) = self.next()? {
            let before = self.end;
            self.end = End {
                boundary: Boundary {
                    place: header.end(),
                    sequence: header.last_sequence(),
                    previous: checksum,
                    incarnation: header.incarnation,
                    after: After { is_stop: header.kind == Kind::Stop, answers_early: header.answers_early },
                },
                event_bytes: before.event_bytes + u64::from(header.events_length),
            };
            self.accepted.push_back(Accepted { header, section, before });
            if !self.apply_witnessed(header.durable_end, sink)? {
                return Ok((self.end, self.replayed));
            }
        }
        self.apply_intact(sink)?;
        Ok((self.end, self.replayed))
    }

    /// The next group, here or at the front of the next file.
    fn next(&mut self) -> Result<Option<(GroupHeader, u32, Vec<u8>)>, OpenError> {
        let here = self.end.boundary.place;
        if let Some(group) = self.group(here)? {
            return Ok(Some(group));
        }
        self.group(Place { file: here.file.next(), position: FIRST_GROUP })
    }

    /// The group at this place, if it chains and its events are intact.
    fn group(&mut self, place: Place) -> Result<Option<(GroupHeader, u32, Vec<u8>)>, OpenError> {
        let Some(file) = self.directory.file(place.file) else { return Ok(None) };
        let Some(bytes) = self.window.get(file, place, HEADER)? else { return Ok(None) };
        let (header, checksum) = match GroupHeader::read(bytes) {
            group::Found::Header(header, checksum) => (header, checksum),
            group::Found::Newer(found) => {
                return Err(OpenError::NewerFormat { name: file.name.clone(), found, known: VERSION });
            }
            group::Found::Nothing => return Ok(None),
        };
        if !self.chains(&header, place) || place.position + header.total() as u64 > file.length {
            return Ok(None);
        }
        let Some(bytes) = self.window.get(file, place, header.payload_start())? else { return Ok(None) };
        let section = &bytes[HEADER..];
        let intact = crc32c::crc32c(section) == header.section_checksum;
        Ok(intact.then(|| (header, checksum, section.to_vec())))
    }

    fn chains(&self, header: &GroupHeader, place: Place) -> bool {
        let end = &self.end.boundary;
        let first = end.sequence.get() + 1;
        header.place == place
            && self.directory.identity == Some(header.identity)
            && header.first_sequence.get() == first
            && header.previous == end.previous
            && (header.incarnation == end.incarnation || header.kind == Kind::Open)
    }

    /// Applies the groups that a later one proves durable. False if one of them turns out damaged: the end is then
    /// before it.
    fn apply_witnessed(&mut self, durable: Place, sink: &mut dyn Sink) -> Result<bool, OpenError> {
        while self.accepted.front().is_some_and(|group| group.header.end() <= durable) {
            let group = self.accepted.pop_front().expect("there is a front");
            if self.verify_payloads && !self.payload_is_intact(&group.header)? {
                self.end = group.before;
                return Ok(false);
            }
            self.apply(&group, sink)?;
        }
        Ok(true)
    }

    /// Applies the rest as far as their payloads are intact; the end is before the first that is not.
    fn apply_intact(&mut self, sink: &mut dyn Sink) -> Result<(), OpenError> {
        while let Some(group) = self.accepted.pop_front() {
            if !self.payload_is_intact(&group.header)? {
                self.end = group.before;
                return Ok(());
            }
            self.apply(&group, sink)?;
        }
        Ok(())
    }

    fn apply(&mut self, group: &Accepted, sink: &mut dyn Sink) -> Result<(), OpenError> {
        let place = group.header.place;
        self.replayed.insert(place.file);
        sink.group(&group.header, &group.section).map_err(|source| OpenError::Undecodable {
            name: self.directory.file(place.file).map(|file| file.name.clone()).unwrap_or_default(),
            position: place.position,
            source,
        })
    }

    fn payload_is_intact(&mut self, header: &GroupHeader) -> io::Result<bool> {
        let Some(file) = self.directory.file(header.place.file) else { return Ok(false) };
        let mut bytes = vec![0; header.payload_length as usize];
        file.file.read(header.place.position + header.payload_start() as u64, &mut bytes)?;
        Ok(crc32c::crc32c(&bytes) == header.payload_checksum)
    }
}

/// Searches everything behind the end for proof that acknowledged data is missing.
///
/// # Errors
/// [`OpenError::Corrupt`] if there is proof; else the disk's error.
pub fn search(directory: &Directory, end: &End) -> Result<(), OpenError> {
    let mut search = Search {
        directory,
        end,
        proven: directory.proven,
        partitions: BTreeSet::new(),
        found: false,
        goes_on_here: false,
    };
    search.found = search.proven > end.boundary.sequence;
    let here = end.boundary.place;
    for file in directory.files.iter().filter(|file| file.number >= here.file) {
        let from = if file.number == here.file { here.position } else { FIRST_GROUP };
        search.file(&*file.file, file.length, from, Some(file.number))?;
    }
    for (_, file) in &directory.nameless {
        search.file(&**file, file.length()?, FIRST_GROUP, None)?;
    }
    search.verdict()
}

struct Search<'a> {
    directory: &'a Directory,
    end: &'a End,
    proven: LogSequence,
    partitions: BTreeSet<PartitionHandle>,
    found: bool,
    /// Groups stand behind the end in its own file: what is missing stood here, however blank the place is.
    goes_on_here: bool,
}

impl Search<'_> {
    /// Looks at each block of a file.
    fn file(
        &mut self,
        file: &dyn DiskFile,
        length: u64,
        from: u64,
        number: Option<FileNumber>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut position = from;
        while position + HEADER as u64 <= length {
            bytes.resize(SEARCH.min((length - position) as usize), 0);
            file.read(position, &mut bytes)?;
            for (index, block) in bytes.chunks(BLOCK).enumerate() {
                let at = position + (index * BLOCK) as u64;
                if let group::Found::Header(header, _) = GroupHeader::read(block)
                    && header.place.position == at
                    && number.is_none_or(|number| header.place.file == number)
                {
                    self.header(file, &header)?;
                }
            }
            position += bytes.len() as u64;
        }
        Ok(())
    }

    /// Does this header prove that something at or behind the end was durable?
    fn header(&mut self, file: &dyn DiskFile, header: &GroupHeader) -> io::Result<()> {
        if self.directory.identity != Some(header.identity) {
            return Ok(());
        }
        let missing = &self.end.boundary;
        self.goes_on_here |=
            header.place.file == missing.place.file && header.first_sequence > missing.sequence;
        if header.durable_before > missing.sequence || header.durable_end > missing.place {
            self.found = true;
            self.proven = self.proven.max(header.durable_before);
        }
        if header.first_sequence > missing.sequence && header.place >= missing.place {
            self.name_partitions(file, header)?;
        }
        Ok(())
    }

    /// Names the partitions of a group that is cut; one whose directory is damaged cannot tell.
    fn name_partitions(&mut self, file: &dyn DiskFile, header: &GroupHeader) -> io::Result<()> {
        let start = header.place.position + HEADER as u64;
        let length = header.section_length();
        if start + length as u64 > file.length()? {
            return Ok(());
        }
        let mut bytes = vec![0; length];
        file.read(start, &mut bytes)?;
        if crc32c::crc32c(&bytes) == header.section_checksum {
            let index = read_index(header, &bytes[..header.index_length as usize]).unwrap_or_default();
            self.partitions.extend(index.extents.iter().map(|extent| extent.partition));
        }
        Ok(())
    }

    /// True if no group was ever written here: what is missing stood in the next file.
    fn is_unused(&self, place: Place) -> io::Result<bool> {
        let whole =
            self.directory.file(place.file).is_some_and(|file| place.position + BLOCK as u64 <= file.length);
        if whole { is_blank(self.directory, place) } else { Ok(true) }
    }

    fn verdict(self) -> Result<(), OpenError> {
        if !self.found {
            return Ok(());
        }
        let Boundary { mut place, sequence, .. } = self.end.boundary;
        if !self.goes_on_here && self.directory.file(place.file.next()).is_some() && self.is_unused(place)? {
            place = Place { file: place.file.next(), position: FIRST_GROUP };
        }
        let name = self.directory.file(place.file).map(|file| file.name.clone());
        Err(OpenError::Corrupt(Corruption {
            name: name.unwrap_or_else(|| format!("log {}", place.file)),
            position: place.position,
            first_missing: sequence.next(),
            last_durable: self.proven.max(sequence),
            partitions: self.partitions.into_iter().collect(),
        }))
    }
}

/// What recovery hands to the log.
pub struct Recovered {
    /// Where the log ends.
    pub end: End,
    /// There was no log.
    pub fresh: bool,
    /// The data directory's identity.
    pub identity: u64,
    /// Files that hold groups, in order; the last one goes on being written. Empty if there is no log.
    pub files: Vec<LogFile>,
    /// Files that may be given new numbers.
    pub spares: Vec<Spare>,
    /// The reserve.
    pub reserve: Option<Spare>,
    /// Good snapshots, oldest first.
    pub snapshots: Vec<Kept>,
    /// Names that mean nothing: removed at start.
    pub rubbish: Vec<String>,
}

/// Recovers. Writes nothing, but syncs what it accepted.
///
/// # Errors
/// [`OpenError`].
pub fn recover(
    disk: Arc<dyn Disk>,
    options: &Options,
    machine: &mut dyn StateMachine,
    readers: &Readers<'_>,
) -> Result<Recovered, OpenError> {
    let mode = FileRules::new(options, 0).mode;
    let mut directory = Directory::read(disk, mode)?;
    let start = directory.start();
    directory.restore(machine, readers)?;
    let replay = &mut Replay { machine, published: readers.published };
    let (end, replayed) = Walk::new(&directory, start, options).run(replay)?;
    search(&directory, &end)?;
    check_present(&directory, &start, &end)?;
    check_whole(&directory, &end)?;
    readers.published.finish_restore(readers.cache).map_err(OpenError::Index)?;
    check_used(&directory, &end, readers.published)?;
    let last = end.boundary.place.file;
    // The file that will be written on may hold no group yet, and its header page may only be in a cache.
    for file in directory.files.iter().filter(|file| replayed.contains(&file.number) || file.number == last) {
        file.file.sync()?;
    }
    directory.disk.sync_directory()?;
    Ok(sort_out(directory, end, options))
}

/// Refuses if the file is gone in which the log goes on behind the snapshot.
fn check_present(directory: &Directory, start: &End, end: &End) -> Result<(), OpenError> {
    let is_there = directory.file(start.boundary.place.file).is_some();
    let is_new = start.boundary.incarnation == 0 && directory.files.is_empty();
    if is_there || is_new { Ok(()) } else { Err(gone(directory, start.boundary.place.file, end)) }
}

/// Refuses if the file in which the log ends was cut where it ends, or the one behind it is gone although later ones
/// are there. A crash shortens no file that is used: it is used only when it is whole and durable. A short file that
/// holds no group may never have been finished; one that goes on with a blank block behind the last group has lost
/// nothing.
///
/// # Errors
/// [`OpenError::Corrupt`], or the disk's error.
pub fn check_whole(directory: &Directory, end: &End) -> Result<(), OpenError> {
    let here = end.boundary.place;
    let later = |number: FileNumber| directory.files.iter().any(|file| file.number > number);
    if let Some(short) = directory.short(here.file)
        && here.position > FIRST_GROUP
        && !is_blank(directory, here)?
    {
        return Err(cut(directory, Place { file: here.file, position: short.length }, end));
    }
    let next = here.file.next();
    if later(next) && directory.file(next).is_none() { Err(gone(directory, next, end)) } else { Ok(()) }
}

/// True if a whole block without anything stands here.
fn is_blank(directory: &Directory, place: Place) -> io::Result<bool> {
    let Some(file) = directory.file(place.file) else { return Ok(false) };
    if place.position + BLOCK as u64 > file.length {
        return Ok(false);
    }
    let mut block = vec![0; BLOCK];
    file.file.read(place.position, &mut block)?;
    Ok(block.iter().all(|byte| *byte == 0))
}

fn cut(directory: &Directory, place: Place, end: &End) -> OpenError {
    let name = directory.file(place.file).map(|file| file.name.as_str()).unwrap_or_default();
    OpenError::Corrupt(Corruption {
        name: format!("{name}, which is shorter than it was made,"),
        position: place.position,
        first_missing: end.boundary.sequence.next(),
        last_durable: directory.proven,
        partitions: Vec::new(),
    })
}

/// Refuses if a file is gone that holds batches which are still there.
fn check_used(directory: &Directory, end: &End, published: &Published) -> Result<(), OpenError> {
    let used = published.file_uses().into_iter().map(|(file, _)| file);
    let gone_file = used.into_iter().find(|file| directory.file(*file).is_none());
    gone_file.map_or(Ok(()), |file| Err(gone(directory, file, end)))
}

/// A file that must be there is not; one whose header page cannot be read may be it.
fn gone(directory: &Directory, file: FileNumber, end: &End) -> OpenError {
    let mut candidates = directory.nameless.iter().filter(|(name, _)| !name.starts_with("reserve"));
    let name = candidates.next().map_or_else(
        || format!("log file {file}, which is missing,"),
        |(name, _)| format!("{name}, whose header page cannot be read and which may be log {file}"),
    );
    OpenError::Corrupt(Corruption {
        name,
        position: 0,
        first_missing: end.boundary.sequence.next(),
        last_durable: directory.proven,
        partitions: Vec::new(),
    })
}

/// Which files go on, which are spare, which are rubbish.
fn sort_out(directory: Directory, end: End, options: &Options) -> Recovered {
    let identity = directory.identity.unwrap_or_else(|| directory.disk.random());
    let last = end.boundary.place.file;
    let (files, later): (Vec<_>, Vec<_>) = directory.files.into_iter().partition(|file| file.number <= last);
    let spare = |file: LogFile| Spare { name: file.name, number: Some(file.number), file: file.file };
    let (mut reserve, mut rubbish) = (None, directory.damaged);
    for (name, file) in directory.nameless {
        // A full disk may have given less than all of it.
        let holds_groups = file.length().is_ok_and(|length| length > FIRST_GROUP);
        if name.starts_with(RESERVE) && holds_groups && options.reserve_bytes > 0 && reserve.is_none() {
            reserve = Some(Spare { name, number: None, file });
        } else {
            rubbish.push(name);
        }
    }
    Recovered {
        end,
        fresh: end.boundary.incarnation == 0,
        identity,
        files,
        spares: later.into_iter().map(spare).collect(),
        reserve,
        snapshots: directory.snapshots,
        rubbish,
    }
}

/// The epoch that a leader epoch stands for.
pub fn shard_epoch(epoch: semel_types::LeaderEpoch) -> ShardEpoch {
    ShardEpoch::new(u32::try_from(epoch.get()).unwrap_or(0))
}
