//! Event 37: committed offsets of a group were deleted (OffsetDelete).

use alloc::vec::Vec;

use semel_types::{GroupId, Now, PartitionHandle};

record! {
    /// The group has no committed offset of these partitions any more.
    OffsetsDeleted {
        /// Which group.
        group: GroupId,
        /// Which partitions.
        partitions: Vec<PartitionHandle>,
        /// When.
        now: Now,
    }
}
