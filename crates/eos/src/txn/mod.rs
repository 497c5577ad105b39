//! The transaction coordinator.

use alloc::vec::Vec;

use semel_events::{DecodeError, Event, Reader};
use semel_types::{Now, PartitionHandle};

use crate::{
    State,
    producer::{Admission, BatchStamp, ProduceScope, Table},
    refusal::Refusal,
};

/// State of every transactional id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coordinator {}

impl Coordinator {
    /// Applies what concerns transactions: events 4, 20 to 23, 31. Slots of the producer table change through its
    /// methods.
    pub(crate) fn apply(&mut self, event: &Event, producers: &mut Table) {
        let _ = (event, producers);
    }

    /// Appends the snapshot form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Reads the snapshot form.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let _ = reader;
        Ok(Self {})
    }
}

/// Membership of a transactional batch that would be accepted: is its partition in the open transaction, or does
/// version 2 add it?
pub(crate) fn admit(
    state: &State,
    scope: &ProduceScope<'_>,
    partition: PartitionHandle,
    stamp: &BatchStamp,
    now: Now,
) -> Result<Admission, Refusal> {
    let _ = (state, scope, partition, stamp, now);
    Ok(Admission { extension: None, transaction: None })
}
