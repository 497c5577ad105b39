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

mod batches;
mod cache;
pub mod disk;
mod extents;
mod file_uses;
mod index;
mod log;
mod offsets;
mod options;
mod proposal;
mod published;
mod read;
mod restore;
mod side_file;
mod upkeep;
mod view;
mod waiters;

pub use cache::{BlockCache, BlockSource, CacheFigures, WINDOW};
pub use extents::{Extent, FileNumber, FileRange, LogPosition};
pub use index::IndexEntries;
pub use log::{Corruption, Log, OnOutcome, OpenError, Opened, StartError};
pub use offsets::{EpochEnd, ListedOffset, OffsetQuery, OffsetSearch};
pub use options::{Durability, Engine, Options};
pub use proposal::{Outcome, Payload, Proposal, Room, RoomClass, SnapshotSource, StateMachine};
pub use published::{Published, ViewGuard};
pub use read::{Isolation, ReadData, ReadError, ReadMode, ReadPlan, ReadRefusal, ReadRequest, read_all};
pub use restore::{RestoreError, open_sides};
pub use side_file::SideFile;
pub use upkeep::SideStore;
pub use view::{Catalog, PartitionView, TopicView, View};
pub use waiters::{Changed, Reached, Ticket};
