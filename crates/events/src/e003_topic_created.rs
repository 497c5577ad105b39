//! Event 3: a topic was created.

use alloc::{string::String, vec::Vec};

use semel_types::{Now, PartitionHandle, ProducerId, TopicId, TopicName};

record! {
    /// One setting of a topic, by Kafka's name.
    Setting {
        /// The setting's name.
        name: String,
        /// Its value, as given.
        value: String,
    }
}

record! {
    /// A topic was created, by CreateTopics or by first use.
    TopicCreated {
        /// Its id, random.
        id: TopicId,
        /// Its name.
        name: TopicName,
        /// Handles of its partitions in order: dense, never used before.
        partitions: Vec<PartitionHandle>,
        /// Settings that were given.
        settings: Vec<Setting>,
        /// Producer ids below this one may have written to an earlier topic of the name (design section 3,
        /// `may_have_forgotten`).
        may_have_forgotten: ProducerId,
        /// When.
        now: Now,
    }
}
