//! The upkeep of the index: side files, and what deletions leave.
//!
//! Purpose: entries of sealed log files move from memory to side files; side files are merged in levels, so that a
//! partition has at most 64 runs; the use of files by what was deleted or trimmed is taken back. Invariants: LOG-25
//! (tiling), LOG-31 (at every moment the index of a partition reaches without hole from its log start to its high
//! watermark; a plan made during a move sees the old place or the new one). What it does not do: run by itself (the
//! log's background thread calls [`Published::maintain`]), name files.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    ops::Range,
    sync::Arc,
};

use semel_events::AbortedTransaction;
use semel_types::PartitionHandle;

use crate::{
    cache::{BlockCache, BlockFile, BlockSource},
    extents::{FileNumber, FileRange, LogPosition, Placed},
    file_uses::Retired,
    index::IndexEntries,
    published::Published,
    read::{Blocks, ReadError, ReadMode},
    side_file::{Pair, Run, SideFile, SideNumber, SideReader, SideWriter},
    view::{PartitionView, View},
};

/// Side files of one level that are merged into one of the next.
pub(crate) const MERGED: usize = 8;

/// Most side files, and so most runs of a partition.
pub(crate) const TILES_MAX: usize = 64;

/// Partitions changed under one write lock.
const LOCKED_TOGETHER: usize = 512;

/// Where side files are written.
pub trait SideStore: BlockSource {
    /// Writes the side file of these log files: what `fill` writes, `length` bytes. Durable, name included, when it
    /// returns; until then no file of that name is seen.
    ///
    /// # Errors
    /// The disk's error.
    fn write_side(
        &self,
        files: FileRange,
        length: u64,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Removes a side file that is superseded, damaged, or whose log files are gone.
    ///
    /// # Errors
    /// The disk's error.
    fn remove_side(&self, files: FileRange) -> io::Result<()>;
}

/// What one partition has in one sealed file.
struct Sealed {
    pair: Pair,
    extents: Vec<Placed>,
    aborted: Vec<AbortedTransaction>,
}

impl Published {
    /// The index as a snapshot at this boundary holds it: entries of groups before the boundary in files without a
    /// side file. May be taken at any time after the boundary was published. Whatever was published when this
    /// returns must be durable before the snapshot is: it may lack entries of topics deleted since the boundary.
    #[must_use]
    pub fn index_before(&self, boundary: LogPosition) -> IndexEntries {
        let _upkeep = self.upkeep.lock();
        let mut entries = IndexEntries {
            covered_through: self.view.read().sides.covered_through(),
            ..IndexEntries::default()
        };
        let (mut from, mut more) = (0, true);
        while more {
            let view = self.view.read();
            let to = view.partitions.len().min(from + LOCKED_TOGETHER);
            view.entries_before(boundary, from..to, &mut entries);
            more = to < view.partitions.len();
            from = to;
        }
        entries
    }

    /// Moves entries of sealed files to side files, merges side files, takes back what deletions left, removes side
    /// files nobody needs. Blocks on the disk; one thread calls it, whenever a file was sealed or a topic deleted.
    /// Files up to `sealed_through` are full, durable and published.
    ///
    /// # Errors
    /// The disk's error, or `InvalidData` if a side file is damaged. The index in memory is then as it was, or
    /// further on.
    pub fn maintain(
        &self,
        cache: &BlockCache,
        store: &dyn SideStore,
        sealed_through: FileNumber,
    ) -> io::Result<()> {
        let _upkeep = self.upkeep.lock();
        self.reap(cache)?;
        self.seal(store, sealed_through)?;
        while let Some(tiles) = self.due_merge() {
            self.merge(cache, store, &tiles)?;
            // Deletions met while it ran point into the old side files: they are done before those go.
            self.reap(cache)?;
        }
        self.remove_unused(cache, store)
    }

    /// True if [`Published::maintain`] has something to do.
    #[must_use]
    pub fn wants_upkeep(&self, sealed_through: FileNumber) -> bool {
        let view = self.view.read();
        let sides = &view.sides;
        let covered = sides.covered_through();
        let unsealed = view.files.iter().any(|(file, _)| covered < file && file <= sealed_through);
        unsealed || !sides.reap.is_empty() || !sides.trimmed.is_empty()
    }

    // --- taking back ---

