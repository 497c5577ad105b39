//! A real directory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice, IoSliceMut, Read, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    fs::{Advice, FallocateFlags, FlockOperation, OFlags, fadvise, fallocate, flock},
    io::{Errno, ReadWriteFlags, preadv2, pwritev},
};

use super::{Disk, DiskFile, WriteMode};
use crate::buffer::Aligned;

const LOCK: &str = "semel.lock";
/// Unit of zero-filling; also the longest time that a file change waits for it.
const FILL: usize = 64 << 10;

/// A directory of the file system.
pub struct RealDisk {
    path: PathBuf,
    direct: bool,
    lock: Mutex<Option<File>>,
}

struct RealFile {
    /// Through the page cache: reads always, writes unless direct.
    plain: File,
    /// Direct and synced, and direct only.
    direct: Option<Direct>,
    /// Direct writes turned out to be refused.
    refused: AtomicBool,
}

struct Direct {
    synced: File,
    unsynced: File,
}

impl RealDisk {
    /// The directory at `path`; `direct` false never tries direct writes.
    #[must_use]
    pub fn new(path: &Path, direct: bool) -> Self {
        Self { path: path.to_owned(), direct, lock: Mutex::new(None) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn file(&self, name: &str, plain: File, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let direct = match mode {
            WriteMode::Durable if self.direct => Direct::open(&self.at(name))?,
            WriteMode::Durable | WriteMode::Buffered => None,
        };
        Ok(Arc::new(RealFile { plain, direct, refused: AtomicBool::new(false) }))
    }
}

impl Direct {
    /// Both handles, or `None` where the file system does not take direct writes.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let open = |flags: OFlags| {
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
        };
        match (open(OFlags::DIRECT | OFlags::DSYNC), open(OFlags::DIRECT)) {
            (Ok(synced), Ok(unsynced)) => Ok(Some(Self { synced, unsynced })),
            (Err(error), _) | (_, Err(error)) if is_refusal(&error) => Ok(None),
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::INVAL | Errno::OPNOTSUPP))
}

impl Disk for RealDisk {
    fn lock(&self) -> io::Result<()> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            return Ok(());
        }
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.at(LOCK))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(in_use(&mut file)),
            Err(error) => return Err(error.into()),
        }
        file.set_len(0)?;
        match write!(file, "{}", std::process::id()) {
            // The lock holds without the number in it.
            Err(error) if super::is_full(&error) => {}
            written => written?,
        }
        *held = Some(file);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn create(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let plain =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.at(name))?;
        self.file(name, plain, mode)
    }

    fn open(&self, name: &str, mode: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let plain = OpenOptions::new().read(true).write(true).open(self.at(name))?;
        self.file(name, plain, mode)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn random(&self) -> u64 {
        super::random()
    }
}

/// Says who has the directory.
fn in_use(file: &mut File) -> io::Error {
    let mut holder = String::new();
    let known = file.read_to_string(&mut holder).is_ok() && !holder.trim().is_empty();
    let holder = if known { format!("process {}", holder.trim()) } else { "another process".to_owned() };
    io::Error::new(io::ErrorKind::WouldBlock, holder)
}

impl RealFile {
    fn direct(&self) -> Option<&Direct> {
        self.direct.as_ref().filter(|_| !self.refused.load(Ordering::Acquire))
    }
}

impl RealFile {
    /// Blocks for a file system that cannot allocate them.
    fn write_zeros(&self, old: u64, length: u64) -> io::Result<()> {
        for position in (old..length).step_by(FILL) {
            let part = (length - position).min(FILL as u64) as usize;
            self.plain.write_all_at(&vec![0; part], position)?;
        }
        Ok(())
    }
}

/// Writes all pieces, however many calls that takes.
fn write_all(file: &File, mut position: u64, pieces: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match pwritev(file.as_fd(), left, position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                position += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.plain.metadata()?.len())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let old = self.length()?;
        if old >= length {
            return Ok(());
        }
        let allocated = match fallocate(&self.plain, FallocateFlags::empty(), 0, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(old, length),
            done => done.map_err(io::Error::from),
        };
        if allocated.as_ref().is_err_and(super::is_full) {
            // Some file systems give what they have before they refuse.
            self.plain.set_len(old)?;
        }
        allocated
    }

    fn write(&self, position: u64, pieces: &[&[u8]]) -> io::Result<()> {
        if let Some(direct) = self.direct() {
            match write_all(&direct.synced, position, pieces) {
                Err(error) if is_refusal(&error) => self.refused.store(true, Ordering::Release),
                result => return result,
            }
        }
        write_all(&self.plain, position, pieces)
    }

    fn fill(&self, position: u64, length: usize) -> io::Result<()> {
        let zeros = Aligned::zeroed(length.min(FILL));
        for at in (0..length).step_by(FILL) {
            let piece = &zeros[..(length - at).min(FILL)];
            let file = self.direct().map_or(&self.plain, |direct| &direct.unsynced);
            write_all(file, position + at as u64, &[piece])?;
        }
        Ok(())
    }

    fn writes_are_durable(&self) -> bool {
        self.direct().is_some()
    }

    fn sync(&self) -> io::Result<()> {
        self.plain.sync_data()
    }

    fn read(&self, position: u64, into: &mut [u8]) -> io::Result<()> {
        self.plain.read_exact_at(into, position)
    }

    fn try_read(&self, position: u64, into: &mut [u8]) -> io::Result<bool> {
        let wanted = into.len();
        match preadv2(&self.plain, &mut [IoSliceMut::new(into)], position, ReadWriteFlags::NOWAIT) {
            Ok(read) => Ok(read == wanted),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn drop_cache(&self) {
        // Advice only: where it is refused the read that follows is still a read.
        let _ = fadvise(&self.plain, 0, None, Advice::DontNeed);
    }
}
