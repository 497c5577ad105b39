//! A disk that loses power: for tests and the simulator.
//!
//! Unsynced writes may be kept, lost or torn, each 512-byte sector or each block by itself and in any order; a
//! durable write is torn only if the power fails inside it; names follow the journal: some prefix of the unsynced
//! creations, renames and removals survives. A killed process loses nothing that it wrote.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{BLOCK, Disk, DiskFile, WriteMode};

const SECTOR: usize = 512;

/// One simulated directory; clones share it.
#[derive(Clone)]
pub struct SimulatedDisk {
    world: Arc<Mutex<World>>,
}

struct World {
    random: u64,
    /// Operations left until the power fails.
    fuse: Option<u64>,
    dead: bool,
    /// Bytes that may be allocated in all.
    capacity: u64,
    /// False: durable writes are not offered.
    direct: bool,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    name_changes: Vec<NameChange>,
    files: Vec<Content>,
    operations: u64,
}

enum NameChange {
    Set(String, usize),
    Remove(String),
    /// One journal entry: never both names, never neither.
    Rename(String, String),
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Blocks written and not yet synced, in order.
    pending: Vec<(usize, Box<[u8]>)>,
}

struct SimulatedFile {
    world: Arc<Mutex<World>>,
    number: usize,
    durable: bool,
}

impl SimulatedDisk {
    /// An empty disk; everything it decides follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let world = World {
            random: seed,
            fuse: None,
            dead: false,
            capacity: u64::MAX,
            direct: true,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            files: Vec::new(),
            operations: 0,
        };
        Self { world: Arc::new(Mutex::new(world)) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuse durable writes, like tmpfs.
    pub fn without_direct_writes(&self) {
        self.world().direct = false;
    }

    /// How many bytes all files together may take from now on.
    pub fn set_capacity(&self, bytes: u64) {
        self.world().capacity = bytes;
    }

    /// The power fails inside the operation that comes after `operations` more; every later one fails.
    pub fn fail_after(&self, operations: u64) {
        self.world().fuse = Some(operations);
    }

    /// Operations that change something, so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// True once the power has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.world().dead
    }

    /// Power comes back after a loss: what was not durable may be gone.
    pub fn restore_power(&self) {
        self.world().lose_power();
    }

    /// The process was killed, the machine went on: everything written is still there, synced or not.
    pub fn restart_process(&self) {
        let mut world = self.world();
        (world.fuse, world.dead) = (None, false);
    }

    /// The content of a file, for tests that damage it.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.world();
        world.names.get(name).map(|number| world.files[*number].bytes.clone())
    }

    /// Replaces the content of a file, durably.
    pub fn set_content(&self, name: &str, bytes: Vec<u8>) {
        let mut world = self.world();
        let number = world.file(name).unwrap_or_else(|_| world.add(name));
        world.files[number] = Content { durable: bytes.clone(), bytes, pending: Vec::new() };
        world.settle_names();
    }

    /// Removes a file, durably.
    pub fn lose(&self, name: &str) {
        let mut world = self.world();
        world.names.remove(name);
        world.settle_names();
    }
}

impl World {
    /// The next random number (splitmix64).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Counts one operation; true if the power fails inside it.
    fn fails(&mut self) -> io::Result<bool> {
        if self.dead {
            return Err(power_lost());
        }
        self.operations += 1;
        match &mut self.fuse {
            Some(0) => self.dead = true,
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(self.dead)
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(power_lost()) } else { Ok(()) }
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn add(&mut self, name: &str) -> usize {
        self.files.push(Content::default());
        let number = self.files.len() - 1;
        self.set_name(name, number);
        number
    }

    fn set_name(&mut self, name: &str, number: usize) {
        self.names.insert(name.to_owned(), number);
        self.name_changes.push(NameChange::Set(name.to_owned(), number));
    }

    fn remove_name(&mut self, name: &str) {
        self.names.remove(name);
        self.name_changes.push(NameChange::Remove(name.to_owned()));
    }

    fn settle_names(&mut self) {
        self.durable_names = self.names.clone();
        self.name_changes.clear();
    }

    fn lose_power(&mut self) {
        (self.fuse, self.dead) = (None, false);
        let kept = self.next() as usize % (self.name_changes.len() + 1);
        for change in self.name_changes.drain(..).take(kept) {
            match change {
                NameChange::Set(name, number) => drop(self.durable_names.insert(name, number)),
                NameChange::Remove(name) => drop(self.durable_names.remove(&name)),
                NameChange::Rename(from, to) => {
                    if let Some(number) = self.durable_names.remove(&from) {
                        self.durable_names.insert(to, number);
                    }
                }
            }
        }
        self.names = self.durable_names.clone();
        for number in 0..self.files.len() {
            let mut content = std::mem::take(&mut self.files[number]);
            let mood = self.next();
            if self.names.values().any(|named| *named == number) {
                content.lose_power(mood, &mut || self.next());
                self.files[number] = content;
            }
        }
    }
}

impl Content {
    fn write(&mut self, position: usize, piece: &[u8]) {
        let end = position + piece.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[position..end].copy_from_slice(piece);
        for (index, block) in piece.chunks(BLOCK).enumerate() {
            self.pending.push((position + index * BLOCK, block.into()));
        }
    }