    fn reap(&self, cache: &BlockCache) -> io::Result<()> {
        let blocks = Blocks::blocking(cache);
        let deleted = std::mem::take(&mut self.view.write().sides.reap);
        for (index, gone) in deleted.iter().enumerate() {
            let dead = gone.runs.iter().try_fold(Vec::new(), |mut dead, (side, run)| {
                let pairs = pairs_of(&side.read(&blocks), run)?;
                dead.extend(pairs.into_iter().filter(|pair| pair.end_offset > gone.reaped_to));
                io::Result::Ok(dead)
            });
            match dead {
                Ok(dead) => self.view.write().end_pairs(&dead),
                Err(error) => {
                    self.view.write().sides.reap.extend_from_slice(&deleted[index..]);
                    return Err(error);
                }
            }
        }
        let trimmed: Vec<_> = self.view.read().sides.trimmed.iter().copied().collect();
        trimmed.into_iter().try_for_each(|partition| self.reap_trimmed(partition, &blocks))
    }

    /// Ends the pairs of a partition that its log start has passed.
    fn reap_trimmed(&self, partition: PartitionHandle, blocks: &Blocks<'_>) -> io::Result<()> {
        let Some((runs, reaped_to, log_start)) = self.view.read().runs_below_start(partition) else {
            self.view.write().sides.trimmed.remove(&partition);
            return Ok(());
        };
        let mut dead = Vec::new();
        for (side, run) in runs {
            let pairs = pairs_of(&side.read(blocks), &run)?;
            dead.extend(
                pairs.into_iter().filter(|pair| reaped_to < pair.end_offset && pair.end_offset <= log_start),
            );
        }
        let mut view = self.view.write();
        // Deleted meanwhile: then all of its pairs are still to be ended, by the next call.
        if let Some(trimmed) = view.partition_mut(partition) {
            trimmed.reaped_to = log_start;
            trimmed.runs.retain(|run| run.end_offset > log_start);
            trimmed.size_bytes -= dead.iter().map(|pair| pair.bytes).sum::<u64>();
            let done = trimmed.log_start == log_start;
            if done {
                view.sides.trimmed.remove(&partition);
            }
            view.end_pairs(&dead);
        }
        Ok(())
    }

    // --- sealing ---

    fn seal(&self, store: &dyn SideStore, sealed_through: FileNumber) -> io::Result<()> {
        let mut first = self.view.read().sides.covered_through().next();
        let mut file = first;
        while file <= sealed_through {
            let mut sealed = self.sealed_entries(file);
            if !sealed.is_empty() {
                let side = write_sealed(store, FileRange { first, last: file }, &mut sealed)?;
                self.install_sealed(side, file, &sealed);
                first = file.next();
            }
            file = file.next();
        }
        Ok(())
    }

    /// What lies in a sealed file, by partition.
    fn sealed_entries(&self, file: FileNumber) -> Vec<Sealed> {
        let mut partitions =
            self.view.read().files.get(file).map_or_else(Vec::new, |used| used.partitions.clone());
        partitions.sort_unstable();
        partitions.dedup();
        let mut sealed = Vec::with_capacity(partitions.len());
        for some in partitions.chunks(LOCKED_TOGETHER) {
            let view = self.view.read();
            sealed.extend(some.iter().filter_map(|partition| view.sealed(*partition, file)));
        }
        sealed
    }

    fn install_sealed(&self, side: SideFile, file: FileNumber, sealed: &[Sealed]) {
        let number = {
            let mut view = self.view.write();
            let number = view.sides.open(side);
            view.sides.tiles.push(number);
            number
        };
        for (chunk, some) in (0..).zip(sealed.chunks(LOCKED_TOGETHER)) {
            let mut view = self.view.write();
            for (index, sealed) in (chunk * LOCKED_TOGETHER as u32..).zip(some) {
                view.install_sealed(file, Run::starting(number, index, &sealed.pair), sealed.pair.partition);
            }
        }
        self.view.write().files.forget_partitions(file);
    }

    // --- merging ---

    /// Adjacent side files that are to become one.
    fn due_merge(&self) -> Option<Vec<SideNumber>> {
        let view = self.view.read();
        let tiles = &view.sides.tiles;
        let level = |tile: &SideNumber| view.sides.get(*tile).level();
        let same = tiles.windows(MERGED).find(|some| some.iter().all(|tile| level(tile) == level(&some[0])));
        let bytes =
            |some: &&[SideNumber]| some.iter().map(|tile| view.sides.get(*tile).length()).sum::<u64>();
        let least = || tiles.windows(MERGED).min_by_key(bytes).filter(|_| tiles.len() > TILES_MAX);
        same.or_else(least).map(<[_]>::to_vec)
    }

