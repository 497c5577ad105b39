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

mod background;
mod batches;
mod buffer;
mod cache;
mod crash;
pub mod disk;
mod error;
mod extents;
mod file_uses;
mod files;
mod format;
mod index;
mod log;
mod offsets;
mod open_group;
mod options;
mod proposal;
mod published;
mod queue;
mod read;
mod recover;
mod restore;
mod room;
mod salvage;
mod side_file;
mod snapshot;
mod syncer;
mod thread;
mod upkeep;
mod view;
mod waiters;
mod writer;

pub use cache::{BlockCache, BlockSource, CacheFigures, WINDOW};
pub use error::{Corruption, OpenError, StartError};
pub use extents::{Extent, FileNumber, FileRange, LogPosition};
pub use index::IndexEntries;
pub use log::{Log, OnOutcome, Opened, salvage};
pub use offsets::{EpochEnd, ListedOffset, OffsetQuery, OffsetSearch};
pub use options::{Durability, Engine, Options};
pub use proposal::{Outcome, Payload, Proposal, Room, RoomClass, SnapshotSource, StateMachine};
pub use published::{Published, ViewGuard};
pub use read::{Isolation, ReadData, ReadError, ReadMode, ReadPlan, ReadRefusal, ReadRequest, read_all};
pub use restore::{RestoreError, open_sides};
pub use room::ReserveTaken;
pub use salvage::Salvaged;
pub use side_file::SideFile;
pub use upkeep::SideStore;
pub use view::{Catalog, PartitionView, TopicView, View};
pub use waiters::{Changed, Reached, Ticket};

#[cfg(test)]
mod tests;
