//! The uniform assignor: even shares of all partitions, moving as few as it takes (upstream `UniformAssignor`).
//!
//! Where all members read the same topics each gets an equal share, the remainder going to those that hold most already;
//! what a member holds within its share stays. Where they read different ones, partitions without a reader go to
//! the least loaded of their topic's readers, and then move as long as that makes two loads more even.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};

use semel_types::PartitionHandle;

use super::{Targets, by_topic, topic_of};
use crate::consumer::topics::Subscribed;

pub(super) fn assign(subscribed: &Subscribed, before: &[&BTreeSet<PartitionHandle>]) -> Targets {
    let topics = topic_of(subscribed);
    let mut targets = kept(subscribed, &topics, before);
    let held: BTreeSet<_> = targets.iter().flatten().copied().collect();
    let loose: Vec<_> = topics.keys().filter(|partition| !held.contains(partition)).copied().collect();
    let same = subscribed.readers.windows(2).all(|pair| pair[0].topics == pair[1].topics);
    if subscribed.readers.is_empty() {
        return targets;
    }
    if same {
        share_evenly(&mut targets, loose, topics.len());
    } else {
        let readers = by_topic(subscribed);
        place(&mut targets, &loose, &topics, &readers);
        balance(&mut targets, &topics, &readers);
    }
    targets
}

/// What members were to get and still may; of two that claim a partition the first keeps it.
fn kept(
    subscribed: &Subscribed,
    topics: &BTreeMap<PartitionHandle, usize>,
    before: &[&BTreeSet<PartitionHandle>],
) -> Targets {
    let mut taken = BTreeSet::new();
    let readers = subscribed.readers.iter().zip(before);
    let kept = readers.map(|(reader, before)| {
        let reads = |partition: &PartitionHandle| {
            topics.get(partition).is_some_and(|topic| reader.topics.binary_search(topic).is_ok())
        };
        before.iter().filter(|partition| reads(partition) && taken.insert(**partition)).copied().collect()
    });
    kept.collect()
}

/// All read the same: everybody gets the least share, and those that hold most one more while some are left over.
fn share_evenly(targets: &mut Targets, mut loose: Vec<PartitionHandle>, count: usize) {
    let (least, extra) = (count / targets.len(), count % targets.len());
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_by_key(|place| usize::MAX - targets[*place].len());
    let quota = |rank: usize| least + usize::from(rank < extra);
    for (rank, place) in order.iter().enumerate() {
        while targets[*place].len() > quota(rank) {
            loose.extend(targets[*place].pop_last());
        }
    }
    loose.sort_unstable();
    let mut loose = loose.into_iter();
    for (rank, place) in order.iter().enumerate() {
        let missing = quota(rank) - targets[*place].len();
        targets[*place].extend(loose.by_ref().take(missing));
    }
}

/// Each partition goes to the least loaded reader of its topic; topics with the fewest readers come first.
fn place(
    targets: &mut Targets,
    loose: &[PartitionHandle],
    topics: &BTreeMap<PartitionHandle, usize>,
    readers: &[Vec<usize>],
) {
    let mut order: Vec<_> =
        loose.iter().map(|partition| (readers[topics[partition]].len(), *partition)).collect();
    order.sort_unstable();
    for (_, partition) in order {
        let topic = topics[&partition];
        if let Some(least) = readers[topic].iter().min_by_key(|place| targets[**place].len()) {
            targets[*least].insert(partition);
        }
    }
}

/// Moves partitions from a reader to one with at least two fewer, as long as there are such two. It ends: the sum of
/// the squares of all loads falls with each move.
fn balance(targets: &mut Targets, topics: &BTreeMap<PartitionHandle, usize>, readers: &[Vec<usize>]) {
    let mut held: Vec<Vec<BTreeSet<PartitionHandle>>> =
        vec![vec![BTreeSet::new(); readers.len()]; targets.len()];
    for (place, target) in targets.iter().enumerate() {
        target.iter().for_each(|partition| {
            held[place][topics[partition]].insert(*partition);
        });
    }
    let mut moved = true;
    while moved {
        moved = false;
        for (topic, readers) in readers.iter().enumerate() {
            while let Some((from, to)) = uneven(targets, readers, |place| !held[place][topic].is_empty()) {
                let Some(partition) = held[from][topic].pop_last() else { break };
                held[to][topic].insert(partition);
                targets[from].remove(&partition);
                targets[to].insert(partition);
                moved = true;
            }
        }
    }
}

/// Of a topic's readers the most loaded one that has a partition of it, and the least loaded, if moving one helps.
fn uneven(targets: &Targets, readers: &[usize], has: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let load = |place: &&usize| targets[**place].len();
    let most = readers.iter().filter(|place| has(**place)).max_by_key(load)?;
    let least = readers.iter().min_by_key(load)?;
    (targets[*most].len() >= targets[*least].len() + 2).then_some((*most, *least))
}
