//! One group: its members, what it has committed, and what waits for a transaction's end.

use alloc::{sync::Arc, vec::Vec};

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use semel_events::{
    CommittedOffset, Decode, DecodeError, Encode, GroupKind, GroupKindChanged, Outcome, Reader,
};
use semel_types::{
    LogSequence, Now, PartitionHandle, TransactionNumber, TransactionalId,
    mutation::{Mutation, mutated},
};

use crate::{Membership, consumer::Roster, streams};

/// A committed offset with its place in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredOffset {
    /// What the client committed.
    pub committed: CommittedOffset,
    /// Sequence of the event that carried it: the later one wins.
    pub sequence: LogSequence,
    /// When.
    pub now: Now,
}

impl Encode for StoredOffset {
    fn encode(&self, out: &mut Vec<u8>) {
        self.committed.encode(out);
        self.sequence.encode(out);
        self.now.encode(out);
    }
}

impl Decode for StoredOffset {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let committed = Decode::decode(reader)?;
        Ok(Self { committed, sequence: Decode::decode(reader)?, now: Decode::decode(reader)? })
    }
}

/// One transaction of one transactional id.
pub(crate) type TransactionKey = (TransactionalId, TransactionNumber);

/// Which protocol the group speaks, and its members in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// JoinGroup and SyncGroup; also a group that only has offsets.
    Classic(Arc<Membership>),
    /// ConsumerGroupHeartbeat (KIP-848); some of its members may speak the classic protocol.
    Consumer(Arc<Roster>),
    /// StreamsGroupHeartbeat (KIP-1071).
    Streams(Arc<streams::Roster>),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Classic(Arc::default())
    }
}

impl Kind {
    /// A group of that kind without members, that goes on from this epoch.
    fn empty(kind: GroupKind, epoch: i32) -> Self {
        match kind {
            GroupKind::Classic => Self::Classic(Arc::new(Membership::empty(epoch))),
            GroupKind::Consumer => Self::Consumer(Arc::new(Roster::empty(epoch))),
            GroupKind::Streams => Self::Streams(Arc::new(streams::Roster::empty(epoch))),
        }
    }

    /// Its generation or epoch: another kind goes on from it.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        match self {
            Self::Classic(membership) => membership.generation(),
            Self::Consumer(roster) => roster.epoch(),
            Self::Streams(roster) => roster.group_epoch(),
        }
    }

    /// Kafka's name of it (upstream `Group.GroupType`).
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Classic(_) => "classic",
            Self::Consumer(_) => "consumer",
            Self::Streams(_) => "streams",
        }
    }
}

/// A group.
#[derive(Clone, Default)]
pub struct Group {
    kind: Kind,
    committed: RedBlackTreeMapSync<PartitionHandle, StoredOffset>,
    pending: RedBlackTreeMapSync<TransactionKey, Vec<StoredOffset>>,
    /// When the last member went, while there are none.
    emptied: Option<Now>,
}

impl Group {
    /// Which protocol it speaks, and its members.
    #[must_use]
    pub const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its members, if it speaks the classic protocol.
    #[must_use]
    pub fn classic(&self) -> Option<&Membership> {
        match &self.kind {
            Kind::Classic(membership) => Some(membership),
            Kind::Consumer(_) | Kind::Streams(_) => None,
        }
    }

    /// Its members, if it is a consumer group (KIP-848).
    #[must_use]
    pub fn consumer(&self) -> Option<&Roster> {
        match &self.kind {
            Kind::Consumer(roster) => Some(roster),
            Kind::Classic(_) | Kind::Streams(_) => None,
        }
    }

    /// Its members, if it is a streams group (KIP-1071).
    #[must_use]
    pub fn streams(&self) -> Option<&streams::Roster> {
        match &self.kind {
            Kind::Streams(roster) => Some(roster),
            Kind::Classic(_) | Kind::Consumer(_) => None,
        }
    }

