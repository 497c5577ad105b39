//! The plain model: batches, transactions and positions of each partition, kept whole and searched by brute force.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use semel_events::{AbortedTransaction, Visible};
use semel_log::Isolation;
use semel_types::{LeaderEpoch, Offset, PartitionHandle, ProducerId, TopicId, TopicName};

#[derive(Clone, Debug)]
pub struct Batch {
    pub base: i64,
    pub stamps: Vec<i64>,
    pub bytes: Bytes,
}

impl Batch {
    pub fn end(&self) -> i64 {
        self.base + self.stamps.len() as i64
    }

    pub fn max_timestamp(&self) -> i64 {
        self.stamps.iter().copied().max().unwrap_or(-1)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Partition {
    pub batches: Vec<Batch>,
    pub log_start: i64,
    pub next: i64,
    pub open: BTreeMap<i64, i64>,
    pub aborted: Vec<AbortedTransaction>,
}

impl Partition {
    pub fn last_stable(&self) -> i64 {
        self.open.values().copied().min().unwrap_or(self.next).max(self.log_start)
    }

    pub fn bound(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::ReadUncommitted => self.next,
            Isolation::ReadCommitted => self.last_stable(),
        }
    }

    /// What a read must give at most: batches, from the one that holds the offset.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
        isolation: Isolation,
    ) -> Vec<&Batch> {
        let mut bytes = 0;
        let mut taken = Vec::new();
        for batch in self.batches.iter().filter(|batch| batch.end() > offset) {
            bytes += batch.bytes.len();
            let fits = bytes <= max_bytes || (taken.is_empty() && at_least_one);
            if batch.end() > self.bound(isolation) || !fits {
                break;
            }
            taken.push(batch);
        }
        taken
    }

    pub fn aborted_in(&self, from: i64, to: i64) -> Vec<AbortedTransaction> {
        let touches = |entry: &&AbortedTransaction| {
            entry.last_offset.get() >= from && entry.first_offset.get() < to && from < to
        };
        self.aborted.iter().filter(touches).cloned().collect()
    }

    pub fn positions(&self, partition: PartitionHandle) -> Visible {
        Visible::Positions {
            partition,
            log_start_offset: Offset::new(self.log_start),
            high_watermark: Offset::new(self.next),
            last_stable_offset: Offset::new(self.last_stable()),
        }
    }

    pub fn append(&mut self, stamps: Vec<i64>, padding: usize, control: bool) -> Batch {
        let bytes = batch_bytes(self.next, &stamps, padding, control);
        let batch = Batch { base: self.next, stamps, bytes };
        self.next = batch.end();
        self.batches.push(batch.clone());
        batch
    }

    pub fn end_transaction(
        &mut self,
        producer: i64,
        abort: bool,
    ) -> Option<(Batch, Option<AbortedTransaction>)> {
        let first = self.open.remove(&producer)?;
        let batch = self.append(vec![0], 0, true);
        let aborted = abort.then(|| AbortedTransaction {
            producer: ProducerId::new(producer),
            first_offset: Offset::new(first),
            last_offset: Offset::new(batch.base),
            last_stable_offset: Offset::new(self.last_stable()),
        });
        self.aborted.extend(aborted.clone());
        Some((batch, aborted))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub topics: BTreeMap<u8, (TopicId, Vec<PartitionHandle>)>,
    pub partitions: BTreeMap<PartitionHandle, Partition>,
    pub next_handle: u32,
}

/// The id of a topic whose first partition has this handle: never used twice.
pub fn topic_id(first: u32) -> TopicId {
    TopicId::new([first.to_be_bytes(); 4].concat().try_into().expect("16 bytes"))
}

pub fn topic_name(number: u8) -> TopicName {
    TopicName::new(&format!("topic-{number}"))
}

impl Model {
    pub fn created(&self, number: u8) -> Visible {
        let (id, partitions) = self.topics[&number].clone();
        Visible::TopicCreated { id, name: topic_name(number), partitions, settings: Vec::new() }
    }

    /// What the restored state machine would show.
    pub fn visible(&self) -> Vec<Visible> {
        let mut visible: Vec<_> = self.topics.keys().map(|number| self.created(*number)).collect();
        for (handle, partition) in &self.partitions {
            visible.push(partition.positions(*handle));
            visible.push(Visible::EpochStarted {
                partition: *handle,
                epoch: LeaderEpoch::new(1),
                first_offset: Offset::ZERO,
            });
        }
        visible
    }
}

fn put_varint(value: i64, out: &mut BytesMut) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.put_u8(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.put_u8(raw as u8);
}

/// A record batch of format version 2, one record for each timestamp.
pub fn batch_bytes(base: i64, stamps: &[i64], padding: usize, control: bool) -> Bytes {
    let mut records = BytesMut::new();
    for (delta, stamp) in (0..).zip(stamps) {
        let mut record = BytesMut::new();
        record.put_u8(0);
        put_varint(stamp - stamps[0], &mut record);
        put_varint(delta, &mut record);
        put_varint(-1, &mut record);
        put_varint(padding as i64, &mut record);
        record.put_bytes(base as u8, padding);
        put_varint(0, &mut record);
        put_varint(record.len() as i64, &mut records);
        records.put(record);
    }
    let mut out = BytesMut::new();
    out.put_i64(base);
    out.put_i32(49 + records.len() as i32);
    out.put_i32(1);
    out.put_u8(2);
    out.put_u32(0);
    out.put_u16(if control { 0x30 } else { 0 });
    out.put_i32(stamps.len() as i32 - 1);
    out.put_i64(stamps[0]);
    out.put_i64(stamps.iter().copied().max().unwrap_or(-1));
    out.put_bytes(0xff, 14);
    out.put_i32(stamps.len() as i32);
    out.put(records);
    let checksum = crc32c::crc32c(&out[21..]);
    out[17..21].copy_from_slice(&checksum.to_be_bytes());
    out.freeze()
}
