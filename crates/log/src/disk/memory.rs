//! A disk that is only memory: nothing survives, nothing is ever synced.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Disk, DiskFile, WriteMode};

const PAGE: u64 = 64 << 10;

/// Files in memory; pages never written take none.
#[derive(Default)]
pub struct MemoryDisk {
    names: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
}

#[derive(Default)]
struct MemoryFile {
    pages: RwLock<HashMap<u64, Box<[u8]>>>,
    length: AtomicU64,
}

impl MemoryDisk {
    fn names(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<MemoryFile>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemoryDisk {
    fn lock(&self) -> io::Result<()> {
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names().keys().cloned().collect())
    }

    fn create(&self, name: &str, _: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(MemoryFile::default());
        self.names().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str, _: WriteMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.names().get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut names = self.names();
        let file = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.names().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn random(&self) -> u64 {
        super::random()
    }
}

/// Splits a range into the parts that lie in one page each: page, offset in it, offset in the range, length.
fn parts(position: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = position + done as u64;
        let within = (at % PAGE) as usize;
        let part = (length - done).min(PAGE as usize - within);
        let item = (at / PAGE, within, done, part);
        done += part;
        (part > 0).then_some(item)
    })
}

impl DiskFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length.load(Ordering::Acquire))
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.length.fetch_max(length, Ordering::AcqRel);
        Ok(())
    }

    fn write(&self, mut position: u64, pieces: &[&[u8]]) -> io::Result<()> {
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces {
            for (page, within, from, length) in parts(position, piece.len()) {
                let page = pages.entry(page).or_insert_with(|| vec![0; PAGE as usize].into());
                page[within..within + length].copy_from_slice(&piece[from..from + length]);
            }
            position += piece.len() as u64;
        }
        self.length.fetch_max(position, Ordering::AcqRel);
        Ok(())
    }

    fn fill(&self, _: u64, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn writes_are_durable(&self) -> bool {
        true
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn read(&self, position: u64, into: &mut [u8]) -> io::Result<()> {
        if position + into.len() as u64 > self.length.load(Ordering::Acquire) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        for (page, within, to, length) in parts(position, into.len()) {
            match pages.get(&page) {
                Some(page) => into[to..to + length].copy_from_slice(&page[within..within + length]),
                None => into[to..to + length].fill(0),
            }
        }
        Ok(())
    }

    fn try_read(&self, position: u64, into: &mut [u8]) -> io::Result<bool> {
        self.read(position, into).map(|()| true)
    }

    fn drop_cache(&self) {}
}
