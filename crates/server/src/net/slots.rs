//! The requests of one connection that are not answered yet, in arrival order.
//!
//! Invariant: answers leave in this order, each only when the log is published up to what it rests on; a request
//! that reads the published view takes its cut only when it has come to the front.

use std::collections::VecDeque;

use bytes::Bytes;
use semel_broker::{
    StateCall,
    api::{Head, ViewCall},
};
use semel_types::{LogSequence, RequestToken};

use crate::net::budget::Share;

/// Requests that may be unanswered on one connection.
const UNANSWERED_MAX: usize = 100;
/// Requests that may be undecided on one connection.
const UNDECIDED_MAX: usize = 8;
/// Bytes of answers that may wait on one connection before it takes another request.
const HELD_BYTES_MAX: usize = 1 << 20;

/// How far a request is.
pub enum Stage {
    /// The node has it.
    Undecided,
    /// Decided.
    Held {
        /// What will be written.
        answer: Held,
        /// The last sequence that it rests on; zero for nothing.
        rests_on: LogSequence,
    },
    /// Reads the published view when it comes to the front.
    View(ViewCall),
}

/// What a decided request will be answered.
pub enum Held {
    /// These bytes; none for a request that is not answered.
    Bytes(Vec<Bytes>),
    /// What the view says by then.
    View(ViewCall),
    /// What this finds in its copy of the state.
    State(StateCall),
}

impl Stage {
    fn held_bytes(&self) -> usize {
        match self {
            Self::Held { answer: Held::Bytes(chunks), .. } => chunks.iter().map(Bytes::len).sum(),
            Self::Held { answer: Held::View(_) | Held::State(_), .. } | Self::Undecided | Self::View(_) => 0,
        }
    }

    const fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided)
    }
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
    held_bytes: usize,
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
        self.count_in(&slot.stage);
        self.queue.push_back(slot);
    }

    fn count_in(&mut self, stage: &Stage) {
        self.undecided += usize::from(stage.is_undecided());
        self.held_bytes += stage.held_bytes();
    }

    fn count_out(&mut self, stage: &Stage) {
        self.undecided -= usize::from(stage.is_undecided());
        self.held_bytes -= stage.held_bytes();
    }

    /// True if another request may be taken.
    pub fn has_room(&self) -> bool {
        self.queue.len() < UNANSWERED_MAX
            && self.undecided < UNDECIDED_MAX
            && self.held_bytes < HELD_BYTES_MAX
    }

    /// True if another request may be taken as soon as the node decides one.
    pub const fn waits_for_the_node(&self) -> bool {
        self.undecided >= UNDECIDED_MAX
    }

    /// True if nothing is unanswered.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The head of an undecided request. Tokens rise, so the queue is sorted by them.
    pub fn undecided(&self, token: RequestToken) -> Option<Head> {
        let slot = &self.queue[self.place(token)?];
        slot.stage.is_undecided().then_some(slot.head)
    }

    fn place(&self, token: RequestToken) -> Option<usize> {
        if self.queue.front()?.token == token {
            return Some(0);
        }
        self.queue.binary_search_by(|slot| slot.token.cmp(&token)).ok()
    }

    /// The node has answered one.
    pub fn decide(&mut self, token: RequestToken, answer: Held, rests_on: LogSequence) {
        let Some(index) = self.place(token) else { return };
        let stage = Stage::Held { answer, rests_on };
        self.count_in(&stage);
        let before = std::mem::replace(&mut self.queue[index].stage, stage);
        self.count_out(&before);
    }

    /// Nothing more will be decided: forgets the first undecided request and everything behind it.
    pub fn cut_undecided(&mut self) {
        let first = self.queue.iter().position(|slot| slot.stage.is_undecided());
        while first.is_some_and(|first| self.queue.len() > first) {
            if let Some(slot) = self.queue.pop_back() {
                self.count_out(&slot.stage);
            }
        }
    }

    /// The request whose answer is next.
    pub fn front(&self) -> Option<&Slot> {
        self.queue.front()
    }

    /// Takes the request whose answer is next.
    pub fn pop(&mut self) -> Option<Slot> {
        let slot = self.queue.pop_front()?;
        self.count_out(&slot.stage);
        if self.queue.is_empty() && self.queue.capacity() > UNDECIDED_MAX {
            self.queue = VecDeque::new();
        }
        Some(slot)
    }

    /// Puts the front back, further along than before.
    pub fn push_front(&mut self, slot: Slot) {
        self.count_in(&slot.stage);
        self.queue.push_front(slot);
    }

    /// True if the front waits for more to be published than it rests on: a long poll, or one that is about to be
    /// planned.
    pub fn front_is_view(&self) -> bool {
        self.front().is_some_and(|slot| matches!(slot.stage, Stage::View(_)))
    }

    /// The sequence that the front waits for, if it is decided and waits for nothing else.
    pub fn awaited(&self) -> Option<LogSequence> {
        match &self.front()?.stage {
            Stage::Held { rests_on, .. } => Some(*rests_on),
            Stage::Undecided | Stage::View(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::budget::Budget;

    fn slots(stages: impl IntoIterator<Item = Stage>) -> Slots {
        let budget = Budget::new(1 << 20);
        let head = Head { api_key: 0, version: 9, correlation_id: 1 };
        let mut slots = Slots::default();
        for stage in stages {
            let (token, share) = (slots.next_token(), budget.try_take(1).expect("there is plenty"));
            slots.push(Slot { token, head, stage, _share: share });
        }
        slots
    }

    fn held(bytes: usize) -> Held {
        Held::Bytes(vec![Bytes::from(vec![0; bytes])])
    }

    fn stage(bytes: usize) -> Stage {
        Stage::Held { answer: held(bytes), rests_on: LogSequence::default() }
    }

    #[test]
    fn eight_undecided_requests_are_enough_until_the_node_decides_one() {
        let mut slots = slots((0..8).map(|_| Stage::Undecided));
        assert!(!slots.has_room() && slots.waits_for_the_node());
        slots.decide(RequestToken::new(3), held(1), LogSequence::new(5));
        assert!(slots.has_room() && slots.undecided(RequestToken::new(3)).is_none());
        assert!(slots.undecided(RequestToken::new(4)).is_some());
    }

    #[test]
    fn held_answers_of_one_mebibyte_are_enough_until_they_leave() {
        let mut slots = slots([stage(1 << 20), stage(1)]);
        assert!(!slots.has_room());
        slots.pop();
        assert!(slots.has_room());
        slots.pop();
        assert_eq!((slots.held_bytes, slots.undecided), (0, 0));
    }

    #[test]
    fn a_hundred_unanswered_requests_are_enough() {
        assert!(slots((0..99).map(|_| stage(0))).has_room());
        assert!(!slots((0..100).map(|_| stage(0))).has_room());
    }

    #[test]
    fn what_stands_before_the_first_undecided_request_is_still_answered_when_no_more_is_decided() {
        let mut slots = slots([stage(1), stage(2), Stage::Undecided, stage(3), Stage::Undecided]);
        slots.cut_undecided();
        assert_eq!((slots.queue.len(), slots.undecided, slots.held_bytes), (2, 0, 3));
        slots.cut_undecided();
        assert_eq!(slots.queue.len(), 2);
    }
}
