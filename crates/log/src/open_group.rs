//! The group that fills while another is being written, and how it is laid out when the log thread takes it.

use std::sync::Arc;

use semel_events::{AbortedTransaction, Visible};
use semel_types::{LeaderEpoch, LogSequence, PartitionHandle, ShardEpoch, ShardId};

use crate::{
    Extent, IndexEntries, LogPosition as Place, Payload, Proposal,
    buffer::{Aligned, Pool, copy},
    format::group::{GroupHeader, HEADER, Kind, padded},
};

/// Bytes of a batch before which base offset and leader epoch are patched: base offset at 0, leader epoch at 12.
const BATCH_PREFIX: usize = 16;
/// Upper bound of one extent in an index directory, and of one aborted entry.
const ENTRY_MAX: usize = 56;

/// Decisions that will become durable together.
#[derive(Debug, Default)]
pub struct OpenGroup {
    /// Number of its events.
    pub count: u32,
    /// Its events as they will be written.
    pub events: Vec<u8>,
    /// Its batches in order of arrival.
    pub payloads: Vec<Payload>,
    /// Bytes of all batches.
    pub payload_bytes: usize,
    /// What readers will see.
    pub visible: Vec<Visible>,
    /// Some decision must be synced before its outcome.
    pub sync_now: bool,
    /// Number of decisions.
    pub decisions: usize,
    /// Worst-case bytes on the disk, as promised.
    pub promised: u64,
}

/// Where the chain stands: what the next group's header needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The data directory's identity.
    pub identity: u64,
    /// Which shard.
    pub shard: ShardId,
    /// Its epoch at this start.
    pub shard_epoch: ShardEpoch,
    /// Random at each start.
    pub incarnation: u64,
    /// Outcomes are reported before the sync.
    pub answers_early: bool,
    /// Last sequence written.
    pub sequence: LogSequence,
    /// CRC of the last group's header.
    pub previous: u32,
    /// Where the next group goes.
    pub place: Place,
    /// Last durable sequence.
    pub durable: LogSequence,
    /// End of the last durable group.
    pub durable_end: Place,
}

/// A group ready to be written.
pub struct ClosedGroup {
    /// Its bytes.
    pub bytes: Aligned,
    /// Where its batches lie.
    pub extents: Vec<Extent>,
    /// Its header's CRC.
    pub checksum: u32,
}

/// Worst-case bytes that a proposal of this size takes on the disk, if it were a group of its own.
pub fn worst_case(bytes: u64, batches: u64) -> u64 {
    let content = bytes + batches * ENTRY_MAX as u64 + HEADER as u64;
    content.next_multiple_of(crate::disk::BLOCK as u64)
}

