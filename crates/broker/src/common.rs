//! What several handlers need: identities and names off the wire, refusals into codes.

use std::cmp::Ordering;

use semel_eos::Refusal;
use semel_log::{Room, RoomClass};
use semel_types::{
    ErrorCode, LeaderEpoch, PartitionHandle, PartitionIndex, ProducerStamp,
    mutation::{Mutation, mutated},
};
use semel_wire::{RawLeaderEpoch, RawProducerEpoch, RawProducerId, Text};

use crate::api::answer::{Answered, At, answer, fenced, group_answer};
use crate::{
    catalog::Catalog,
    node::{Handled, Step},
};

/// Bytes of events that one request of the coordinator may cause, at most, apart from its lists.
pub(crate) const COORDINATOR_BYTES: u64 = 16 << 10;

/// Bytes of events for each partition, group or offset named, its metadata apart.
pub(crate) const ITEM_BYTES: u64 = 512;

/// A refusal on its way into an answer.
pub(crate) enum Denied {
    /// This code.
    Code(ErrorCode),
    /// The core's refusal.
    Core(Refusal),
    /// The group's refusal.
    Group(semel_groups::Refusal),
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self::Core(refusal)
    }
}

impl Denied {
    /// The code, or `None` if the connection is to be closed unanswered.
    pub(crate) fn code(&self, at: At) -> Option<ErrorCode> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Group(refusal) => Some(group_answer(*refusal, at)),
            Self::Core(refusal) => match answer(refusal, at) {
                Answered::Code(code) => Some(code),
                Answered::Close => None,
            },
        }
    }
}

/// The identity that a request claims. A negative id belongs to nobody (49), a negative epoch was never current.
pub(crate) fn claimed(id: RawProducerId, epoch: RawProducerEpoch, at: At) -> Result<ProducerStamp, Denied> {
    let id = id.known().ok_or(Denied::Code(ErrorCode::InvalidProducerIdMapping))?;
    let epoch = epoch.known().ok_or(Denied::Code(fenced(at)))?;
    Ok(ProducerStamp { id, epoch })
}

/// A transactional id, which must not be empty (42).
pub(crate) fn transactional_id(text: &str) -> Result<semel_types::TransactionalId, Denied> {
    if text.is_empty() { Err(Refusal::EmptyTransactionalId.into()) } else { Ok(text.into()) }
}

/// The partition of a topic by name.
pub(crate) fn find(catalog: &Catalog, topic: &str, index: PartitionIndex) -> Option<PartitionHandle> {
    catalog.topic(topic)?.partition(index)
}

/// Does the client know the leader epoch that we lead in? -1 says nothing.
pub(crate) fn check_leader_epoch(claimed: RawLeaderEpoch, ours: LeaderEpoch) -> Result<(), ErrorCode> {
    match claimed.known().map(|claimed| claimed.cmp(&ours)) {
        _ if mutated(Mutation::LeaderEpochNotChecked) => Ok(()),
        None | Some(Ordering::Equal) => Ok(()),
        Some(Ordering::Less) => Err(ErrorCode::FencedLeaderEpoch),
        Some(Ordering::Greater) => Err(ErrorCode::UnknownLeaderEpoch),
    }
}

/// Longest text for people in an answer, in bytes: it may quote names that clients chose, and old versions have room
/// for 32,767 bytes.
const MESSAGE_BYTES_MAX: usize = 1000;

/// A text for people, cut where it is too long.
pub(crate) fn message(text: &str) -> Text {
    let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
    Text::from(&text[..end])
}

/// Asks for room; the error is what to do instead: wait, or answer `full`.
pub(crate) fn room(step: &Step<'_>, bytes: u64, class: RoomClass, full: ErrorCode) -> Result<(), NoRoom> {
    match step.room(bytes, class) {
        Room::Enough => Ok(()),
        Room::Wait => Err(NoRoom::Defer),
        Room::Full => Err(NoRoom::Answer(full)),
    }
}

/// What to do without room.
pub(crate) enum NoRoom {
    /// Ask again later.
    Defer,
    /// Answer this.
    Answer(ErrorCode),
}

/// The handler's result where a whole answer has one code: deferred, closed, or answered with the code.
pub(crate) fn no_room_or(no_room: NoRoom, answer: impl FnOnce(ErrorCode) -> Handled) -> Handled {
    match no_room {
        NoRoom::Defer => Handled::Defer,
        NoRoom::Answer(code) => answer(code),
    }
}
