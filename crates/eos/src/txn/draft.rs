//! A decision while it is being made: what it reads, what it has gathered so far.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use semel_events::{Author, EndCause, Event, Marker, Outcome, Protocol, TransactionEnded};
use semel_types::{
    ConnectionNumber, Context, PartitionHandle, ProducerEpoch, ProducerStamp, TransactionalId,
    mutation::{Mutation, mutated},
};

use super::{Command, Decision, OpenTransaction, Reply, Request, TransactionalIdEntry};
use crate::{
    Change, OrderedApi, Refusal, RefusedRequest, State, Volatile,
    dropped::{Rule, keeps},
    fence::{self, IdentityStanding, Successor},
    ids::IdBlock,
};

/// A decision while it is being made.
pub(super) struct Draft<'a> {
    pub(super) state: &'a State,
    volatile: &'a Volatile,
    pub(super) context: &'a Context,
    connection: ConnectionNumber,
    pub(super) events: Vec<Event>,
    pub(super) changes: Vec<Change>,
    /// Markers that the ends before this one have put at the end of a partition, counted up to an event.
    placed: BTreeMap<PartitionHandle, u32>,
    placed_until: usize,
    /// The block of producer ids in use, as this decision leaves it.
    block: IdBlock,
}

/// A transaction's end, before its markers are placed.
pub(super) struct End<'a> {
    pub(super) id: &'a TransactionalId,
    pub(super) outcome: Outcome,
    pub(super) cause: EndCause,
    /// The client's protocol.
    pub(super) protocol: Protocol,
    pub(super) marker_stamp: ProducerStamp,
    pub(super) identity_after: ProducerStamp,
    pub(super) author: Option<Author>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        state: &'a State,
        volatile: &'a Volatile,
        context: &'a Context,
        connection: ConnectionNumber,
    ) -> Self {
        Self {
            state,
            volatile,
            context,
            connection,
            events: Vec::new(),
            changes: Vec::new(),
            placed: BTreeMap::new(),
            placed_until: 0,
            block: volatile.ids,
        }
    }

    /// The entry of a transactional id whose current identity this is, or why not (F3).
    pub(super) fn owned(
        &self,
        id: &TransactionalId,
        stamp: ProducerStamp,
    ) -> Result<&'a TransactionalIdEntry, Refusal> {
        let entry = self.entry(id)?;
        match fence::identity(entry, stamp) {
            IdentityStanding::Current => Ok(entry),
            IdentityStanding::Remembered(_) | IdentityStanding::OtherProducer | IdentityStanding::Fenced => {
                Err(self.wrong_identity(id, stamp, entry))
            }
        }
    }

    /// Why an identity that is not current may not write: another producer id (49), or another epoch of this one.
    pub(super) fn wrong_identity(
        &self,
        id: &TransactionalId,
        stamp: ProducerStamp,
        entry: &TransactionalIdEntry,
    ) -> Refusal {
        if fence::is_producer(entry.identity, stamp.id) {
            self.fenced(id, stamp, entry)
        } else {
            Refusal::OtherProducer { id: id.clone(), stamp, current: entry.identity }
        }
    }

    pub(super) fn entry(&self, id: &TransactionalId) -> Result<&'a TransactionalIdEntry, Refusal> {
        let unknown = || Refusal::UnknownTransactionalId { id: id.clone() };
        self.state.transactions.get(id).ok_or_else(unknown)
    }

    pub(super) fn fenced(
        &self,
        id: &TransactionalId,
        stamp: ProducerStamp,
        entry: &TransactionalIdEntry,
    ) -> Refusal {
        fence::fenced(id, stamp, Some(entry.identity), self.state.transactions.fences())
    }

    /// The connection rule (F6), asked after the identity was found to be current: a lower connection is not
    /// executed, any other one becomes the one in use.
    pub(super) fn in_order(&mut self, id: &TransactionalId, api: OrderedApi) -> Result<(), Refusal> {
        let connection = self.connection;
        match self.volatile.highest_connection(id, api) {
            Some(highest) if connection < highest && keeps(Rule::CoordinatorOrder) => {
                Err(Refusal::SupersededConnection { connection, highest })
            }
            Some(_) | None => {
                self.changes.push(Change::Connection { id: id.clone(), api, connection });
                Ok(())
            }
        }
    }

    /// The identity that follows: the next epoch, or a new producer id at epoch 0 once epochs are spent.
    pub(super) fn successor(&mut self, identity: ProducerStamp) -> ProducerStamp {
        match fence::successor(identity) {
            Successor::Bumped(stamp) => stamp,
            Successor::NewProducer => self.fresh(),
        }
    }

    /// A producer id that nobody ever had, at epoch 0. Reserves a block if the last one is used up.
    pub(super) fn fresh(&mut self) -> ProducerStamp {
        let id = self.block.issue(&self.state.ids, &self.context.entropy, &mut self.events);
        self.changes.push(Change::IdBlock(self.block));
        ProducerStamp { id, epoch: ProducerEpoch::ZERO }
    }

    /// Ends the open transaction of an entry, or nothing (KIP-890's abort of nothing): one event holds decision,
    /// markers, offsets and completion.
    pub(super) fn end(&mut self, entry: &TransactionalIdEntry, end: End<'_>) {
        let markers = entry.open().map(|open| self.markers(open)).unwrap_or_default();
        let groups = entry.open().map(|open| open.groups.as_slice().to_vec()).unwrap_or_default();
        let event = TransactionEnded {
            id: end.id.clone(),
            number: entry.last_number,
            outcome: end.outcome,
            cause: end.cause,
            version2: end.protocol == Protocol::Version2,
            marker_stamp: end.marker_stamp,
            markers,
            groups,
            identity_before: entry.identity,
            identity_after: end.identity_after,
            author: end.author,
            now: self.context.now,
            wall: self.context.wall,
        };
        if !fence::is_same(event.identity_before, event.identity_after) {
            self.changes.push(Change::IdentityChanged(event.id.clone()));
        }
        self.events.push(event.into());
    }

    /// One marker for each partition that still exists, at its end.
    fn markers(&mut self, open: &OpenTransaction) -> Vec<Marker> {
        self.count_placed();
        let mut markers = Vec::with_capacity(open.partitions.len());
        for &partition in open.partitions.as_slice() {
            let Some(known) = self.state.partition(partition) else { continue };
            let placed = self.placed.get(&partition).copied().unwrap_or(0);
            if mutated(Mutation::MarkerInOnePartition) && !markers.is_empty() {
                continue;
            }
            markers.push(Marker { partition, offset: known.next_offset().plus(placed) });
        }
        markers
    }

    /// Most decisions end one transaction: nothing is counted then.
    fn count_placed(&mut self) {
        for event in &self.events[self.placed_until..] {
            if let Event::TransactionEnded(ended) = event {
                ended
                    .markers
                    .iter()
                    .for_each(|marker| *self.placed.entry(marker.partition).or_default() += 1);
            }
        }
        self.placed_until = self.events.len();
    }

    /// The transactional id that a request names, if it is known here: unknown ones are not counted, or anybody
    /// could fill the memory.
    fn known_id<'r>(&self, request: &'r Request) -> Option<&'r TransactionalId> {
        let named = match &request.command {
            Command::InitProducerId { transactional_id, .. } => transactional_id.as_ref(),
            Command::AddPartitions { id, .. }
            | Command::AddOffsets { id, .. }
            | Command::TxnOffsetCommit { id, .. }
            | Command::EndTxn { id, .. } => Some(id),
            Command::WriteMarker { .. } | Command::Tick => None,
        };
        named.filter(|id| self.state.transactions.get(id).is_some())
    }

    /// Closes the draft with its one answer.
    pub(super) fn answer(mut self, request: &Request, answer: Result<Reply, Refusal>) -> Decision {
        debug_assert!(answer.is_ok() || self.events.is_empty(), "EOS-38: a refusal touches nothing");
        if let (Err(refusal), Some(id)) = (&answer, self.known_id(request)) {
            let (connection, now) = (self.connection, self.context.now);
            let refused = RefusedRequest { connection, now, by: None, refusal: refusal.clone() };
            self.changes.push(Change::Refused(id.clone(), refused));
        }
        Decision {
            events: self.events,
            changes: self.changes,
            answers: vec![(request.token, answer)],
            wake_at: None,
        }
    }
}
