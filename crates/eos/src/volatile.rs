//! What the node remembers outside the log: empty at start, never in a snapshot, never read by `apply`.
//!
//! Purpose: the connection rule (design section 4), the block of producer ids in use, counters of refusals.
//! Invariants: EOS-35 (a request with the current identity on a lower connection than the highest one seen is not
//! executed; refused identities neither raise nor are held against it). Changed only through [`Change`]s of a
//! decision, and by Produce's own notes. What it does not do: survive a restart; then nothing of before is on its
//! way any more, because its connections are gone.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use rpds::RedBlackTreeMapSync;
use semel_events::Author;
use semel_types::{ConnectionNumber, Now, TransactionalId};

use crate::{ProduceScope, Refusal, State, ids::IdBlock, producer::Recent};

/// Refused requests kept per transactional id.
pub const REFUSED_PER_ID: usize = 16;

/// Connection numbers, the block of producer ids in use, marks of refusals.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    pub(crate) produce: Recent,
    pub(crate) ids: IdBlock,
    connections: BTreeMap<TransactionalId, Connections>,
    /// A clone is O(1): the administrator reads it off the node's thread.
    refused: RedBlackTreeMapSync<TransactionalId, Refused>,
    refused_by_connection: BTreeMap<ConnectionNumber, u64>,
}

/// The requests that the connection rule keeps in order, each by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OrderedApi {
    /// InitProducerId without a pair: it carries no identity, so only its connection tells a late copy.
    InitProducerId,
    /// AddPartitionsToTxn.
    AddPartitions,
    /// AddOffsetsToTxn.
    AddOffsets,
    /// TxnOffsetCommit.
    TxnOffsetCommit,
    /// EndTxn, of both protocols.
    EndTxn,
}

/// One change of [`Volatile`], made by a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A request was executed on this connection: lower ones are superseded.
    Connection {
        /// For which transactional id.
        id: TransactionalId,
        /// For which API.
        api: OrderedApi,
        /// The connection.
        connection: ConnectionNumber,
    },
    /// The identity changed: whatever was seen of the old one says nothing about the new one. InitProducerId's
    /// connection stays: a late copy of it is just as late.
    IdentityChanged(TransactionalId),
    /// The transactional id was forgotten.
    Forgotten(TransactionalId),
    /// The block of producer ids in use, after an id was taken.
    IdBlock(IdBlock),
    /// A request of a known transactional id was refused.
    Refused(TransactionalId, RefusedRequest),
}

/// A request that was refused: no event, only counted and shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedRequest {
    /// On which connection.
    pub connection: ConnectionNumber,
    /// When.
    pub now: Now,
    /// Who sent it, with the API; `None` until [`Volatile::name_refused`] says.
    pub by: Option<Author>,
    /// Why.
    pub refusal: Refusal,
}

/// What was refused of one transactional id.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// How many since the start.
    pub count: u64,
    /// The last of them, the oldest first.
    pub last: VecDeque<RefusedRequest>,
}

/// The highest connection seen of one transactional id, by API.
#[derive(Clone, Debug, Default)]
struct Connections(BTreeMap<OrderedApi, ConnectionNumber>);

impl Volatile {
    /// Nothing remembered, as at a start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The highest connection on which a request of the current identity was executed.
    #[must_use]
    pub fn highest_connection(&self, id: &TransactionalId, api: OrderedApi) -> Option<ConnectionNumber> {
        self.connections.get(id)?.0.get(&api).copied()
    }

    /// What was refused of a transactional id since the start.
    #[must_use]
    pub fn refused(&self, id: &TransactionalId) -> Option<&Refused> {
        self.refused.get(id)
    }

    /// What was refused of every transactional id since the start.
    #[must_use]
    pub const fn refused_by_id(&self) -> &RedBlackTreeMapSync<TransactionalId, Refused> {
        &self.refused
    }

    /// Says who sent the last refused request of a transactional id.
    pub fn name_refused(&mut self, id: &TransactionalId, by: Author) {
        if let Some(last) = self.refused.get_mut(id).and_then(|of_id| of_id.last.back_mut()) {
            last.by = Some(by);
        }
    }

    /// How many requests were refused on a connection that is still open.
    #[must_use]
    pub fn refused_on(&self, connection: ConnectionNumber) -> u64 {
        self.refused_by_connection.get(&connection).copied().unwrap_or(0)
    }

    /// Applies the changes of a decision, in order, after its events.
    pub fn apply_changes(&mut self, changes: Vec<Change>) {
        changes.into_iter().for_each(|change| self.apply_change(change));
    }

    fn apply_change(&mut self, change: Change) {
        match change {
            Change::Connection { id, api, connection } => {
                let highest = self.connections.entry(id).or_default().0.entry(api).or_default();
                *highest = connection.max(*highest);
            }
            Change::IdentityChanged(id) => {
                if let Some(connections) = self.connections.get_mut(&id) {
                    connections.0.retain(|api, _| *api == OrderedApi::InitProducerId);
                }
            }
            Change::Forgotten(id) => {
                self.connections.remove(&id);
                self.refused.remove_mut(&id);
            }
            Change::IdBlock(block) => self.ids = block,
            Change::Refused(id, refused) => self.note_refused(id, refused),
        }
    }

    /// Counts a batch that [`State::judge`] or [`State::admit`] refused, if its transactional id is known: unknown
    /// ones are not counted, or anybody could fill the memory.
    pub fn note_refused_batch(
        &mut self,
        state: &State,
        scope: &ProduceScope<'_>,
        now: Now,
        refusal: &Refusal,
    ) {
        let known = scope.transactional_id.filter(|id| state.transactions().get(id).is_some());
        if let Some(id) = known {
            let refused =
                RefusedRequest { connection: scope.connection, now, by: None, refusal: refusal.clone() };
            self.note_refused(id.clone(), refused);
        }
    }

    /// Counts a refused request and keeps it among the last ones.
    fn note_refused(&mut self, id: TransactionalId, refused: RefusedRequest) {
        *self.refused_by_connection.entry(refused.connection).or_default() += 1;
        if !self.refused.contains_key(&id) {
            self.refused.insert_mut(id.clone(), Refused::default());
        }
        let of_id = self.refused.get_mut(&id).expect("it was put there");
        of_id.count += 1;
        if of_id.last.len() == REFUSED_PER_ID {
            of_id.last.pop_front();
        }
        of_id.last.push_back(refused);
    }

    /// A connection is gone; its counter goes with it. Its number stays the highest seen: what was sent on it may
    /// still be retried on a newer one.
    pub fn connection_closed(&mut self, connection: ConnectionNumber) {
        self.refused_by_connection.remove(&connection);
    }
}
