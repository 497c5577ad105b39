//! Event 6: a topic has other settings.

use alloc::vec::Vec;

use semel_types::{Now, TopicId};

use crate::Setting;

record! {
    /// A topic has other settings from here on, by AlterConfigs or IncrementalAlterConfigs.
    TopicSettingsChanged {
        /// The topic's id.
        id: TopicId,
        /// All settings that it has of its own now.
        settings: Vec<Setting>,
        /// When.
        now: Now,
    }
}
