//! The state of the core and its only writer.

use alloc::vec::Vec;

use semel_events::{
    BatchAppended, BatchProducer, Decode, DecodeError, Encode, Event, Reader, ShardStarted, StubsDropped,
    Visible, membership_event,
};
use semel_types::{
    ClusterId, LeaderEpoch, LogSequence, Now, PartitionHandle, ProducerId, ShardEpoch,
    mutation::{Mutation, mutated},
};

use crate::{
    dropped,
    ids::ProducerIds,
    partition::{PartitionState, Partitions},
    producer::{AcceptedBatch, Admission, BatchStamp, ProduceScope, Table},
    refusal::Refusal,
    txn,
    volatile::Volatile,
};

/// Version of the snapshot form.
const VERSION: u8 = 2;

/// Everything of the core that the log holds. A clone shares all pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    pub(crate) producers: Table,
    pub(crate) partitions: Partitions,
    pub(crate) transactions: txn::Coordinator,
    pub(crate) ids: ProducerIds,
    /// The latest time that an event named.
    pub(crate) last_now: Now,
    /// The data directory's id; all zero before the first start.
    pub(crate) cluster: ClusterId,
    /// The shard's epoch; leader epoch and coordinator epoch.
    pub(crate) shard_epoch: ShardEpoch,
    pub(crate) doubt: Doubt,
}

/// The latest start that may have lost writes: what ids of before it say is missing may be gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Doubt {
    /// Ids below this one were issued before it.
    below: ProducerId,
    /// The broker's time then.
    since: Now,
}

impl Doubt {
    /// True if what an issued id wrote on a partition is in doubt: until its next accepted batch there. `None` if
    /// nothing is known of it there.
    pub(crate) fn is_of(&self, id: ProducerId, last_written: Option<Now>) -> bool {
        id < self.below && last_written.is_none_or(|last| last <= self.since)
    }
}

impl State {
    /// A shard that nothing was written to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies one event; what readers may see once it is durable is added to `visible`.
    pub fn apply(&mut self, sequence: LogSequence, event: &Event, visible: &mut Vec<Visible>) {
        let epoch = LeaderEpoch::from(self.shard_epoch);
        self.last_now = self.last_now.max(time_of(event).unwrap_or(self.last_now));
        match event {
            Event::ShardStarted(event) => self.apply_started(event),
            Event::ProducerIdsReserved(event) => self.ids.apply_reserved(event),
            Event::TopicCreated(event) => self.partitions.apply_created(event),
            Event::TopicDeleted(event) => {
                self.partitions.apply_deleted(event);
                self.producers.apply_topic_deleted();
            }
            Event::RecordsDeleted(event) => self.partitions.apply_records_deleted(event, visible),
            Event::PartitionsAdded(event) => self.partitions.apply_added(event),
            Event::BatchAppended(event) => self.apply_appended(sequence, event, visible),
            Event::ProducersShrunk(event) => self.producers.apply_shrunk(event, &self.partitions),
            Event::StubsDropped(event) => self.apply_stubs_dropped(event),
            Event::TransactionalIdInitialized(_)
            | Event::TransactionExtended(_)
            | Event::TransactionalIdExpired(_)
            | Event::PendingOffsetsAdded(_) => self.transactions.apply(event, &mut self.producers),
            Event::TransactionEnded(ended) => {
                let written = txn::written(ended, &self.partitions);
                self.partitions.apply_ended(ended, epoch, visible);
                self.transactions.apply_ended(ended, written, &mut self.producers);
            }
            Event::OffsetsCommitted(_)
            | Event::GroupDeleted(_)
            | Event::TopicSettingsChanged(_)
            | Event::GroupSettingsChanged(_)
            | Event::OffsetsDeleted(_)
            | membership_event!() => {}
        }
    }

    fn apply_started(&mut self, event: &ShardStarted) {
        self.cluster = event.cluster;
        self.shard_epoch = event.shard_epoch;
        if mutated(Mutation::ProducersLostAtRestart) {
            self.producers = dropped::without_entries(&self.producers);
        }
        if event.may_have_lost_writes {
            self.doubt = Doubt { below: self.ids.end(), since: event.now };
        }
    }

    fn apply_appended(&mut self, sequence: LogSequence, event: &BatchAppended, visible: &mut Vec<Visible>) {
        self.partitions.apply_appended(event, LeaderEpoch::from(self.shard_epoch), visible);
        if let Some(producer) = &event.producer {
            let batch = AcceptedBatch::of(event, producer);
            self.producers.append(&self.ids, producer.stamp.id, &batch, sequence);
        }
    }

    fn apply_stubs_dropped(&mut self, event: &StubsDropped) {
        self.producers.apply_stubs_dropped(event);
        let highest = event.producers.iter().max();
        self.partitions
            .forget_below(&event.partitions, highest.copied().map(ProducerId::next).unwrap_or_default());
    }

    /// Step 5 of design section 3, membership: for a batch judged [`crate::Judgement::Append`] that nothing else forbids.
    ///
    /// # Errors
    /// The transaction that the batch names is not open, or does not hold the partition.
    pub fn admit(
        &self,
        scope: &ProduceScope<'_>,
        partition: PartitionHandle,
        stamp: &BatchStamp,
        now: Now,
    ) -> Result<Admission, Refusal> {
        if stamp.transactional {
            txn::admit(self, scope, partition, stamp, now)
        } else {
            Ok(Admission { extension: None, transaction: None })
        }
    }

