//! The log against a plain model, on a disk that loses power.

mod histories;
mod killed;
mod recovery;
mod running;

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use semel_events::{
    BatchAppended, DecodeError, Event, Reader, ShardStarted, TopicCreated, TopicDeleted, Visible,
    codec::{Decode, Encode},
    membership_event,
};
use semel_types::{
    LeaderEpoch, LogSequence, Now, Offset, PartitionHandle, ProducerId, ShardEpoch, ShardId, TopicId,
    TopicName, WallTime,
};

use crate::{
    Durability, Engine, Isolation, Log, OpenError, Opened, Options, Outcome, Payload, Proposal, ReadRequest,
    SnapshotSource, StateMachine, background::Background, disk::SimulatedDisk, files::Progress,
    thread::LogThread,
};

/// A small random number generator (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// A node reduced to what the log can see of it: which events it applied, and partitions with their ends.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// The stamp of each event applied, in order.
    pub stamps: Vec<i64>,
    pub topic: Option<TopicId>,
    pub ends: BTreeMap<PartitionHandle, Offset>,
    pub next_handle: u32,
}

/// Partitions of each topic.
pub const PARTITIONS: u32 = 3;

fn stamp_of(event: &Event) -> Now {
    match event {
        Event::ShardStarted(event) => event.now,
        Event::TopicCreated(event) => event.now,
        Event::TopicDeleted(event) => event.now,
        Event::BatchAppended(event) => event.now,
        Event::ProducerIdsReserved(_)
        | Event::ProducersShrunk(_)
        | Event::StubsDropped(_)
        | Event::TransactionalIdInitialized(_)
        | Event::TransactionExtended(_)
        | Event::TransactionEnded(_)
        | Event::TransactionalIdExpired(_)
        | Event::OffsetsCommitted(_)
        | Event::GroupDeleted(_)
        | Event::RecordsDeleted(_)
        | Event::TopicSettingsChanged(_)
        | Event::PartitionsAdded(_)
        | Event::GroupSettingsChanged(_)
        | Event::OffsetsDeleted(_)
        | membership_event!()
        | Event::PendingOffsetsAdded(_) => panic!("the tests make no {}", event.name()),
    }
}

fn topic_created(id: TopicId, partitions: Vec<PartitionHandle>) -> Visible {
    Visible::TopicCreated { id, name: TopicName::from("t"), partitions, settings: Vec::new() }
}

fn positions(partition: PartitionHandle, end: Offset) -> Visible {
    Visible::Positions {
        partition,
        log_start_offset: Offset::ZERO,
        high_watermark: end,
        last_stable_offset: end,
    }
}

impl StateMachine for Node {
    fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.stamps = Decode::decode(reader)?;
        self.next_handle = Decode::decode(reader)?;
        self.topic = Decode::decode(reader)?;
        let ends: Vec<i64> = Decode::decode(reader)?;
        let first = self.next_handle - ends.len() as u32;
        let handles = (first..).map(PartitionHandle::new);
        self.ends = handles.zip(ends.into_iter().map(Offset::new)).collect();
        Ok(())
    }

    fn apply(&mut self, sequence: LogSequence, event: &Event, visible: &mut Vec<Visible>) {
        self.stamps.push(stamp_of(event).as_ms());
        assert_eq!(sequence.get(), self.stamps.len() as u64, "sequences count events");
        self.change(event, visible);
    }

    fn visible(&self, out: &mut Vec<Visible>) {
        if let Some(id) = self.topic {
            out.push(topic_created(id, self.ends.keys().copied().collect()));
        }
        out.extend(self.ends.iter().map(|(partition, end)| positions(*partition, *end)));
    }
}

impl Node {
    fn change(&mut self, event: &Event, visible: &mut Vec<Visible>) {
        if let Event::TopicCreated(event) = event {
            self.topic = Some(event.id);
            self.ends = event.partitions.iter().map(|handle| (*handle, Offset::ZERO)).collect();
            self.next_handle += event.partitions.len() as u32;
            visible.push(topic_created(event.id, event.partitions.clone()));
        }
        if let Event::TopicDeleted(event) = event {
            self.topic = None;
            self.ends.clear();
            visible.push(Visible::TopicDeleted { id: event.id });
        }
        if let Event::BatchAppended(event) = event {
            let end = self.ends.get_mut(&event.partition).expect("the partition is there");
            assert_eq!(*end, event.base_offset);
            *end = end.plus(event.count);
            visible.push(positions(event.partition, *end));
        }
    }
}

impl SnapshotSource for Node {
    fn encode(&self, out: &mut Vec<u8>) {
        self.stamps.encode(out);
        self.next_handle.encode(out);
        self.topic.encode(out);
        let ends: Vec<i64> = self.ends.values().map(|end| end.get()).collect();
        ends.encode(out);
    }
}

