//! A log around the model: groups, files, snapshots, restarts, as the write side does them.

use std::{collections::BTreeMap, sync::Arc};

use bytes::BytesMut;
use semel_events::Visible;
use semel_log::{
    BlockCache, Extent, FileNumber, FileRange, IndexEntries, Isolation, LogPosition, OffsetQuery, Published,
    ReadData, ReadError, ReadMode, ReadPlan, ReadRefusal, ReadRequest, open_sides,
};
use semel_types::{LeaderEpoch, LogSequence, Offset, PartitionHandle};

use crate::{
    disk::Disk,
    model::{Batch, Model, Partition, topic_id},
};

#[derive(Clone, Default)]
pub struct Group {
    extents: Vec<Extent>,
    visible: Vec<Visible>,
}

struct Snapshot {
    groups: usize,
    visible: Vec<Visible>,
    index: IndexEntries,
}

/// A read that was planned, and what it must give whenever it is read.
pub struct Held {
    plan: ReadPlan,
    model: Partition,
    exact: bool,
}

pub struct World {
    pub disk: Arc<Disk>,
    pub published: Published,
    pub cache: BlockCache,
    pub model: Model,
    pub cache_bytes: usize,
    pub file: FileNumber,
    position: u64,
    groups: Vec<Group>,
    snapshot: Option<Snapshot>,
    /// Side files were made: a read may end where one of them does.
    has_sides: bool,
    pending: BTreeMap<PartitionHandle, Vec<Batch>>,
    visible: Vec<Visible>,
}

impl World {
    pub fn new(cache_bytes: usize) -> Self {
        let disk = Arc::new(Disk::default());
        Self {
            cache: BlockCache::new(disk.clone(), cache_bytes, 1 << 30),
            disk,
            published: Published::new(),
            model: Model::default(),
            cache_bytes,
            file: FileNumber::new(1),
            position: 0,
            groups: Vec::new(),
            snapshot: None,
            has_sides: false,
            pending: BTreeMap::new(),
            visible: Vec::new(),
        }
    }

    // --- what goes into the next group ---

    pub fn create_topic(&mut self, number: u8, partitions: u32) {
        if self.model.topics.contains_key(&number) {
            return;
        }
        let handles: Vec<_> =
            (0..partitions).map(|index| PartitionHandle::new(self.model.next_handle + index)).collect();
        self.model.next_handle += partitions;
        self.model.partitions.extend(handles.iter().map(|handle| (*handle, Partition::default())));
        self.model.topics.insert(number, (topic_id(handles[0].get()), handles.clone()));
        self.visible.push(self.model.created(number));
        for partition in handles {
            let first_offset = Offset::ZERO;
            self.visible.push(Visible::EpochStarted { partition, epoch: LeaderEpoch::new(1), first_offset });
        }
    }

    pub fn delete_topic(&mut self, number: u8) {
        let Some((id, handles)) = self.model.topics.remove(&number) else { return };
        for handle in handles {
            self.model.partitions.remove(&handle);
        }
        self.visible.push(Visible::TopicDeleted { id });
    }

    /// One of the partitions there are.
    pub fn pick(&self, choice: usize) -> Option<PartitionHandle> {
        let count = self.model.partitions.len().max(1);
        self.model.partitions.keys().nth(choice % count).copied()
    }

    pub fn append(
        &mut self,
        handle: PartitionHandle,
        producer: Option<i64>,
        stamps: Vec<i64>,
        padding: usize,
    ) {
        let Some(partition) = self.model.partitions.get_mut(&handle) else { return };
        if let Some(producer) = producer {
            partition.open.entry(producer).or_insert(partition.next);
        }
        let batch = partition.append(stamps, padding, false);
        self.pending.entry(handle).or_default().push(batch);
        self.visible.push(partition.positions(handle));
    }

    pub fn end_transaction(&mut self, producer: i64, abort: bool) {
        for (handle, partition) in &mut self.model.partitions {
            let Some((batch, aborted)) = partition.end_transaction(producer, abort) else { continue };
            self.pending.entry(*handle).or_default().push(batch);
            self.visible.push(partition.positions(*handle));
            let partition = *handle;
            self.visible.extend(aborted.map(|aborted| Visible::Aborted { partition, aborted }));
        }
    }

    pub fn delete_records(&mut self, handle: PartitionHandle, share: u8) {
        let Some(partition) = self.model.partitions.get_mut(&handle) else { return };
        let length = partition.next - partition.log_start;
        partition.log_start += length * i64::from(share) / 255;
        self.visible.push(partition.positions(handle));
    }

    // --- the log ---

