//! What the coordinator knows of each transactional id. Plain data, persistent maps: a clone is O(1).
//!
//! Invariants: EOS-32 (the two indexes hold exactly the ids they should), EOS-33, EOS-34. Only `apply.rs` and
//! `snapshot.rs` change anything here.

use alloc::sync::Arc;
use core::fmt;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use semel_events::{Author, EndCause, Outcome, Protocol};
use semel_types::{
    DurationMs, GroupId, Now, PartitionHandle, ProducerStamp, TransactionNumber, TransactionalId, WallTime,
    mutation::{Mutation, mutated},
};

use super::{Aborted, Members, fence_log::FenceLog};

/// The coordinator's part of the state: every transactional id, and when each of them is due.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coordinator {
    ids: RedBlackTreeMapSync<TransactionalId, TransactionalIdEntry>,
    /// When the open transaction of each id is overdue.
    deadlines: RedBlackTreeSetSync<(Now, TransactionalId)>,
    /// Since when each id without an open transaction is idle.
    idle: RedBlackTreeSetSync<(Now, TransactionalId)>,
    pub(super) fences: FenceLog,
    /// What the end just applied aborted for the sake of the identity whose event follows in the same decision: that
    /// one makes the fence. Never set between decisions, so no snapshot has it.
    pub(super) aborted_for_successor: Option<Aborted>,
}

/// What is known of one transactional id (upstream `TransactionMetadata`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionalIdEntry {
    /// Who may write: the one current pair.
    pub identity: ProducerStamp,
    /// The timeout of its transactions, counted from their start.
    pub timeout: DurationMs,
    /// Where its transaction stands.
    pub phase: Phase,
    /// The number of the last transaction started; zero if none was.
    pub last_number: TransactionNumber,
    /// The pair by which a retry of the request that made the identity is recognised.
    pub remembered: Option<Remembered>,
    /// When it last changed.
    pub updated: Now,
    /// Who last asked for an identity: the instance that uses the id.
    pub owner: Arc<Author>,
    /// When, for people.
    pub owned_since: WallTime,
}

/// Where the transaction of an id stands, with what is valid there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// None since the identity was given.
    Empty,
    /// One is open.
    Ongoing(OpenTransaction),
    /// The last one ended.
    Complete {
        /// How.
        outcome: Outcome,
        /// By what.
        cause: EndCause,
    },
}

/// An open transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    /// Its number within the id.
    pub number: TransactionNumber,
    /// When it started: when its first partition or group was added.
    pub started: Now,
    /// The protocol of its last addition.
    pub protocol: Protocol,
    /// The partitions it may write to.
    pub partitions: Members<PartitionHandle>,
    /// The groups whose offsets it may carry.
    pub groups: Members<GroupId>,
}

/// The remembered pair (design section 4): retries are recognised by it alone, never by "epoch + 1".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// The pair.
    pub stamp: ProducerStamp,
    /// The last transaction that had started then: the pair is good until another one starts.
    pub number: TransactionNumber,
    /// What turned the pair into the current identity.
    pub made_by: MadeBy,
}

/// What turned the remembered pair into the current identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadeBy {
    /// InitProducerId that carried it.
    Recovery,
    /// The producer's own EndTxn of version 2.
    EndTxn(Outcome),
    /// An abort that the producer did not ask for: a timeout, an administrator, an unclean start.
    Abort,
}

/// Kafka's names for where a transaction stands (upstream `TransactionState`). With all partitions in one shard the
/// Prepare states are passed within one event and never seen; a transaction with partitions of another shard rests
/// in them until its markers are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TransactionState {
    /// None since the identity was given.
    Empty,
    /// Open.
    Ongoing,
    /// Decided, COMMIT markers on their way to another shard.
    PrepareCommit,
    /// Decided, ABORT markers on their way to another shard.
    PrepareAbort,
    /// Committed.
    CompleteCommit,
    /// Aborted.
    CompleteAbort,
    /// Being forgotten. Never stored.
    Dead,
    /// Being fenced. Never stored.
    PrepareEpochFence,
}

