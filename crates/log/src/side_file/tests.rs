//! The written form of side files: what goes in comes back, what is damaged is refused or rebuilt.

use std::{collections::HashMap, sync::Mutex};

use super::*;
use crate::{
    BlockCache, Extent, IndexEntries, LogPosition, ReadMode, SideStore, open_sides,
    upkeep::{into_io, rebuild},
};

/// Side files in memory.
#[derive(Default)]
struct Store(Mutex<HashMap<FileRange, Vec<u8>>>);

impl BlockSource for Store {
    fn read(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Bytes> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn try_read_cached(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Option<Bytes>> {
        Ok(None)
    }

    fn read_side(&self, files: FileRange, position: u64, length: usize) -> io::Result<Bytes> {
        let sides = self.0.lock().unwrap();
        let side = sides.get(&files).ok_or(io::ErrorKind::NotFound)?;
        let part = side.get(position as usize..position as usize + length);
        part.map(Bytes::copy_from_slice).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl SideStore for Store {
    fn write_side(
        &self,
        files: FileRange,
        length: u64,
        fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut side = Vec::new();
        fill(&mut side)?;
        assert_eq!(side.len() as u64, length);
        self.0.lock().unwrap().insert(files, side);
        Ok(())
    }

    fn remove_side(&self, files: FileRange) -> io::Result<()> {
        self.0.lock().unwrap().remove(&files).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

const FILE: FileNumber = FileNumber::new(7);

/// 300 extents each of three partitions in one file, every tenth with an aborted transaction.
fn entries(file: FileNumber) -> IndexEntries {
    let mut entries = IndexEntries::default();
    for at in 0..900_u32 {
        let (partition, base) = (PartitionHandle::new(at % 3 * 5), Offset::new(i64::from(at / 3 * 2)));
        entries.extents.push(Extent {
            partition,
            base_offset: base,
            count: 2,
            file,
            position: u64::from(at) * 4096,
            length: 100,
            max_timestamp: i64::from(at),
        });
        if at % 10 == 0 {
            let aborted = AbortedTransaction {
                producer: ProducerId::new(i64::from(at)),
                first_offset: base,
                last_offset: Offset::new(base.get() + 1),
                last_stable_offset: Offset::new(base.get() + 2),
            };
            entries.aborted.push((partition, aborted));
        }
    }
    entries
}

fn store() -> (Arc<Store>, SideFile) {
    let store = Arc::new(Store::default());
    let side = rebuild(&*store, FILE, &entries(FILE)).unwrap();
    (store, side)
}

/// Everything in a side file, pair by pair.
fn contents(store: &Arc<Store>, side: &SideFile) -> Result<IndexEntries, ReadError> {
    let cache = BlockCache::new(store.clone(), 0, 0);
    let blocks = Blocks { cache: &cache, mode: ReadMode::MayBlock, tail: LogPosition::default() };
    let reader = side.read(&blocks);
    let mut found = IndexEntries::default();
    for index in 0..reader.pairs() {
        let pair = reader.pair(index)?;
        for extent in pair.first_extent..pair.first_extent + pair.extents {
            found.extents.push(reader.extent(extent)?.of(pair.partition));
        }
        for aborted in pair.first_aborted..pair.first_aborted + pair.aborted {
            found.aborted.push((pair.partition, reader.aborted(aborted)?));
        }
    }
    Ok(found)
}

fn sorted(mut entries: IndexEntries) -> IndexEntries {
    entries.extents.sort_by_key(|extent| (extent.partition, extent.base_offset));
    entries.aborted.sort_by_key(|(partition, aborted)| (*partition, aborted.last_offset));
    entries
}

#[test]
fn a_side_file_gives_back_what_went_in() {
    let (store, side) = store();
    assert_eq!(contents(&store, &side).unwrap(), sorted(entries(FILE)));
    assert_eq!(SideFile::open(&*store, FileRange::of(FILE)).unwrap(), side);
    let bytes = store.0.lock().unwrap()[&FileRange::of(FILE)].len() as u64;
    // Header, pairs, 900 extents at 102 a page, 90 aborted transactions.
    assert_eq!((bytes, side.length()), (4096 * (1 + 1 + 9 + 1), bytes));
}

#[test]
fn every_extent_is_found_by_each_of_its_offsets() {
    let (store, side) = store();
    let cache = BlockCache::new(store, 1 << 20, 0);
    let blocks = Blocks { cache: &cache, mode: ReadMode::MayBlock, tail: LogPosition::default() };
    let reader = side.read(&blocks);
    for index in 0..reader.pairs() {
        let run = Run::starting(SideNumber::default(), index, &reader.pair(index).unwrap());
        for offset in 0..600 {
            let found = reader.first_ending_after(&run, Offset::new(offset)).unwrap();
            assert_eq!(reader.extent(found).unwrap().base_offset.get(), offset / 2 * 2);
        }
        assert_eq!(reader.first_ending_after(&run, Offset::new(600)).unwrap(), run.extents_end());
    }
}

/// LOG-25.
#[test]
fn no_flipped_bit_is_ever_an_answer() {
    let (store, side) = store();
    let whole = contents(&store, &side).unwrap();
    let length = side.length() as usize;
    for at in (0..length).step_by(97) {
        store.0.lock().unwrap().get_mut(&FileRange::of(FILE)).unwrap()[at] ^= 1 << (at % 8);
        let opened = SideFile::open(&*store, FileRange::of(FILE)).unwrap_err();
        assert_eq!(opened.kind(), io::ErrorKind::InvalidData, "{opened}");
        match contents(&store, &side) {
            // The damage is in the header, which was read before.
            Ok(found) => assert!(found == whole && at < PAGE),
            Err(error) => assert_eq!(into_io(error).kind(), io::ErrorKind::InvalidData),
        }
        store.0.lock().unwrap().get_mut(&FileRange::of(FILE)).unwrap()[at] ^= 1 << (at % 8);
    }
}

#[test]
fn a_side_file_under_another_name_or_cut_is_refused() {
    let (store, side) = store();
    let bytes = store.0.lock().unwrap()[&FileRange::of(FILE)].clone();
    let other = FileRange { first: FILE, last: FILE.next() };
    store.0.lock().unwrap().insert(other, bytes.clone());
    assert_eq!(SideFile::open(&*store, other).unwrap_err().kind(), io::ErrorKind::InvalidData);
    let cut = bytes[..side.length() as usize - PAGE].to_vec();
    store.0.lock().unwrap().insert(FileRange::of(FILE), cut);
    assert_eq!(
        SideFile::open(&*store, FileRange::of(FILE)).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
}

#[test]
fn a_restart_takes_the_widest_side_files_and_rebuilds_what_is_damaged_or_missing() {
    let store = Store::default();
    let number = FileNumber::new;
    for file in [1, 2, 3, 5] {
        rebuild(&store, number(file), &entries(number(file))).unwrap();
    }
    let pairs = SideFile::of(FileRange { first: number(1), last: number(2) }, 1, &[]);
    store
        .write_side(pairs.files(), pairs.length(), &mut |out| {
            SideWriter::start(&pairs, &[], out)?.finish();
            Ok(())
        })
        .unwrap();
    store.0.lock().unwrap().get_mut(&FileRange::of(number(3))).unwrap()[PAGE + 9] ^= 1;
    let present: Vec<_> = store.0.lock().unwrap().keys().copied().collect();
    let mut rebuilt = Vec::new();
    let needed = FileRange { first: number(2), last: number(4) };
    let tiles = open_sides(&store, &present, needed, &mut |file| {
        rebuilt.push(file.get());
        Ok(entries(file))
    })
    .unwrap();
    let tiles: Vec<_> =
        tiles.iter().map(|side| (side.files().first.get(), side.files().last.get())).collect();
    assert_eq!((tiles, rebuilt), (vec![(1, 2), (3, 3), (4, 4), (5, 5)], vec![3, 4]));
    let mut left: Vec<_> = store.0.lock().unwrap().keys().map(|files| files.first.get()).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 3, 4, 5], "what is superseded is removed");
}
