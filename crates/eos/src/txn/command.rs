//! What can be asked of the coordinator and what comes back. Plain data.

use alloc::vec::Vec;

use semel_events::{Author, CommittedOffset, Event, Outcome, Protocol};
use semel_types::{
    ConnectionNumber, DurationMs, GroupId, Now, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp,
    RequestToken, TransactionalId,
};

use crate::{Change, Refusal};

/// One request to the coordinator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Names it in the answers.
    pub token: RequestToken,
    /// The connection it came on; held against the connection rule.
    pub connection: ConnectionNumber,
    /// What is asked.
    pub command: Command,
}

/// What is asked of the coordinator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// InitProducerId (KIP-98, KIP-360). Answered with [`Reply::Identity`].
    InitProducerId {
        /// `None` for an idempotent producer: a fresh id, whatever else was sent.
        transactional_id: Option<TransactionalId>,
        /// The transaction timeout asked for; unchecked.
        timeout: DurationMs,
        /// The pair that the client carried, see [`carried_pair`].
        carried: Option<ProducerStamp>,
        /// Who asks.
        author: Author,
    },
    /// AddPartitionsToTxn. Answered with [`Reply::Done`] or one refusal for all partitions.
    AddPartitions {
        /// Which transactional id.
        id: TransactionalId,
        /// The identity claimed.
        stamp: ProducerStamp,
        /// The partitions, all of which exist.
        partitions: Vec<PartitionHandle>,
        /// Only ask whether the open transaction holds them (versions 4 and 5, from brokers).
        verify_only: bool,
        /// The client's protocol.
        protocol: Protocol,
    },
    /// AddOffsetsToTxn. Answered with [`Reply::Done`].
    AddOffsets {
        /// Which transactional id.
        id: TransactionalId,
        /// The identity claimed.
        stamp: ProducerStamp,
        /// The group whose offsets will come.
        group: GroupId,
    },
    /// TxnOffsetCommit, once the group itself has nothing against it. Answered with [`Reply::Done`].
    TxnOffsetCommit {
        /// Which transactional id.
        id: TransactionalId,
        /// The identity claimed.
        stamp: ProducerStamp,
        /// The group.
        group: GroupId,
        /// The offsets.
        offsets: Vec<CommittedOffset>,
        /// The client's protocol: version 2 adds the group by itself.
        protocol: Protocol,
    },
    /// EndTxn. Answered with [`Reply::Ended`].
    EndTxn {
        /// Which transactional id.
        id: TransactionalId,
        /// The identity claimed.
        stamp: ProducerStamp,
        /// Commit or abort.
        outcome: Outcome,
        /// The client's protocol: version 2 bumps the epoch.
        protocol: Protocol,
        /// Who asks.
        author: Author,
    },
    /// WriteTxnMarkers from a client (KIP-664). Answered with [`Reply::Done`]. The request's coordinator epoch is
    /// not even taken: it must never be stored.
    WriteMarker {
        /// The identity to be ended.
        stamp: ProducerStamp,
        /// How.
        outcome: Outcome,
        /// The partitions named.
        partitions: Vec<PartitionHandle>,
        /// The groups named: those that Kafka would keep in the named partitions of `__consumer_offsets`.
        groups: Vec<GroupId>,
        /// Who asks.
        author: Author,
    },
    /// Time has passed: abort what is overdue, forget what was idle for too long. A bounded part of it; not
    /// answered; [`Decision::wake_at`] says when to ask again.
    Tick,
}

/// The pair that an InitProducerId request carries, from the wire's two fields.
///
/// # Errors
/// [`Refusal::HalfAPair`] if one of them is absent and the other is not (KIP-360).
pub fn carried_pair(
    id: Option<ProducerId>,
    epoch: Option<ProducerEpoch>,
) -> Result<Option<ProducerStamp>, Refusal> {
    match (id, epoch) {
        (Some(id), Some(epoch)) => Ok(Some(ProducerStamp { id, epoch })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(Refusal::HalfAPair),
    }
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// To be applied in order and made durable as one, BEFORE any answer leaves.
    pub events: Vec<Event>,
    /// To be applied to [`crate::Volatile`] after the events.
    pub changes: Vec<Change>,
    /// The answers; a refusal waits for durability like any other.
    pub answers: Vec<(RequestToken, Result<Reply, Refusal>)>,
    /// After a [`Command::Tick`]: when the next one is due, if anything is left to wait for. `None` after any
    /// other request: ask [`crate::txn::next_wake`].
    pub wake_at: Option<Now>,
}

/// A request that was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The identity from here on.
    Identity(ProducerStamp),
    /// Done, now or before.
    Done,
    /// The transaction has ended, now or before; the identity from here on.
    Ended(ProducerStamp),
}
