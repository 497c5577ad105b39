//! What a group has to know of topics: the caller looks it up.

use alloc::{collections::BTreeMap, sync::Arc, vec::Vec};

use semel_types::{PartitionHandle, PartitionIndex, TopicId};

use super::Roster;
use crate::MemberId;

/// A topic that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopicView<'a> {
    /// Its id.
    pub id: TopicId,
    /// Its partitions in order.
    pub partitions: &'a [PartitionHandle],
}

/// The topics as they are at the moment of a decision.
pub trait Topics {
    /// Changes whenever a topic is made, deleted or changed.
    fn version(&self) -> u64;

    /// A topic by name, while it exists.
    fn topic(&self, name: &str) -> Option<TopicView<'_>>;

    /// The name and index of a partition, while it exists.
    fn locate(&self, partition: PartitionHandle) -> Option<(&str, PartitionIndex)>;

    /// Is this a pattern that can be matched (RE2's syntax)?
    fn is_pattern(&self, pattern: &str) -> bool;

    /// Names of the topics that match the pattern as a whole; none for a bad one.
    fn matching(&self, pattern: &str) -> Vec<Arc<str>>;
}

/// A member as an assignor sees it.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The member.
    pub(crate) id: MemberId,
    /// What to order members by: static names stay, ids do not.
    pub(crate) rank: (bool, Arc<str>),
    /// Places in [`Subscribed::topics`] of what it reads, rising.
    pub(crate) topics: Vec<usize>,
}

/// Who reads what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscribed {
    /// Partitions of each topic that anybody reads, by name of the topic.
    pub(crate) topics: Vec<Vec<PartitionHandle>>,
    /// Every member by id.
    pub(crate) readers: Vec<Reader>,
    /// Hash of the topics' ids and counts of partitions.
    pub(crate) hash: u64,
}

impl Subscribed {
    /// What the members of this roster read, of the topics that exist.
    pub(crate) fn of(roster: &Roster, topics: &dyn Topics) -> Self {
        let mut patterns: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        let mut names: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for (_, seat) in roster.seats() {
            let pattern = &*seat.member.pattern;
            if !pattern.is_empty() && !patterns.contains_key(pattern) {
                patterns.insert(pattern, topics.matching(pattern));
            }
            let matched = patterns.get(pattern).into_iter().flatten();
            for name in seat.member.topics.iter().chain(matched) {
                names.insert(Arc::clone(name), 0);
            }
        }
        names.retain(|name, _| topics.topic(name).is_some());
        let mut subscribed = Self { hash: HASH_START, ..Self::default() };
        for (name, place) in &mut names {
            let Some(topic) = topics.topic(name) else { continue };
            *place = subscribed.topics.len();
            subscribed.topics.push(topic.partitions.to_vec());
            topic.id.bytes().into_iter().for_each(|byte| mix(&mut subscribed.hash, byte.into()));
            mix(&mut subscribed.hash, topic.partitions.len() as u64);
        }
        for (id, seat) in roster.seats() {
            let matched = patterns.get(&*seat.member.pattern).into_iter().flatten();
            let read = seat.member.topics.iter().chain(matched);
            let mut read: Vec<usize> = read.filter_map(|name| names.get(name).copied()).collect();
            read.sort_unstable();
            read.dedup();
            let instance = seat.member.instance.as_ref();
            let rank = (instance.is_none(), Arc::clone(instance.unwrap_or(id)));
            subscribed.readers.push(Reader { id: Arc::clone(id), rank, topics: read });
        }
        subscribed
    }
}

/// FNV-1a, over numbers.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: &mut u64, value: u64) {
    *hash = (*hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
}
