//! The exactly-once core: may this producer write, may this transaction move?
//!
//! Purpose: every rule of exactly-once stands here and nowhere else. `decide`, [`State::judge`] and [`State::admit`]
//! read; [`State::apply`] is the only writer, cannot fail, and runs the same live and on replay.
//!
//! | module | what it answers |
//! |---|---|
//! | [`fence`] | who may write at all: the only place that compares epochs |
//! | [`producer`] | is this batch new, a retry, a gap or a stray? |
//! | [`txn`] | the transaction coordinator |
//! | [`partition`] | next offset, last stable offset, what a partition may have forgotten |
//! | [`ids`] | which producer ids are issued |
//! | [`refusal`] | every reason to say no |
//! | [`volatile`] | what is not in the log: connections, the block of ids in use |
//! | [`check`] | the invariants EOS-nn over the whole state |
//!
//! Invariants: `docs/invariants.md`. What it does not do: no clock, no file, no thread, no randomness, no wire code.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod check;
pub mod dropped;
pub mod fence;
pub mod ids;
mod pages;
pub mod partition;
pub mod producer;
pub mod refusal;
pub mod settings;
mod state;
pub mod txn;
pub mod volatile;

pub use check::Violation;
pub use partition::PartitionState;
pub use producer::{Admission, BatchStamp, Judgement, ProduceScope, ProducerStateManager, Verdict};
pub use refusal::Refusal;
pub use settings::Settings;
pub use state::State;
pub use txn::{Command, Decision, Reply, Request, decide};
pub use volatile::{Change, OrderedApi, Refused, RefusedRequest, Volatile};
