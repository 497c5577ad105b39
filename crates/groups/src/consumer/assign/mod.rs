//! Server-side assignors: who shall get which partitions.
//!
//! Purpose: [`assign`] is a pure function of who reads what and of what everybody was to get before. Invariants: every
//! partition that anybody reads goes to exactly one of its readers, and to nobody else; the result depends on
//! nothing else. What it does not do: care for who has what now (that is reconciliation).

mod range;
mod uniform;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

use semel_types::PartitionHandle;

use super::topics::Subscribed;

/// An assignor (`group.consumer.assignors`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assignor {
    /// Even shares of all partitions, moving as few as it takes.
    Uniform,
    /// Of each topic a run of partitions, so that equal indexes of several topics meet.
    Range,
}

impl Assignor {
    /// Kafka's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// By Kafka's name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Uniform, Self::Range].into_iter().find(|one| one.name() == name)
    }
}

/// What each reader shall get, in the order of the readers.
pub(crate) type Targets = Vec<BTreeSet<PartitionHandle>>;

/// Decides; `before` is what each reader was to get so far, in their order.
pub(crate) fn assign(
    assignor: Assignor,
    subscribed: &Subscribed,
    before: &[&BTreeSet<PartitionHandle>],
) -> Targets {
    match assignor {
        Assignor::Uniform => uniform::assign(subscribed, before),
        Assignor::Range => range::assign(subscribed),
    }
}

/// The readers of each topic, as places in the list of readers.
fn by_topic(subscribed: &Subscribed) -> Vec<Vec<usize>> {
    let mut readers = alloc::vec![Vec::new(); subscribed.topics.len()];
    for (place, reader) in subscribed.readers.iter().enumerate() {
        reader.topics.iter().for_each(|topic| readers[*topic].push(place));
    }
    readers
}

/// The topic of each partition.
fn topic_of(subscribed: &Subscribed) -> BTreeMap<PartitionHandle, usize> {
    let topics = subscribed.topics.iter().enumerate();
    topics.flat_map(|(topic, partitions)| partitions.iter().map(move |one| (*one, topic))).collect()
}

#[cfg(test)]
mod tests;
