//! A log in memory: each proposal is a group, durable and visible at once, and kept for a replay.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use semel_broker::State;
use semel_events::{Event, Visible, membership_event};
use semel_log::{BlockCache, BlockSource, Extent, FileNumber, Payload, Proposal, Published};
use semel_types::{LeaderEpoch, LogSequence, PartitionHandle};
use semel_wire::batch::patch_base_offset_and_leader_epoch;

/// The one file.
const FILE: FileNumber = FileNumber::new(1);

#[derive(Default)]
struct File(Mutex<Vec<u8>>);

impl BlockSource for File {
    fn read(&self, _file: FileNumber, position: u64, length: usize) -> io::Result<Bytes> {
        let bytes = self.0.lock().unwrap();
        let start = usize::try_from(position).unwrap();
        let found = bytes.get(start..start + length).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Bytes::copy_from_slice(found))
    }

    fn try_read_cached(&self, file: FileNumber, position: u64, length: usize) -> io::Result<Option<Bytes>> {
        self.read(file, position, length).map(Some)
    }
}

struct Group {
    events: Vec<Event>,
    extents: Vec<Extent>,
}

pub(super) struct MemoryLog {
    pub(super) published: Arc<Published>,
    pub(super) cache: BlockCache,
    file: Arc<File>,
    groups: Vec<Group>,
    last: LogSequence,
    leader_epoch: LeaderEpoch,
}

impl MemoryLog {
    pub(super) fn new() -> Self {
        let file = Arc::new(File::default());
        let cache = BlockCache::new(Arc::clone(&file) as Arc<dyn BlockSource>, 1 << 20, 64 << 20);
        let (groups, last, leader_epoch) = (Vec::new(), LogSequence::default(), LeaderEpoch::default());
        Self { published: Arc::default(), cache, file, groups, last, leader_epoch }
    }

    pub(super) fn last_sequence(&self) -> LogSequence {
        self.last
    }

    pub(super) fn set_leader_epoch(&mut self, epoch: LeaderEpoch) {
        self.leader_epoch = epoch;
        self.published.set_leader_epoch(epoch);
    }

    pub(super) fn append(&mut self, proposal: Proposal) {
        let Proposal { events, payloads, visible, .. } = proposal;
        check_payloads(&events, &payloads);
        self.last = LogSequence::new(self.last.get() + events.len() as u64);
        let extents = self.write(payloads);
        self.published.publish(self.last, &extents, visible);
        self.groups.push(Group { events, extents });
    }

    /// Side by side by partition, as the log does.
    fn write(&mut self, payloads: Vec<Payload>) -> Vec<Extent> {
        let mut by_partition: BTreeMap<PartitionHandle, Vec<Payload>> = BTreeMap::new();
        for payload in payloads {
            by_partition.entry(payload.partition).or_default().push(payload);
        }
        by_partition.into_iter().map(|(partition, payloads)| self.write_extent(partition, payloads)).collect()
    }

    fn write_extent(&mut self, partition: PartitionHandle, payloads: Vec<Payload>) -> Extent {
        let mut file = self.file.0.lock().unwrap();
        let (position, base_offset) = (file.len(), payloads[0].base_offset);
        let mut next = base_offset;
        let mut max_timestamp = -1;
        for payload in payloads {
            assert_eq!(payload.base_offset, next, "batches of a partition follow each other");
            next = next.plus(payload.count);
            max_timestamp = payload.max_timestamp.max(max_timestamp);
            let mut bytes = payload.bytes.to_vec();
            patch_base_offset_and_leader_epoch(&mut bytes, payload.base_offset, self.leader_epoch);
            file.extend(bytes);
        }
        Extent {
            partition,
            base_offset,
            count: u32::try_from(next.since(base_offset)).unwrap(),
            file: FILE,
            position: position as u64,
            length: u32::try_from(file.len() - position).unwrap(),
            max_timestamp,
        }
    }

    /// Changes the bytes of `text` where the file holds them.
    pub(super) fn damage(&mut self, text: &[u8], change: impl Fn(&mut [u8])) {
        let mut file = self.file.0.lock().unwrap();
        let at = file.windows(text.len()).position(|part| part == text).expect("it is stored");
        change(&mut file[at..at + text.len()]);
        self.cache.forget_file(FILE);
    }

    /// Rebuilds state and published view from the groups; forgets nothing.
    pub(super) fn replay(&mut self) -> (State, LogSequence) {
        let mut state = State::new();
        let mut sequence = LogSequence::default();
        self.published = Arc::default();
        for group in &self.groups {
            let mut visible = Vec::<Visible>::new();
            for event in &group.events {
                sequence = sequence.next();
                state.apply(sequence, &written(event), &mut visible);
            }
            self.published.publish(sequence, &group.extents, visible);
        }
        (state, sequence)
    }
}

/// The event as the log gives it back.
fn written(event: &Event) -> Event {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    Event::decode(&mut semel_events::Reader::new(&bytes)).unwrap()
}

/// Every batch and marker of the events has its bytes, in order, and there are no others.
fn check_payloads(events: &[Event], payloads: &[Payload]) {
    let batches = events.iter().filter_map(|event| match event {
        Event::BatchAppended(event) => Some((event.partition, event.base_offset)),
        Event::ShardStarted(_)
        | Event::ProducerIdsReserved(_)
        | Event::TopicCreated(_)
        | Event::TopicDeleted(_)
        | Event::ProducersShrunk(_)
        | Event::StubsDropped(_)
        | Event::TransactionalIdInitialized(_)
        | Event::TransactionExtended(_)
        | Event::TransactionEnded(_)
        | Event::TransactionalIdExpired(_)
        | Event::OffsetsCommitted(_)
        | Event::PendingOffsetsAdded(_)
        | Event::GroupDeleted(_)
        | Event::RecordsDeleted(_)
        | Event::TopicSettingsChanged(_)
        | Event::PartitionsAdded(_)
        | Event::GroupSettingsChanged(_)
        | Event::OffsetsDeleted(_)
        | membership_event!() => None,
    });
    let ended = events.iter().filter_map(|event| {
        if let Event::TransactionEnded(event) = event { Some(&event.markers) } else { None }
    });
    let markers = ended.flatten().map(|marker| (marker.partition, marker.offset));
    let mut expected: Vec<_> = batches.chain(markers).collect();
    let mut found: Vec<_> = payloads.iter().map(|payload| (payload.partition, payload.base_offset)).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "payloads are those of the events");
}