impl OpenGroup {
    /// True if nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.decisions == 0
    }

    /// Bytes of events and batches.
    pub fn bytes(&self) -> usize {
        self.events.len() + self.payload_bytes
    }

    /// Takes one whole decision; its events are encoded here, its batches are only held.
    pub fn add(&mut self, proposal: Proposal) {
        let before = self.bytes();
        self.count += proposal.events.len() as u32;
        proposal.events.iter().for_each(|event| event.encode(&mut self.events));
        self.payload_bytes += proposal.payload_bytes();
        let entries = proposal.payloads.len() + proposal.visible.len();
        self.promised += worst_case((self.bytes() - before) as u64, entries as u64);
        self.payloads.extend(proposal.payloads);
        self.visible.extend(proposal.visible);
        self.sync_now |= proposal.sync_now;
        self.decisions += 1;
    }

    /// Batches of one partition side by side, each partition's in order of arrival; positions count from the first.
    fn extents(&self, order: &[u32]) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        let mut position = 0;
        for index in order {
            let payload = &self.payloads[*index as usize];
            let length = payload.bytes.len() as u32;
            match extents.last_mut() {
                Some(last) if last.partition == payload.partition => {
                    let end = payload.base_offset.plus(payload.count);
                    debug_assert!(payload.base_offset >= last.base_offset.plus(last.count));
                    last.count = end.since(last.base_offset) as u32;
                    last.length += length;
                    last.max_timestamp = last.max_timestamp.max(payload.max_timestamp);
                }
                Some(_) | None => extents.push(Extent {
                    partition: payload.partition,
                    base_offset: payload.base_offset,
                    count: payload.count,
                    file: Default::default(),
                    position,
                    length,
                    max_timestamp: payload.max_timestamp,
                }),
            }
            position += u64::from(length);
        }
        extents
    }

    /// Payload indices by partition, then arrival.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.payloads.len() as u32).collect();
        let partition = |index: &u32| self.payloads[*index as usize].partition;
        if !order.is_sorted_by_key(partition) {
            order.sort_by_key(partition);
        }
        order
    }

    fn aborted(&self) -> Vec<(PartitionHandle, AbortedTransaction)> {
        let entries = self.visible.iter().filter_map(|visible| match visible {
            Visible::Aborted { partition, aborted } => Some((*partition, aborted.clone())),
            Visible::Positions { .. }
            | Visible::EpochStarted { .. }
            | Visible::TopicCreated { .. }
            | Visible::TopicChanged { .. }
            | Visible::GroupSettings { .. }
            | Visible::TopicDeleted { .. } => None,
        });
        entries.collect()
    }

    /// How the group will be laid out, before its place is known.
    pub fn plan(&self) -> Plan {
        let order = self.order();
        let extents = self.extents(&order);
        let entries = IndexEntries { extents, aborted: self.aborted(), ..IndexEntries::default() };
        let mut index = Vec::new();
        entries.encode(Place::default(), &mut index);
        let total = padded(HEADER + index.len() + self.events.len() + self.payload_bytes);
        Plan { order, extents: entries.extents, index, total }
    }

    /// Gathers the group into one buffer, patching each batch's base offset and leader epoch on the way.
    pub fn close(&self, plan: Plan, kind: Kind, chain: &Chain, pool: &Arc<Pool>) -> ClosedGroup {
        let mut bytes = pool.take(plan.total);
        let start = HEADER + plan.index.len() + self.events.len();
        bytes[HEADER..HEADER + plan.index.len()].copy_from_slice(&plan.index);
        copy(&mut bytes[HEADER + plan.index.len()..start], &self.events);
        let end = self.gather(&plan.order, LeaderEpoch::from(chain.shard_epoch), start, &mut bytes);
        bytes[end..].fill(0);
        let header = GroupHeader {
            kind,
            answers_early: chain.answers_early,
            identity: chain.identity,
            shard: chain.shard,
            shard_epoch: chain.shard_epoch,
            incarnation: chain.incarnation,
            place: chain.place,
            first_sequence: LogSequence::new(chain.sequence.get() + 1),
            count: self.count,
            previous: chain.previous,
            durable_before: chain.durable,
            durable_end: chain.durable_end,
            index_length: plan.index.len() as u32,
            events_length: self.events.len() as u32,
            payload_length: self.payload_bytes as u32,
            section_checksum: crc32c::crc32c(&bytes[HEADER..start]),
            payload_checksum: crc32c::crc32c(&bytes[start..end]),
        };
        let checksum = header.write(&mut bytes);
        let mut extents = plan.extents;
        for extent in &mut extents {
            extent.file = chain.place.file;
            extent.position += chain.place.position + start as u64;
        }
        ClosedGroup { bytes, extents, checksum }
    }

    /// Copies the batches side by side from `at` on and returns where they end.
    fn gather(&self, order: &[u32], epoch: LeaderEpoch, mut at: usize, bytes: &mut [u8]) -> usize {
        for index in order {
            let payload = &self.payloads[*index as usize];
            let to = &mut bytes[at..at + payload.bytes.len()];
            assert!(to.len() >= BATCH_PREFIX, "a batch has a header");
            copy(to, &payload.bytes);
            to[..8].copy_from_slice(&payload.base_offset.get().to_be_bytes());
            to[12..BATCH_PREFIX].copy_from_slice(&epoch.get().to_be_bytes());
            at += payload.bytes.len();
        }
        at
    }
}