impl TransactionState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
        Self::Dead,
        Self::PrepareEpochFence,
    ];

    /// The state with this name, written exactly so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Kafka's name, as in DescribeTransactions and ListTransactions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::Dead => "Dead",
            Self::PrepareEpochFence => "PrepareEpochFence",
        }
    }
}

impl fmt::Display for TransactionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TransactionalIdEntry {
    /// Where it stands, by Kafka's name.
    #[must_use]
    pub const fn state(&self) -> TransactionState {
        match &self.phase {
            Phase::Empty => TransactionState::Empty,
            Phase::Ongoing(_) => TransactionState::Ongoing,
            Phase::Complete { outcome: Outcome::Commit, .. } => TransactionState::CompleteCommit,
            Phase::Complete { outcome: Outcome::Abort, .. } => TransactionState::CompleteAbort,
        }
    }

    /// The open transaction, if one is.
    #[must_use]
    pub const fn open(&self) -> Option<&OpenTransaction> {
        match &self.phase {
            Phase::Ongoing(open) => Some(open),
            Phase::Empty | Phase::Complete { .. } => None,
        }
    }

    /// When the open transaction is overdue.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        let timeout =
            if mutated(Mutation::NeverTimesOut) { DurationMs::from_ms(1 << 40) } else { self.timeout };
        self.open().map(|open| open.started.plus(timeout))
    }
}

impl OpenTransaction {
    /// Partitions and groups together, as the bound counts them (Kafka counts a group as its partition of
    /// `__consumer_offsets`).
    #[must_use]
    pub fn size(&self) -> usize {
        self.partitions.len() + self.groups.len()
    }
}

impl Coordinator {
    /// What is known of a transactional id.
    #[must_use]
    pub fn get(&self, id: &TransactionalId) -> Option<&TransactionalIdEntry> {
        self.ids.get(id)
    }

    /// The open transaction of a transactional id.
    #[must_use]
    pub fn open(&self, id: &TransactionalId) -> Option<&OpenTransaction> {
        self.get(id).and_then(TransactionalIdEntry::open)
    }

    /// Every transactional id in order.
    pub fn iter(&self) -> impl Iterator<Item = (&TransactionalId, &TransactionalIdEntry)> {
        self.ids.iter()
    }

    /// How many transactional ids are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.size()
    }

    /// True if none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The fence log.
    #[must_use]
    pub const fn fences(&self) -> &FenceLog {
        &self.fences
    }

    /// Open transactions, the one that is overdue first in front.
    pub fn deadlines(&self) -> impl Iterator<Item = (Now, &TransactionalId)> {
        self.deadlines.iter().map(|(deadline, id)| (*deadline, id))
    }

    /// Ids without an open transaction, the longest idle in front.
    pub fn idle(&self) -> impl Iterator<Item = (Now, &TransactionalId)> {
        self.idle.iter().map(|(since, id)| (*since, id))
    }

    /// Puts an entry and keeps both indexes true.
    pub(super) fn put(&mut self, id: TransactionalId, entry: TransactionalIdEntry) {
        self.remove(&id);
        match entry.deadline() {
            Some(deadline) => self.deadlines.insert_mut((deadline, id.clone())),
            None => self.idle.insert_mut((entry.updated, id.clone())),
        }
        self.ids.insert_mut(id, entry);
    }

    /// Takes an entry out, to be changed and put back.
    pub(super) fn take(&mut self, id: &TransactionalId) -> Option<TransactionalIdEntry> {
        let entry = self.ids.get(id).cloned()?;
        self.remove(id);
        Some(entry)
    }

    /// Removes an entry from the map and both indexes.
    pub(super) fn remove(&mut self, id: &TransactionalId) {
        let Some(entry) = self.ids.get(id) else { return };
        let removed = match entry.deadline() {
            Some(deadline) => self.deadlines.remove_mut(&(deadline, id.clone())),
            None => self.idle.remove_mut(&(entry.updated, id.clone())),
        };
        debug_assert!(removed, "EOS-32: {id:?} stood in no index");
        self.ids.remove_mut(id);
    }
}
