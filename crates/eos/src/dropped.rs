//! Rules that a test can drop, to see that the histories of `tests/histories` notice.
//!
//! Purpose: a test that never fails proves nothing. Each of these rules of the design (sections 3 and 4) can be left
//! out by a switch, and a history must then break a promise; `docs/dropped-rules.md` lists how. Invariants: without
//! the cargo feature `dropped-rules`, [`keeps`] is the constant `true`, and nothing of a switch is compiled; the
//! feature with an optimized build that has no debug assertions does not compile, and no other crate may name it
//! (`tidy`), but for the binary's feature `mutations`, for which `semel certify` has to notice them, too. What it does
//! not do: change a rule.

use semel_types::ProducerStamp;

use crate::producer::Table;

#[cfg(all(feature = "dropped-rules", not(debug_assertions)))]
compile_error!("`dropped-rules` is for tests: no release build has it");

/// A rule that a test can drop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Rule {
    /// None: every rule is kept.
    None,
    /// A batch of an owned id is held against the owner's current identity.
    OwnersIdentity,
    /// An owned id takes no plain batch.
    PlainOfOwned,
    /// A batch with an older epoch than the one on file is refused.
    OlderEpoch,
    /// What is at or below the last sequence is not new.
    Retry,
    /// A retry has the payload of its original.
    Payload,
    /// A stray of an ended transaction is not acknowledged.
    Stray,
    /// The first batch of an epoch starts at 0.
    FirstAtZero,
    /// Sequences follow each other without a gap.
    Gap,
    /// A classic batch goes only to a partition that the transaction holds.
    Membership,
    /// Another instance's InitProducerId clears the remembered pair.
    TakeoverClearsPair,
    /// A copy of a coordinator's request on a left connection is not executed.
    CoordinatorOrder,
    /// A copy of a Produce request on a left connection is not executed.
    ProduceOrder,
    /// InitProducerId with a pair that is neither current nor remembered is refused.
    RecoveryByPair,
    /// An abort that the producer did not ask for bumps the epoch.
    AbortBumps,
    /// A takeover aborts what is open.
    TakeoverAborts,
    /// After the last usable epoch comes another producer id.
    Rotation,
    /// An idle entry shrinks to a stub and is not forgotten.
    StubStays,
    /// A topic made anew says that it may have forgotten older ids.
    NewTopicDoubts,
    /// After an unclean start, what is missing of older ids may have been lost.
    UncleanDoubts,
    /// An unclean start aborts what is open.
    UncleanAborts,
    /// A producer id is issued once.
    IdsOnce,
    /// What comes behind a batch that was refused for want of room waits for it.
    RoomMark,
}

/// True if a rule holds, as always outside the tests of dropped rules.
#[cfg(not(feature = "dropped-rules"))]
pub(crate) const fn keeps(_: Rule) -> bool {
    true
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::OwnersIdentity,
        Self::PlainOfOwned,
        Self::OlderEpoch,
        Self::Retry,
        Self::Payload,
        Self::Stray,
        Self::FirstAtZero,
        Self::Gap,
        Self::Membership,
        Self::TakeoverClearsPair,
        Self::CoordinatorOrder,
        Self::ProduceOrder,
        Self::RecoveryByPair,
        Self::AbortBumps,
        Self::TakeoverAborts,
        Self::Rotation,
        Self::StubStays,
        Self::NewTopicDoubts,
        Self::UncleanDoubts,
        Self::UncleanAborts,
        Self::IdsOnce,
        Self::RoomMark,
    ];
}

/// Owners without what they wrote: what a start that forgets producers is left with.
pub(crate) fn without_entries(producers: &Table) -> Table {
    let mut kept = Table::default();
    for (id, slot) in producers.owned_ids() {
        kept.set_identity(ProducerStamp { id, epoch: slot.epoch }, &slot.owner);
        kept.set_open(id, slot.open);
        if slot.closed {
            kept.close(id);
        }
    }
    kept
}

#[cfg(feature = "dropped-rules")]
pub use switch::drop_rule;
#[cfg(feature = "dropped-rules")]
pub(crate) use switch::keeps;

#[cfg(feature = "dropped-rules")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Rule;

    static DROPPED: AtomicU8 = AtomicU8::new(Rule::None as u8);

    /// Drops one rule in the whole process, and keeps all others.
    pub fn drop_rule(rule: Rule) {
        DROPPED.store(rule as u8, Ordering::SeqCst);
    }

    /// True if a rule holds.
    pub(crate) fn keeps(rule: Rule) -> bool {
        DROPPED.load(Ordering::Relaxed) != rule as u8
    }
}