/// A group's layout.
pub struct Plan {
    order: Vec<u32>,
    extents: Vec<Extent>,
    index: Vec<u8>,
    /// Bytes of the whole group, padding included.
    pub total: usize,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use semel_types::Offset;

    use super::*;
    use crate::{
        FileNumber,
        format::group::{Found, read_index},
    };

    fn payload(partition: u32, base_offset: i64, fill: u8) -> Payload {
        Payload {
            partition: PartitionHandle::new(partition),
            base_offset: Offset::new(base_offset),
            count: 2,
            max_timestamp: base_offset.wrapping_mul(10),
            bytes: Bytes::from(vec![fill; 100]),
        }
    }

    fn chain() -> Chain {
        Chain {
            identity: 1,
            shard: ShardId::new(0),
            shard_epoch: ShardEpoch::new(5),
            incarnation: 2,
            answers_early: false,
            sequence: LogSequence::new(9),
            previous: 3,
            place: Place { file: FileNumber::new(1), position: 4096 },
            durable: LogSequence::new(9),
            durable_end: Place { file: FileNumber::new(1), position: 4096 },
        }
    }

    #[test]
    fn batches_of_a_partition_lie_side_by_side_in_one_extent() {
        let mut group = OpenGroup::default();
        for (partition, offset, fill) in [(2, 0, 1), (1, 7, 2), (2, 2, 3), (1, 9, 4)] {
            group.add(Proposal { payloads: vec![payload(partition, offset, fill)], ..Proposal::default() });
        }
        let closed = group.close(group.plan(), Kind::Events, &chain(), &Arc::new(Pool::default()));
        let of = |partition| {
            closed.extents.iter().find(|e| e.partition == PartitionHandle::new(partition)).unwrap()
        };
        assert_eq!(closed.extents.len(), 2);
        let (one, two) = (of(1), of(2));
        assert_eq!((one.base_offset, one.count, one.length, one.max_timestamp), (Offset::new(7), 4, 200, 90));
        assert_eq!((two.base_offset, two.count), (Offset::ZERO, 4));
        let at = (one.position - 4096) as usize;
        assert_eq!(closed.bytes[at..at + 8], 7_i64.to_be_bytes(), "base offset is patched");
        assert_eq!(closed.bytes[at + 8..at + 12], [2; 4], "the length stays");
        assert_eq!(closed.bytes[at + 12..at + 16], 5_i32.to_be_bytes(), "leader epoch is patched");
        assert_eq!(closed.bytes[at + 100..at + 108], 9_i64.to_be_bytes(), "the second batch follows at once");
    }

    #[test]
    fn the_index_directory_names_the_same_extents() {
        let mut group = OpenGroup::default();
        group.add(Proposal { payloads: vec![payload(1, 0, 1), payload(2, 0, 1)], ..Proposal::default() });
        let closed = group.close(group.plan(), Kind::Events, &chain(), &Arc::new(Pool::default()));
        let Found::Header(header, checksum) = GroupHeader::read(&closed.bytes) else { panic!("no header") };
        assert_eq!((checksum, header.total()), (closed.checksum, closed.bytes.len()));
        let index = &closed.bytes[HEADER..HEADER + header.index_length as usize];
        assert_eq!(read_index(&header, index).unwrap().extents, closed.extents);
    }

    #[test]
    fn a_promise_covers_what_a_decision_takes_as_a_group_of_its_own() {
        for batches in [0, 1, 50] {
            let mut group = OpenGroup::default();
            let payloads = (0..batches).map(|n| payload(u32::MAX - n, i64::MAX - 5, 1)).collect();
            group.add(Proposal { payloads, ..Proposal::default() });
            assert!(group.plan().total as u64 <= worst_case(group.bytes() as u64, u64::from(batches)));
        }
    }
}
