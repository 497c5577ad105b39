//! The consumer group protocol (KIP-848): ConsumerGroupHeartbeat, and what time does.
//!
//! Purpose: a [`Roster`] is what the log holds of such a group. Invariants: GRP-09 a partition has one owner at a time: it
//! is given to a member only when no other one has it or still has to give it up; GRP-10 the group's epoch only rises
//! and no member is ahead of it.
//! What it does not do: look topics up (the caller does, through [`Topics`]); know versions of the wire.

mod commit;
mod live;
mod roster;

pub(crate) use commit::check_commit;
pub use live::Live;
pub use roster::{Phase, Roster, Seat};

#[cfg(test)]
mod tests;
