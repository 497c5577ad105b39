//! The whole-table checks of [`crate::State::check`].

use alloc::{collections::BTreeSet, format, vec::Vec};

use semel_types::ProducerId;

use super::{
    Entry, Stub, Table,
    page::{Hints, PER_PAGE, Page},
    slot::Held,
    table::first_of,
};
use crate::{
    check::{Violation, holds},
    ids::ProducerIds,
};

impl Table {
    pub(crate) fn check(&self, ids: &ProducerIds) -> Result<(), Violation> {
        let mut counted = (0_u64, 0_u64);
        for (number, page) in self.pages.iter() {
            check_page(number, page)?;
            for (id, at) in (first_of(number).get()..).zip(0..PER_PAGE) {
                let (entries, stubs) = page.held(at);
                check_slot(ProducerId::new(id), &entries, &stubs)?;
                counted = (counted.0 + entries.len() as u64, counted.1 + stubs.len() as u64);
            }
        }
        holds("EOS-13", counted == (self.entries, self.stubs), || {
            format!("counted {counted:?}, noted {} entries and {} stubs", self.entries, self.stubs)
        })?;
        holds("EOS-14", self.foreign.is_sound(), || {
            format!("{} entries of ids not issued", self.foreign.len())
        })?;
        self.check_hints()?;
        self.owned_ids().try_for_each(|(id, slot)| {
            holds("EOS-20", ids.is_issued(id), || {
                format!("{:?} owns {id}, which was never issued", slot.owner)
            })
        })
    }

    /// Summaries are the earliest of what they stand for.
    fn check_hints(&self) -> Result<(), Violation> {
        let mut all = Hints::NONE;
        for (first, directory) in self.pages.directories() {
            let hints = directory.pages().map(|(_, page)| page.hints).fold(Hints::NONE, Hints::earlier);
            holds("EOS-09", hints == directory.summary, || {
                format!("directory of page {first}: {:?}, its pages {hints:?}", directory.summary)
            })?;
            all = all.earlier(hints);
        }
        holds("EOS-09", all == self.hints, || format!("table: {:?}, its pages {all:?}", self.hints))
    }
}

fn check_page(number: u64, page: &Page) -> Result<(), Violation> {
    let places: BTreeSet<u8> = page
        .slots
        .iter()
        .filter_map(|slot| match slot.held {
            Held::One(place) => Some(place),
            Held::Nothing | Held::Stub(_) | Held::Many(_) => None,
        })
        .collect();
    let used = page.slots.iter().filter(|slot| matches!(slot.held, Held::One(_))).count();
    holds("EOS-08", places.len() == used && used == page.singles.len(), || {
        format!("page {number}: {used} slots with one entry, {} entries", page.singles.len())
    })?;
    let without_owner = (0..PER_PAGE).filter(|at| page.slots[*at].owned.is_none());
    let seen = without_owner.map(|at| page.slot_hints(at, page.hints.idle)).fold(Hints::NONE, Hints::earlier);
    holds("EOS-09", page.hints == page.hints.earlier(seen), || {
        format!("page {number}: {:?} is later than {seen:?}", page.hints)
    })
}

fn check_slot(id: ProducerId, entries: &[Entry], stubs: &[Stub]) -> Result<(), Violation> {
    for entry in entries {
        holds("EOS-06", entry.is_sound(), || format!("producer {id}: {entry:?}"))?;
    }
    let mut partitions: Vec<_> = entries.iter().map(Entry::partition).collect();
    partitions.extend(stubs.iter().map(Stub::partition));
    let sorted = entries.windows(2).all(|pair| pair[0].partition() < pair[1].partition());
    let held = partitions.len();
    partitions.sort_unstable();
    partitions.dedup();
    holds("EOS-08", sorted && partitions.len() == held, || format!("producer {id}: a partition stands twice"))
}
