//! Which producer ids are issued (KIP-98; upstream `RPCProducerIdManager`).
//!
//! Purpose: ids are issued once, densely, from a random base. Invariants: EOS-20 (an id is issued at most once in a
//! data directory's life). What it does not do: say who owns an id.

use alloc::vec::Vec;

use semel_events::{Decode, DecodeError, Encode, Event, ProducerIdsReserved, Reader};
use semel_types::{PRODUCER_ID_BASE_LIMIT, PRODUCER_ID_BASE_STEP, PRODUCER_ID_BLOCK, ProducerId};

use crate::dropped::{Rule, keeps};

/// What is reserved: all ids from the base to the end of the last block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProducerIds {
    first: ProducerId,
    end: ProducerId,
}

/// The block in use. Volatile: what is left of it is given up at a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdBlock {
    next: ProducerId,
    end: ProducerId,
}

impl ProducerIds {
    /// True if the id may be in somebody's hands: it lies in a reserved block.
    #[must_use]
    pub fn is_issued(&self, id: ProducerId) -> bool {
        self.first <= id && id < self.end
    }

    /// The id after the last reserved one; 0 before the first reservation.
    #[must_use]
    pub const fn end(&self) -> ProducerId {
        self.end
    }

    /// The first id of this data directory; 0 before the first reservation.
    #[must_use]
    pub const fn first(&self) -> ProducerId {
        self.first
    }

    /// The next id that nobody has (design section 3, `may_have_forgotten`).
    #[must_use]
    pub fn next_unissued(&self, block: &IdBlock) -> ProducerId {
        if block.is_empty() { self.end } else { block.next }
    }

    pub(crate) fn apply_reserved(&mut self, event: &ProducerIdsReserved) {
        if self.first == self.end {
            self.first = event.first;
        }
        self.end = self.end.max(event.end);
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.first.encode(out);
        self.end.encode(out);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { first: Decode::decode(reader)?, end: Decode::decode(reader)? })
    }
}

impl IdBlock {
    fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Issues the next id; reserves a block first, by an event, if this one is used up. `self` is the caller's copy
    /// and becomes the volatile block when the decision is applied.
    pub fn issue(&mut self, ids: &ProducerIds, entropy: &[u8; 32], events: &mut Vec<Event>) -> ProducerId {
        if self.is_empty() {
            let reserved = if keeps(Rule::IdsOnce) { ids.end } else { ids.first };
            let first = self.end.max(reserved);
            self.next = if first == ProducerId::default() { random_base(entropy) } else { first };
            self.end = ProducerId::new(self.next.get().saturating_add(PRODUCER_ID_BLOCK));
            events.push(ProducerIdsReserved { first: self.next, end: self.end }.into());
        }
        let id = self.next;
        self.next = id.next();
        id
    }
}

/// A multiple of 2^20 below 2^39, never 0: other brokers count from there, and an old client of one must not meet
/// its id in other hands.
fn random_base(entropy: &[u8; 32]) -> ProducerId {
    let mut raw = [0; 8];
    raw.copy_from_slice(&entropy[..8]);
    let steps = (PRODUCER_ID_BASE_LIMIT / PRODUCER_ID_BASE_STEP).unsigned_abs();
    let step = 1 + u64::from_le_bytes(raw) % (steps - 1);
    ProducerId::new(step.cast_signed() * PRODUCER_ID_BASE_STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_issued_densely_from_a_random_base_and_never_twice() {
        let (mut ids, mut events) = (ProducerIds::default(), Vec::new());
        let mut block = IdBlock::default();
        let entropy = [0xab; 32];
        let first = block.issue(&ids, &entropy, &mut events);
        assert_eq!(first.get() % PRODUCER_ID_BASE_STEP, 0);
        assert!(0 < first.get() && first.get() < PRODUCER_ID_BASE_LIMIT);
        for n in 1..2500 {
            assert_eq!(block.issue(&ids, &entropy, &mut events).get(), first.get() + n);
        }
        assert_eq!(events.len(), 3);
        for event in &events {
            if let Event::ProducerIdsReserved(event) = event {
                ids.apply_reserved(event);
            }
        }
        assert_eq!(ids.next_unissued(&block).get(), first.get() + 2500);
        let mut after_restart = IdBlock::default();
        assert_eq!(after_restart.issue(&ids, &[1; 32], &mut events).get(), first.get() + 3000);
    }

    #[test]
    fn a_base_is_in_range_whatever_the_entropy() {
        for byte in 0..=255 {
            let base = random_base(&[byte; 32]).get();
            assert!(base > 0 && base < PRODUCER_ID_BASE_LIMIT && base % PRODUCER_ID_BASE_STEP == 0);
        }
    }

    #[test]
    fn only_reserved_ids_count_as_issued() {
        let mut ids = ProducerIds::default();
        assert!(!ids.is_issued(ProducerId::new(0)));
        ids.apply_reserved(&ProducerIdsReserved {
            first: ProducerId::new(1 << 20),
            end: ProducerId::new((1 << 20) + 1000),
        });
        assert!(!ids.is_issued(ProducerId::new((1 << 20) - 1)));
        assert!(ids.is_issued(ProducerId::new(1 << 20)));
        assert!(!ids.is_issued(ProducerId::new((1 << 20) + 1000)));
    }
}
