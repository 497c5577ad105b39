//! What readers may see once an event is durable. `apply` returns these; they ride with the open group and are
//! applied to the published view mechanically, whole groups at a time. They hold no file positions.

use alloc::vec::Vec;

use semel_types::{GroupId, LeaderEpoch, Offset, PartitionHandle, ProducerId, TopicId, TopicName};

use crate::Setting;

record! {
    /// One aborted transaction in one partition, as Fetch reports it (upstream `AbortedTxn`).
    AbortedTransaction {
        /// Who wrote it.
        producer: ProducerId,
        /// Offset of its first record in this partition.
        first_offset: Offset,
        /// Offset of its ABORT marker.
        last_offset: Offset,
        /// Last stable offset of the partition just after the marker.
        last_stable_offset: Offset,
    }
}

/// One change of the published view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Visible {
    /// The end of a partition moved: a batch or a marker was appended, or a transaction ended.
    Positions {
        /// Which partition.
        partition: PartitionHandle,
        /// Offset of the oldest record still there.
        log_start_offset: Offset,
        /// Offset after the newest durable record.
        high_watermark: Offset,
        /// Offset of the first record of the oldest open transaction, else the high watermark.
        last_stable_offset: Offset,
    },
    /// A transaction was aborted in this partition.
    Aborted {
        /// Which partition.
        partition: PartitionHandle,
        /// What was aborted.
        aborted: AbortedTransaction,
    },
    /// The first write of a leader epoch to a partition.
    EpochStarted {
        /// Which partition.
        partition: PartitionHandle,
        /// The epoch.
        epoch: LeaderEpoch,
        /// The first offset written in it.
        first_offset: Offset,
    },
    /// A topic exists from here on.
    TopicCreated {
        /// Its id.
        id: TopicId,
        /// Its name.
        name: TopicName,
        /// Its partitions in order.
        partitions: Vec<PartitionHandle>,
        /// Settings that differ from the defaults.
        settings: Vec<Setting>,
    },
    /// A topic grew, or has other settings from here on.
    TopicChanged {
        /// Its id.
        id: TopicId,
        /// Its partitions in order; those that are new follow the others.
        partitions: Vec<PartitionHandle>,
        /// Settings that differ from the defaults.
        settings: Vec<Setting>,
    },
    /// A group has other settings from here on.
    GroupSettings {
        /// The group.
        group: GroupId,
        /// Settings that differ from the defaults; none forgets it.
        settings: Vec<Setting>,
    },
    /// A topic and all its partitions are gone.
    TopicDeleted {
        /// Its id.
        id: TopicId,
    },
}
