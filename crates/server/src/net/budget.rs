//! One bound for the bytes of all requests in flight (`queued.max.request.bytes`).
//!
//! A quarter of it, at least [`SMALL_PART_BYTES_MIN`], is kept for small requests (frames up to
//! [`SMALL_FRAME_BYTES`]), so that large frames that are begun and not finished never hold them up. Small requests
//! take from the rest as well while nobody waits for it.
//!
//! Invariants: what is held never exceeds the two parts, but for a frame larger than the part for large ones, which
//! is admitted when it has that part to itself: together at most the part for small requests and the larger of the
//! other part and `socket.request.max.bytes`. Each part serves those that wait for it in their order. What it does
//! not do: take a share away; it only tells its holder that others wait ([`Share::contended`]).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Bytes that one permit stands for: a semaphore counts in 32 bits.
const UNIT_BYTES: usize = 1024;
/// Frames up to this size are small.
const SMALL_FRAME_BYTES: usize = 1 << 20;
/// The least that small requests have to themselves, unless that is more than half of the budget.
const SMALL_PART_BYTES_MIN: usize = 4 << 20;

/// The bound, shared by all connections.
#[derive(Clone)]
pub struct Budget {
    small: Arc<Part>,
    large: Arc<Part>,
}

/// A part of the budget.
struct Part {
    units: Arc<Semaphore>,
    total: u32,
    /// How many wait for a share of it.
    waiting: watch::Sender<usize>,
}

/// A request's share, given back when it is dropped.
pub struct Share {
    part: Arc<Part>,
    _units: OwnedSemaphorePermit,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let small = (bytes / 4).max(SMALL_PART_BYTES_MIN).min(bytes / 2);
        Self { small: Part::new(small), large: Part::new(bytes - small) }
    }

    const fn part(&self, bytes: usize) -> &Arc<Part> {
        if bytes <= SMALL_FRAME_BYTES { &self.small } else { &self.large }
    }

    /// A share for a request of `bytes`, if there is one now.
    pub fn try_take(&self, bytes: usize) -> Option<Share> {
        let own = self.part(bytes);
        own.try_take(bytes).or_else(|| {
            let lent = bytes <= SMALL_FRAME_BYTES && !self.large.is_contended();
            lent.then(|| self.large.try_take(bytes)).flatten()
        })
    }

    /// Waits for a share. A frame larger than its part takes all of it.
    pub async fn take(&self, bytes: usize) -> Share {
        self.part(bytes).take(bytes).await
    }
}

impl Part {
    fn new(bytes: usize) -> Arc<Self> {
        let total = u32::try_from((bytes / UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let permits = usize::try_from(total).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Arc::new(Self { units: Arc::new(Semaphore::new(permits)), total, waiting: watch::Sender::new(0) })
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.total)
    }

    fn is_contended(&self) -> bool {
        *self.waiting.borrow() > 0
    }

    fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let units = Arc::clone(&self.units).try_acquire_many_owned(self.units(bytes)).ok()?;
        Some(Share { part: Arc::clone(self), _units: units })
    }

    async fn take(self: &Arc<Self>, bytes: usize) -> Share {
        let _waiting = Waiting::begin(&self.waiting);
        let units = Arc::clone(&self.units).acquire_many_owned(self.units(bytes)).await;
        Share { part: Arc::clone(self), _units: units.expect("the budget is never closed") }
    }
}

impl Share {
    /// Completes as soon as somebody waits for bytes of the part that this share is of.
    pub async fn contended(&self) {
        // An error means that the budget is gone, and this share holds it.
        let _ = self.part.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

/// Counts one who waits, however the waiting ends.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        change(count, |waiting| waiting + 1);
        Self(count)
    }
}

/// Wakes holders only when it turns to or from none.
fn change(count: &watch::Sender<usize>, by: impl FnOnce(usize) -> usize) {
    count.send_if_modified(|waiting| {
        let before = *waiting;
        *waiting = by(before);
        (before == 0) != (*waiting == 0)
    });
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        change(self.0, |waiting| waiting - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Context};

    use super::*;

    const MIB: usize = 1 << 20;

    /// True if it completes without waiting.
    fn is_done(future: impl Future) -> bool {
        pin!(future).poll(&mut Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn a_request_larger_than_its_part_takes_all_of_it_and_gives_it_back() {
        let budget = Budget::new(16 * MIB);
        let share = budget.try_take(1 << 30).expect("nothing else is taken");
        assert!(budget.try_take(2 * MIB).is_none());
        drop(share);
        assert!(budget.try_take(12 * MIB).is_some());
    }

    #[test]
    fn large_requests_leave_a_quarter_to_small_ones_and_small_ones_are_lent_the_rest() {
        let budget = Budget::new(64 * MIB);
        let large = budget.try_take(48 * MIB).expect("three quarters");
        let small: Vec<_> = std::iter::from_fn(|| budget.try_take(MIB)).collect();
        assert_eq!(small.len(), 16);
        drop(large);
        let lent: Vec<_> = std::iter::from_fn(|| budget.try_take(MIB)).collect();
        assert_eq!(lent.len(), 48);
        assert!(budget.try_take(1).is_none());
    }

    #[test]
    fn the_smallest_budget_is_halved() {
        let budget = Budget::new(MIB);
        let shares: Vec<_> = (0..3).map(|_| budget.try_take(MIB)).collect();
        assert_eq!(shares.iter().flatten().count(), 2, "each takes a part");
    }

    #[test]
    fn a_holder_learns_that_others_wait_for_its_part_and_only_then() {
        let budget = Budget::new(16 * MIB);
        let (large, small) = (budget.try_take(12 * MIB).expect("all"), budget.try_take(1).expect("plenty"));
        assert!(!is_done(large.contended()));
        let mut waits = Box::pin(budget.take(2 * MIB));
        assert!(!is_done(waits.as_mut()));
        assert!(is_done(large.contended()));
        assert!(!is_done(small.contended()), "nobody waits for small ones");
        drop(waits);
        assert!(!is_done(large.contended()), "the one that waited has gone");
        drop((large, small));
        assert!(is_done(budget.take(12 * MIB)));
    }
}
