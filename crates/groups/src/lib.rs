//! Consumer groups: committed offsets, and offsets that wait for the end of a transaction.
//!
//! Purpose: the group half of consume-process-produce. Invariants: GRP-01 a pending offset is never served as
//! committed; GRP-02 a transaction's offsets become visible in the same event as its markers, or vanish; GRP-03 of
//! two commits of one partition the later in the log wins, whatever order their transactions end in.
//! What it does not do: membership (groups here have no members; a request that claims one is refused), retention
//! of offsets, any check of a producer's identity (that is `eos`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod group;
mod refusal;
mod state;

pub use group::{Group, StoredOffset};
pub use refusal::{Member, Refusal};
pub use state::{State, Violation};

#[cfg(test)]
mod tests;
