//! Consumer groups: their members, committed offsets, and offsets that wait for the end of a transaction.
//!
//! Purpose: the group half of consume-process-produce. [`classic`] and [`consumer`] (KIP-848) decide what members ask;
//! [`State`] is what the log holds; [`Volatile`] is what it does not. Invariants: GRP-01 a pending offset is never served as
//! committed; GRP-02 a transaction's offsets become visible in the same event as its markers, or vanish; GRP-03 of
//! two commits of one partition the later in the log wins, whatever order their transactions end in.
//! What it does not do: any check of a producer's identity (that is `eos`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod classic;
pub mod consumer;
mod expire;
mod group;
pub mod history;
mod membership;
mod refusal;
mod state;
pub mod streams;
mod subscription;
mod volatile;
mod who;

pub use classic::Phase;
pub use expire::OFFSETS_PER_EVENT_MAX;
pub use group::{Group, Kind, StoredOffset};
pub use membership::{MemberId, Membership, Seat};
pub use refusal::{Member, Refusal};
pub use state::{State, Violation};
pub use volatile::{Change, Live, Pulse, Sessions, Volatile, Waiter};
pub use who::Who;

#[cfg(test)]
mod tests;
