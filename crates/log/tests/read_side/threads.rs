//! Readers, upkeep and snapshots beside a publisher: everybody sees whole groups.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use semel_events::{AbortedTransaction, Visible};
use semel_log::{
    BlockCache, Extent, FileNumber, Isolation, LogPosition, Published, ReadMode, ReadRequest, read_all,
};
use semel_types::{LogSequence, Offset, PartitionHandle, ProducerId, TopicId, TopicName};

use crate::{disk::Disk, model::batch_bytes};

const PARTITIONS: u32 = 5;
const GROUPS: i64 = 1500;
const GROUPS_PER_FILE: i64 = 40;

fn handles() -> impl Iterator<Item = PartitionHandle> {
    (0..PARTITIONS).map(PartitionHandle::new)
}

struct Shared {
    disk: Arc<Disk>,
    published: Published,
    cache: BlockCache,
    sealed: AtomicU64,
    done: AtomicBool,
}

fn file_of(group: i64) -> FileNumber {
    FileNumber::new((group / GROUPS_PER_FILE + 1) as u64)
}

/// Bytes of one record batch of these tests.
fn batch_length() -> u64 {
    batch_bytes(0, &[0], 40, false).len() as u64
}

/// Where a group ends: each holds one batch of every partition.
fn place_of(group: i64) -> LogPosition {
    let position = (group % GROUPS_PER_FILE) as u64 * batch_length() * u64::from(PARTITIONS);
    LogPosition { file: file_of(group), position }
}

/// Group `n` appends record `n` to every partition. Record 3k opens a transaction, 3k+2 is its ABORT marker.
fn publish(shared: &Shared, group: i64) {
    let at = place_of(group);
    let (mut extents, mut visible) = (Vec::new(), Vec::new());
    for partition in handles() {
        let bytes = batch_bytes(group, &[group], 40, group % 3 == 2);
        let position = at.position + u64::from(partition.get()) * batch_length();
        shared.disk.write(at.file, position, &bytes);
        if group % 2 == 0 {
            shared.cache.insert_written(at.file, position, bytes.clone());
        }
        extents.push(Extent {
            partition,
            base_offset: Offset::new(group),
            count: 1,
            file: at.file,
            position,
            length: bytes.len() as u32,
            max_timestamp: group,
        });
        let stable = if group % 3 == 2 { group + 1 } else { group - group % 3 };
        visible.push(Visible::Positions {
            partition,
            log_start_offset: Offset::ZERO,
            high_watermark: Offset::new(group + 1),
            last_stable_offset: Offset::new(stable),
        });
        if group % 3 == 2 {
            visible.push(Visible::Aborted { partition, aborted: aborted(group) });
        }
    }
    shared.published.publish(LogSequence::new(group as u64 + 1), &extents, visible);
}

fn aborted(marker: i64) -> AbortedTransaction {
    AbortedTransaction {
        producer: ProducerId::new(1),
        first_offset: Offset::new(marker - 2),
        last_offset: Offset::new(marker),
        last_stable_offset: Offset::new(marker + 1),
    }
}

fn shared(cache_bytes: usize) -> Shared {
    let disk = Arc::new(Disk::default());
    let shared = Shared {
        cache: BlockCache::new(disk.clone(), cache_bytes, 1 << 20),
        disk,
        published: Published::new(),
        sealed: AtomicU64::new(0),
        done: AtomicBool::new(false),
    };
    let created = Visible::TopicCreated {
        id: TopicId::new([1; 16]),
        name: TopicName::new("t"),
        partitions: handles().collect(),
        settings: Vec::new(),
    };
    shared.published.publish(LogSequence::new(0), &[], vec![created]);
    shared
}