/// One event of the history with the batch that belongs to it, as it must stand in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Happened {
    pub event: Event,
    pub batch: Option<Bytes>,
}

/// A batch of `length` bytes as a client sends it.
fn batch(count: u32, length: usize, fill: u64) -> Vec<u8> {
    let mut dice = Dice(fill);
    let mut bytes: Vec<u8> = (0..length.max(61)).map(|_| dice.roll() as u8).collect();
    let rest = bytes.len() as i32 - 12;
    bytes[..8].fill(0);
    bytes[8..12].copy_from_slice(&rest.to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(count as i32 - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&(count as i32).to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// A live node that makes random decisions, and everything that ever happened.
pub struct Author {
    pub node: Node,
    pub history: Vec<Happened>,
    pub epoch: i32,
}

impl Author {
    /// One event, applied and noted.
    fn add(&mut self, proposal: &mut Proposal, event: Event, batch: Option<(Bytes, Payload)>) {
        let sequence = LogSequence::new(self.history.len() as u64 + 1);
        self.node.apply(sequence, &event, &mut proposal.visible);
        let (batch, payload) = batch.unzip();
        proposal.payloads.extend(payload);
        proposal.events.push(event.clone());
        self.history.push(Happened { event, batch });
    }

    fn now(&self) -> Now {
        // Never the same twice, also when a crash took the events in between.
        Now::from_ms(self.history.len() as i64 + (i64::from(self.epoch) << 32))
    }

    /// The first proposal of a start.
    pub fn started(&mut self) -> Proposal {
        let mut proposal = Proposal::default();
        let event = ShardStarted {
            shard: ShardId::new(0),
            shard_epoch: ShardEpoch::new(self.epoch as u32),
            now: self.now(),
            wall: WallTime::from_ms(0),
            may_have_lost_writes: false,
            cluster: semel_types::ClusterId::new([0; 16]),
            software: "test".to_owned(),
        };
        self.add(&mut proposal, event.into(), None);
        proposal
    }

    pub fn created(&mut self, proposal: &mut Proposal) {
        let partitions =
            (self.node.next_handle..self.node.next_handle + PARTITIONS).map(PartitionHandle::new);
        let now = self.now();
        let event = TopicCreated {
            id: TopicId::new((now.as_ms() as u128).to_le_bytes()),
            name: TopicName::from("t"),
            partitions: partitions.collect(),
            settings: Vec::new(),
            may_have_forgotten: ProducerId::new(0),
            now,
        };
        self.add(proposal, event.into(), None);
    }

    pub fn deleted(&mut self, proposal: &mut Proposal) {
        let Some(id) = self.node.topic else { return };
        let partitions = self.node.ends.keys().copied().collect();
        let event = TopicDeleted { id, partitions, next_unissued: ProducerId::new(0), now: self.now() };
        self.add(proposal, event.into(), None);
    }

    /// A batch of `length` bytes for the n-th partition.
    pub fn produced(&mut self, proposal: &mut Proposal, partition: u32, count: u32, length: usize) {
        if self.node.topic.is_none() {
            self.created(proposal);
        }
        let (partition, base_offset) =
            self.node.ends.iter().nth(partition as usize).map(|(p, o)| (*p, *o)).expect("there are three");
        let now = self.now();
        let mut bytes = batch(count, length, now.as_ms() as u64);
        let sent = Bytes::from(bytes.clone());
        bytes[..8].copy_from_slice(&base_offset.get().to_be_bytes());
        bytes[12..16].copy_from_slice(&self.epoch.to_be_bytes());
        let payload = Payload { partition, base_offset, count, max_timestamp: -1, bytes: sent };
        let event = BatchAppended { partition, base_offset, count, producer: None, now };
        self.add(proposal, event.into(), Some((bytes.into(), payload)));
    }

    /// A random decision of one to three events.
    pub fn decide(&mut self, dice: &mut Dice) -> Proposal {
        let mut proposal = Proposal { sync_now: dice.one_in(8), ..Proposal::default() };
        for _ in 0..1 + dice.below(3) {
            if self.node.topic.is_some() && dice.one_in(30) {
                self.deleted(&mut proposal);
            } else if self.node.topic.is_some() && dice.one_in(3) {
                self.deleted_rarely(&mut proposal, dice);
            } else {
                let (partition, count) = (dice.below(u64::from(PARTITIONS)) as u32, 1 + dice.below(4) as u32);
                let length = if dice.one_in(6) { 61 + dice.below(12_000) } else { 61 + dice.below(300) };
                self.produced(&mut proposal, partition, count, length as usize);
            }
        }
        proposal
    }

    /// Small batches: many groups without large payloads.
    fn deleted_rarely(&mut self, proposal: &mut Proposal, dice: &mut Dice) {
        self.produced(proposal, dice.below(u64::from(PARTITIONS)) as u32, 1, 61);
    }
}

/// A log stepped by hand.
pub struct Rig {
    pub log: Log,
    pub thread: LogThread,
    pub background: Background,
}

/// What the log has said so far.
#[derive(Clone, Default)]
pub struct Said(Arc<AtomicU64>);

impl Said {
    pub fn durable(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn listen(&self) -> crate::OnOutcome {
        let said = self.0.clone();
        Box::new(move |outcome| match outcome {
            Outcome::Durable(sequence) => drop(said.fetch_max(sequence.get(), Ordering::AcqRel)),
            Outcome::Failed(error) => panic!("stepped logs report no failure: {error}"),
            Outcome::Deposed => panic!("files are never deposed"),
        })
    }
}

/// Small files, everything on.
pub fn options(disk: &SimulatedDisk, durability: Durability) -> Options {
    Options {
        file_bytes_min: 48 << 10,
        file_bytes_max: 96 << 10,
        reserve_bytes: 32 << 10,
        kept_bytes: 8 << 10,
        group_bytes_max: 16 << 10,
        snapshot_interval_bytes: 1 << 10,
        cache_bytes: 64 << 10,
        ..Options::with(Engine::Disk(Arc::new(disk.clone())), durability)
    }
}

/// Opens, and checks what was recovered against what may have happened: at least `promised` events, and nothing but
/// a prefix of the history. Cuts the author's history there.
pub fn open(options: &Options, author: &mut Author, promised: u64, said: &Said) -> Result<Opened, OpenError> {
    let mut node = Node::default();
    let opened = Log::open(options.clone(), &mut node, said.listen())?;
    assert_eq!(opened.last_sequence.get(), node.stamps.len() as u64);
    let history: Vec<i64> = author.history.iter().map(|happened| stamp_of(&happened.event).as_ms()).collect();
    assert!(node.stamps.len() as u64 >= promised, "lost: {} of {promised} promised", node.stamps.len());
    assert!(history.starts_with(&node.stamps), "invented: {:?} is no prefix of {history:?}", node.stamps);
    author.history.truncate(node.stamps.len());
    author.node = node;
    check_readers(&opened.log, author);
    Ok(opened)
}

/// Every partition reads back as it was written.
pub fn check_readers(log: &Log, author: &Author) {
    let mut expected: BTreeMap<PartitionHandle, Vec<u8>> =
        author.node.ends.keys().map(|partition| (*partition, Vec::new())).collect();
    for happened in &author.history {
        if let (Event::BatchAppended(event), Some(batch)) = (&happened.event, &happened.batch)
            && let Some(bytes) = expected.get_mut(&event.partition)
        {
            bytes.extend_from_slice(batch);
        }
    }
    for (partition, expected) in expected {
        let end = author.node.ends[&partition];
        assert!(read_back(log, partition, end) == expected, "{partition} reads back as written");
    }
}

fn read_back(log: &Log, partition: PartitionHandle, end: Offset) -> Vec<u8> {
    let (mut bytes, mut offset) = (Vec::new(), Offset::ZERO);
    while offset < end {
        let request = ReadRequest {
            partition,
            offset,
            max_bytes: 1 << 20,
            at_least_one: true,
            isolation: Isolation::ReadUncommitted,
        };
        let plan = log.published().read().plan(&request).expect("the partition is there");
        assert_eq!(plan.high_watermark, end);
        let data = plan.read_blocking(log.cache()).expect("it can be read");
        assert!(data.end_offset > offset, "reading goes on");
        data.batches.iter().for_each(|batch| bytes.extend_from_slice(batch));
        offset = data.end_offset;
    }
    bytes
}

impl Rig {
    /// Starts what was opened.
    pub fn start(opened: Opened, author: &mut Author) -> io::Result<Self> {
        author.epoch += 1;
        let first = author.started();
        match opened.log.begin(LeaderEpoch::new(author.epoch), first) {
            Ok((_, thread, background)) => Ok(Self { log: opened.log, thread, background }),
            Err(crate::StartError::Io(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    /// Writes everything that waits.
    pub fn drain(&mut self) -> io::Result<()> {
        self.thread.drain(Instant::now())
    }

    /// Lets the background do everything it can.
    pub fn settle(&mut self) -> io::Result<()> {
        while matches!(self.background.step()?, Progress::Prepared | Progress::Filled) {}
        Ok(())
    }

    /// A clean stop with a last snapshot.
    pub fn stop(mut self) -> io::Result<()> {
        self.drain()?;
        self.thread.finish()?;
        self.background.finish()
    }
}

/// An author without a past.
pub fn author() -> Author {
    Author { node: Node::default(), history: Vec::new(), epoch: 0 }
}
