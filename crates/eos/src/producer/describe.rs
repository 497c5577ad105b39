//! Who writes to a partition, as DescribeProducers tells it.
//!
//! Purpose: one pass over the table for any number of partitions, off the node's thread. Invariant: an owned id is
//! told with the epoch that its writes are held against, which may be newer than its last batch's. What it does not do:
//! list stubs: after long silence a producer is not an active one, as in Kafka.

use semel_types::{Now, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp, Sequence};

use super::{Entry, OwnedSlot, Table, page::PER_PAGE, table::first_of};
use crate::fence::{self, EpochStanding};

/// One producer on one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// Which partition.
    pub partition: PartitionHandle,
    /// Producer id and the epoch that may write.
    pub stamp: ProducerStamp,
    /// The sequence of its last record in that epoch.
    pub last: Option<Sequence>,
    /// When the broker took its last batch.
    pub written: Now,
    /// It belongs to a transactional id.
    pub owned: bool,
}

impl Table {
    /// Everybody with an entry on a partition that `is_wanted`, by producer id; walks the whole table.
    pub fn writers(&self, is_wanted: impl Fn(PartitionHandle) -> bool) -> impl Iterator<Item = Writer> {
        let issued = self.pages.iter().flat_map(|(number, page)| {
            let ids = (first_of(number).get()..).zip(0..PER_PAGE);
            ids.flat_map(|(id, at)| {
                let owner = page.slots[at].owned.as_deref();
                page.entries(at).map(move |entry| Writer::new(ProducerId::new(id), owner, entry))
            })
        });
        let foreign = self.foreign.entries().map(|(id, entry)| Writer::new(id, None, entry));
        issued.chain(foreign).filter(move |writer| is_wanted(writer.partition))
    }
}

impl Writer {
    fn new(id: ProducerId, owner: Option<&OwnedSlot>, entry: &Entry) -> Self {
        let epoch = epoch_that_writes(owner, entry);
        let same = fence::standing(entry.epoch(), epoch) == EpochStanding::Current;
        Self {
            partition: entry.partition(),
            stamp: ProducerStamp { id, epoch },
            last: same.then(|| entry.last()),
            written: entry.appended_at(),
            owned: owner.is_some(),
        }
    }
}

/// A closed id has no epoch that may write: what it wrote last is told.
fn epoch_that_writes(owner: Option<&OwnedSlot>, entry: &Entry) -> ProducerEpoch {
    owner.filter(|owner| !owner.closed).map_or(entry.epoch(), |owner| owner.epoch)
}
