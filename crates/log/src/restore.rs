//! Bringing the index back at start.
//!
//! Purpose: the index is a snapshot's entries, plus those of the groups replayed behind it, plus what side files hold.
//! Order of calls: [`open_sides`], [`Published::restore`], [`Published::publish`] for each replayed group,
//! [`Published::finish_restore`], which proves LOG-31 for every partition before anything is served. A damaged or
//! missing side file is rebuilt from its log files. What it does not do: read log files (the caller gives their
//! entries).

use std::{cmp::Reverse, fmt, io};

use semel_events::Visible;
use semel_types::{LogSequence, Offset, PartitionHandle};

use crate::{
    cache::BlockCache,
    extents::{FileNumber, FileRange},
    index::IndexEntries,
    published::{Change, Published},
    read::Blocks,
    side_file::{Pair, SideFile, SideNumber},
    upkeep::{SideStore, into_io, rebuild, runs_of},
    view::{PartitionView, View},
};

/// Why the index could not be restored.
#[derive(Debug)]
pub enum RestoreError {
    /// The extents of a partition do not reach from its log start to its end: data is missing, or the snapshot, the
    /// side files and the log are not of one history.
    Hole {
        /// Which partition.
        partition: PartitionHandle,
        /// The first offset that no extent holds, or that an extent holds twice or past the end.
        at: Offset,
    },
    /// A side file could not be read.
    Io(io::Error),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole { partition, at } => {
                write!(f, "the index of partition {partition} does not fit its records at offset {at}")
            }
            Self::Io(error) => write!(f, "a side file of the index cannot be read: {error}"),
        }
    }
}

impl std::error::Error for RestoreError {}

/// Opens the side files that a restart uses, and removes the others. `present` are those that are there,
/// `first_file` is the oldest log file that is there, and files up to `covered_through` must be covered: where none
/// is, or it is damaged, `rebuild_from` gives the entries in the directories of a log file's groups (nothing for a
/// file that is gone because nothing in it is alive).
///
/// # Errors
/// The disk's error, or what `rebuild_from` answers.
pub fn open_sides(
    store: &dyn SideStore,
    present: &[FileRange],
    files: FileRange,
    rebuild_from: &mut dyn FnMut(FileNumber) -> io::Result<IndexEntries>,
) -> io::Result<Vec<SideFile>> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for range in present {
        match SideFile::open(store, *range) {
            Ok(side) => good.push(side),
            Err(error) if is_damage(&error) => bad.push(*range),
            Err(error) => return Err(error),
        }
    }
    bad.into_iter().try_for_each(|range| store.remove_side(range))?;
    let mut tiles: Vec<SideFile> = Vec::new();
    let mut at = files.first;
    loop {
        let begins = |side: &&SideFile| match tiles.is_empty() {
            true => side.files().contains(at),
            false => side.files().first == at,
        };
        let tile = match good
            .iter()
            .filter(begins)
            .max_by_key(|side| (side.files().last, Reverse(side.files().first)))
        {
            Some(side) => *side,
            None if at <= files.last => rebuild(store, at, &rebuild_from(at)?)?,
            None => break,
        };
        at = tile.files().last.next();
        tiles.push(tile);
    }
    let is_tile = |range: &FileRange| tiles.iter().any(|tile| tile.files() == *range);
    let superseded = good.iter().map(SideFile::files).filter(|range| !is_tile(range));
    superseded.into_iter().try_for_each(|range| store.remove_side(range))?;
    Ok(tiles)
}

fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound
    )
}

impl Published {
    /// Rebuilds the view from a snapshot: what the restored state shows, and the index that was written with it.
    /// Entries of files that `sides` cover are left out, here and in all later calls of [`Published::publish`];
    /// [`Published::finish_restore`] brings them in from the side files.
    pub fn restore(
        &self,
        sequence: LogSequence,
        visible: Vec<Visible>,
        entries: &IndexEntries,
        sides: Vec<SideFile>,
    ) {
        self.view.write().sides.restoring = sides;
        self.publish(sequence, &entries.extents, visible);
        let mut view = self.view.write();
        for (partition, aborted) in &entries.aborted {
            let aborted = Visible::Aborted { partition: *partition, aborted: aborted.clone() };
            view.apply(aborted, &mut Change::default());
        }
    }

