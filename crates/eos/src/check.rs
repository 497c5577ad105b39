//! Whole-state checks: the invariants of `docs/invariants.md` that can be read off the state.
//!
//! Purpose: a broken rule is found where it breaks, not where it hurts. Tests and the simulator call
//! [`State::check`] after each step; [`State::check_event`] looks only at what one event touched, for debug builds
//! of a server. What it does not do: repair.

use alloc::{format, string::String};
use core::fmt;

use semel_events::{Event, membership_event};
use semel_types::PartitionHandle;

use crate::{PartitionState, State, fence, txn};

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Its number, as in `EOS-10`.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.found)
    }
}

impl core::error::Error for Violation {}

/// The violation of a rule, unless it holds.
pub(crate) fn holds(
    rule: &'static str,
    is_true: bool,
    found: impl FnOnce() -> String,
) -> Result<(), Violation> {
    if is_true { Ok(()) } else { Err(Violation { rule, found: found() }) }
}

impl State {
    /// Checks the whole state: the invariants of `docs/invariants.md`.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        self.producers.check(&self.ids)?;
        self.partitions().try_for_each(|(partition, state)| self.check_partition(partition, state))?;
        self.check_open_transactions()?;
        txn::check(self)
    }

    /// Checks what one event has just touched: bounded work.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check_event(&self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::BatchAppended(event) => self.check_one(event.partition),
            Event::TransactionEnded(event) => {
                event.markers.iter().take(16).try_for_each(|marker| self.check_one(marker.partition))
            }
            Event::RecordsDeleted(event) => {
                event.starts.iter().take(16).try_for_each(|start| self.check_one(start.partition))
            }
            Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TopicCreated(_)
            | Event::TopicDeleted(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionExtended(_)
            | Event::TransactionalIdExpired(_)
            | Event::OffsetsCommitted(_)
            | Event::PendingOffsetsAdded(_)
            | Event::GroupDeleted(_)
            | Event::TopicSettingsChanged(_)
            | Event::PartitionsAdded(_)
            | Event::GroupSettingsChanged(_)
            | Event::OffsetsDeleted(_)
            | membership_event!() => Ok(()),
        }
    }

    fn check_one(&self, partition: PartitionHandle) -> Result<(), Violation> {
        self.partition(partition).map_or(Ok(()), |state| check_positions(partition, state))
    }

    fn check_partition(&self, partition: PartitionHandle, state: &PartitionState) -> Result<(), Violation> {
        check_positions(partition, state)?;
        holds("EOS-11", state.open_index_agrees(), || {
            format!("the two indexes of open transactions on {partition} disagree")
        })?;
        let starts = state.leader_epochs();
        let rising = starts.iter().map(|start| start.epoch).is_sorted_by(|one, next| one < next)
            && starts.iter().map(|start| start.first_offset).is_sorted_by(|one, next| one < next);
        holds("EOS-12", rising, || format!("leader epochs of {partition}: {:?}", state.leader_epochs()))
    }

    /// Slot and coordinator say the same of who owns an id and what is open.
    fn check_open_transactions(&self) -> Result<(), Violation> {
        self.producers.owned_ids().try_for_each(|(id, slot)| {
            let entry = self.transactions.get(&slot.owner).filter(|entry| entry.identity.id == id);
            let agrees = match entry {
                Some(entry) => {
                    let open = entry.open().map(|open| open.number);
                    !slot.closed && fence::is_epoch(entry.identity, slot.epoch) && open == slot.open
                }
                None => slot.closed && slot.open.is_none(),
            };
            holds("EOS-18", agrees, || format!("producer {id}: {slot:?} against {entry:?}"))
        })?;
        self.transactions.iter().try_for_each(|(owner, entry)| {
            let slot = self.producers.owned(entry.identity.id);
            holds("EOS-18", slot.is_some_and(|slot| slot.owner == *owner), || {
                format!("{owner:?} has {}, whose slot is {slot:?}", entry.identity)
            })
        })
    }
}

fn check_positions(partition: PartitionHandle, state: &PartitionState) -> Result<(), Violation> {
    let (start, stable, next) = (state.log_start(), state.last_stable_offset(), state.next_offset());
    holds("EOS-10", start <= stable && stable <= next, || {
        format!("{partition}: log start {start}, last stable {stable}, next {next}")
    })?;
    let last = state.leader_epochs().last();
    holds("EOS-12", last.is_none_or(|last| last.first_offset < next), || {
        format!("{partition}: the last leader epoch starts at or past {next}")
    })
}
