//! Who may write: the only module that compares epochs.
//!
//! Purpose: "is this the current identity?" is asked here by every request of a producer. Invariants: EOS-01 (an
//! older epoch never gets a byte in). What it does not do: sequences, state changes.

use core::cmp::Ordering;

use semel_types::ProducerEpoch;

/// Where an epoch stands against the one on file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochStanding {
    /// Older: a zombie.
    Older,
    /// The same.
    Current,
    /// Newer: a new session.
    Newer,
}

/// Compares a request's epoch with the one on file.
#[must_use]
pub fn standing(sent: ProducerEpoch, on_file: ProducerEpoch) -> EpochStanding {
    match sent.cmp(&on_file) {
        Ordering::Less => EpochStanding::Older,
        Ordering::Equal => EpochStanding::Current,
        Ordering::Greater => EpochStanding::Newer,
    }
}
