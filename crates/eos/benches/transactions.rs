//! What a transaction costs in the core: `decide` and `apply` of EndTxn with 1, 10 and 1,000 partitions, and of
//! InitProducerId, with 1,000,000 known transactional ids; what it costs to list and describe them off a clone of the
//! state, as the broker does; and the bytes that each id takes.
#![allow(missing_docs, reason = "the macro of the groups documents nothing")]
#![allow(clippy::print_stdout, reason = "bytes are no time: they are printed")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use semel_eos::{
    Command, Reply, Request, Settings, State, Volatile, decide,
    txn::{TransactionState, TransactionalIdEntry, start},
};
use semel_events::{Author, Event, Outcome, Protocol, TopicCreated, Visible};
use semel_types::{
    ConnectionNumber, Context, DurationMs, LogSequence, Now, PartitionHandle, ProducerId, ProducerStamp,
    RequestToken, TopicId, TopicName, TransactionalId, WallTime,
};

const IDS: u64 = 1_000_000;
const PARTITIONS: u32 = 1000;

/// Counts what is allocated.
struct Counted;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked of us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked of us.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

struct Shard {
    state: State,
    volatile: Volatile,
    settings: Settings,
    author: Author,
    sequence: u64,
    visible: Vec<Visible>,
    connection: u64,
    random: u64,
}

impl Shard {
    fn new() -> Self {
        let author = Author {
            client_id: Arc::from("app-2"),
            software: Arc::from("java 4.4.0"),
            address: Arc::from("10.0.0.7:51544"),
            api: "EndTxn".to_owned(),
        };
        let mut shard = Self {
            state: State::new(),
            volatile: Volatile::new(),
            settings: Settings::default(),
            author,
            sequence: 0,
            visible: Vec::new(),
            connection: 0,
            random: 1,
        };
        start(&shard.state, &shard.context(), false, "bench").iter().for_each(|event| shard.apply(event));
        let topic = TopicCreated {
            id: TopicId::new([1; 16]),
            name: TopicName::from("t"),
            partitions: (0..PARTITIONS).map(PartitionHandle::new).collect(),
            settings: Vec::new(),
            may_have_forgotten: ProducerId::new(0),
            now: Now::from_ms(1),
        };
        shard.apply(&topic.into());
        let before = ALLOCATED.load(Ordering::Relaxed);
        for number in 0..IDS {
            shard.init(number);
        }
        let taken = ALLOCATED.load(Ordering::Relaxed) - before;
        println!("{IDS} transactional ids: {} bytes each", taken as u64 / IDS);
        shard
    }

    fn context(&self) -> Context {
        let now_ms = 1 + self.sequence.cast_signed() / 1000;
        Context { now: Now::from_ms(now_ms), wall: WallTime::from_ms(now_ms), entropy: [5; 32] }
    }

    fn apply(&mut self, event: &Event) {
        self.sequence += 1;
        self.visible.clear();
        self.state.apply(LogSequence::new(self.sequence), event, &mut self.visible);
    }

    fn any(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % IDS
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.connection += 1;
        let connection = ConnectionNumber::new(self.connection);
        let request = Request { token: RequestToken::new(1), connection, command };
        let mut decision = decide(&self.state, &self.volatile, &self.settings, &request, &self.context());
        for event in &decision.events {
            self.apply(event);
        }
        self.volatile.apply_changes(decision.changes);
        decision.answers.remove(0).1.expect("it is allowed")
    }

    fn init(&mut self, number: u64) -> ProducerStamp {
        let command = Command::InitProducerId {
            transactional_id: Some(name(number)),
            timeout: DurationMs::from_ms(60_000),
            carried: None,
            author: self.author.clone(),
        };
        match self.ask(command) {
            Reply::Identity(identity) => identity,
            other @ (Reply::Done | Reply::Ended(_)) => panic!("{other:?}"),
        }
    }

    /// An id with an open transaction of so many partitions.
    fn open(&mut self, partitions: u32) -> (TransactionalId, ProducerStamp) {
        let id = name(self.any());
        let stamp = self.state.transactions().get(&id).expect("known").identity;
        let handles = (0..partitions).map(PartitionHandle::new).collect();
        let protocol = Protocol::Version2;
        let add = Command::AddPartitions {
            id: id.clone(),
            stamp,
            partitions: handles,
            verify_only: false,
            protocol,
        };
        self.ask(add);
        (id, stamp)
    }
}

fn name(number: u64) -> TransactionalId {
    TransactionalId::from(format!("transactional-id-{number:07}").as_str())
}

/// Time of `ask` alone; what it needs is made between.
fn timed(iterations: u64, mut once: impl FnMut() -> Duration) -> Duration {
    (0..iterations).map(|_| once()).sum()
}

fn transactions(criterion: &mut Criterion) {
    let mut shard = Shard::new();
    let mut group = criterion.benchmark_group("decide and apply, 1,000,000 transactional ids");
    group.sample_size(20).measurement_time(Duration::from_secs(3));
    for partitions in [1, 10, PARTITIONS] {
        group.bench_function(BenchmarkId::new("EndTxn", partitions), |bencher| {
            bencher.iter_custom(|iterations| {
                timed(iterations, || {
                    let (id, stamp) = shard.open(partitions);
                    let author = shard.author.clone();
                    let (outcome, protocol) = (Outcome::Commit, Protocol::Version2);
                    let command = Command::EndTxn { id, stamp, outcome, protocol, author };
                    let asked = Instant::now();
                    black_box(shard.ask(command));
                    asked.elapsed()
                })
            });
        });
    }
    group.bench_function("InitProducerId, takeover", |bencher| {
        bencher.iter_custom(|iterations| {
            timed(iterations, || {
                let number = shard.any();
                let asked = Instant::now();
                black_box(shard.init(number));
                asked.elapsed()
            })
        });
    });
    let mut next = IDS;
    group.bench_function("InitProducerId, new id", |bencher| {
        bencher.iter_custom(|iterations| {
            timed(iterations, || {
                next += 1;
                let asked = Instant::now();
                black_box(shard.init(next));
                asked.elapsed()
            })
        });
    });
    group.finish();
    lookups(criterion, &shard);
}

/// ListTransactions without a filter and with one that nothing passes, DescribeTransactions of one id; each with the
/// clone that lets it run off the node's thread.
fn lookups(criterion: &mut Criterion, shard: &Shard) {
    let mut group = criterion.benchmark_group("look up, 1,000,000 transactional ids");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    let listed = |state: &State, passes: fn(&TransactionalIdEntry) -> bool| -> Vec<_> {
        let all = state.transactions().iter().filter(|(_, entry)| passes(entry));
        all.map(|(id, entry)| (id.clone(), entry.identity.id, entry.state().name())).collect()
    };
    group.bench_function("list all", |bencher| {
        bencher.iter(|| listed(&shard.state.clone(), |_| true));
    });
    group.bench_function("list what passes no filter", |bencher| {
        bencher
            .iter(|| listed(&shard.state.clone(), |entry| entry.state() == TransactionState::PrepareCommit));
    });
    let id = name(IDS / 3);
    group.bench_function("describe one", |bencher| {
        bencher.iter(|| {
            let state = shard.state.clone();
            let entry = state.transactions().get(black_box(&id)).expect("known");
            black_box((
                entry.identity,
                entry.state(),
                entry.open().map(|open| open.partitions.as_slice().len()),
            ))
        });
    });
    group.finish();
}

criterion_group!(benches, transactions);
criterion_main!(benches);