/// Plans all partitions in one cut at the same offset, then reads: all must give the same.
fn read_one_cut(shared: &Shared, from: i64, isolation: Isolation) {
    let at_least_one = true;
    let offset = Offset::new(from);
    let request = |partition| ReadRequest { partition, offset, max_bytes: 4000, at_least_one, isolation };
    let (sequence, plans) = {
        let view = shared.published.read();
        let positions = |partition| {
            let view = view.partition(partition).expect("the partition is there");
            (view.high_watermark, view.last_stable)
        };
        let all: Vec<_> = handles().map(positions).collect();
        assert!(all.iter().all(|one| *one == all[0]), "half a group is visible: {all:?}");
        assert_eq!(all[0].0.get() as u64, view.sequence().get(), "the sequence and what it made visible");
        let plans: Vec<_> = handles().map(|partition| view.plan(&request(partition)).unwrap()).collect();
        (view.sequence(), plans)
    };
    let read = read_all(&plans, &shared.cache, ReadMode::MayBlock).unwrap();
    let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
    let end = read[0].end_offset;
    assert!(end.get() as u64 <= sequence.get());
    let wanted: Vec<_> = match isolation {
        Isolation::ReadCommitted => {
            let markers = (2..end.get() + 2).step_by(3);
            markers
                .filter(|marker| *marker >= from && marker - 2 < end.get() && end > offset)
                .map(aborted)
                .collect()
        }
        Isolation::ReadUncommitted => Vec::new(),
    };
    for one in &read {
        assert_eq!(
            (one.end_offset, one.bytes()),
            (end, (end.get() - from) as usize * batch_length() as usize)
        );
        assert_eq!(one.aborted, wanted, "{from}..{end}");
    }
}

fn while_publishing(shared: &Shared, mut act: impl FnMut(u64)) {
    let mut round = 0;
    while !shared.done.load(Ordering::Acquire) {
        act(round);
        round += 1;
    }
    assert!(round > 0, "it ran beside the publisher");
}

/// LOG-21, LOG-22, LOG-31.
#[test]
fn readers_beside_publisher_and_upkeep_see_whole_groups_only() {
    let shared = &shared(1 << 20);
    thread::scope(|scope| {
        for reader in 0..2_u64 {
            scope.spawn(move || {
                while_publishing(shared, |round| {
                    let visible = shared.published.sequence().get();
                    let from = (round * 7919 + reader) % (visible + 1);
                    let from = if round % 3 == 0 { visible.saturating_sub(5) } else { from };
                    read_one_cut(shared, from as i64, Isolation::ReadCommitted);
                    read_one_cut(shared, from as i64, Isolation::ReadUncommitted);
                });
            });
        }
        scope.spawn(|| {
            while_publishing(shared, |_| {
                let sealed = FileNumber::new(shared.sealed.load(Ordering::Acquire));
                shared.published.maintain(&shared.cache, &*shared.disk, sealed).unwrap();
            });
        });
        scope.spawn(|| {
            while_publishing(shared, |_| {
                let groups = shared.published.sequence().get() as i64;
                thread::yield_now();
                index_is_whole(shared, groups);
            });
        });
        for group in 0..GROUPS {
            publish(shared, group);
            shared.sealed.store(file_of(group).get() - 1, Ordering::Release);
        }
        shared.done.store(true, Ordering::Release);
    });
    for from in [0, 1, 17, GROUPS - 1, GROUPS] {
        read_one_cut(shared, from, Isolation::ReadCommitted);
    }
    assert!(!shared.disk.ranges().is_empty(), "upkeep wrote side files meanwhile");
}

/// The index of a snapshot at a boundary holds exactly the groups before it that no side file has, whenever it is
/// taken.
fn index_is_whole(shared: &Shared, groups: i64) {
    let index = shared.published.index_before(place_of(groups));
    let first = index.covered_through.get() as i64 * GROUPS_PER_FILE;
    let expected: Vec<_> = (first..groups).map(Offset::new).collect();
    for partition in handles() {
        let extents = index.extents.iter().filter(|extent| extent.partition == partition);
        let offsets: Vec<_> = extents.map(|extent| extent.base_offset).collect();
        assert_eq!(offsets, expected);
        let markers = index.aborted.iter().filter(|(of, _)| *of == partition);
        let markers: Vec<_> = markers.map(|(_, aborted)| aborted.last_offset).collect();
        let expected: Vec<_> = expected.iter().filter(|offset| offset.get() % 3 == 2).copied().collect();
        assert_eq!(markers, expected);
    }
}