    /// Makes the blocks of one durable write durable; older unsynced writes of the same blocks are superseded.
    fn settle(&mut self, position: usize, length: usize) {
        let range = position..position + length;
        self.pending.retain(|(at, _)| !range.contains(at));
        let size = self.durable.len().max(range.end);
        self.durable.resize(size, 0);
        self.durable[range.clone()].copy_from_slice(&self.bytes[range]);
    }

    fn sync(&mut self) {
        for (at, block) in self.pending.drain(..) {
            put(&mut self.durable, at, &block);
        }
        let length = self.bytes.len();
        self.durable.resize(length.max(self.durable.len()), 0);
    }

    /// Keeps all, none, random blocks, or random sectors of what was not synced.
    fn lose_power(&mut self, mood: u64, random: &mut dyn FnMut() -> u64) {
        if mood & 16 == 0 && self.durable.len() < self.bytes.len() {
            let length = self.bytes.len();
            self.durable.resize(length, 0);
        }
        for (at, block) in self.pending.drain(..) {
            match mood % 4 {
                0 => {}
                1 => put(&mut self.durable, at, &block),
                2 if random() & 1 == 0 => put(&mut self.durable, at, &block),
                2 => {}
                _ => {
                    let kept = random();
                    for (index, sector) in block.chunks(SECTOR).enumerate() {
                        if kept >> index & 1 == 0 {
                            put(&mut self.durable, at + index * SECTOR, sector);
                        }
                    }
                }
            }
        }
        self.bytes = self.durable.clone();
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let length = bytes.len().max(at + piece.len());
    bytes.resize(length, 0);
    bytes[at..at + piece.len()].copy_from_slice(piece);
}

fn power_lost() -> io::Error {
    io::Error::other("the simulated power is off")
}

impl Disk for SimulatedDisk {
    fn lock(&self) -> io::Result<()> {
        self.world().alive()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let world = self.world();
        world.alive()?;
        Ok(world.names.keys().cloned().collect())
    }

    fn create(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        let fails = world.fails()?;
        let number = world.add(name);
        let durable = mode == WriteMode::Durable && world.direct;
        drop(world);
        if fails { Err(power_lost()) } else { Ok(self.handle(number, durable)) }
    }

    fn open(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let world = self.world();
        world.alive()?;
        let (number, durable) = (world.file(name)?, mode == WriteMode::Durable && world.direct);
        drop(world);
        Ok(self.handle(number, durable))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        let fails = world.fails()?;
        let number = world.file(from)?;
        world.names.remove(from);
        world.names.insert(to.to_owned(), number);
        world.name_changes.push(NameChange::Rename(from.to_owned(), to.to_owned()));
        if fails { Err(power_lost()) } else { Ok(()) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        let fails = world.fails()?;
        world.file(name)?;
        world.remove_name(name);
        if fails { Err(power_lost()) } else { Ok(()) }
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut world = self.world();
        if world.fails()? {
            return Err(power_lost());
        }
        world.settle_names();
        Ok(())
    }

    fn random(&self) -> u64 {
        self.world().next()
    }
}

impl SimulatedDisk {
    fn handle(&self, number: usize, durable: bool) -> Arc<dyn DiskFile> {
        Arc::new(SimulatedFile { world: self.world.clone(), number, durable })
    }
}

impl SimulatedFile {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.world().files[self.number].bytes.len() as u64)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut world = self.world();
        let fails = world.fails()?;
        let taken: usize = world.names.values().map(|number| world.files[*number].bytes.len()).sum();
        let content = &mut world.files[self.number];
        let more = length.saturating_sub(content.bytes.len() as u64);
        content.bytes.resize(content.bytes.len() + more as usize, 0);
        if taken as u64 + more > world.capacity {
            let content = &mut world.files[self.number];
            let length = content.bytes.len() - more as usize;
            content.bytes.truncate(length);
            return Err(io::ErrorKind::StorageFull.into());
        }
        if fails { Err(power_lost()) } else { Ok(()) }
    }

    fn write(&self, position: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let mut world = self.world();
        let fails = world.fails()?;
        let (start, content) = (position as usize, &mut world.files[self.number]);
        let mut at = start;
        for piece in pieces {
            assert!(at.is_multiple_of(BLOCK) && piece.len().is_multiple_of(BLOCK), "writes are whole blocks");
            content.write(at, piece);
            at += piece.len();
        }
        if fails {
            return Err(power_lost());
        }
        if self.durable {
            content.settle(start, at - start);
        }
        Ok(())
    }

    fn fill(&self, position: u64, length: usize) -> io::Result<()> {
        let mut world = self.world();
        let fails = world.fails()?;
        world.files[self.number].write(position as usize, &vec![0; length]);
        if fails { Err(power_lost()) } else { Ok(()) }
    }

    fn writes_are_durable(&self) -> bool {
        self.durable
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world();
        if world.fails()? {
            return Err(power_lost());
        }
        world.files[self.number].sync();
        Ok(())
    }

    fn read(&self, position: u64, into: &mut [u8]) -> io::Result<()> {
        let world = self.world();
        world.alive()?;
        let start = position as usize;
        let bytes = &world.files[self.number].bytes;
        let from = bytes.get(start..start + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(from);
        Ok(())
    }

    fn try_read(&self, position: u64, into: &mut [u8]) -> io::Result<bool> {
        self.read(position, into).map(|()| true)
    }

    fn drop_cache(&self) {}
}