    /// Writes the group and publishes it.
    pub fn commit(&mut self) {
        let start = self.position;
        let mut bytes = BytesMut::zeroed(512);
        let mut group = Group { visible: std::mem::take(&mut self.visible), ..Group::default() };
        for (partition, batches) in std::mem::take(&mut self.pending) {
            group.extents.push(Extent {
                partition,
                base_offset: Offset::new(batches[0].base),
                count: batches.iter().map(|batch| batch.stamps.len() as u32).sum(),
                file: self.file,
                position: start + bytes.len() as u64,
                length: batches.iter().map(|batch| batch.bytes.len() as u32).sum(),
                max_timestamp: batches.iter().map(Batch::max_timestamp).max().unwrap_or(-1),
            });
            batches.iter().for_each(|batch| bytes.extend_from_slice(&batch.bytes));
        }
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        self.position += bytes.len() as u64;
        self.disk.write(self.file, start, &bytes);
        // A large decision bypasses the cache.
        if self.groups.len() % 4 != 3 {
            self.cache.insert_written(self.file, start, bytes.freeze());
        }
        self.groups.push(group.clone());
        self.published.publish(LogSequence::new(self.groups.len() as u64), &group.extents, group.visible);
    }

    pub fn roll(&mut self) {
        self.file = self.file.next();
        self.position = 0;
    }

    /// Upkeep of the index, then recycling of what is dead.
    pub fn maintain(&mut self) {
        let sealed = FileNumber::new(self.file.get() - 1);
        self.published.maintain(&self.cache, &*self.disk, sealed).unwrap();
        assert!(!self.published.wants_upkeep(sealed), "upkeep is done");
        self.published.check().unwrap();
        self.has_sides |= !self.disk.ranges().is_empty();
        let sealed: Vec<_> = (1..self.file.get()).map(FileNumber::new).collect();
        for dead in self.published.dead_files(&sealed) {
            self.disk.files.lock().unwrap().remove(&dead);
            self.cache.forget_file(dead);
        }
    }

    pub fn take_snapshot(&mut self) {
        let boundary = LogPosition { file: self.file, position: self.position };
        self.snapshot = Some(Snapshot {
            groups: self.groups.len(),
            visible: self.model.visible(),
            index: self.published.index_before(boundary),
        });
    }

    /// Everything in memory is lost; side files may be damaged or gone.
    pub fn restart(&mut self, damage: Option<(usize, usize)>) {
        if let Some((which, byte)) = damage {
            self.damage_side(which, byte);
        }
        self.cache = BlockCache::new(self.disk.clone(), self.cache_bytes, 1 << 30);
        self.published = Published::new();
        let none = Snapshot { groups: 0, visible: Vec::new(), index: IndexEntries::default() };
        let snapshot = self.snapshot.as_ref().unwrap_or(&none);
        let covered = FileRange { first: FileNumber::new(1), last: snapshot.index.covered_through };
        let mut rebuild = |file| Ok(self.entries_of(file));
        let sides = open_sides(&*self.disk, &self.disk.ranges(), covered, &mut rebuild).unwrap();
        let sequence = LogSequence::new(snapshot.groups as u64);
        self.published.restore(sequence, snapshot.visible.clone(), &snapshot.index, sides);
        for (number, group) in (1..).zip(&self.groups).skip(snapshot.groups) {
            self.published.publish(LogSequence::new(number), &group.extents, group.visible.clone());
        }
        self.published.finish_restore(&self.cache).unwrap();
    }

    fn damage_side(&self, which: usize, byte: usize) {
        let mut sides = self.disk.sides.lock().unwrap();
        let count = sides.len().max(1);
        let Some(range) = sides.keys().nth(which % count).copied() else { return };
        if byte.is_multiple_of(7) {
            sides.remove(&range);
        } else if let Some(content) = sides.get_mut(&range) {
            let at = byte % content.len();
            content[at] ^= 0x10;
        }
    }

    /// What the directories of a file's groups say, if the file is there.
    fn entries_of(&self, file: FileNumber) -> IndexEntries {
        let mut entries = IndexEntries::default();
        if !self.disk.files.lock().unwrap().contains_key(&file) {
            return entries;
        }
        for group in &self.groups {
            let in_file = |extent: &&Extent| extent.file == file;
            entries.extents.extend(group.extents.iter().filter(in_file));
            if group.extents.iter().any(|extent| extent.file == file) {
                entries.aborted.extend(group.visible.iter().filter_map(|visible| match visible {
                    Visible::Aborted { partition, aborted } => Some((*partition, aborted.clone())),
                    Visible::Positions { .. }
                    | Visible::EpochStarted { .. }
                    | Visible::TopicCreated { .. }
                    | Visible::TopicChanged { .. }
                    | Visible::GroupSettings { .. }
                    | Visible::TopicDeleted { .. } => None,
                }));
            }
        }
        entries
    }

    // --- checks ---

    pub fn plan(&self, request: &ReadRequest) -> Result<Held, ReadRefusal> {
        let plan = self.published.read().plan(request)?;
        let model = self.model.partitions[&request.partition].clone();
        Ok(Held { plan, model, exact: !self.has_sides })
    }

    pub fn read(&self, request: &ReadRequest) -> Option<ReadData> {
        let model = &self.model.partitions[&request.partition];
        match self.plan(request) {
            Ok(held) => Some(self.check(&held)),
            Err(refusal) => {
                let offset = request.offset.get();
                assert!(offset < model.log_start || offset > model.next, "{refusal} for {request:?}");
                None
            }
        }
    }