    fn merge(&self, cache: &BlockCache, store: &dyn SideStore, tiles: &[SideNumber]) -> io::Result<()> {
        let sides: Vec<_> = {
            let view = self.view.read();
            tiles.iter().map(|tile| Arc::clone(view.sides.get(*tile))).collect()
        };
        // Its own cache, so that what readers use stays.
        let scratch = BlockCache::new(Arc::clone(cache.source()), 16 << 20, 0);
        let blocks = Blocks::blocking(&scratch);
        let readers: Vec<_> = sides.iter().map(|side| side.read(&blocks)).collect();
        let mut parts = self.live_pairs(&readers, tiles)?;
        parts.sort_by_key(|(_, pair)| (pair.partition, pair.file));
        let pairs = renumbered(parts.iter().map(|(_, pair)| *pair));
        let files = FileRange {
            first: sides.first().map(|side| side.files().first).unwrap_or_default(),
            last: sides.last().map(|side| side.files().last).unwrap_or_default(),
        };
        let level = sides.iter().map(|side| side.level()).max().unwrap_or_default() + 1;
        let merged = SideFile::of(files, level, &pairs);
        store.write_side(files, merged.length(), &mut |out| {
            let mut writer = SideWriter::start(&merged, &pairs, out)?;
            for (from, pair) in &parts {
                for index in pair.first_extent..pair.first_extent + pair.extents {
                    writer.extent(&readers[*from].extent(index).map_err(into_io)?)?;
                }
            }
            writer.end_section()?;
            for (from, pair) in &parts {
                for index in pair.first_aborted..pair.first_aborted + pair.aborted {
                    writer.aborted(&readers[*from].aborted(index).map_err(into_io)?)?;
                }
            }
            writer.end_section()?;
            writer.finish();
            Ok(())
        })?;
        self.install_merged(merged, tiles, &pairs);
        Ok(())
    }

    /// All pairs that some partition's runs still hold, with the number of their side file in `readers`.
    fn live_pairs(&self, readers: &[SideReader<'_>], tiles: &[SideNumber]) -> io::Result<Vec<(usize, Pair)>> {
        let mut live = Vec::new();
        for (from, (reader, tile)) in readers.iter().zip(tiles).enumerate() {
            let pairs = (0..reader.pairs()).map(|index| reader.pair(index).map_err(into_io));
            let pairs: Vec<_> = (0..).zip(pairs.collect::<io::Result<Vec<_>>>()?).collect();
            for some in pairs.chunks(LOCKED_TOGETHER) {
                let view = self.view.read();
                let is_live = |(index, pair): &&(u32, Pair)| {
                    view.partition(pair.partition).is_some_and(|view| view.holds(*tile, *index, pair))
                };
                live.extend(some.iter().filter(is_live).map(|(_, pair)| (from, *pair)));
            }
        }
        Ok(live)
    }

    fn install_merged(&self, merged: SideFile, tiles: &[SideNumber], pairs: &[Pair]) {
        let number = self.view.write().sides.open(merged);
        let runs = runs_of(number, pairs);
        for some in runs.chunks(LOCKED_TOGETHER) {
            let mut view = self.view.write();
            some.iter().for_each(|(partition, run)| view.install_merged(*partition, *run, tiles));
        }
        let mut view = self.view.write();
        let at = view.sides.tiles.iter().position(|tile| tile == &tiles[0]).unwrap_or_default();
        view.sides.tiles.insert(at, number);
        tiles.iter().for_each(|tile| view.retire_side(*tile));
        view.files.close();
    }

    // --- removing ---

    fn remove_unused(&self, cache: &BlockCache, store: &dyn SideStore) -> io::Result<()> {
        let unused = {
            let mut view = self.view.write();
            view.retire_dead_tiles();
            view.files.drain_sides()
        };
        for files in unused {
            cache.forget(BlockFile::Side(files));
            store.remove_side(files)?;
        }
        Ok(())
    }
}

impl View {
    fn entries_before(&self, boundary: LogPosition, slots: Range<usize>, entries: &mut IndexEntries) {
        for slot in slots {
            let (Some(view), handle) = (self.partitions[slot].as_deref(), PartitionHandle::new(slot as u32))
            else {
                continue;
            };
            let extents = view.extents.as_slice();
            let before = &extents[..extents.partition_point(|extent| extent.at() < boundary)];
            let Some(end) = before.last().map(Placed::end_offset) else { continue };
            entries.extents.extend(before.iter().map(|extent| extent.of(handle)));
            let aborted = view.aborted.iter().take_while(|aborted| aborted.last_offset < end);
            entries.aborted.extend(aborted.map(|aborted| (handle, aborted.clone())));
        }
    }

