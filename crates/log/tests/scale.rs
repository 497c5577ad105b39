//! The published view at size: memory of idle partitions, time under the write lock.

#![expect(clippy::print_stdout, reason = "figures for who runs it with --nocapture")]

use std::{fs, hint::black_box, time::Instant};

use semel_events::Visible;
use semel_log::{Extent, FileNumber, Published};
use semel_types::{LeaderEpoch, LogSequence, Offset, PartitionHandle, TopicId, TopicName};

fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux tells how much memory a process holds");
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    resident.expect("the second number is resident pages") * 4096
}

fn extent(partition: u32, base: i64, position: u64) -> Extent {
    Extent {
        partition: PartitionHandle::new(partition),
        base_offset: Offset::new(base),
        count: 1,
        file: FileNumber::new(1),
        position,
        length: 100,
        max_timestamp: 0,
    }
}

fn positions(partition: u32, end: i64) -> Visible {
    Visible::Positions {
        partition: PartitionHandle::new(partition),
        log_start_offset: Offset::ZERO,
        high_watermark: Offset::new(end),
        last_stable_offset: Offset::new(end),
    }
}

/// 100 topics of 1,000 partitions with one record each.
fn publish_all(published: &Published) {
    for topic in 0..100_u32 {
        let partitions = topic * 1000..(topic + 1) * 1000;
        let mut visible = vec![Visible::TopicCreated {
            id: TopicId::new([topic as u8 + 1; 16]),
            name: TopicName::new(&format!("topic-{topic}")),
            partitions: partitions.clone().map(PartitionHandle::new).collect(),
            settings: Vec::new(),
        }];
        for partition in partitions.clone() {
            let (partition_handle, first_offset) = (PartitionHandle::new(partition), Offset::ZERO);
            let epoch = LeaderEpoch::new(1);
            visible.push(Visible::EpochStarted { partition: partition_handle, epoch, first_offset });
            visible.push(positions(partition, 1));
        }
        let extents: Vec<_> =
            partitions.map(|partition| extent(partition, 0, u64::from(partition) * 100)).collect();
        published.publish(LogSequence::new(u64::from(topic) + 1), &extents, visible);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_hundred_thousand_idle_partitions_take_less_than_a_kib_each() {
    let before = resident_bytes();
    let published = Published::new();
    publish_all(&published);
    let each = (resident_bytes() - before) / 100_000;
    assert_eq!(published.read().partitions().count(), 100_000);
    assert!(each < 1024, "{each} bytes a partition");
    println!("{each} bytes a partition");
    time_a_publish(&published);
}

/// One group that touches 3,495 partitions: how long readers may have to wait. Printed, not judged: other tests run
/// beside it.
fn time_a_publish(published: &Published) {
    let mut best = u128::MAX;
    for round in 1..20_i64 {
        let extents: Vec<_> = (0..3495).map(|n| extent(n * 7, round, (round as u64) << 32)).collect();
        let visible = (0..3495).map(|n| positions(n * 7, round + 1)).collect();
        let start = Instant::now();
        published.publish(LogSequence::new(1000 + round as u64), &extents, visible);
        best = best.min(start.elapsed().as_micros());
    }
    println!("publishing 3,495 extents takes {best} µs");
    let start = Instant::now();
    black_box(published.read().catalog().topics().map(|topic| topic.partitions.len()).sum::<usize>());
    println!("going through the catalogue takes {} µs", start.elapsed().as_micros());
}
