//! Producer ids that were never issued here: of a data directory that was wiped, or made up.
//!
//! Purpose: such producers are deduplicated as well, without giving anybody a way to fill the memory. Invariants:
//! EOS-14 (at most 65,536 entries; the one not written for longest goes first). What it does not do: shrink with
//! time; owners, for only issued ids can have one.

use alloc::vec::Vec;

use rpds::RedBlackTreeMapSync;
use semel_events::{Decode, DecodeError, Encode, Reader, codec::put_unsigned};
use semel_types::{LogSequence, PartitionHandle, ProducerId};

use super::{Entry, entry::AcceptedBatch, slot::Known};

/// Entries at most.
pub(super) const MAX: usize = 65_536;

type Key = (ProducerId, PartitionHandle);

/// Entries of never-issued ids, and the order in which they were last written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Foreign {
    entries: RedBlackTreeMapSync<Key, Written>,
    order: RedBlackTreeMapSync<LogSequence, Key>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Written {
    at: LogSequence,
    entry: Entry,
}

impl Foreign {
    pub(super) fn find(&self, id: ProducerId, partition: PartitionHandle) -> Known<'_> {
        match self.entries.get(&(id, partition)) {
            Some(written) => Known::Entry(&written.entry),
            None => Known::Nothing,
        }
    }

    pub(super) fn append(&mut self, id: ProducerId, batch: &AcceptedBatch, at: LogSequence) {
        let key = (id, batch.partition);
        let entry = match self.entries.get(&key).copied() {
            Some(mut written) => {
                self.order.remove_mut(&written.at);
                written.entry.append(batch);
                written.entry
            }
            None => Entry::new(batch),
        };
        self.put(key, Written { at, entry });
        if self.entries.size() > MAX {
            self.drop_oldest();
        }
    }

    fn put(&mut self, key: Key, written: Written) {
        self.order.insert_mut(written.at, key);
        self.entries.insert_mut(key, written);
    }

    fn drop_oldest(&mut self) {
        if let Some((at, key)) = self.order.first().map(|(at, key)| (*at, *key)) {
            self.order.remove_mut(&at);
            self.entries.remove_mut(&key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.size()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (ProducerId, &Entry)> {
        self.entries.iter().map(|((id, _), written)| (*id, &written.entry))
    }

    /// What EOS-14 asks.
    pub(super) fn is_sound(&self) -> bool {
        let mut indexed = self.entries.iter().map(|(key, written)| self.order.get(&written.at) == Some(key));
        self.len() <= MAX && self.order.size() == self.len() && indexed.all(|agrees| agrees)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_unsigned(self.len() as u64, out);
        for ((id, _), written) in self.entries.iter() {
            id.encode(out);
            written.at.encode(out);
            written.entry.encode(out);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut foreign = Self::default();
        for _ in 0..reader.length()? {
            let (id, at) = (Decode::decode(reader)?, Decode::decode(reader)?);
            let entry = Entry::decode(reader)?;
            foreign.put((id, entry.partition()), Written { at, entry });
        }
        Ok(foreign)
    }
}
