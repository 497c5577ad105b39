//! One bound for the bytes of all requests in flight (`queued.max.request.bytes`).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that one permit stands for: a semaphore counts in 32 bits.
const UNIT_BYTES: usize = 1024;

/// The bound, shared by all connections.
#[derive(Clone)]
pub struct Budget {
    units: Arc<Semaphore>,
    total: u32,
}

/// A request's share, given back when it is dropped.
pub type Share = OwnedSemaphorePermit;

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let total = u32::try_from((bytes / UNIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let permits = usize::try_from(total).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(permits)), total }
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.total)
    }

    /// A share for a request of `bytes`, if there is one now. A request larger than the whole budget takes all.
    pub fn try_take(&self, bytes: usize) -> Option<Share> {
        Arc::clone(&self.units).try_acquire_many_owned(self.units(bytes)).ok()
    }

    /// Waits for a share.
    pub async fn take(&self, bytes: usize) -> Share {
        let permits = Arc::clone(&self.units).acquire_many_owned(self.units(bytes)).await;
        permits.expect("the budget is never closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_larger_than_the_budget_takes_all_of_it_and_gives_it_back() {
        let budget = Budget::new(4096);
        let share = budget.try_take(1 << 30).expect("nothing else is taken");
        assert!(budget.try_take(1).is_none());
        drop(share);
        assert!(budget.try_take(4096).is_some());
    }
}