    /// The event of an admitted batch of `count` records; `stamp` is `None` for a producer without id. Several
    /// batches of one request are judged and applied one after another.
    #[must_use]
    pub fn append_event(
        &self,
        partition: PartitionHandle,
        count: u32,
        stamp: Option<(&BatchStamp, &Admission)>,
        now: Now,
    ) -> BatchAppended {
        let base_offset = self.partition(partition).map(PartitionState::next_offset).unwrap_or_default();
        let producer = stamp.map(|(stamp, admission)| BatchProducer {
            stamp: stamp.producer,
            first_sequence: stamp.first_sequence,
            checksum: stamp.checksum,
            transaction: admission.transaction,
        });
        BatchAppended { partition, base_offset, count, producer, now }
    }

    /// The numbers of one partition.
    #[must_use]
    pub fn partition(&self, partition: PartitionHandle) -> Option<&PartitionState> {
        self.partitions.get(partition)
    }

    /// The open transaction of the transactional id that owns a producer id.
    #[must_use]
    pub fn open_transaction_of(&self, producer: ProducerId) -> Option<&txn::OpenTransaction> {
        self.transactions.open(&self.producers.owned(producer)?.owner)
    }

    /// The transaction coordinator: every transactional id, and the fence log.
    #[must_use]
    pub const fn transactions(&self) -> &txn::Coordinator {
        &self.transactions
    }

    /// What each producer wrote where.
    #[must_use]
    pub const fn producers(&self) -> &Table {
        &self.producers
    }

    /// All partitions by handle.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionHandle, &PartitionState)> {
        self.partitions.iter()
    }

    /// The latest time that an event named: the broker's clock starts no earlier.
    #[must_use]
    pub const fn last_now(&self) -> Now {
        self.last_now
    }

    /// The data directory's id; all zero before the first start.
    #[must_use]
    pub const fn cluster_id(&self) -> ClusterId {
        self.cluster
    }

    /// The shard's epoch; 0 before the first start.
    #[must_use]
    pub const fn shard_epoch(&self) -> ShardEpoch {
        self.shard_epoch
    }

    /// The next producer id that nobody has: what `TopicDeleted` names.
    #[must_use]
    pub fn next_unissued_id(&self, volatile: &Volatile) -> ProducerId {
        self.ids.next_unissued(&volatile.ids)
    }

    /// Rebuilds what readers may see after a snapshot was loaded: positions and leader epochs of every partition.
    pub fn visible(&self, out: &mut Vec<Visible>) {
        self.partitions.visible(out);
    }

    /// Appends the snapshot form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        self.last_now.encode(out);
        self.cluster.encode(out);
        self.shard_epoch.encode(out);
        self.doubt.below.encode(out);
        self.doubt.since.encode(out);
        self.ids.encode(out);
        self.partitions.encode(out);
        self.producers.encode(out);
        self.transactions.encode(out);
    }

    /// Reads the snapshot form.
    ///
    /// # Errors
    /// The bytes are damaged, or of a newer version.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.byte()? {
            VERSION => {}
            found => return Err(DecodeError::Choice { of: "version of the core's state", found }),
        }
        Ok(Self {
            last_now: Decode::decode(reader)?,
            cluster: Decode::decode(reader)?,
            shard_epoch: Decode::decode(reader)?,
            doubt: Doubt { below: Decode::decode(reader)?, since: Decode::decode(reader)? },
            ids: ProducerIds::decode(reader)?,
            partitions: Partitions::decode(reader)?,
            producers: Table::decode(reader)?,
            transactions: txn::Coordinator::decode(reader)?,
        })
    }
}

/// The broker's time that an event names.
fn time_of(event: &Event) -> Option<Now> {
    match event {
        Event::ShardStarted(event) => Some(event.now),
        Event::TopicCreated(event) => Some(event.now),
        Event::TopicDeleted(event) => Some(event.now),
        Event::BatchAppended(event) => Some(event.now),
        Event::TransactionalIdInitialized(event) => Some(event.now),
        Event::TransactionExtended(event) => Some(event.now),
        Event::TransactionEnded(event) => Some(event.now),
        Event::TransactionalIdExpired(event) => Some(event.now),
        Event::OffsetsCommitted(event) => Some(event.now),
        Event::PendingOffsetsAdded(event) => Some(event.now),
        Event::GroupGenerationStarted(event) => Some(event.now),
        Event::GroupAssigned(event) => Some(event.now),
        Event::GroupMemberReplaced(event) => Some(event.now),
        Event::GroupMembersRemoved(event) => Some(event.now),
        Event::GroupDeleted(event) => Some(event.now),
        Event::OffsetsDeleted(event) => Some(event.now),
        Event::RecordsDeleted(event) => Some(event.now),
        Event::TopicSettingsChanged(event) => Some(event.now),
        Event::PartitionsAdded(event) => Some(event.now),
        Event::GroupSettingsChanged(event) => Some(event.now),
        Event::ConsumerMemberChanged(event) => Some(event.now),
        Event::ConsumerEpochStarted(event) => Some(event.now),
        Event::ConsumerMemberReconciled(event) => Some(event.now),
        Event::ConsumerMembersRemoved(event) => Some(event.now),
        Event::ConsumerMemberReplaced(event) => Some(event.now),
        Event::GroupKindChanged(event) => Some(event.now),
        Event::StreamsTopologySet(event) => Some(event.now),
        Event::StreamsMemberChanged(event) => Some(event.now),
        Event::StreamsEpochStarted(event) => Some(event.now),
        Event::StreamsTargetSet(event) => Some(event.now),
        Event::StreamsMemberReconciled(event) => Some(event.now),
        Event::StreamsMembersRemoved(event) => Some(event.now),
        Event::ProducerIdsReserved(_) | Event::ProducersShrunk(_) | Event::StubsDropped(_) => None,
    }
}
