//! Event 5: the start of partitions moved.

use alloc::vec::Vec;

use semel_types::{Now, Offset, PartitionHandle};

record! {
    /// Where one partition starts from here on.
    LogStart {
        /// Which partition.
        partition: PartitionHandle,
        /// The oldest offset that is kept; above the start before, at most the next offset.
        offset: Offset,
    }
}

record! {
    /// The start of partitions moved, by DeleteRecords: what lies below is gone for readers. What is known of producers
    /// and of open transactions stays.
    RecordsDeleted {
        /// The partitions, each once.
        starts: Vec<LogStart>,
        /// When.
        now: Now,
    }
}
