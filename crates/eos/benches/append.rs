//! `append`: judge and apply of one plain batch, in order and as a retry, at 1, 1,000 and 1,000,000 producers that
//! write in random order to 100 partitions, one partition each.
#![allow(missing_docs, reason = "the macro of the groups documents nothing")]

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use semel_eos::{Admission, BatchStamp, Judgement, ProduceScope, State, Volatile};
use semel_events::{Event, ProducerIdsReserved, Protocol, Reader, TopicCreated, Visible};
use semel_types::{
    ConnectionNumber, LogSequence, Now, PartitionHandle, PayloadChecksum, ProducerEpoch, ProducerId,
    ProducerStamp, Sequence, TopicId, TopicName,
};

const FIRST_ID: i64 = 1 << 20;
const PARTITIONS: u32 = 100;

struct Shard {
    state: State,
    volatile: Volatile,
    sequence: u64,
    visible: Vec<Visible>,
    /// The next sequence of each producer.
    next: Vec<u32>,
    random: u64,
}

impl Shard {
    fn new(producers: u32) -> Self {
        let mut shard = Self {
            state: State::new(),
            volatile: Volatile::new(),
            sequence: 0,
            visible: Vec::new(),
            next: vec![0; producers as usize],
            random: 1,
        };
        let (first, end) = (ProducerId::new(FIRST_ID), ProducerId::new(FIRST_ID + i64::from(producers)));
        shard.apply(&ProducerIdsReserved { first, end }.into());
        let topic = TopicCreated {
            id: TopicId::new([1; 16]),
            name: TopicName::from("t"),
            partitions: (0..PARTITIONS).map(PartitionHandle::new).collect(),
            settings: Vec::new(),
            may_have_forgotten: ProducerId::new(0),
            now: Now::from_ms(1),
        };
        shard.apply(&topic.into());
        (0..producers).for_each(|producer| shard.append(producer));
        shard
    }

    fn apply(&mut self, event: &Event) {
        self.sequence += 1;
        self.visible.clear();
        self.state.apply(LogSequence::new(self.sequence), event, &mut self.visible);
    }

    fn any(&mut self) -> u32 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.random >> 32) * self.next.len() as u64) >> 32) as u32
    }

    fn judge(&mut self, producer: u32, sequence: u32) -> (PartitionHandle, BatchStamp, Judgement) {
        let partition = PartitionHandle::new(producer % PARTITIONS);
        let id = ProducerId::new(FIRST_ID + i64::from(producer));
        let stamp = BatchStamp {
            producer: ProducerStamp { id, epoch: ProducerEpoch::ZERO },
            first_sequence: Sequence::ZERO.plus(sequence),
            count: 1,
            checksum: PayloadChecksum(1),
            transactional: false,
        };
        let connection = ConnectionNumber::new(1);
        let scope = ProduceScope { transactional_id: None, protocol: Protocol::Version2, connection };
        let judgement = self.state.judge(&self.volatile, &scope, partition, &stamp);
        self.volatile.note_produce(&scope, &stamp, partition, &judgement);
        (partition, stamp, judgement)
    }

    fn append(&mut self, producer: u32) {
        let sequence = self.next[producer as usize];
        let (partition, stamp, judgement) = self.judge(producer, sequence);
        assert_eq!(judgement, Judgement::Append);
        let admission = Admission { extension: None, transaction: None };
        let event = self.state.append_event(partition, 1, Some((&stamp, &admission)), Now::from_ms(2));
        self.apply(&event.into());
        self.next[producer as usize] = sequence + 1;
    }

    fn retry(&mut self, producer: u32) {
        let sequence = self.next[producer as usize] - 1;
        let (_, _, judgement) = self.judge(producer, sequence);
        assert!(matches!(judgement, Judgement::Duplicate { .. }));
        black_box(judgement);
    }
}

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for producers in [1, 1_000, 1_000_000] {
        let mut shard = Shard::new(producers);
        group.bench_function(BenchmarkId::new("in_order", producers), |bencher| {
            bencher.iter(|| {
                let producer = shard.any();
                shard.append(producer);
            });
        });
        group.bench_function(BenchmarkId::new("duplicate", producers), |bencher| {
            bencher.iter(|| {
                let producer = shard.any();
                shard.retry(producer);
            });
        });
        group.bench_function(BenchmarkId::new("clone", producers), |bencher| {
            bencher.iter(|| black_box(shard.state.clone()));
        });
    }
    group.finish();
}

fn snapshot(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    let shard = Shard::new(1_000_000);
    let mut bytes = Vec::new();
    group.bench_function("encode/1000000", |bencher| {
        bencher.iter(|| {
            bytes.clear();
            shard.state.encode(&mut bytes);
        });
    });
    group.bench_function("decode/1000000", |bencher| {
        bencher.iter(|| black_box(State::decode(&mut Reader::new(&bytes)).is_ok()));
    });
    group.finish();
}

criterion_group!(benches, append, snapshot);
criterion_main!(benches);