    /// Brings in what the side files hold and checks that every partition's index reaches from its log start to its
    /// end. Called once, after the last group was replayed and before anything is served.
    ///
    /// # Errors
    /// [`RestoreError`]: the log must not be served.
    pub fn finish_restore(&self, cache: &BlockCache) -> Result<(), RestoreError> {
        let blocks = Blocks::blocking(cache);
        let mut view = self.view.write();
        for side in std::mem::take(&mut view.sides.restoring) {
            let reader = side.read(&blocks);
            let pairs = (0..reader.pairs()).map(|index| reader.pair(index).map_err(into_io));
            let pairs = pairs.collect::<io::Result<Vec<_>>>().map_err(RestoreError::Io)?;
            view.attach(side, &pairs)?;
        }
        for view in view.partitions.iter_mut().flatten() {
            view.drop_aborted_in_runs();
            view.reaped_to = view.log_start;
        }
        view.check()
    }
}

impl View {
    pub(crate) fn check(&self) -> Result<(), RestoreError> {
        let check = |(partition, view): (_, &PartitionView)| {
            view.index_hole().map_or(Ok(()), |at| Err(RestoreError::Hole { partition, at }))
        };
        self.partitions().try_for_each(check)
    }

    /// Points partitions at their live pairs in a side file.
    fn attach(&mut self, side: SideFile, pairs: &[Pair]) -> Result<(), RestoreError> {
        let number = self.sides.open(side);
        self.sides.tiles.push(number);
        // Dead pairs of a partition come first: what is left of it still stands together.
        let alive =
            |pair: &Pair| self.partition(pair.partition).is_some_and(|view| pair.end_offset > view.log_start);
        let live: Vec<_> = pairs.iter().map(alive).collect();
        let mut from = 0;
        while from < pairs.len() {
            if !live[from] {
                from += 1;
                continue;
            }
            let same = |index: &usize| live[*index] && pairs[*index].partition == pairs[from].partition;
            let to = from + (from..pairs.len()).take_while(same).count();
            self.attach_run(number, from, &pairs[from..to])?;
            from = to;
        }
        Ok(())
    }

    fn attach_run(&mut self, side: SideNumber, first: usize, pairs: &[Pair]) -> Result<(), RestoreError> {
        let partition = pairs[0].partition;
        let follows = |two: &[Pair]| two[0].end_offset == two[1].base_offset;
        if let Some(hole) = pairs.windows(2).find(|two| !follows(two)) {
            return Err(RestoreError::Hole { partition, at: hole[0].end_offset });
        }
        for pair in pairs {
            self.files.add_pair(pair.file, pair.bytes);
        }
        if let Some(view) = self.partition_mut(partition) {
            let runs = runs_of(side, pairs);
            view.runs.extend(runs.into_iter().map(|(_, run)| run.numbered_from(first as u32)));
            view.size_bytes += pairs.iter().map(|pair| pair.bytes).sum::<u64>();
        }
        Ok(())
    }
}

impl PartitionView {
    /// Replay brought the aborted transactions of all files; those in side files are found there.
    fn drop_aborted_in_runs(&mut self) {
        let in_runs = self.runs.last().map_or(Offset::ZERO, |run| run.end_offset);
        self.aborted.retain(|aborted| aborted.last_offset >= in_runs);
    }

    /// The first offset between log start and high watermark that the index does not hold exactly once, and whole
    /// extents up to the end.
    pub(crate) fn index_hole(&self) -> Option<Offset> {
        // Runs that are dead as a whole stay until the next upkeep.
        let live = self.runs.iter().filter(|run| run.end_offset > self.log_start);
        let runs = live.map(|run| (run.base_offset, run.end_offset));
        let extents = self.extents.as_slice().iter().map(|extent| (extent.base_offset, extent.end_offset()));
        let mut at = None;
        for (base, end) in runs.chain(extents) {
            let fits = at.map_or(base <= self.log_start, |at| at == base);
            if !fits {
                return Some(at.unwrap_or(self.log_start));
            }
            at = Some(end);
        }
        let end = at.unwrap_or(self.log_start);
        (end != self.high_watermark).then_some(end)
    }
}
