//! Sequence numbers: 31 bits, wrapping from 2147483647 to 0 (upstream `DefaultRecordBatch.incrementSequence`).

use core::fmt;

/// The sequence number of one record of one producer on one partition, 0..=2147483647.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Sequence(u32);

/// Where a sequence stands against the last accepted one (design section 3, "s at or below l").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequencePosition {
    /// At or below the last accepted one.
    AtOrBelow,
    /// Exactly the successor.
    Next,
    /// Further ahead: a gap.
    Beyond,
}

impl Sequence {
    /// The first sequence of every epoch.
    pub const ZERO: Self = Self(0);
    /// The last one before the wrap.
    pub const MAX: Self = Self(i32::MAX as u32);

    /// From the wire, where a negative number means "none".
    #[must_use]
    pub const fn from_wire(raw: i32) -> Option<Self> {
        if raw < 0 { None } else { Some(Self(raw as u32)) }
    }

    /// As a wire number.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }

    /// This sequence moved forward by a number of records, wrapping.
    #[must_use]
    pub const fn plus(self, records: u32) -> Self {
        Self(self.0.wrapping_add(records) & Self::MAX.0)
    }

    /// The following sequence; 0 after 2147483647.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// This sequence moved back by a number of records, wrapping.
    #[must_use]
    pub const fn back(self, records: u32) -> Self {
        Self(self.0.wrapping_sub(records) & Self::MAX.0)
    }

    /// How many records `self` lies behind `later`, wrapping: 0 if they are equal.
    #[must_use]
    pub const fn behind(self, later: Self) -> u32 {
        later.0.wrapping_sub(self.0) & Self::MAX.0
    }

    /// Stands `self` at or below `last`, right after it, or beyond? `wrapped` says whether this producer's sequence
    /// has passed 2147483647 in this epoch: only then may a numerically larger sequence be an old one.
    #[must_use]
    pub const fn against(self, last: Self, wrapped: bool) -> SequencePosition {
        let half = 1_u32 << 30;
        let below = last.0 >= self.0 && last.0 - self.0 < half;
        let below_before_wrap = wrapped && self.0 > last.0 && self.0 - last.0 > half;
        if self.0 == last.next().0 {
            SequencePosition::Next
        } else if below || below_before_wrap {
            SequencePosition::AtOrBelow
        } else {
            SequencePosition::Beyond
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The sequences that one batch takes: first..=last, wrapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SequenceRange {
    /// Sequence of the batch's first record.
    pub first: Sequence,
    /// Sequence of its last record.
    pub last: Sequence,
}

impl SequenceRange {
    /// The range of a batch of `count` records (at least 1).
    #[must_use]
    pub const fn of(first: Sequence, count: u32) -> Self {
        Self { first, last: first.plus(count.saturating_sub(1)) }
    }

    /// True if the range passes from 2147483647 to 0.
    #[must_use]
    pub const fn wraps(self) -> bool {
        self.last.0 < self.first.0
    }
}

impl fmt::Display for SequenceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_the_largest_sequence_is_zero() {
        assert_eq!(Sequence::MAX.next(), Sequence::ZERO);
        assert!(SequenceRange::of(Sequence::MAX, 2).wraps());
        assert_eq!(Sequence::ZERO.against(Sequence::MAX, false), SequencePosition::Next);
    }

    #[test]
    fn distances_are_counted_across_the_wrap() {
        let (before, after) = (Sequence(i32::MAX as u32 - 1), Sequence(2));
        assert_eq!(before.behind(after), 4);
        assert_eq!(after.back(4), before);
        assert_eq!(before.plus(4), after);
        assert_eq!(before.behind(before), 0);
    }

    #[test]
    fn a_larger_number_is_old_only_after_a_wrap() {
        let (last, old) = (Sequence(3), Sequence(i32::MAX as u32 - 2));
        assert_eq!(old.against(last, true), SequencePosition::AtOrBelow);
        assert_eq!(old.against(last, false), SequencePosition::Beyond);
        assert_eq!(last.against(last, false), SequencePosition::AtOrBelow);
    }
}
