//! The fence log: who fenced whom, when, from where, and what became of the victim's transaction.
//!
//! Purpose: `semel txn explain ID` and the message sent to a victim are answered from here. Invariants: EOS-36 (at
//! most 32 fences per transactional id and 100,000 in all; the oldest go first). A fence outlives the expiry of its
//! id. What it does not do: a refused request makes no entry (it is counted in `Volatile`), and neither does the
//! bump of an ordinary commit.

use alloc::sync::Arc;
use core::fmt;

use rpds::{QueueSync, RedBlackTreeMapSync};
use semel_events::Author;
use semel_types::{ProducerStamp, TransactionNumber, TransactionalId, WallTime};

use crate::fence;

/// Fences kept per transactional id.
pub const FENCES_PER_ID: usize = 32;
/// Fences kept in all.
pub const FENCES_IN_ALL: usize = 100_000;

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
    /// Who asked, where somebody did.
    pub author: Option<Author>,
    /// The victim's transaction that was aborted with it.
    pub aborted: Option<TransactionNumber>,
    /// When, for people.
    pub wall: WallTime,
}

/// The fences kept, bounded twice.
#[derive(Clone, Debug, Default)]
pub struct FenceLog {
    /// By a running number, the oldest first.
    all: RedBlackTreeMapSync<u64, Arc<Fence>>,
    /// The numbers of each id's fences, the oldest first.
    by_id: RedBlackTreeMapSync<TransactionalId, QueueSync<u64>>,
}

impl PartialEq for FenceLog {
    /// By the fences alone: the running numbers start anew after a snapshot was loaded.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for FenceLog {}

impl FenceLog {
    /// Every fence, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Fence>> {
        self.all.values()
    }

    /// The fences of one transactional id, the oldest first.
    pub fn of<'a>(&'a self, id: &TransactionalId) -> impl Iterator<Item = &'a Arc<Fence>> {
        self.by_id.get(id).into_iter().flat_map(QueueSync::iter).filter_map(|number| self.all.get(number))
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
        let number = self.all.last().map_or(0, |(newest, _)| newest + 1);
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
        let at = Utc(self.wall);
        match self.successor {
            Some(next) if next.id == self.victim.id => {
                write!(f, "fenced: epoch {} was replaced by {} at {at}", self.victim.epoch, next.epoch)?;
            }
            Some(next) => write!(f, "fenced: {} was replaced by {next} at {at}", self.victim)?,
            None => write!(f, "fenced: {} was closed at {at}", self.victim)?,
        }
        match &self.author {
            Some(author) => write!(f, " by {}", By(author))?,
            None => write!(f, " ({})", self.cause)?,
        }
        match self.aborted {
            Some(_) => write!(f, "; the open transaction of epoch {} was aborted", self.victim.epoch),
            None => Ok(()),
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

/// An author as the victim reads it; parts that are not known are left out.
struct By<'a>(&'a Author);

impl fmt::Display for By<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Author { client_id, software, address, api } = self.0;
        write!(f, "client \"{client_id}\"")?;
        match (software.is_empty(), address.is_empty()) {
            (false, false) => write!(f, " ({software}, {address})")?,
            (true, true) => {}
            (true, false) => write!(f, " ({address})")?,
            (false, true) => write!(f, " ({software})")?,
        }
        write!(f, " with {api}")
    }
}

/// A moment in UTC, as `2026-11-29T12:03:04.120Z`.
struct Utc(WallTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_ms();
        let (days, ms_of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let (seconds, ms) = (ms_of_day / 1000, ms_of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// Year, month and day of a number of days since 1970, by the Gregorian calendar. Years are counted from March, so
/// that the leap day is the last one; 719,468 days lie between 1 March of year 0 and 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString};

    use semel_types::{ProducerEpoch, ProducerId};

    use super::*;

    fn stamp(id: i64, epoch: i16) -> ProducerStamp {
        ProducerStamp { id: ProducerId::new(id), epoch: ProducerEpoch::new(epoch) }
    }

    fn fence(id: &str, epoch: i16) -> Fence {
        Fence {
            id: TransactionalId::from(id),
            cause: FenceCause::Takeover,
            victim: stamp(1, epoch),
            successor: Some(stamp(1, epoch + 1)),
            author: Some(Author {
                client_id: Arc::from("app-2"),
                software: Arc::from("java 4.4.0"),
                address: Arc::from("10.0.0.7:51544"),
                api: "InitProducerId".to_string(),
            }),
            aborted: Some(TransactionNumber::new(1)),
            wall: WallTime::from_ms(1_764_417_784_120),
        }
    }

    #[test]
    fn a_victim_reads_when_by_whom_and_what_became_of_its_transaction() {
        assert_eq!(
            fence("orders", 4).to_string(),
            "fenced: epoch 4 was replaced by 5 at 2025-11-29T12:03:04.120Z by client \"app-2\" \
             (java 4.4.0, 10.0.0.7:51544) with InitProducerId; the open transaction of epoch 4 was aborted"
        );
        let silent = Fence { author: None, cause: FenceCause::Timeout, ..fence("orders", 4) };
        assert!(silent.to_string().contains("(its transaction was silent for longer than its timeout)"));
        let expired = Fence { successor: None, aborted: None, cause: FenceCause::Expiry, ..silent };
        assert!(expired.to_string().starts_with("fenced: producer 1 epoch 4 was closed at"));
    }

    #[test]
    fn utc_holds_at_leap_days_and_before_1970() {
        let utc = |ms| format!("{}", Utc(WallTime::from_ms(ms)));
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
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
