//! Event 33: the leader of a group gave every member its part (SyncGroup).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

use crate::Blob;

record! {
    /// What one member gets, opaque to the broker.
    GroupAssignment {
        /// The member.
        member: Arc<str>,
        /// Its part.
        assignment: Blob,
    }
}

record! {
    /// The current generation is assigned.
    GroupAssigned {
        /// Which group.
        group: GroupId,
        /// Which generation.
        generation: i32,
        /// By member; one that is not named gets nothing.
        assignments: Vec<GroupAssignment>,
        /// When.
        now: Now,
    }
}
