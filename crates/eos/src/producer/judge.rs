//! The decision table: is a batch new, a retry, a gap or a stray? (Founding rules 1 to 4; design section 3.)
//!
//! Purpose: one function over plain facts, so that every combination can be tried. Invariants: EOS-02 (at most one
//! record per sequence of an epoch), EOS-03 (never "out of order" for a batch that may be stored at the current
//! epoch), EOS-04 (a stray of an ended transaction is never acknowledged), EOS-05 (reads only, allocates nothing).
//! What it does not do: say who may write at all (`fence`), append.

use semel_types::{
    Now, Offset, PartitionHandle, ProducerEpoch, ProducerStamp, Sequence, SequencePosition,
    TransactionNumber,
    mutation::{Mutation, mutated},
};

use super::{BatchStamp, Judgement, Known, OwnedSlot, ProduceScope, RememberedBatch};
use crate::{
    State, Volatile,
    dropped::{Rule, keeps},
    fence::{self, Claim, EpochStanding},
    refusal::Refusal,
};

/// The facts about one batch's producer on one partition.
#[derive(Clone, Copy, Debug)]
pub struct ProducerView<'a> {
    /// What is known of it here.
    pub known: Known<'a>,
    /// The id's open transaction, if it is owned and one is open.
    pub open: Option<TransactionNumber>,
    /// This partition may have dropped what it knew of the id, or the id was never issued here.
    pub may_have_forgotten: bool,
    /// The id was issued before a start that may have lost writes, has no owner, and had no batch accepted here since.
    pub may_have_lost_writes: bool,
    /// A lower sequence of the same epoch was refused here for want of room and not judged since.
    pub refused_for_room: bool,
}

/// What the table says of a batch, with what a person needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// In order, new.
    Append,
    /// A retry of a remembered batch.
    Retry(RememberedBatch),
    /// The sequences of a remembered batch with another payload.
    OtherPayload(RememberedBatch),
    /// Stored, but in other batches or longer ago than the remembered ones.
    AlreadyStored {
        /// Last accepted sequence.
        last: Sequence,
    },
    /// At or below the last accepted one, yet not what the open transaction wrote.
    Stray {
        /// Last accepted sequence.
        last: Sequence,
    },
    /// Starts at or below the last accepted one and ends above it.
    Overlap {
        /// Last accepted sequence.
        last: Sequence,
    },
    /// An earlier batch is still on its way, or a new epoch does not start at 0.
    Gap {
        /// What would be accepted.
        expected: Sequence,
    },
    /// What is missing may have been known once.
    Forgotten,
    /// An older epoch than the one on file.
    Fenced {
        /// The epoch on file.
        current: ProducerEpoch,
        /// When it last wrote here, to the second at least.
        since: Now,
    },
}

impl State {
    /// Judges one batch of Produce: identity, connection, then the table (steps 2 to 4 of design section 3). Reads
    /// only, allocates nothing unless it refuses. Several batches of one request are judged and applied one after
    /// another; each judgement goes to [`Volatile::note_produce`].
    #[must_use]
    pub fn judge(
        &self,
        volatile: &Volatile,
        scope: &ProduceScope<'_>,
        partition: PartitionHandle,
        stamp: &BatchStamp,
    ) -> Judgement {
        let Some(place) = self.partition(partition) else {
            return Judgement::Refuse(Refusal::UnknownPartition { partition });
        };
        let found = self.producers.find(&self.ids, stamp.producer.id, partition);
        if let Err(refusal) = self.may_write(found.owned, volatile, scope, stamp) {
            return Judgement::Refuse(refusal);
        }
        let id = stamp.producer.id;
        let view = ProducerView {
            known: found.known,
            open: found.owned.and_then(|owned| owned.open),
            may_have_forgotten: !found.issued
                || (id < place.may_have_forgotten() && keeps(Rule::NewTopicDoubts)),
            may_have_lost_writes: found.owned.is_none()
                && found.issued
                && keeps(Rule::UncleanDoubts)
                && self.doubt.is_of(id, found.known.on_file().map(|file| file.since)),
            refused_for_room: volatile.produce.was_refused_below(partition, stamp) && keeps(Rule::RoomMark),
        };
        Judgement::of(verdict(&view, stamp), stamp, place.log_start())
    }

