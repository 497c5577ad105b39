//! How the node asks whether there is room, before it decides anything.

pub use semel_log::{Room, RoomClass};

/// Whoever knows how much the log can still take.
pub trait RoomKeeper: Send {
    /// Is there room for this many bytes? Promises nothing by itself: what is submitted next takes it.
    fn ask(&self, bytes: u64, class: RoomClass) -> Room;
}

/// Always room: for tests and for durability `memory`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl RoomKeeper for Unlimited {
    fn ask(&self, _bytes: u64, _class: RoomClass) -> Room {
        Room::Enough
    }
}
