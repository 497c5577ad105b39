//! Group commits per second on a real directory: one submitter that waits for each, and 64 in flight.
//!
//! `cargo bench -p semel-log --bench group_commit [DIRECTORY]`. Figures depend on the disk and on who else uses the
//! processors: compare only what was measured in one run.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use semel_events::{BatchAppended, DecodeError, Event, Reader, TopicCreated, Visible};
use semel_log::{Durability, Log, Options, Outcome, Payload, Proposal, Room, RoomClass, StateMachine};
use semel_types::{LeaderEpoch, LogSequence, Now, Offset, PartitionHandle, ProducerId, TopicId, TopicName};

struct Nothing;

impl StateMachine for Nothing {
    fn restore(&mut self, _: &mut Reader<'_>) -> Result<(), DecodeError> {
        Ok(())
    }
    fn apply(&mut self, _: LogSequence, _: &Event, _: &mut Vec<Visible>) {}
    fn visible(&self, _: &mut Vec<Visible>) {}
}

#[derive(Clone, Default)]
struct Durable(Arc<(Mutex<(u64, u64)>, Condvar)>);

impl Durable {
    fn listen(&self) -> semel_log::OnOutcome {
        let shared = self.0.clone();
        Box::new(move |outcome| match outcome {
            Outcome::Durable(sequence) => {
                let mut state = shared.0.lock().unwrap();
                *state = (sequence.get().max(state.0), state.1 + 1);
                shared.1.notify_all();
            }
            Outcome::Failed(error) => panic!("{error}"),
            Outcome::Deposed => panic!("files are never deposed"),
        })
    }

    fn wait(&self, sequence: u64) {
        let state = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(state, |state| state.0 < sequence).unwrap());
    }

    fn commits(&self) -> u64 {
        self.0.0.lock().unwrap().1
    }
}

struct Bench {
    log: Log,
    durable: Durable,
    offset: i64,
    bytes: Bytes,
}

const PARTITION: PartitionHandle = PartitionHandle::new(0);

fn created() -> Proposal {
    let (id, name, partitions) = (TopicId::new([1; 16]), TopicName::from("t"), vec![PARTITION]);
    let event = TopicCreated {
        id,
        name: name.clone(),
        partitions: partitions.clone(),
        settings: Vec::new(),
        may_have_forgotten: ProducerId::new(0),
        now: Now::from_ms(0),
    };
    let visible = Visible::TopicCreated { id, name, partitions, settings: Vec::new() };
    Proposal { events: vec![event.into()], visible: vec![visible], ..Proposal::default() }
}

impl Bench {
    fn new(directory: &PathBuf, durability: Durability, batch: usize) -> Self {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory).unwrap();
        let durable = Durable::default();
        let options = Options { durability, ..Options::files(directory) };
        let opened = Log::open(options, &mut Nothing, durable.listen()).unwrap();
        opened.log.start(LeaderEpoch::new(1), created()).unwrap();
        Self { log: opened.log, durable, offset: 0, bytes: Bytes::from(vec![7; batch]) }
    }

    fn submit(&mut self) -> u64 {
        let bytes = self.bytes.len() as u64 + 100;
        while self.log.room(bytes, RoomClass::Produce) != Room::Enough || self.log.waiting_bytes() > 8 << 20 {
            // Never spin: in the real-time class that starves the kernel threads that make files.
            std::thread::sleep(Duration::from_micros(50));
        }
        let (partition, base_offset) = (PARTITION, Offset::new(self.offset));
        self.offset += 1;
        let event = BatchAppended { partition, base_offset, count: 1, producer: None, now: Now::from_ms(0) };
        let end = Offset::new(self.offset);
        let visible = Visible::Positions {
            partition,
            log_start_offset: Offset::ZERO,
            high_watermark: end,
            last_stable_offset: end,
        };
        let payload =
            Payload { partition, base_offset, count: 1, max_timestamp: 0, bytes: self.bytes.clone() };
        let proposal = Proposal {
            events: vec![event.into()],
            payloads: vec![payload],
            visible: vec![visible],
            sync_now: false,
        };
        self.log.submit(proposal).get()
    }

    fn run(mut self, name: &str, in_flight: u64, seconds: u64) {
        for _ in 0..200 {
            let last = self.submit();
            self.durable.wait(last);
        }
        let (started, commits, mut count) = (Instant::now(), self.durable.commits(), 0_u64);
        let mut slowest = Duration::ZERO;
        while started.elapsed() < Duration::from_secs(seconds) {
            let before = Instant::now();
            let last = self.submit();
            self.durable.wait((last + 1).saturating_sub(in_flight));
            slowest = slowest.max(before.elapsed());
            count += 1;
        }
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name:<44} {:>9.0} decisions/s {:>8.0} commits/s {:>8.1} MB/s  slowest {slowest:?}",
            count as f64 / seconds,
            (self.durable.commits() - commits) as f64 / seconds,
            count as f64 * self.bytes.len() as f64 / seconds / 1e6,
        );
        self.log.shutdown(None).unwrap();
    }
}

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let directory = given.map_or_else(|| std::env::temp_dir().join("semel-log-bench"), PathBuf::from);
    let sync = Durability::Sync;
    Bench::new(&directory, sync, 300).run("sync, 300 B, one submitter waiting", 1, 3);
    Bench::new(&directory, sync, 300).run("sync, 300 B, 64 in flight", 64, 3);
    Bench::new(&directory, sync, 16 << 10).run("sync, 16 KiB, one submitter waiting", 1, 3);
    Bench::new(&directory, sync, 16 << 10).run("sync, 16 KiB, 64 in flight", 64, 3);
    Bench::new(&directory, sync, 1 << 20).run("sync, 1 MiB, 8 in flight", 8, 3);
    Bench::new(&directory, Durability::Interval(100), 300).run(
        "interval, 300 B, one submitter waiting",
        1,
        3,
    );
    let _ = std::fs::remove_dir_all(&directory);
}
