//! Which log files still hold something that can be read, and when nobody reads it any more.
//!
//! Purpose: a file without a live extent may be recycled once every read planned before that is over. Invariants:
//! LOG-24 (a file is given up only when no partition points into it and no plan made while one did still exists).
//! A use is one pair of partition and file: it ends when the last extent of the pair is dead. What it does not do:
//! recycle, know whether snapshots or replay need the file.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::Arc,
};

use semel_types::PartitionHandle;

use crate::extents::{FileNumber, FileRange, LogPosition};

/// Held by a read plan: what was readable when it was made stays where it is.
#[derive(Clone, Debug, Default)]
#[expect(dead_code, reason = "its reference count is all that is used")]
pub(crate) struct ReadPin(Arc<()>);

/// What waits for the last reader to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retired {
    File(FileNumber),
    Side(FileRange),
}

/// The use of one file.
#[derive(Debug, Default)]
pub(crate) struct FileUse {
    pub pairs: usize,
    pub bytes: u64,
    /// Partitions that came to point into it while it was written; emptied when it gets a side file.
    pub partitions: Vec<PartitionHandle>,
}

#[derive(Debug, Default)]
pub(crate) struct FileUses {
    uses: BTreeMap<FileNumber, FileUse>,
    /// Cloned into each plan; replaced whenever something retires.
    current: Arc<()>,
    retired_now: Vec<Retired>,
    retired: VecDeque<(Arc<()>, Vec<Retired>)>,
    leaving: BTreeSet<FileNumber>,
    unread_sides: Vec<FileRange>,
    /// Where the published part of the log ends.
    tail: LogPosition,
}

impl FileUses {
    /// The published part of the log reaches at least here.
    pub(crate) fn reach(&mut self, end: LogPosition) {
        self.tail = self.tail.max(end);
    }

    pub(crate) fn tail(&self) -> LogPosition {
        self.tail
    }

    pub(crate) fn pin(&self) -> ReadPin {
        ReadPin(Arc::clone(&self.current))
    }

    /// Notes bytes of a partition in a file, and whether they are its first there.
    pub(crate) fn add(&mut self, file: FileNumber, partition: PartitionHandle, bytes: u64, first: bool) {
        let used = self.uses.entry(file).or_default();
        used.bytes += bytes;
        if first {
            used.pairs += 1;
            used.partitions.push(partition);
        }
    }

    /// The same for a pair that a side file holds.
    pub(crate) fn add_pair(&mut self, file: FileNumber, bytes: u64) {
        let used = self.uses.entry(file).or_default();
        used.bytes += bytes;
        used.pairs += 1;
    }

    /// A pair of this many bytes is dead.
    pub(crate) fn end_pair(&mut self, file: FileNumber, bytes: u64) {
        let used = self.uses.get_mut(&file).expect("LOG-24: a pair that ends was counted");
        assert!(used.pairs > 0 && used.bytes >= bytes, "LOG-24: a pair ends once, with the bytes it had");
        used.pairs -= 1;
        used.bytes -= bytes;
        if used.pairs == 0 {
            self.uses.remove(&file);
            self.leaving.insert(file);
            self.retire(Retired::File(file));
        }
    }

    /// Nothing new may point at it any more.
    pub(crate) fn retire(&mut self, retired: Retired) {
        self.retired_now.push(retired);
    }

    /// Closes the group of what retired so far: plans from here on cannot see it. Called before the write lock is
    /// let go.
    pub(crate) fn close(&mut self) {
        if !self.retired_now.is_empty() {
            let pin = mem::take(&mut self.current);
            self.retired.push_back((pin, mem::take(&mut self.retired_now)));
        }
    }

    /// Notes which retired files are without readers by now.
    pub(crate) fn drain_files(&mut self) {
        // No plan takes an old pin any more, so a count of one stays one.
        while self.retired.front().is_some_and(|(pin, _)| Arc::strong_count(pin) == 1) {
            for retired in self.retired.pop_front().map(|(_, retired)| retired).unwrap_or_default() {
                match retired {
                    Retired::File(file) => drop(self.leaving.remove(&file)),
                    Retired::Side(files) => self.unread_sides.push(files),
                }
            }
        }
    }

    /// Side files that retired and are now without readers; they are handed out once.
    pub(crate) fn drain_sides(&mut self) -> Vec<FileRange> {
        self.drain_files();
        mem::take(&mut self.unread_sides)
    }

    /// True if no partition points into the file and no plan may.
    pub(crate) fn is_dead(&self, file: FileNumber) -> bool {
        !self.uses.contains_key(&file) && !self.leaving.contains(&file)
    }

    pub(crate) fn get(&self, file: FileNumber) -> Option<&FileUse> {
        self.uses.get(&file)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FileNumber, &FileUse)> {
        self.uses.iter().map(|(file, used)| (*file, used))
    }

    pub(crate) fn forget_partitions(&mut self, file: FileNumber) {
        if let Some(used) = self.uses.get_mut(&file) {
            used.partitions = Vec::new();
        }
    }
}