    /// No members, of whatever kind.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Classic(membership) => membership.is_empty(),
            Kind::Consumer(roster) => roster.is_empty(),
            Kind::Streams(roster) => roster.is_empty(),
        }
    }

    /// For events of the classic protocol: a group of another kind has been made classic before.
    pub(crate) fn classic_mut(&mut self) -> &mut Membership {
        if self.classic().is_none() {
            self.kind = Kind::default();
        }
        match &mut self.kind {
            Kind::Classic(membership) => Arc::make_mut(membership),
            Kind::Consumer(_) | Kind::Streams(_) => unreachable!("just made classic"),
        }
    }

    /// For events of KIP-848: a group of another kind has been made a consumer group before.
    pub(crate) fn consumer_mut(&mut self) -> &mut Roster {
        if self.consumer().is_none() {
            self.kind = Kind::empty(GroupKind::Consumer, 0);
        }
        match &mut self.kind {
            Kind::Consumer(roster) => Arc::make_mut(roster),
            Kind::Classic(_) | Kind::Streams(_) => unreachable!("just made a consumer group"),
        }
    }

    /// For events of KIP-1071: a group of another kind has been made a streams group before.
    pub(crate) fn streams_mut(&mut self) -> &mut streams::Roster {
        if self.streams().is_none() {
            self.kind = Kind::empty(GroupKind::Streams, 0);
        }
        match &mut self.kind {
            Kind::Streams(roster) => Arc::make_mut(roster),
            Kind::Classic(_) | Kind::Consumer(_) => unreachable!("just made a streams group"),
        }
    }

    pub(crate) fn change_kind(&mut self, event: &GroupKindChanged) {
        self.kind = Kind::empty(event.kind, event.epoch);
    }

    /// When its last member went; `None` while there are members, and if there never was one.
    #[must_use]
    pub const fn emptied(&self) -> Option<Now> {
        self.emptied
    }

    /// Notes whether members came or went with an event of this time.
    pub(crate) fn note_members(&mut self, had_any: bool, now: Now) {
        if !self.is_empty() {
            self.emptied = None;
        } else if had_any {
            self.emptied = Some(now);
        }
    }

    /// The committed offset of a partition.
    #[must_use]
    pub fn offset(&self, partition: PartitionHandle) -> Option<&StoredOffset> {
        self.committed.get(&partition)
    }

    /// All committed offsets by partition.
    pub fn offsets(&self) -> impl Iterator<Item = &StoredOffset> {
        self.committed.values()
    }

    /// True while an undecided transaction carries an offset of this partition: a stable answer has to wait
    /// (UNSTABLE_OFFSET_COMMIT, KIP-447).
    #[must_use]
    pub fn is_unstable(&self, partition: PartitionHandle) -> bool {
        let mut held = self.pending.values().flatten();
        held.any(|stored| stored.committed.partition == partition) && !mutated(Mutation::UnstableServed)
    }

    /// Undecided transactions that carry offsets of this group.
    pub fn pending(&self) -> impl Iterator<Item = (&TransactionKey, &[StoredOffset])> {
        self.pending.iter().map(|(key, offsets)| (key, offsets.as_slice()))
    }

    pub(crate) fn commit(&mut self, offset: StoredOffset) {
        let partition = offset.committed.partition;
        let newer = self.committed.get(&partition).is_none_or(|known| known.sequence <= offset.sequence);
        if newer || mutated(Mutation::OlderOffsetWins) {
            self.committed.insert_mut(partition, offset);
        }
    }

    pub(crate) fn forget(&mut self, partition: PartitionHandle) {
        self.committed.remove_mut(&partition);
    }

    pub(crate) fn hold(&mut self, key: TransactionKey, offsets: impl Iterator<Item = StoredOffset>) {
        let mut held = self.pending.get(&key).cloned().unwrap_or_default();
        held.extend(offsets);
        if mutated(Mutation::PendingServed) {
            held.iter().for_each(|offset| self.commit(offset.clone()));
        }
        self.pending.insert_mut(key, held);
    }

    /// A start that forgets.
    pub(crate) fn lose_at_restart(&mut self) {
        if mutated(Mutation::PendingLostAtRestart) {
            self.pending = RedBlackTreeMapSync::default();
        }
        match &mut self.kind {
            Kind::Classic(membership) if mutated(Mutation::AssignmentsLostAtRestart) => {
                Arc::make_mut(membership).lose_assignments();
            }
            Kind::Consumer(roster) if mutated(Mutation::ConsumersLostAtRestart) => {
                *roster = Arc::new(Roster::empty(roster.epoch()));
            }
            Kind::Streams(roster) if mutated(Mutation::StreamsMembersLostAtRestart) => {
                *roster = Arc::new(streams::Roster::empty(roster.group_epoch()));
            }
            Kind::Classic(_) | Kind::Consumer(_) | Kind::Streams(_) => {}
        }
    }

    pub(crate) fn settle(&mut self, key: &TransactionKey, outcome: Outcome) {
        let Some(held) = self.pending.get(key).cloned() else { return };
        self.pending.remove_mut(key);
        match outcome {
            Outcome::Commit if mutated(Mutation::CommitDropsOffsets) => {}
            Outcome::Abort if !mutated(Mutation::AbortCommitsOffsets) => {}
            Outcome::Commit | Outcome::Abort => held.into_iter().for_each(|offset| self.commit(offset)),
        }
    }

    /// Drops what belongs to partitions that no longer exist.
    pub(crate) fn purge(&mut self, dead: &RedBlackTreeSetSync<PartitionHandle>) {
        let gone: Vec<_> = self.committed.keys().filter(|handle| dead.contains(handle)).copied().collect();
        for handle in gone {
            self.committed.remove_mut(&handle);
        }
        let touched: Vec<_> = (self.pending.iter())
            .filter(|(_, held)| held.iter().any(|stored| dead.contains(&stored.committed.partition)))
            .map(|(key, held)| (key.clone(), live(held, dead)))
            .collect();
        for (key, held) in touched {
            self.pending.insert_mut(key, held);
        }
    }
}

