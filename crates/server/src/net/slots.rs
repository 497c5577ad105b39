//! The requests of one connection that are not answered yet, in arrival order.
//!
//! Invariant: answers leave in this order, each only when the log is published up to what it rests on; a request
//! that reads the published view takes its cut only when it has come to the front.

use std::collections::VecDeque;

use semel_broker::{
    NodeReply,
    api::{Head, Reply, ViewCall},
};
use semel_types::{LogSequence, RequestToken};

use crate::net::budget::Share;

/// Requests that may be unanswered on one connection.
pub const UNANSWERED_MAX: usize = 100;
/// Requests that may be undecided on one connection.
pub const UNDECIDED_MAX: usize = 8;

/// How far a request is.
pub enum Stage {
    /// The node has it.
    Undecided,
    /// Answered by the node, maybe not durable yet.
    Decided {
        /// The answer.
        reply: NodeReply,
        /// What it rests on.
        rests_on: LogSequence,
    },
    /// Reads the published view when it comes to the front.
    View(ViewCall),
    /// Answered without the node; it rests on nothing.
    Immediate(Reply),
}

/// One request.
pub struct Slot {
    /// Its name towards the node.
    pub token: RequestToken,
    /// What its answer has to repeat: API, version, correlation id.
    pub head: Head,
    /// How far it is.
    pub stage: Stage,
    /// Its share of the byte budget, held until it is answered.
    pub _share: Share,
}

/// All of them.
#[derive(Default)]
pub struct Slots {
    queue: VecDeque<Slot>,
    undecided: usize,
    next_token: u64,
}

impl Slots {
    /// A name for the next request.
    pub fn next_token(&mut self) -> RequestToken {
        self.next_token += 1;
        RequestToken::new(self.next_token)
    }

    /// Appends a request.
    pub fn push(&mut self, slot: Slot) {
        self.undecided += usize::from(matches!(slot.stage, Stage::Undecided));
        self.queue.push_back(slot);
    }

    /// True if another request may be taken.
    pub fn has_room(&self) -> bool {
        self.queue.len() < UNANSWERED_MAX && self.undecided < UNDECIDED_MAX
    }

    /// True if nothing is unanswered.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The node has answered one. Tokens rise, so the queue is sorted by them.
    pub fn decide(&mut self, token: RequestToken, reply: NodeReply, rests_on: LogSequence) {
        let Ok(index) = self.queue.binary_search_by(|slot| slot.token.cmp(&token)) else { return };
        let slot = &mut self.queue[index];
        if matches!(slot.stage, Stage::Undecided) {
            self.undecided -= 1;
        }
        slot.stage = Stage::Decided { reply, rests_on };
    }

    /// The request whose answer is next.
    pub fn front(&self) -> Option<&Slot> {
        self.queue.front()
    }

    /// Takes the request whose answer is next.
    pub fn pop(&mut self) -> Option<Slot> {
        self.queue.pop_front()
    }

    /// Puts the front back, further along than before.
    pub fn push_front(&mut self, slot: Slot) {
        self.undecided += usize::from(matches!(slot.stage, Stage::Undecided));
        self.queue.push_front(slot);
    }

    /// The sequence that the front waits for, if it is decided and waits for nothing else.
    pub fn awaited(&self) -> Option<LogSequence> {
        match &self.front()?.stage {
            Stage::Decided { rests_on, .. } => Some(*rests_on),
            Stage::Undecided | Stage::View(_) | Stage::Immediate(_) => None,
        }
    }
}