    fn end_pairs(&mut self, dead: &[Pair]) {
        dead.iter().for_each(|pair| self.files.end_pair(pair.file, pair.bytes));
        self.files.close();
    }

    #[expect(clippy::type_complexity, reason = "three things read in one cut")]
    fn runs_below_start(
        &self,
        partition: PartitionHandle,
    ) -> Option<(Vec<(Arc<SideFile>, Run)>, semel_types::Offset, semel_types::Offset)> {
        let view = self.partition(partition)?;
        let below = view.runs.iter().filter(|run| run.base_offset < view.log_start);
        Some((below.map(|run| self.with_side(run)).collect(), view.reaped_to, view.log_start))
    }

    fn sealed(&self, partition: PartitionHandle, file: FileNumber) -> Option<Sealed> {
        let view = self.partition(partition)?;
        let extents = view.extents.as_slice()[view.extents.of_file(file)].to_vec();
        let (base_offset, end_offset) = (extents.first()?.base_offset, extents.last()?.end_offset());
        let within = |aborted: &&AbortedTransaction| {
            base_offset <= aborted.last_offset && aborted.last_offset < end_offset
        };
        let aborted: Vec<_> = view.aborted.iter().filter(within).cloned().collect();
        Some(Sealed { pair: pair_of(partition, &extents, &aborted)?, extents, aborted })
    }

    /// Moves what a partition has in a sealed file to its run, unless that is dead by now.
    fn install_sealed(&mut self, file: FileNumber, run: Run, partition: PartitionHandle) {
        let Some(view) = self.partition_mut(partition) else { return };
        let extents = view.extents.of_file(file);
        if extents.is_empty() {
            return;
        }
        assert!(extents.start == 0, "LOG-25: files are sealed in order");
        let after_dead = |last: &Run| last.end_offset <= view.log_start;
        assert!(
            view.runs.last().is_none_or(|last| last.end_offset == run.base_offset || after_dead(last)),
            "LOG-31: runs of a partition are contiguous"
        );
        view.extents.drop_front(extents.end);
        let moved = view.aborted.partition_point(|aborted| aborted.last_offset < run.end_offset);
        view.aborted.drain(..moved);
        view.runs.push(run);
    }

    /// Puts one run in the place of those that point into the merged side files.
    fn install_merged(&mut self, partition: PartitionHandle, merged: Run, tiles: &[SideNumber]) {
        let Some(view) = self.partition_mut(partition) else { return };
        let is_merged = |run: &Run| tiles.contains(&run.side);
        let Some(first) = view.runs.iter().position(is_merged) else { return };
        let count = view.runs[first..].iter().take_while(|run| is_merged(run)).count();
        let end = view.runs[first + count - 1].end_offset;
        assert!(merged.end_offset == end, "LOG-31: a merged run ends where the last of its parts did");
        view.runs.splice(first..first + count, [merged]);
    }

    fn retire_side(&mut self, side: SideNumber) {
        let files = self.sides.get(side).files();
        self.sides.close(side);
        self.files.retire(Retired::Side(files));
    }

