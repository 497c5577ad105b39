//! The fence log: who fenced whom, when, from where, and what became of the victim's transaction.
//!
//! Purpose: `semel txn explain ID` and the message sent to a victim are answered from here. Invariants: EOS-36 (at
//! most 32 fences per transactional id and 100,000 in all; the oldest go first). A fence outlives the expiry of its
//! id. What it does not do: a refused request makes no entry (it is counted in `Volatile`), and neither does the
//! bump of an ordinary commit.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;

use rpds::{QueueSync, RedBlackTreeMapSync};
use semel_events::Author;
use semel_types::{DurationMs, PartitionHandle, ProducerStamp, TransactionNumber, TransactionalId, WallTime};

use crate::fence;

/// Fences kept per transactional id.
pub const FENCES_PER_ID: usize = 32;
/// Fences kept in all.
pub const FENCES_IN_ALL: usize = 100_000;
/// Partitions named in one fence; of the others it keeps the count.
pub const PARTITIONS_PER_FENCE: usize = 8;

/// Why an identity was replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceCause {
    /// InitProducerId of another instance.
    Takeover,
    /// InitProducerId of the owner itself (KIP-360).
    Recovery,
    /// The owner's own EndTxn used up the last epoch: a new producer id.
    Rotation,
    /// Silence longer than the transaction timeout.
    Timeout,
    /// An administrator's marker.
    Admin,
    /// An unclean start in durability `interval`.
    UncleanStart,
    /// The transactional id was idle for too long.
    Expiry,
}

/// One fence: from this moment on the victim is refused everywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    /// The transactional id.
    pub id: TransactionalId,
    /// Why.
    pub cause: FenceCause,
    /// The identity that was replaced.
    pub victim: ProducerStamp,
    /// The identity that replaced it; none when the id was forgotten.
    pub successor: Option<ProducerStamp>,
    /// Who had asked for the victim's identity.
    pub owner: Arc<Author>,
    /// Who asked for the fence, where somebody did.
    pub author: Option<Author>,
    /// The victim's transaction that was aborted with it.
    pub aborted: Option<Aborted>,
    /// When, for people.
    pub wall: WallTime,
}

/// A transaction that was aborted by a fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aborted {
    /// Its number.
    pub number: TransactionNumber,
    /// Time since it started.
    pub age: DurationMs,
    /// What it had written.
    pub written: Written,
}

/// What a transaction had written: partitions with records of it, and groups with offsets that it was to commit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// The first of the partitions, at most [`PARTITIONS_PER_FENCE`].
    pub partitions: Vec<PartitionHandle>,
    /// How many partitions it were.
    pub partition_count: u32,
    /// How many groups.
    pub group_count: u32,
}

/// The fences kept, bounded twice.
#[derive(Clone, Debug, Default)]
pub struct FenceLog {
    /// By a running number, the oldest first.
    all: RedBlackTreeMapSync<u64, Arc<Fence>>,
    /// The numbers of each id's fences, the oldest first.
    by_id: RedBlackTreeMapSync<TransactionalId, QueueSync<u64>>,
    /// The newest number given; 0 if none was.
    newest: u64,
}

impl PartialEq for FenceLog {
    fn eq(&self, other: &Self) -> bool {
        self.newest == other.newest && self.after(0).eq(other.after(0))
    }
}

impl Eq for FenceLog {}

