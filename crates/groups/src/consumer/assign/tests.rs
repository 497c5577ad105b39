//! Assignors: everything that is read goes to one reader, shares are even, and what need not move stays.

use alloc::{collections::BTreeSet, format, sync::Arc, vec, vec::Vec};

use proptest::prelude::*;
use semel_types::PartitionHandle;

use super::{Assignor, Targets, assign, by_topic};
use crate::consumer::topics::{Reader, Subscribed};

/// Partition counts by topic, and what each reader reads.
fn subscribed(counts: &[usize], reads: &[Vec<usize>]) -> Subscribed {
    let mut next = 0;
    // A topic without readers is none of the group's.
    let is_read = |topic: usize| reads.iter().any(|read| read.contains(&topic));
    let counts = counts.iter().enumerate().map(|(topic, count)| if is_read(topic) { *count } else { 0 });
    let topics = counts.map(|count| {
        let partitions = (next..next + count).map(|one| PartitionHandle::new(one as u32)).collect();
        next += count;
        partitions
    });
    let topics: Vec<Vec<PartitionHandle>> = topics.collect();
    let readers = reads.iter().enumerate().map(|(at, topics)| Reader {
        id: Arc::from(format!("m{at:03}")),
        rank: (true, Arc::from(format!("m{at:03}"))),
        topics: topics.clone(),
    });
    Subscribed { topics, readers: readers.collect(), hash: 0 }
}

fn run(assignor: Assignor, subscribed: &Subscribed, before: &Targets) -> Targets {
    let before: Vec<_> = before.iter().collect();
    assign(assignor, subscribed, &before)
}

fn nothing(subscribed: &Subscribed) -> Targets {
    vec![BTreeSet::new(); subscribed.readers.len()]
}

/// Every partition that is read has one owner, who reads it.
fn check_whole(subscribed: &Subscribed, targets: &Targets) {
    let readers = by_topic(subscribed);
    let mut owned = BTreeSet::new();
    for (place, target) in targets.iter().enumerate() {
        for partition in target {
            assert!(owned.insert(*partition), "{partition} has two owners");
            let topic =
                subscribed.topics.iter().position(|topic| topic.contains(partition)).expect("a topic");
            assert!(readers[topic].contains(&place), "{partition} goes to one that does not read it");
        }
    }
    let due = subscribed.topics.iter().zip(&readers).filter(|(_, readers)| !readers.is_empty());
    assert_eq!(
        owned.len(),
        due.map(|(topic, _)| topic.len()).sum::<usize>(),
        "all that is read is given out"
    );
}

fn moved(before: &Targets, after: &Targets) -> usize {
    before.iter().zip(after).map(|(before, after)| before.difference(after).count()).sum()
}

/// No partition could go from one of its topic's readers to another with at least two fewer.
fn check_even(subscribed: &Subscribed, targets: &Targets) {
    for (topic, readers) in by_topic(subscribed).iter().enumerate() {
        let loads = readers.iter().map(|place| targets[*place].len());
        let least = loads.min().unwrap_or(0);
        for place in readers {
            let has = targets[*place].iter().any(|partition| subscribed.topics[topic].contains(partition));
            assert!(!has || targets[*place].len() <= least + 1, "reader {place} has too many: {targets:?}");
        }
    }
}

fn groups() -> impl Strategy<Value = (Vec<usize>, Vec<Vec<usize>>)> {
    (1_usize..5).prop_flat_map(|topics| {
        let reads = proptest::collection::btree_set(0..topics, 1..=topics);
        let reads = reads.prop_map(|reads| reads.into_iter().collect::<Vec<_>>());
        (proptest::collection::vec(0_usize..12, topics), proptest::collection::vec(reads, 1..9))
    })
}

proptest! {
    #[test]
    fn all_that_is_read_goes_to_one_reader_evenly((counts, reads) in groups()) {
        let subscribed = subscribed(&counts, &reads);
        let range = run(Assignor::Range, &subscribed, &nothing(&subscribed));
        check_whole(&subscribed, &range);
        let uniform = run(Assignor::Uniform, &subscribed, &nothing(&subscribed));
        check_whole(&subscribed, &uniform);
        check_even(&subscribed, &uniform);
    }

    #[test]
    fn nothing_moves_when_nothing_changed((counts, reads) in groups()) {
        let subscribed = subscribed(&counts, &reads);
        for assignor in [Assignor::Uniform, Assignor::Range] {
            let before = run(assignor, &subscribed, &nothing(&subscribed));
            prop_assert_eq!(&run(assignor, &subscribed, &before), &before);
        }
    }

    #[test]
    fn a_member_that_goes_moves_only_what_it_had(counts in proptest::collection::vec(0_usize..12, 1..4), members in 2_usize..9) {
        let all: Vec<usize> = (0..counts.len()).collect();
        let before = run_all(&counts, members, None);
        let left = subscribed(&counts, &vec![all; members - 1]);
        let kept: Targets = before[..members - 1].to_vec();
        let after = run(Assignor::Uniform, &left, &kept);
        check_whole(&left, &after);
        check_even(&left, &after);
        prop_assert_eq!(moved(&kept, &after), 0);
    }

    #[test]
    fn a_member_that_comes_takes_its_share_and_no_more(counts in proptest::collection::vec(0_usize..12, 1..4), members in 1_usize..9) {
        let before = run_all(&counts, members, None);
        let mut kept = before.clone();
        kept.push(BTreeSet::new());
        let after = run_all(&counts, members + 1, Some(&kept));
        let last = after.last().map_or(0, BTreeSet::len);
        prop_assert_eq!(moved(&kept, &after), last);
        prop_assert!(last <= counts.iter().sum::<usize>().div_ceil(members + 1));
    }
}

/// All members read all topics.
fn run_all(counts: &[usize], members: usize, before: Option<&Targets>) -> Targets {
    let all: Vec<usize> = (0..counts.len()).collect();
    let subscribed = subscribed(counts, &vec![all; members]);
    let nothing = nothing(&subscribed);
    let targets = run(Assignor::Uniform, &subscribed, before.unwrap_or(&nothing));
    check_whole(&subscribed, &targets);
    check_even(&subscribed, &targets);
    targets
}

#[test]
fn range_gives_equal_indexes_of_topics_to_the_same_member() {
    let subscribed = subscribed(&[5, 5], &[vec![0, 1], vec![0, 1]]);
    let targets = run(Assignor::Range, &subscribed, &nothing(&subscribed));
    let numbers = |place: usize| targets[place].iter().map(|one| one.get()).collect::<Vec<_>>();
    assert_eq!(numbers(0), [0, 1, 2, 5, 6, 7]);
    assert_eq!(numbers(1), [3, 4, 8, 9]);
}
