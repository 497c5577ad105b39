//! Faults that a test build can have, to see that `semel certify` finds them.
//!
//! Purpose: a suite that finds nothing in a broken broker proves nothing. Each [`Mutation`] breaks one rule at one
//! place, where `if mutated(...)` stands; `docs/certify/mutations.md` names the scenarios that notice. Invariants:
//! without the cargo feature `mutations`, [`mutated`] is the constant `false` and nothing of a fault is compiled; the
//! feature does not compile in a build without debug assertions, and only the crate of the binary may turn it on
//! (`tidy`). What it does not do: read the environment (the binary does), hold the rules of the core that can be left
//! out (`eos/src/dropped.rs`).

#[cfg(all(feature = "mutations", not(debug_assertions)))]
compile_error!("`mutations` is for tests: no release build has it");

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name: the variant's.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

mutations! {
    /// A record that does not match its checksum is stored.
    CrcNotChecked,
    /// With acks 0 and 1 a retry is stored again.
    AcksOneNotDeduplicated,
    /// A retry is held against the topic's limits before it is known as one.
    LimitsBeforeRetries,
    /// Of the last five batches only the newest is known.
    OneRememberedBatch,
    /// A retry is told another offset than its original.
    RetryToldOtherOffset,
    /// AddPartitionsToTxn takes any epoch.
    AddPartitionsAnyEpoch,
    /// AddOffsetsToTxn takes any epoch.
    AddOffsetsAnyEpoch,
    /// TxnOffsetCommit takes any epoch.
    TxnOffsetCommitAnyEpoch,
    /// EndTxn takes any epoch.
    EndTxnAnyEpoch,
    /// InitProducerId hands out the identity that somebody holds.
    InitKeepsEpoch,
    /// Any transaction timeout is taken.
    TimeoutNotBounded,
    /// A transaction of a silent producer stays open.
    NeverTimesOut,
    /// The pair that made the current identity is not recognised.
    RetryNotRemembered,
    /// An end of version 2 leaves the epoch as it was.
    Version2KeepsEpoch,
    /// Markers of version 2 carry the old epoch.
    MarkerWithOldEpoch,
    /// Commits write abort markers, and aborts commit markers.
    MarkerKindFlipped,
    /// Only the first partition of a transaction gets its marker.
    MarkerInOnePartition,
    /// Readers of committed records are not told of aborted transactions.
    AbortedNotListed,
    /// The last stable offset does not wait for open transactions.
    StableIsHighWatermark,
    /// Fetch at read_committed reads up to the high watermark.
    FetchPastStable,
    /// ListOffsets at read_committed answers with the high watermark.
    ListPastStable,
    /// The partitions of a transaction become visible one after another, after its answer.
    PublishedInParts,
    /// Answers leave before the log has what they say.
    AnswersBeforeWrite,
    /// A start forgets what producers wrote.
    ProducersLostAtRestart,
    /// A start forgets the offsets of undecided transactions.
    PendingLostAtRestart,
    /// A start forgets who of a group got what.
    AssignmentsLostAtRestart,
    /// Offsets of an undecided transaction are served.
    PendingServed,
    /// An abort commits its offsets.
    AbortCommitsOffsets,
    /// A commit drops its offsets.
    CommitDropsOffsets,
    /// An offset of an older event replaces one of a newer.
    OlderOffsetWins,
    /// A stable OffsetFetch does not wait for undecided transactions.
    UnstableServed,
    /// A member commits in any generation.
    GenerationNotChecked,
    /// Anybody is a member.
    AnyMember,
    /// The old holder of a static name goes on.
    StaticMemberNotFenced,
    /// Sessions of members last for ever.
    SessionsNeverExpire,
    /// Every member is told that it leads.
    EverybodyLeads,
    /// A member of a consumer group speaks in any epoch.
    ConsumerEpochNotChecked,
    /// A partition is given to its next owner before the one before has given it up.
    ConsumerOwnersNotAwaited,
    /// A member of a consumer group commits positions of what it had in an older epoch.
    ConsumerOldEpochCommits,
    /// A member of a consumer group reads positions in any epoch.
    ConsumerAnyEpochReads,
    /// Sessions of members of consumer groups last for ever.
    ConsumerSessionsNeverExpire,
    /// A start forgets the members of consumer groups.
    ConsumersLostAtRestart,
    /// The old holder of a static name in a consumer group goes on.
    ConsumerInstanceNotFenced,
    /// A member of a streams group speaks in any epoch.
    StreamsEpochNotChecked,
    /// A task is given to its next owner before the one before has let go of it.
    StreamsOwnersNotAwaited,
    /// A member of a streams group commits positions of tasks that it had in an older epoch.
    StreamsOldEpochCommits,
    /// Sessions of members of streams groups last for ever.
    StreamsSessionsNeverExpire,
    /// A start forgets the members of streams groups.
    StreamsMembersLostAtRestart,
    /// The old holder of a static name in a streams group goes on.
    StreamsInstanceNotFenced,
    /// Members of a streams group are not told what its topics lack.
    StreamsProblemNotTold,
    /// DeleteRecords says yes and deletes nothing.
    RecordsNotDeleted,
    /// DescribeTransactions tells another state.
    OtherStateTold,
    /// DescribeProducers tells of no open transaction.
    OpenNotTold,
    /// 90 is told to clients that do not know it.
    FencedToOldClients,
    /// 120 is told to clients that do not know it.
    AbortableToOldClients,
    /// A reader with the leader epoch of another time is served.
    LeaderEpochNotChecked,
}

/// False in a build that can have faults: what it answers has to give them away, not its own checks.
pub const CHECKS_ITSELF: bool = !cfg!(feature = "mutations");

/// True if this process has that fault: never, outside the tests of faults.
#[cfg(not(feature = "mutations"))]
#[must_use]
pub const fn mutated(_: Mutation) -> bool {
    false
}

#[cfg(feature = "mutations")]
pub use switch::{mutate, mutated};

#[cfg(feature = "mutations")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Mutation;

    const NONE: u8 = u8::MAX;
    static MUTATION: AtomicU8 = AtomicU8::new(NONE);

    /// Breaks one rule in the whole process.
    pub fn mutate(mutation: Mutation) {
        MUTATION.store(mutation as u8, Ordering::SeqCst);
    }

    /// True if this process has that fault.
    #[must_use]
    pub fn mutated(mutation: Mutation) -> bool {
        MUTATION.load(Ordering::Relaxed) == mutation as u8
    }
}