impl FenceLog {
    /// Every fence, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Fence>> {
        self.all.values()
    }

    /// Fences with a higher number than this one, the oldest first. Numbers start at 1, rise by one with each fence,
    /// and are the same after a restart.
    pub fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Arc<Fence>)> {
        self.all.range(number.saturating_add(1)..).map(|(number, fence)| (*number, fence))
    }

    /// The number of the newest fence ever made; 0 if none was.
    #[must_use]
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// The fences of one transactional id, the oldest first.
    pub fn of<'a>(&'a self, id: &TransactionalId) -> impl Iterator<Item = &'a Arc<Fence>> {
        self.numbered_of(id).map(|(_, fence)| fence)
    }

    /// The same with their numbers.
    pub fn numbered_of<'a>(&'a self, id: &TransactionalId) -> impl Iterator<Item = (u64, &'a Arc<Fence>)> {
        let numbers = self.by_id.get(id).into_iter().flat_map(QueueSync::iter);
        numbers.filter_map(|number| Some((*number, self.all.get(number)?)))
    }

    /// The fence that replaced exactly this identity.
    #[must_use]
    pub fn of_victim(&self, id: &TransactionalId, victim: ProducerStamp) -> Option<Arc<Fence>> {
        self.of(id).filter(|known| fence::is_same(known.victim, victim)).last().cloned()
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.size()
    }

    /// True if none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many are kept of one id.
    #[must_use]
    pub fn len_of(&self, id: &TransactionalId) -> usize {
        self.by_id.get(id).map_or(0, QueueSync::len)
    }

    /// Adds a fence, if there is one.
    pub(super) fn extend(&mut self, fence: Option<Fence>) {
        fence.into_iter().for_each(|fence| self.push(fence));
    }

    /// Adds the newest fence; the oldest of its id, or of all, makes room for it.
    pub(super) fn push(&mut self, fence: Fence) {
        if self.len_of(&fence.id) >= FENCES_PER_ID {
            self.drop_oldest_of(&fence.id);
        }
        if self.all.size() >= FENCES_IN_ALL
            && let Some(id) = self.all.first().map(|(_, oldest)| oldest.id.clone())
        {
            self.drop_oldest_of(&id);
        }
        self.put(self.newest + 1, fence);
    }

    /// Adds a fence under its number, which is higher than all before.
    pub(super) fn put(&mut self, number: u64, fence: Fence) {
        self.newest = number;
        let mut numbers = self.by_id.get(&fence.id).cloned().unwrap_or_else(QueueSync::new_sync);
        numbers.enqueue_mut(number);
        self.by_id.insert_mut(fence.id.clone(), numbers);
        self.all.insert_mut(number, Arc::new(fence));
    }

    /// Numbers rise, so the oldest fence of all is the oldest of its id.
    fn drop_oldest_of(&mut self, id: &TransactionalId) {
        let Some(mut numbers) = self.by_id.get(id).cloned() else { return };
        if let Some(oldest) = numbers.peek().copied() {
            self.all.remove_mut(&oldest);
        }
        numbers.dequeue_mut();
        if numbers.is_empty() {
            self.by_id.remove_mut(id);
        } else {
            self.by_id.insert_mut(id.clone(), numbers);
        }
    }
}

