//! Snapshots: the state and the index at one boundary, in a file of their own.
//!
//! Invariants: a snapshot gets its name only when its bytes are synced, and counts only when it was read back from
//! the disk; the two newest are kept, the third is overwritten by the next one; the log is durable through the
//! boundary before any of it is written. What it does not do: decide when, or hold the state still.

use std::{io, sync::Arc, time::Instant};

use semel_types::ShardId;

use crate::{
    IndexEntries, LogPosition, SnapshotSource,
    crash::crash_point,
    disk::{BLOCK, Disk, DiskFile, WriteMode},
    format::snapshot::{Boundary, Found, SnapshotHeader},
};

/// The one being written; also the one that will be overwritten next.
pub const SPARE: &str = "snapshot.spare";
/// How a snapshot's name ends.
pub const ENDING: &str = ".snapshot";
/// Bytes read at once when a snapshot is read back.
const PIECE: usize = 1 << 20;

/// A snapshot that can be relied on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub boundary: Boundary,
    /// Its bytes.
    pub bytes: u64,
}

/// The snapshots of a directory.
pub struct Snapshots {
    disk: Arc<dyn Disk>,
    identity: u64,
    shard: ShardId,
    /// Oldest first; at most two.
    kept: Vec<Kept>,
    /// How long the last one took, in milliseconds.
    pub last_took_ms: u64,
}

impl Snapshots {
    /// Goes on with those that recovery found good.
    pub fn new(disk: Arc<dyn Disk>, identity: u64, shard: ShardId, kept: Vec<Kept>) -> Self {
        Self { disk, identity, shard, kept, last_took_ms: 0 }
    }

    /// The older of the two kept: recovery needs nothing from before it. `None` while there are fewer.
    pub fn oldest(&self) -> Option<&Kept> {
        if self.kept.len() >= 2 { self.kept.first() } else { None }
    }

    /// The newest.
    pub fn newest(&self) -> Option<&Kept> {
        self.kept.last()
    }

    /// Writes one. The log is durable through `boundary`.
    ///
    /// # Errors
    /// The disk failed, is full, or gave back other bytes than were written.
    pub fn write(
        &mut self,
        boundary: Boundary,
        state: &dyn SnapshotSource,
        index: &IndexEntries,
    ) -> io::Result<()> {
        let started = Instant::now();
        let (header, content) = self.content(boundary, state, index);
        crash_point("snapshot_before_write");
        let file = match self.disk.open(SPARE, WriteMode::Buffered) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.create(SPARE, WriteMode::Buffered)?
            }
            opened => opened?,
        };
        file.allocate(content.len() as u64)?;
        file.write(0, &[&content])?;
        drop(content);
        crash_point("snapshot_after_write");
        file.sync()?;
        crash_point("snapshot_after_sync");
        let name = self.name(boundary);
        self.disk.rename(SPARE, &name)?;
        crash_point("snapshot_after_rename");
        self.disk.sync_directory()?;
        crash_point("snapshot_after_dir_sync");
        file.drop_cache();
        if read(&*file)?.and_then(|(found, _)| (found == header).then_some(())).is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} came back damaged")));
        }
        let bytes = header.total().expect("its lengths were just made");
        self.keep(Kept { name, boundary, bytes })?;
        self.last_took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(())
    }

    fn content(
        &self,
        boundary: Boundary,
        state: &dyn SnapshotSource,
        index: &IndexEntries,
    ) -> (SnapshotHeader, Vec<u8>) {
        let mut content = vec![0; BLOCK];
        state.encode(&mut content);
        let state_length = (content.len() - BLOCK) as u64;
        index.encode(LogPosition::default(), &mut content);
        let header = SnapshotHeader {
            identity: self.identity,
            shard: self.shard,
            boundary,
            state_length,
            index_length: (content.len() - BLOCK) as u64 - state_length,
            checksum: crc32c::crc32c(&content[BLOCK..]),
        };
        header.write(&mut content);
        content.resize(content.len().next_multiple_of(BLOCK), 0);
        (header, content)
    }

    /// The sequence; a second one of the same sequence, as a full disk that takes no more records asks for, has its
    /// own name, so that there are two.
    fn name(&self, boundary: Boundary) -> String {
        let name = format!("{:020}{ENDING}", boundary.sequence.get());
        let is_taken = self.newest().is_some_and(|newest| newest.name == name);
        if is_taken { format!("{:020}-2{ENDING}", boundary.sequence.get()) } else { name }
    }

    /// Two are kept; an older one may be overwritten, also by one of the same sequence.
    fn keep(&mut self, newest: Kept) -> io::Result<()> {
        self.kept.retain(|kept| kept.name != newest.name);
        self.kept.push(newest);
        if self.kept.len() > 2 {
            let oldest = self.kept.remove(0);
            self.disk.rename(&oldest.name, SPARE)?;
        }
        Ok(())
    }

    /// Sets blocks aside for the next one, so that it can be written on a full disk too.
    ///
    /// # Errors
    /// The disk failed or is full.
    pub fn reserve(&self) -> io::Result<()> {
        let Some(last) = self.newest() else { return Ok(()) };
        match self.disk.open(SPARE, WriteMode::Buffered) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.create(SPARE, WriteMode::Buffered)?.allocate(last.bytes)
            }
            opened => opened?.allocate(last.bytes),
        }
    }
}

/// Reads a snapshot whole: its header, and state and index one after the other; `None` if it is damaged.
///
/// # Errors
/// The disk failed.
pub fn read(file: &dyn DiskFile) -> io::Result<Option<(SnapshotHeader, Vec<u8>)>> {
    let Found::Header(header) = read_header(file)? else { return Ok(None) };
    if header.total().is_none_or(|total| file.length().is_ok_and(|length| length < total)) {
        return Ok(None);
    }
    let mut content = vec![0; (header.state_length + header.index_length) as usize];
    let mut position = BLOCK as u64;
    for piece in content.chunks_mut(PIECE) {
        file.read(position, piece)?;
        position += piece.len() as u64;
    }
    Ok((crc32c::crc32c(&content) == header.checksum).then_some((header, content)))
}

/// Reads a snapshot's header only.
///
/// # Errors
/// The disk failed.
pub fn read_header(file: &dyn DiskFile) -> io::Result<Found> {
    if file.length()? < BLOCK as u64 {
        return Ok(Found::Nothing);
    }
    let mut page = vec![0; BLOCK];
    file.read(0, &mut page)?;
    Ok(SnapshotHeader::read(&page))
}