    /// Steps 2 and 3: the identity first, then its connection.
    fn may_write(
        &self,
        owned: Option<&OwnedSlot>,
        volatile: &Volatile,
        scope: &ProduceScope<'_>,
        stamp: &BatchStamp,
    ) -> Result<(), Refusal> {
        let claim = Claim {
            stamp: stamp.producer,
            transactional: stamp.transactional,
            transactional_id: scope.transactional_id,
        };
        fence::batch_owner(owned, claim, self.transactions.fences())?;
        let connection = scope.connection;
        match volatile.produce.superseded_by(stamp.producer, connection) {
            Some(highest) if keeps(Rule::ProduceOrder) => {
                Err(Refusal::SupersededConnection { connection, highest })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// What entry and stub have in common.
struct OnFile {
    epoch: ProducerEpoch,
    last: Sequence,
    wrapped: bool,
    since: Now,
}

impl Known<'_> {
    fn on_file(&self) -> Option<OnFile> {
        match self {
            Known::Nothing => None,
            Known::Entry(entry) => Some(OnFile {
                epoch: entry.epoch(),
                last: entry.last(),
                wrapped: entry.wrapped(),
                since: entry.appended_at(),
            }),
            Known::Stub(stub) => Some(OnFile {
                epoch: stub.epoch(),
                last: stub.last(),
                wrapped: stub.wrapped(),
                since: Now::from_ms(i64::from(stub.last_written_s()) * 1000),
            }),
        }
    }
}

/// The decision table of design section 3. Rules in the founding order: nothing known, older epoch, newer epoch, same
/// epoch.
#[must_use]
pub fn verdict(view: &ProducerView<'_>, batch: &BatchStamp) -> Finding {
    let Some(on_file) = view.known.on_file() else {
        let forgotten = view.may_have_forgotten || view.may_have_lost_writes;
        return starts(view, batch, forgotten);
    };
    match fence::standing(batch.producer.epoch, on_file.epoch) {
        EpochStanding::Older if keeps(Rule::OlderEpoch) => {
            Finding::Fenced { current: on_file.epoch, since: on_file.since }
        }
        EpochStanding::Older => starts(view, batch, view.may_have_lost_writes),
        EpochStanding::Newer => starts(view, batch, view.may_have_lost_writes),
        EpochStanding::Current => same_epoch(view, batch, &on_file),
    }
}

/// The first batch of an epoch starts at 0.
fn starts(view: &ProducerView<'_>, batch: &BatchStamp, forgotten: bool) -> Finding {
    if batch.first_sequence == Sequence::ZERO || !keeps(Rule::FirstAtZero) {
        Finding::Append
    } else {
        missing(view, Sequence::ZERO, forgotten)
    }
}

/// Something before this batch is missing: on its way, or gone?
const fn missing(view: &ProducerView<'_>, expected: Sequence, gone: bool) -> Finding {
    if gone && !view.refused_for_room { Finding::Forgotten } else { Finding::Gap { expected } }
}

fn same_epoch(view: &ProducerView<'_>, batch: &BatchStamp, on_file: &OnFile) -> Finding {
    let last = on_file.last;
    match batch.first_sequence.against(last, on_file.wrapped) {
        SequencePosition::Next => Finding::Append,
        SequencePosition::Beyond if !keeps(Rule::Gap) => Finding::Append,
        SequencePosition::AtOrBelow if !keeps(Rule::Retry) => Finding::Append,
        SequencePosition::Beyond => missing(view, last.next(), view.may_have_lost_writes),
        SequencePosition::AtOrBelow if batch.transactional && !is_of_open_transaction(view, batch) => {
            Finding::Stray { last }
        }
        SequencePosition::AtOrBelow if reaches_beyond(batch, last) => Finding::Overlap { last },
        SequencePosition::AtOrBelow => stored(view.known, batch, last),
    }
}

/// True if the batch starts in what the open transaction itself wrote here. A stub counts as an ended transaction.
fn is_of_open_transaction(view: &ProducerView<'_>, batch: &BatchStamp) -> bool {
    if !keeps(Rule::Stray) {
        return true;
    }
    match (view.open, view.known) {
        (Some(number), Known::Entry(entry)) => entry.is_of_transaction(number, batch.first_sequence),
        (Some(_), Known::Stub(_) | Known::Nothing) | (None, _) => false,
    }
}

/// True if the batch, which starts at or below `last`, ends above it.
fn reaches_beyond(batch: &BatchStamp, last: Sequence) -> bool {
    batch.count.saturating_sub(1) > batch.first_sequence.behind(last)
}

/// Everything of the batch is stored: as one of the remembered batches?
fn stored(known: Known<'_>, batch: &BatchStamp, last: Sequence) -> Finding {
    let remembered = match known {
        Known::Entry(entry) => entry.find(batch.sequences(), batch.count),
        Known::Stub(_) | Known::Nothing => None,
    };
    match remembered {
        Some(stored) if stored.checksum == batch.checksum || !keeps(Rule::Payload) => Finding::Retry(stored),
        Some(stored) => Finding::OtherPayload(stored),
        None => Finding::AlreadyStored { last },
    }
}

impl Judgement {
    /// What the broker is told of a finding.
    pub(crate) fn of(finding: Finding, batch: &BatchStamp, log_start: Offset) -> Self {
        let sent = batch.sequences();
        Self::Refuse(match finding {
            Finding::Append => return Self::Append,
            Finding::Retry(stored) => {
                let wrong = u32::from(mutated(Mutation::RetryToldOtherOffset));
                let first_offset = stored.base_offset.plus(wrong);
                return Self::Duplicate { first_offset, appended_at: stored.appended_at };
            }
            Finding::OtherPayload(stored) => Refusal::OtherPayload { sent, stored_at: stored.base_offset },
            Finding::AlreadyStored { .. } => Refusal::AlreadyStored { sent },
            Finding::Stray { .. } => Refusal::StrayOfEndedTransaction { sent },
            Finding::Overlap { last } => Refusal::OutOfOrder { expected: last.next(), sent },
            Finding::Gap { expected } => Refusal::OutOfOrder { expected, sent },
            Finding::Forgotten => Refusal::ForgottenProducer { log_start },
            Finding::Fenced { current, since } => Refusal::Fenced {
                sent: batch.producer,
                current: Some(ProducerStamp { id: batch.producer.id, epoch: current }),
                since: Some(since),
                fence: None,
            },
        })
    }
}