impl fmt::Display for Fence {
    /// What the victim is told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.wall;
        match self.successor {
            Some(next) if next.id == self.victim.id => {
                write!(f, "fenced: epoch {} was replaced by {} at {at}", self.victim.epoch, next.epoch)?;
            }
            Some(next) => write!(f, "fenced: {} was replaced by {next} at {at}", self.victim)?,
            None => write!(f, "fenced: {} was closed at {at}", self.victim)?,
        }
        match &self.author {
            Some(author) => write!(f, " by {author} with {}", author.api)?,
            None => write!(f, " ({})", self.cause)?,
        }
        match &self.aborted {
            Some(aborted) => {
                write!(f, "; the open transaction of epoch {} was aborted ({aborted})", self.victim.epoch)
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.age.as_ms();
        write!(f, "number {}, open for {}.{:03} s, {}", self.number, ms / 1000, ms % 1000, self.written)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        match (self.partition_count, self.group_count) {
            (0, 0) => f.write_str("nothing written"),
            (0, groups) => write!(f, "offsets of {groups} group{}", plural(groups)),
            (partitions, 0) => write!(f, "records in {partitions} partition{}", plural(partitions)),
            (partitions, groups) => write!(
                f,
                "records in {partitions} partition{} and offsets of {groups} group{}",
                plural(partitions),
                plural(groups)
            ),
        }
    }
}

impl fmt::Display for FenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Takeover => "another instance took the transactional id",
            Self::Recovery => "the producer recovered under a new epoch",
            Self::Rotation => "the last epoch was used up",
            Self::Timeout => "its transaction was silent for longer than its timeout",
            Self::Admin => "an administrator aborted its transaction",
            Self::UncleanStart => "the broker did not stop cleanly, writes may be missing",
            Self::Expiry => "the transactional id was idle for too long",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString};

    use semel_types::{ProducerEpoch, ProducerId};

    use super::*;

    fn stamp(id: i64, epoch: i16) -> ProducerStamp {
        ProducerStamp { id: ProducerId::new(id), epoch: ProducerEpoch::new(epoch) }
    }

    fn author(client_id: &str) -> Author {
        Author {
            client_id: Arc::from(client_id),
            software: Arc::from("java 4.4.0"),
            address: Arc::from("10.0.0.7:51544"),
            api: "InitProducerId".to_string(),
        }
    }

    fn fence(id: &str, epoch: i16) -> Fence {
        Fence {
            id: TransactionalId::from(id),
            cause: FenceCause::Takeover,
            victim: stamp(1, epoch),
            successor: Some(stamp(1, epoch + 1)),
            owner: Arc::new(author("app-1")),
            author: Some(author("app-2")),
            aborted: Some(Aborted {
                number: TransactionNumber::new(7),
                age: DurationMs::from_ms(12_345),
                written: Written { partition_count: 2, ..Written::default() },
            }),
            wall: WallTime::from_ms(1_764_417_784_120),
        }
    }

    #[test]
    fn a_victim_reads_when_by_whom_and_what_became_of_its_transaction() {
        assert_eq!(
            fence("orders", 4).to_string(),
            "fenced: epoch 4 was replaced by 5 at 2025-11-29T12:03:04.120Z by client \"app-2\" \
             (java 4.4.0, 10.0.0.7:51544) with InitProducerId; the open transaction of epoch 4 was aborted \
             (number 7, open for 12.345 s, records in 2 partitions)"
        );
        let silent = Fence { author: None, cause: FenceCause::Timeout, ..fence("orders", 4) };
        assert!(silent.to_string().contains("(its transaction was silent for longer than its timeout)"));
        let expired = Fence { successor: None, aborted: None, cause: FenceCause::Expiry, ..silent };
        assert!(expired.to_string().starts_with("fenced: producer 1 epoch 4 was closed at"));
    }

    #[test]
    fn what_was_written_is_counted_in_words() {
        let told = |partition_count, group_count| {
            Written { partition_count, group_count, ..Written::default() }.to_string()
        };
        assert_eq!(told(0, 0), "nothing written");
        assert_eq!(told(1, 0), "records in 1 partition");
        assert_eq!(told(0, 2), "offsets of 2 groups");
        assert_eq!(told(3, 1), "records in 3 partitions and offsets of 1 group");
    }

    #[test]
    fn numbers_rise_by_one_and_a_follower_gets_what_came_after() {
        let mut log = FenceLog::default();
        assert_eq!(log.newest(), 0);
        (0..40).for_each(|epoch| log.push(fence("a", epoch)));
        assert_eq!(log.newest(), 40);
        let after: Vec<_> = log.after(38).map(|(number, fence)| (number, fence.victim)).collect();
        assert_eq!(after, [(39, stamp(1, 38)), (40, stamp(1, 39))]);
        assert_eq!(log.after(40).count(), 0);
    }

    #[test]
    fn eos_36_the_oldest_fences_of_an_id_go_first() {
        let mut log = FenceLog::default();
        (0..40).for_each(|epoch| log.push(fence("a", epoch)));
        log.push(fence("b", 0));
        let id = TransactionalId::from("a");
        assert_eq!((log.len(), log.len_of(&id)), (FENCES_PER_ID + 1, FENCES_PER_ID));
        assert_eq!(log.of(&id).next().map(|fence| fence.victim), Some(stamp(1, 8)));
        assert!(log.of_victim(&id, stamp(1, 7)).is_none(), "dropped");
        assert!(log.of_victim(&id, stamp(1, 39)).is_some());
    }

    #[test]
    fn eos_36_the_oldest_fence_of_all_makes_room_at_the_bound() {
        let mut log = FenceLog::default();
        (0..=FENCES_IN_ALL).for_each(|number| log.push(fence(&format!("id-{number}"), 0)));
        assert_eq!(log.len(), FENCES_IN_ALL);
        assert_eq!(log.len_of(&TransactionalId::from("id-0")), 0);
        assert_eq!(log.len_of(&TransactionalId::from("id-1")), 1);
    }
}