fn live(held: &[StoredOffset], dead: &RedBlackTreeSetSync<PartitionHandle>) -> Vec<StoredOffset> {
    held.iter().filter(|stored| !dead.contains(&stored.committed.partition)).cloned().collect()
}

impl Encode for Group {
    fn encode(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Classic(membership) => {
                GroupKind::Classic.encode(out);
                membership.encode(out);
            }
            Kind::Consumer(roster) => {
                GroupKind::Consumer.encode(out);
                roster.encode(out);
            }
            Kind::Streams(roster) => {
                GroupKind::Streams.encode(out);
                roster.encode(out);
            }
        }
        (self.committed.size() as u64).encode(out);
        self.committed.values().for_each(|offset| offset.encode(out));
        (self.pending.size() as u64).encode(out);
        for ((id, number), held) in self.pending.iter() {
            id.encode(out);
            number.encode(out);
            held.encode(out);
        }
        self.emptied.encode(out);
    }
}

impl Group {
    /// Reads the form of this version of the state: the first one had no members, the second only classic
    /// ones, and before the fourth nobody noted when the last member went.
    pub(crate) fn decode(reader: &mut Reader<'_>, version: u8) -> Result<Self, DecodeError> {
        let mut group = Self::default();
        if version >= 2 {
            let kind = if version == 2 { GroupKind::Classic } else { GroupKind::decode(reader)? };
            group.kind = match kind {
                GroupKind::Classic => Kind::Classic(Arc::new(Membership::decode(reader)?)),
                GroupKind::Consumer => Kind::Consumer(Arc::new(Roster::decode(reader)?)),
                GroupKind::Streams => Kind::Streams(Arc::new(streams::Roster::decode(reader)?)),
            };
        }
        for _ in 0..reader.length()? {
            let offset = StoredOffset::decode(reader)?;
            group.committed.insert_mut(offset.committed.partition, offset);
        }
        for _ in 0..reader.length()? {
            let key = (Decode::decode(reader)?, Decode::decode(reader)?);
            group.pending.insert_mut(key, Decode::decode(reader)?);
        }
        if version >= 4 {
            group.emptied = Decode::decode(reader)?;
        }
        Ok(group)
    }
}
