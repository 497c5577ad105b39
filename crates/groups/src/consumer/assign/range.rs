//! The range assignor: of each topic every reader gets a run of partitions (upstream `RangeAssignor`).
//!
//! Readers stand in the order of their static names, then of their ids; the first ones get the longer runs. Topics with
//! the same readers and as many partitions are cut alike, so that equal indexes meet at one member.

use alloc::{collections::BTreeSet, vec, vec::Vec};

use super::{Targets, by_topic};
use crate::consumer::topics::Subscribed;

pub(super) fn assign(subscribed: &Subscribed) -> Targets {
    let mut targets: Targets = vec![BTreeSet::new(); subscribed.readers.len()];
    for (topic, mut readers) in by_topic(subscribed).into_iter().enumerate() {
        readers.sort_by(|one, other| subscribed.readers[*one].rank.cmp(&subscribed.readers[*other].rank));
        let partitions = &subscribed.topics[topic];
        let mut rest = partitions.as_slice();
        for (at, length) in runs(partitions.len(), readers.len()).into_iter().enumerate() {
            let (run, behind) = rest.split_at(length);
            targets[readers[at]].extend(run);
            rest = behind;
        }
    }
    targets
}

/// Lengths of the runs: even, the longer ones first.
fn runs(partitions: usize, readers: usize) -> Vec<usize> {
    (0..readers).map(|at| partitions / readers + usize::from(at < partitions % readers)).collect()
}
