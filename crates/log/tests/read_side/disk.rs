//! A disk in memory that counts, and that tests damage.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use semel_log::{BlockSource, FileNumber, FileRange, SideStore};

#[derive(Default)]
pub struct Disk {
    pub files: Mutex<BTreeMap<FileNumber, Vec<u8>>>,
    pub sides: Mutex<BTreeMap<FileRange, Vec<u8>>>,
    pub reads: AtomicU64,
    /// Reads that need no disk succeed, as if all was in the operating system's cache.
    pub warm: AtomicBool,
}

impl Disk {
    pub fn write(&self, file: FileNumber, position: u64, bytes: &[u8]) {
        let mut files = self.files.lock().unwrap();
        let content = files.entry(file).or_default();
        let end = position as usize + bytes.len();
        content.resize(end.max(content.len()), 0xee);
        content[position as usize..end].copy_from_slice(bytes);
    }

    pub fn ranges(&self) -> Vec<FileRange> {
        self.sides.lock().unwrap().keys().copied().collect()
    }
}

fn part(content: Option<&Vec<u8>>, position: u64, length: usize) -> io::Result<Bytes> {
    let content = content.ok_or(io::ErrorKind::NotFound)?;
    let part = content.get(position as usize..position as usize + length);
    part.map(Bytes::copy_from_slice).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl BlockSource for Disk {
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        part(self.files.lock().unwrap().get(&file), position, length)
    }

    fn try_read_cached(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Option<Bytes>> {
        if !self.warm.load(Ordering::Relaxed) {
            return Ok(None);
        }
        part(self.files.lock().unwrap().get(&file), position, length).map(Some)
    }

    fn read_side(&self, files: FileRange, position: u64, length: usize) -> io::Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        part(self.sides.lock().unwrap().get(&files), position, length)
    }
}

impl SideStore for Disk {
    fn write_side(
        &self,
        files: FileRange,
        length: u64,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut content = Vec::new();
        fill(&mut content)?;
        assert_eq!(content.len() as u64, length, "a side file is as long as announced");
        self.sides.lock().unwrap().insert(files, content);
        Ok(())
    }

    fn remove_side(&self, files: FileRange) -> io::Result<()> {
        let removed = self.sides.lock().unwrap().remove(&files);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
