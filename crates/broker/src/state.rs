//! The node's whole state: catalogue, exactly-once core, groups.
//!
//! Purpose: what the log holds, behind one `apply` that runs the same live and on replay. Invariant: a clone shares
//! everything, so that a snapshot is written off the node's thread. What it does not do: decide.

use std::fmt;

use semel_events::{DecodeError, Event, Reader, TransactionExtended, Visible};
use semel_log::{SnapshotSource, StateMachine};
use semel_types::LogSequence;

use crate::{catalog::Catalog, group_settings::GroupSettings};

/// Version of the written form.
const VERSION: u8 = 2;

/// Everything that the log holds.
#[derive(Clone, Default)]
pub struct State {
    /// Which topics exist.
    pub catalog: Catalog,
    /// Producers, transactions, the partitions' numbers.
    pub eos: semel_eos::State,
    /// Committed and pending offsets.
    pub groups: semel_groups::State,
    /// Settings that groups were given.
    pub group_settings: GroupSettings,
}

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl State {
    /// A shard that nothing was written to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The only writer. A topic is in the catalogue before its partitions are told to readers by the core.
    pub fn apply(&mut self, sequence: LogSequence, event: &Event, visible: &mut Vec<Visible>) {
        self.catalog.apply(event, visible);
        self.eos.apply(sequence, event, visible);
        self.groups.apply(sequence, event);
        self.group_settings.apply(event, visible);
    }

    /// Checks the whole state.
    ///
    /// # Errors
    /// The first [`Violation`] found.
    pub fn check(&self, last: LogSequence) -> Result<(), Violation> {
        self.eos.check().map_err(|violation| Violation(violation.to_string()))?;
        self.groups.check(last).map_err(|violation| Violation(violation.0))?;
        for topic in self.catalog.topics() {
            let known = |handle: &&_| self.eos.partition(**handle).is_none();
            if let Some(handle) = topic.partitions().iter().find(known) {
                return Err(Violation(format!(
                    "topic {} names partition {handle}, which is unknown",
                    topic.name()
                )));
            }
        }
        Ok(())
    }

    /// Would this event start a transaction, and not only add to an open one?
    pub(crate) fn starts_transaction(&self, event: &TransactionExtended) -> bool {
        self.eos.transactions().open(&event.id).is_none_or(|open| open.number != event.number)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = reader.byte()?;
        if !(1..=VERSION).contains(&version) {
            return Err(DecodeError::NewerEvent { event: "state in a snapshot", version });
        }
        Ok(Self {
            catalog: Catalog::decode(reader)?,
            eos: semel_eos::State::decode(reader)?,
            groups: semel_groups::State::decode(reader)?,
            // The first version had no settings of groups.
            group_settings: if version >= 2 { GroupSettings::decode(reader)? } else { Default::default() },
        })
    }
}

impl StateMachine for State {
    fn restore(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = Self::decode(reader)?;
        Ok(())
    }

    fn apply(&mut self, sequence: LogSequence, event: &Event, visible: &mut Vec<Visible>) {
        Self::apply(self, sequence, event, visible);
    }

    fn visible(&self, out: &mut Vec<Visible>) {
        self.catalog.visible(out);
        self.eos.visible(out);
        self.group_settings.visible(out);
    }
}

impl SnapshotSource for State {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        self.catalog.encode(out);
        self.eos.encode(out);
        self.groups.encode(out);
        self.group_settings.encode(out);
    }
}