    /// Reads what was planned and compares it with the model of that moment.
    pub fn check(&self, held: &Held) -> ReadData {
        let Held { plan, model, exact } = held;
        let request = plan.request;
        let cached = plan.try_read_cached(&self.cache);
        let read = plan.read_blocking(&self.cache).unwrap();
        match cached {
            Ok(cached) => assert_eq!(cached, read),
            Err(error) => assert!(matches!(error, ReadError::Cold), "{error}"),
        }
        let offset = request.offset.get();
        let all = model.read(offset, request.max_bytes, request.at_least_one, request.isolation);
        let wanted: Vec<&Batch> =
            all.iter().filter(|batch| batch.end() <= read.end_offset.get()).copied().collect();
        assert_eq!(read.batches.concat(), concat(&wanted), "bytes of {request:?}");
        assert_eq!(read.end_offset.get(), wanted.last().map_or(offset, |batch| batch.end()));
        assert_eq!(
            wanted.is_empty(),
            all.is_empty(),
            "something is given if there is something: {request:?}"
        );
        assert!(!exact || wanted.len() == all.len(), "everything in memory is given: {request:?}");
        assert!(all.is_empty() || plan.bytes_available() >= request.max_bytes.min(read.bytes()));
        let aborted = match request.isolation {
            Isolation::ReadCommitted => model.aborted_in(offset, read.end_offset.get()),
            Isolation::ReadUncommitted => Vec::new(),
        };
        assert_eq!(read.aborted, aborted, "aborted list of {request:?} to {}", read.end_offset);
        read
    }

    /// Reads every partition from every batch on, as consumers of both isolations do.
    pub fn check_all(&self) {
        self.published.check().unwrap();
        for (handle, model) in &self.model.partitions {
            self.check_positions(*handle, model);
            for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted] {
                self.consume(*handle, model, isolation, 700);
                self.consume(*handle, model, isolation, usize::MAX / 2);
            }
        }
        assert_eq!(self.published.read().partitions().count(), self.model.partitions.len());
    }

    /// Goes through a partition as a consumer does; it must come to the end.
    fn consume(&self, partition: PartitionHandle, model: &Partition, isolation: Isolation, max_bytes: usize) {
        let mut offset = Offset::new(model.log_start);
        while offset.get() < model.bound(isolation) {
            let request = ReadRequest { partition, offset, max_bytes, at_least_one: true, isolation };
            let read = self.read(&request).expect("the offset is in range");
            assert!(read.end_offset > offset, "a consumer at {offset} of {partition} makes progress");
            offset = read.end_offset;
        }
    }

    fn check_positions(&self, handle: PartitionHandle, model: &Partition) {
        let view = self.published.read();
        let partition = view.partition(handle).expect("the partition is there");
        let positions =
            [partition.log_start, partition.high_watermark, partition.last_stable].map(Offset::get);
        assert_eq!(positions, [model.log_start, model.next, model.last_stable()]);
    }

    pub fn check_timestamp(&self, handle: PartitionHandle, timestamp: i64, isolation: Isolation) {
        let model = &self.model.partitions[&handle];
        let records = || {
            let stamped = |batch: &Batch| (batch.base..).zip(batch.stamps.clone()).collect::<Vec<_>>();
            let records = model.batches.iter().flat_map(stamped);
            records.filter(|(offset, _)| *offset >= model.log_start)
        };
        let bounded =
            |found: Option<(i64, i64)>| found.filter(|(offset, _)| *offset < model.bound(isolation));
        let first = bounded(records().find(|(_, stamp)| *stamp >= timestamp));
        assert_eq!(self.list(handle, OffsetQuery::Timestamp(timestamp), isolation), first);
        let largest = bounded(records().first_largest());
        assert_eq!(self.list(handle, OffsetQuery::MaxTimestamp, isolation), largest);
    }

    fn list(&self, handle: PartitionHandle, query: OffsetQuery, isolation: Isolation) -> Option<(i64, i64)> {
        let search =
            self.published.read().list_offset(handle, query, isolation).expect("the partition is there");
        let found = search.search(&self.cache, ReadMode::MayBlock).unwrap()?;
        Some((found.offset.get(), found.timestamp.expect("a timestamp was searched")))
    }
}

trait FirstLargest: Iterator<Item = (i64, i64)> + Sized {
    /// The first of those with the largest timestamp.
    fn first_largest(self) -> Option<(i64, i64)> {
        let mut largest = None;
        for (offset, stamp) in self {
            if largest.is_none_or(|(_, most)| stamp > most) {
                largest = Some((offset, stamp));
            }
        }
        largest
    }
}

impl<T: Iterator<Item = (i64, i64)>> FirstLargest for T {}

fn concat(batches: &[&Batch]) -> Vec<u8> {
    batches.iter().flat_map(|batch| batch.bytes.iter().copied()).collect()
}
