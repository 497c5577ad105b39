//! Event 36: a group without members was deleted (DeleteGroups), its offsets with it.

use semel_types::{GroupId, Now};

record! {
    /// Nothing of the group is left.
    GroupDeleted {
        /// Which group.
        group: GroupId,
        /// When.
        now: Now,
    }
}
