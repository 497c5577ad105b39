//! Event 4: a topic was deleted.

use alloc::vec::Vec;

use semel_types::{Now, PartitionHandle, ProducerId, TopicId};

record! {
    /// A topic was deleted: its partitions, their producer entries and stubs go with it.
    TopicDeleted {
        /// Its id.
        id: TopicId,
        /// Its partitions, whose handles are never used again.
        partitions: Vec<PartitionHandle>,
        /// The next producer id not issued at this moment: a topic made anew under the name may have forgotten all
        /// ids below it.
        next_unissued: ProducerId,
        /// When.
        now: Now,
    }
}
