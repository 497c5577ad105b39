//! The founding API: producer state alone, one record a batch, without a broker around it.
//!
//! Purpose: the rule that everything else rests on, in the words of the text that the project starts from. It is the
//! broker's own [`verdict`] and the broker's own table. Invariants: EOS-02, EOS-05 (only `Accepted` changes
//! anything). What it does not do: offsets, transactions, expiry.

use alloc::collections::BTreeMap;
use core::fmt;

use semel_events::ProducerIdsReserved;
use semel_types::{
    LogSequence, Now, Offset, PRODUCER_ID_BLOCK, PartitionHandle, PayloadChecksum, ProducerEpoch, ProducerId,
    ProducerStamp, Sequence,
};

use super::{AcceptedBatch, BatchStamp, Finding, Known, ProducerView, Table, verdict};
use crate::ids::ProducerIds;

/// The four outcomes of the founding text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In order, new: appended, recorded.
    Accepted,
    /// At or below what is accepted in this epoch: acknowledged, not appended.
    Duplicate,
    /// A gap: rejected.
    OutOfOrder,
    /// An older epoch than the one on file: a zombie, rejected.
    FencedEpoch,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accepted => "ACCEPTED",
            Self::Duplicate => "DUPLICATE",
            Self::OutOfOrder => "OUT_OF_ORDER",
            Self::FencedEpoch => "FENCED_EPOCH",
        })
    }
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Append => Self::Accepted,
            Finding::Retry(_) | Finding::OtherPayload(_) | Finding::AlreadyStored { .. } => Self::Duplicate,
            Finding::Stray { .. } | Finding::Overlap { .. } | Finding::Gap { .. } | Finding::Forgotten => {
                Self::OutOfOrder
            }
            Finding::Fenced { .. } => Self::FencedEpoch,
        }
    }
}

/// Recognises retries, gaps and zombies of any number of producers, named by anything that can be ordered.
///
/// ```
/// use semel_eos::ProducerStateManager;
/// use semel_types::{PartitionHandle, ProducerEpoch, Sequence};
///
/// let mut manager = ProducerStateManager::new();
/// let mut append = |epoch, sequence| {
///     let sequence = Sequence::from_wire(sequence).expect("not negative");
///     manager.append("p1", PartitionHandle::new(0), ProducerEpoch::new(epoch), sequence).to_string()
/// };
/// assert_eq!(append(0, 0), "ACCEPTED");
/// assert_eq!(append(0, 1), "ACCEPTED");
/// assert_eq!(append(0, 1), "DUPLICATE"); // retry of the above
/// assert_eq!(append(0, 5), "OUT_OF_ORDER"); // gap: 2, 3, 4 are missing
/// assert_eq!(append(1, 0), "ACCEPTED"); // new session, restarts at 0
/// assert_eq!(append(0, 2), "FENCED_EPOCH"); // stale epoch, zombie
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProducerStateManager<P = ProducerId> {
    names: BTreeMap<P, ProducerId>,
    ids: ProducerIds,
    table: Table,
    /// Batches accepted so far.
    accepted: u32,
}

impl<P> Default for ProducerStateManager<P> {
    fn default() -> Self {
        Self { names: BTreeMap::new(), ids: ProducerIds::default(), table: Table::default(), accepted: 0 }
    }
}

impl<P: Ord> ProducerStateManager<P> {
    /// Nothing was written yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Judges one record and records it if it is accepted, by the founding rules in their order: nothing known,
    /// older epoch, newer epoch, same epoch. Any other outcome leaves everything as it was. Sequences wrap: 0
    /// follows 2147483647.
    pub fn append(
        &mut self,
        producer: P,
        partition: PartitionHandle,
        epoch: ProducerEpoch,
        sequence: Sequence,
    ) -> Verdict {
        let known_id = self.names.get(&producer).copied();
        let id = known_id.unwrap_or_else(|| self.next_id());
        let batch = BatchStamp {
            producer: ProducerStamp { id, epoch },
            first_sequence: sequence,
            count: 1,
            checksum: PayloadChecksum(0),
            transactional: false,
        };
        let verdict = Verdict::from(verdict(&self.view(id, partition), &batch));
        if verdict == Verdict::Accepted {
            self.names.entry(producer).or_insert(id);
            self.record(partition, &batch);
        }
        verdict
    }

    fn view(&self, id: ProducerId, partition: PartitionHandle) -> ProducerView<'_> {
        ProducerView { known: self.table.find(&self.ids, id, partition).known, ..ProducerView::UNKNOWN }
    }

    /// The id that the next new name gets.
    fn next_id(&self) -> ProducerId {
        let named = i64::try_from(self.names.len()).expect("names are in memory");
        ProducerId::new(1 + named)
    }

    fn record(&mut self, partition: PartitionHandle, batch: &BatchStamp) {
        let id = batch.producer.id;
        if !self.ids.is_issued(id) {
            let end = ProducerId::new(id.get() + PRODUCER_ID_BLOCK);
            self.ids.apply_reserved(&ProducerIdsReserved { first: id, end });
        }
        let accepted = AcceptedBatch {
            partition,
            epoch: batch.producer.epoch,
            first_sequence: batch.first_sequence,
            count: batch.count,
            checksum: batch.checksum,
            base_offset: Offset::ZERO.plus(self.accepted),
            transaction: None,
            now: Now::default(),
        };
        self.accepted = self.accepted.saturating_add(1);
        self.table.append(&self.ids, id, &accepted, LogSequence::new(self.accepted.into()));
    }
}

impl ProducerView<'_> {
    /// A partition that has forgotten nothing, and a producer that it knows nothing of.
    pub const UNKNOWN: Self = Self {
        known: Known::Nothing,
        open: None,
        may_have_forgotten: false,
        may_have_lost_writes: false,
        refused_for_room: false,
    };
}
