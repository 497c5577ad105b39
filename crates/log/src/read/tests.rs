//! Plans and reads over files in memory, one rule each.

use std::{collections::HashMap, io, sync::Mutex};

use semel_events::Visible;
use semel_types::{LeaderEpoch, LogSequence, TopicId, TopicName};

use super::*;
use crate::{BlockSource, Extent, OffsetQuery, Published};

/// Files in memory.
#[derive(Default)]
struct Files(Mutex<HashMap<FileNumber, Vec<u8>>>);

impl BlockSource for Files {
    fn read(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Bytes> {
        let files = self.0.lock().unwrap();
        let part = files.get(&file).and_then(|all| all.get(position as usize..position as usize + length));
        part.map(Bytes::copy_from_slice).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn try_read_cached(&self, _: FileNumber, _: u64, _: usize) -> io::Result<Option<Bytes>> {
        Ok(None)
    }
}

const P: PartitionHandle = PartitionHandle::new(0);

fn batch(base: i64, count: i32, padding: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + padding];
    bytes[..8].copy_from_slice(&base.to_be_bytes());
    bytes[8..12].copy_from_slice(&((HEADER + padding - 12) as i32).to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    sealed(bytes)
}

/// With the checksum of what it holds.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

struct Log {
    files: Arc<Files>,
    published: Published,
    cache: BlockCache,
    next: i64,
}

impl Log {
    fn new(partitions: u32) -> Self {
        let files = Arc::new(Files::default());
        let published = Published::new();
        let partitions = (0..partitions).map(PartitionHandle::new).collect();
        let (id, name, settings) = (TopicId::new([1; 16]), TopicName::new("t"), Vec::new());
        let created = Visible::TopicCreated { id, name, partitions, settings };
        published.publish(LogSequence::new(1), &[], vec![created]);
        let cache = BlockCache::new(files.clone(), 8 << 20, 10_000);
        Self { files, published, cache, next: 0 }
    }

    /// One extent of these batches, each of one record, in file 1.
    fn append(&mut self, partition: PartitionHandle, base: i64, paddings: &[usize]) {
        let bytes: Vec<_> =
            (base..).zip(paddings).flat_map(|(base, padding)| batch(base, 1, *padding)).collect();
        let mut files = self.files.0.lock().unwrap();
        let file = files.entry(FileNumber::new(1)).or_default();
        let extent = Extent {
            partition,
            base_offset: Offset::new(base),
            count: paddings.len() as u32,
            file: FileNumber::new(1),
            position: file.len() as u64,
            length: bytes.len() as u32,
            max_timestamp: 0,
        };
        file.extend(bytes);
        drop(files);
        self.next += 1;
        let positions = positions(partition, 0, base + paddings.len() as i64);
        self.published.publish(LogSequence::new(1 + self.next as u64), &[extent], vec![positions]);
    }
}

fn positions(partition: PartitionHandle, start: i64, end: i64) -> Visible {
    Visible::Positions {
        partition,
        log_start_offset: Offset::new(start),
        high_watermark: Offset::new(end),
        last_stable_offset: Offset::new(end),
    }
}

fn request(partition: u32, offset: i64, max_bytes: usize) -> ReadRequest {
    ReadRequest {
        partition: PartitionHandle::new(partition),
        offset: Offset::new(offset),
        max_bytes,
        at_least_one: true,
        isolation: Isolation::ReadUncommitted,
    }
}

#[test]
fn nothing_is_planned_of_an_unknown_partition() {
    assert_eq!(View::default().plan(&request(3, 0, 1)).err(), Some(ReadRefusal::UnknownPartition));
}

#[test]
fn an_offset_outside_of_the_partition_is_refused_and_its_end_reads_empty() {
    let mut log = Log::new(1);
    log.append(P, 0, &[10, 10]);
    log.published.publish(LogSequence::new(9), &[], vec![positions(P, 1, 2)]);
    let view = log.published.read();
    let out = ReadRefusal::OffsetOutOfRange { log_start: Offset::new(1), high_watermark: Offset::new(2) };
    assert_eq!(view.plan(&request(0, 0, 100)).err(), Some(out));
    assert_eq!(view.plan(&request(0, 3, 100)).err(), Some(out));
    let plan = view.plan(&request(0, 2, 100)).unwrap();
    assert!(plan.is_empty());
    assert_eq!(plan.bytes_available(), 0);
    let read = plan.try_read_cached(&log.cache).unwrap();
    assert_eq!(read, ReadData { end_offset: Offset::new(2), ..ReadData::default() });
}

#[test]
fn the_first_batch_is_given_whole_only_if_asked_for() {
    let mut log = Log::new(1);
    log.append(P, 0, &[500, 10]);
    let plan = |at_least_one, max_bytes| {
        let request = ReadRequest { at_least_one, ..request(0, 0, max_bytes) };
        log.published.read().plan(&request).unwrap().read_blocking(&log.cache).unwrap().bytes()
    };
    assert_eq!([plan(true, 100), plan(true, 0), plan(false, 100)], [561, 561, 0]);
    assert_eq!([plan(false, 561), plan(false, 631), plan(false, 632)], [561, 561, 632]);
}

#[test]
fn a_fetch_of_several_partitions_keeps_to_its_bound_in_one_cut() {
    let mut log = Log::new(3);
    for partition in 0..3 {
        log.append(PartitionHandle::new(partition), 0, &[239, 239]);
    }
    let requests: Vec<_> = (0..3).map(|partition| request(partition, 0, 100_000)).collect();
    let bytes = |max_bytes| {
        let plans = log.published.read().plan_all(&requests, max_bytes);
        let plans: Vec<_> = plans.into_iter().map(Result::unwrap).collect();
        let read = read_all(&plans, &log.cache, ReadMode::MayBlock).unwrap();
        read.iter().map(|read| read.as_ref().unwrap().bytes()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(10_000), [600, 600, 600]);
    assert_eq!(bytes(700), [600, 0, 0], "100 bytes are left, too few for a batch");
    assert_eq!(bytes(1), [300, 0, 0], "one batch at least");
}

#[test]
fn reads_in_flight_are_bounded_and_free_what_they_held_when_sent() {
    let mut log = Log::new(1);
    log.append(P, 0, &[5000]);
    log.append(P, 1, &[5000]);
    let plan = log.published.read().plan(&request(0, 0, 6000)).unwrap();
    let first = plan.read_blocking(&log.cache).unwrap();
    assert!(matches!(plan.read_blocking(&log.cache), Err(ReadError::Busy)));
    drop(first);
    assert!(plan.read_blocking(&log.cache).is_ok());
    assert_eq!(log.cache.figures().pinned_bytes, 0);
}

#[test]
fn a_fetch_above_the_bound_of_reads_in_flight_gives_what_fits() {
    let mut log = Log::new(3);
    for partition in 0..3 {
        log.append(PartitionHandle::new(partition), 0, &[5000]);
    }
    let view = log.published.read();
    let plans: Vec<_> = (0..3).map(|partition| view.plan(&request(partition, 0, 6000)).unwrap()).collect();
    let read = read_all(&plans, &log.cache, ReadMode::MayBlock).unwrap();
    let ends: Vec<_> = read.iter().flatten().map(|data| (data.bytes(), data.end_offset.get())).collect();
    assert_eq!(ends, [(5061, 1), (0, 0), (0, 0)]);
    assert!(matches!(read_all(&plans, &log.cache, ReadMode::MayBlock), Err(ReadError::Busy)));
}

#[test]
fn what_is_not_in_memory_is_cold_and_then_warm() {
    let mut log = Log::new(1);
    log.append(P, 0, &[10]);
    let plan = log.published.read().plan(&request(0, 0, 6000)).unwrap();
    assert!(matches!(plan.try_read_cached(&log.cache), Err(ReadError::Cold)));
    let read = plan.read_blocking(&log.cache).unwrap();
    assert_eq!(plan.try_read_cached(&log.cache).unwrap(), read);
}

/// Damages file 1 from `at` on, behind the cache's back.
fn damage(log: &Log, at: usize, change: impl Fn(&mut [u8])) {
    log.cache.forget_file(FileNumber::new(1));
    mend(log, at, change);
}

/// Undoes it; what the cache holds stays there.
fn mend(log: &Log, at: usize, change: impl Fn(&mut [u8])) {
    change(&mut log.files.0.lock().unwrap().get_mut(&FileNumber::new(1)).unwrap()[at..]);
}

fn flip(bytes: &mut [u8]) {
    bytes[0] ^= 0x40;
}

fn read_from(log: &Log, partition: u32, offset: i64) -> Result<ReadData, ReadError> {
    log.published.read().plan(&request(partition, offset, 100_000)).unwrap().read_blocking(&log.cache)
}

fn invalid(error: ReadError) -> String {
    let ReadError::Failed(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    error.to_string()
}

/// LOG-32. The leader epoch, at 12, is not under a batch's checksum.
#[test]
fn a_changed_byte_anywhere_in_a_batch_is_an_error_that_says_where() {
    let mut log = Log::new(2);
    log.append(P, 0, &[100]);
    log.append(PartitionHandle::new(1), 0, &[100]);
    for at in (0..161).filter(|at| !(12..16).contains(at)) {
        damage(&log, at, flip);
        let error = invalid(read_from(&log, 0, 0).unwrap_err());
        assert!(error.contains("file 1 at byte 0") && error.contains("p0 at offset 0"), "{at}: {error}");
        mend(&log, at, flip);
        assert_eq!(read_from(&log, 0, 0).unwrap().bytes(), 161, "{at}: the damaged bytes are not kept");
    }
    assert_eq!(read_from(&log, 1, 0).unwrap().bytes(), 161);
}

/// LOG-32.
#[test]
fn what_stands_before_the_damage_is_given_and_the_damage_is_met_next() {
    let mut log = Log::new(1);
    log.append(P, 0, &[100, 100]);
    log.append(P, 2, &[100, 100, 100]);
    for (at, good, position) in [(161 + 150, 1, 161), (2 * 161 + 8, 2, 322), (3 * 161 + 70, 3, 483)] {
        damage(&log, at, flip);
        let read = read_from(&log, 0, 0).unwrap();
        assert_eq!((read.end_offset.get(), read.bytes()), (good, good as usize * 161));
        let error = invalid(read_from(&log, 0, good).unwrap_err());
        assert!(error.contains(&format!("p0 at offset {good}, file 1 at byte {position}")), "{error}");
        mend(&log, at, flip);
        assert_eq!(read_from(&log, 0, 0).unwrap().bytes(), 5 * 161);
    }
}

/// LOG-32.
#[test]
fn damage_in_one_partition_leaves_the_others_of_a_fetch_alone() {
    let mut log = Log::new(3);
    for partition in 0..3 {
        log.append(PartitionHandle::new(partition), 0, &[100]);
    }
    damage(&log, 161, |bytes| bytes[..161].fill(0));
    let view = log.published.read();
    let plans: Vec<_> = (0..3).map(|partition| view.plan(&request(partition, 0, 6000)).unwrap()).collect();
    let read = read_all(&plans, &log.cache, ReadMode::MayBlock).unwrap();
    let bytes: Vec<_> = read.iter().map(|read| read.as_ref().ok().map(ReadData::bytes)).collect();
    assert_eq!(bytes, [Some(161), None, Some(161)]);
}

/// LOG-32.
#[test]
fn a_search_by_time_in_damaged_batches_is_an_error() {
    let log = Log::new(1);
    let batches = [stamped(0, 0x02, 100, 150), stamped(3, 0x08, 0, 300)].concat();
    let length = batches.len();
    log.files.0.lock().unwrap().insert(FileNumber::new(1), batches);
    let (file, length) = (FileNumber::new(1), length as u32);
    let base_offset = Offset::ZERO;
    let extent =
        Extent { partition: P, base_offset, count: 6, file, position: 0, length, max_timestamp: 300 };
    log.published.publish(LogSequence::new(2), &[extent], vec![positions(P, 0, 6)]);
    let find = |query| {
        let search = log.published.read().list_offset(P, query, Isolation::ReadCommitted).unwrap();
        search.search(&log.cache, ReadMode::MayBlock)
    };
    for at in [40, 70] {
        damage(&log, at, flip);
        for query in [OffsetQuery::Timestamp(200), OffsetQuery::MaxTimestamp] {
            let error = invalid(find(query).unwrap_err());
            assert!(error.contains("p0 at offset 0, file 1 at byte 0"), "{error}");
        }
        mend(&log, at, flip);
        assert_eq!(find(OffsetQuery::MaxTimestamp).unwrap().map(|found| found.offset.get()), Some(3));
    }
}

/// LOG-24.
#[test]
fn a_file_is_dead_only_when_no_plan_may_read_it() {
    let mut log = Log::new(1);
    log.append(P, 0, &[10]);
    let file = [FileNumber::new(1)];
    let early = log.published.read().plan(&request(0, 0, 100)).unwrap();
    assert_eq!(log.published.dead_files(&file), []);
    let deleted = Visible::TopicDeleted { id: TopicId::new([1; 16]) };
    log.published.publish(LogSequence::new(9), &[], vec![deleted]);
    assert_eq!(log.published.dead_files(&file), [], "a plan still reads it");
    assert_eq!(early.read_blocking(&log.cache).unwrap().bytes(), 71);
    drop(early);
    assert_eq!(log.published.dead_files(&file), file);
}

#[test]
fn leader_epochs_end_where_upstream_says() {
    let log = Log::new(1);
    let started = |epoch, first| Visible::EpochStarted {
        partition: P,
        epoch: LeaderEpoch::new(epoch),
        first_offset: Offset::new(first),
    };
    let end = |log: &Log, epoch| {
        let found = log.published.read().offset_for_leader_epoch(P, LeaderEpoch::new(epoch));
        found.map(|end| (end.epoch.get(), end.end_offset.get()))
    };
    log.published.set_leader_epoch(LeaderEpoch::new(2));
    assert_eq!([end(&log, 1), end(&log, 2), end(&log, 3)], [Some((1, 0)), Some((2, 0)), None]);
    log.published.publish(LogSequence::new(2), &[], vec![started(2, 0), positions(P, 0, 10)]);
    log.published.publish(LogSequence::new(3), &[], vec![started(5, 10), positions(P, 0, 17)]);
    log.published.set_leader_epoch(LeaderEpoch::new(7));
    let ends: Vec<_> = (1..=8).map(|epoch| end(&log, epoch)).collect();
    let expected = [(1, 0), (2, 10), (2, 10), (2, 10), (5, 17), (5, 17), (7, 17)];
    assert_eq!(ends, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    // Epochs before the log start are forgotten.
    log.published.publish(LogSequence::new(4), &[], vec![positions(P, 12, 17)]);
    assert_eq!(
        log.published.read().partition(P).unwrap().leader_epochs,
        [(LeaderEpoch::new(5), Offset::new(12))]
    );
}

/// The batch's attributes, first and largest timestamp; three records, the first two of which carry no bytes of theirs.
fn stamped(base: i64, attributes: u8, first: i64, largest: i64) -> Vec<u8> {
    let mut bytes = batch(base, 3, 20);
    bytes[22] = attributes;
    bytes[27..35].copy_from_slice(&first.to_be_bytes());
    bytes[35..43].copy_from_slice(&largest.to_be_bytes());
    bytes[57..61].copy_from_slice(&3_i32.to_be_bytes());
    sealed(bytes)
}

#[test]
fn compressed_and_log_append_time_batches_are_found_without_their_records() {
    let log = Log::new(1);
    let batches = [stamped(0, 0x02, 100, 150), stamped(3, 0x08, 0, 300), stamped(6, 0x04, 200, 280)].concat();
    log.files.0.lock().unwrap().insert(FileNumber::new(1), batches.clone());
    let extent = Extent {
        partition: P,
        base_offset: Offset::ZERO,
        count: 9,
        file: FileNumber::new(1),
        position: 0,
        length: batches.len() as u32,
        max_timestamp: 300,
    };
    log.published.publish(LogSequence::new(2), &[extent], vec![positions(P, 0, 9)]);
    let find = |query| {
        let search = log.published.read().list_offset(P, query, Isolation::ReadCommitted).unwrap();
        let found = search.search(&log.cache, ReadMode::MayBlock).unwrap();
        found.map(|found| (found.offset.get(), found.timestamp))
    };
    // Compressed: the batch's first record, which may be older than asked for. Log append time: all records alike.
    assert_eq!(find(OffsetQuery::Timestamp(120)), Some((0, Some(100))));
    assert_eq!(find(OffsetQuery::Timestamp(151)), Some((3, Some(300))));
    assert_eq!(find(OffsetQuery::Timestamp(301)), None);
    assert_eq!(find(OffsetQuery::MaxTimestamp), Some((3, Some(300))));
    assert_eq!(find(OffsetQuery::Earliest), Some((0, None)));
    assert_eq!(find(OffsetQuery::Latest), Some((9, None)));
}