    /// Lets go of the oldest side files as long as nothing they cover is alive.
    fn retire_dead_tiles(&mut self) {
        while let [first, _, ..] = self.sides.tiles[..] {
            let files = self.sides.get(first).files();
            if self.files.iter().any(|(file, _)| files.contains(file)) || !self.sides.reap.is_empty() {
                break;
            }
            self.retire_side(first);
        }
        self.files.close();
    }
}

impl PartitionView {
    /// True if a run holds this pair of a side file, and its use has not been taken back.
    fn holds(&self, side: SideNumber, index: u32, pair: &Pair) -> bool {
        let holds =
            |run: &Run| run.side == side && (run.first_pair..run.first_pair + run.pairs).contains(&index);
        pair.end_offset > self.reaped_to && self.runs.iter().any(holds)
    }
}

/// The pair of these extents, at least one; where they begin in the side file is not known yet.
fn pair_of(partition: PartitionHandle, extents: &[Placed], aborted: &[AbortedTransaction]) -> Option<Pair> {
    let (first, last) = (extents.first()?, extents.last()?);
    Some(Pair {
        partition,
        file: first.file,
        base_offset: first.base_offset,
        end_offset: last.end_offset(),
        bytes: extents.iter().map(|extent| u64::from(extent.length)).sum(),
        max_timestamp: extents.iter().map(|extent| extent.max_timestamp).max()?,
        first_extent: 0,
        extents: extents.len() as u32,
        first_aborted: 0,
        aborted: aborted.len() as u32,
    })
}

/// Gives each pair the place of its entries, which follow each other.
fn renumbered(pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
    let (mut extent, mut aborted) = (0, 0);
    let renumber = |pair: Pair| {
        let renumbered = Pair { first_extent: extent, first_aborted: aborted, ..pair };
        (extent, aborted) = (extent + pair.extents, aborted + pair.aborted);
        renumbered
    };
    pairs.map(renumber).collect()
}

/// One run for each partition of a side file's pairs.
pub(crate) fn runs_of(side: SideNumber, pairs: &[Pair]) -> Vec<(PartitionHandle, Run)> {
    let mut runs: Vec<(PartitionHandle, Run)> = Vec::new();
    for (number, pair) in (0..).zip(pairs) {
        match runs.last_mut() {
            Some((partition, run)) if *partition == pair.partition => run.extend(pair),
            Some(_) | None => runs.push((pair.partition, Run::starting(side, number, pair))),
        }
    }
    runs
}

fn pairs_of(side: &SideReader<'_>, run: &Run) -> io::Result<Vec<Pair>> {
    let pairs = run.first_pair..run.first_pair + run.pairs;
    pairs.map(|index| side.pair(index).map_err(into_io)).collect()
}

/// Writes the side file of sealed files; gives their pairs the places in it.
fn write_sealed(store: &dyn SideStore, files: FileRange, sealed: &mut [Sealed]) -> io::Result<SideFile> {
    let pairs = renumbered(sealed.iter().map(|sealed| sealed.pair));
    for (sealed, pair) in sealed.iter_mut().zip(&pairs) {
        sealed.pair = *pair;
    }
    let side = SideFile::of(files, 0, &pairs);
    store.write_side(files, side.length(), &mut |out| {
        let mut writer = SideWriter::start(&side, &pairs, out)?;
        sealed.iter().flat_map(|sealed| &sealed.extents).try_for_each(|extent| writer.extent(extent))?;
        writer.end_section()?;
        sealed.iter().flat_map(|sealed| &sealed.aborted).try_for_each(|aborted| writer.aborted(aborted))?;
        writer.end_section()?;
        writer.finish();
        Ok(())
    })?;
    Ok(side)
}

/// Writes the side file of one log file anew, from the entries in its groups' directories.
///
/// # Errors
/// The disk's error.
pub(crate) fn rebuild(
    store: &dyn SideStore,
    file: FileNumber,
    entries: &IndexEntries,
) -> io::Result<SideFile> {
    let mut by_partition: BTreeMap<PartitionHandle, (Vec<Placed>, Vec<AbortedTransaction>)> = BTreeMap::new();
    for extent in entries.extents.iter().filter(|extent| extent.file == file) {
        by_partition.entry(extent.partition).or_default().0.push(extent.placed());
    }
    for (partition, aborted) in &entries.aborted {
        by_partition.entry(*partition).or_default().1.push(aborted.clone());
    }
    let seal = |(partition, (extents, aborted)): (_, (Vec<_>, Vec<_>))| {
        Some(Sealed { pair: pair_of(partition, &extents, &aborted)?, extents, aborted })
    };
    let mut sealed: Vec<_> = by_partition.into_iter().filter_map(seal).collect();
    write_sealed(store, FileRange::of(file), &mut sealed)
}

pub(crate) fn into_io(error: ReadError) -> io::Error {
    match error {
        ReadError::Failed(error) => error,
        ReadError::Cold | ReadError::Busy => io::Error::other(error.to_string()),
    }
}

impl<'a> Blocks<'a> {
    pub(crate) fn blocking(cache: &'a BlockCache) -> Self {
        Self { cache, mode: ReadMode::MayBlock, tail: LogPosition::default() }
    }
}
