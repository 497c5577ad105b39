//! The one log: group commit and files, recovery, snapshots, and the published view that readers use.
//!
//! Purpose: everything that must survive is an event in one append-only sequence; events and record batches are
//! gathered into groups, and a group is written whole, synced once, then published whole. Invariants: an outcome
//! `Durable` is reported only after the sync (or the write, in durability `interval`) it rests on; a group is there
//! after a crash entirely or not at all; acknowledged data is never dropped silently. What it does not do: decide
//! anything, know producers, transactions or topics beyond what [`Visible`](semel_events::Visible) says.
//!
//! Write side: [`Log`], `open_group`, `writer`, `files`, `snapshot`, `recover`, `salvage`, `room`, [`disk`].
//! Read side: [`Published`], [`View`], `index`, `side_file`, [`BlockCache`], `read`, `waiters`.

mod cache;
pub mod disk;
mod index;
mod log;
mod options;
mod proposal;
mod published;
mod read;

pub use cache::{BlockCache, BlockSource};
pub use index::{Extent, FileNumber, IndexEntries};
pub use log::{Corruption, Log, OnOutcome, OpenError, Opened, StartError};
pub use options::{Durability, Engine, Options};
pub use proposal::{Outcome, Payload, Proposal, Room, RoomClass, SnapshotSource, StateMachine};
pub use published::{PartitionView, Published, TopicView, View, ViewGuard};
pub use read::{Isolation, ReadMode, ReadPlan, ReadRefusal, ReadRequest, read_all};
