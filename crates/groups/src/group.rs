//! One group: its members, what it has committed, and what waits for a transaction's end.

use alloc::{sync::Arc, vec::Vec};

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use semel_events::{CommittedOffset, Decode, DecodeError, Encode, Outcome, Reader};
use semel_types::{LogSequence, Now, PartitionHandle, TransactionNumber, TransactionalId};

use crate::Membership;

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

/// A group.
#[derive(Clone, Default)]
pub struct Group {
    membership: Arc<Membership>,
    committed: RedBlackTreeMapSync<PartitionHandle, StoredOffset>,
    pending: RedBlackTreeMapSync<TransactionKey, Vec<StoredOffset>>,
}

impl Group {
    /// Its members.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    pub(crate) fn membership_mut(&mut self) -> &mut Membership {
        Arc::make_mut(&mut self.membership)
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
        self.pending.values().flatten().any(|stored| stored.committed.partition == partition)
    }

    /// Undecided transactions that carry offsets of this group.
    pub fn pending(&self) -> impl Iterator<Item = (&TransactionKey, &[StoredOffset])> {
        self.pending.iter().map(|(key, offsets)| (key, offsets.as_slice()))
    }

    pub(crate) fn commit(&mut self, offset: StoredOffset) {
        let partition = offset.committed.partition;
        let newer = self.committed.get(&partition).is_none_or(|known| known.sequence <= offset.sequence);
        if newer {
            self.committed.insert_mut(partition, offset);
        }
    }

    pub(crate) fn forget(&mut self, partition: PartitionHandle) {
        self.committed.remove_mut(&partition);
    }

    pub(crate) fn hold(&mut self, key: TransactionKey, offsets: impl Iterator<Item = StoredOffset>) {
        let mut held = self.pending.get(&key).cloned().unwrap_or_default();
        held.extend(offsets);
        self.pending.insert_mut(key, held);
    }

    pub(crate) fn settle(&mut self, key: &TransactionKey, outcome: Outcome) {
        let Some(held) = self.pending.get(key).cloned() else { return };
        self.pending.remove_mut(key);
        match outcome {
            Outcome::Commit => held.into_iter().for_each(|offset| self.commit(offset)),
            Outcome::Abort => {}
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
        self.membership.encode(out);
        (self.committed.size() as u64).encode(out);
        self.committed.values().for_each(|offset| offset.encode(out));
        (self.pending.size() as u64).encode(out);
        for ((id, number), held) in self.pending.iter() {
            id.encode(out);
            number.encode(out);
            held.encode(out);
        }
    }
}

impl Group {
    /// Reads the form of this version of the state; the first one had no members.
    pub(crate) fn decode(reader: &mut Reader<'_>, version: u8) -> Result<Self, DecodeError> {
        let mut group = Self::default();
        if version >= 2 {
            group.membership = Arc::new(Membership::decode(reader)?);
        }
        for _ in 0..reader.length()? {
            let offset = StoredOffset::decode(reader)?;
            group.committed.insert_mut(offset.committed.partition, offset);
        }
        for _ in 0..reader.length()? {
            let key = (Decode::decode(reader)?, Decode::decode(reader)?);
            group.pending.insert_mut(key, Decode::decode(reader)?);
        }
        Ok(group)
    }
}
