//! Event 50: a group has other settings.

use alloc::vec::Vec;

use semel_types::{GroupId, Now};

use crate::Setting;

record! {
    /// A group has other settings from here on (KIP-848, KIP-1071), whether it exists or not.
    GroupSettingsChanged {
        /// The group.
        group: GroupId,
        /// All settings that it has of its own now; none forgets it.
        settings: Vec<Setting>,
        /// When.
        now: Now,
    }
}
