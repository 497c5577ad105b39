//! Event 44: the first member of a streams group said what the application looks like (KIP-1071).

use alloc::{sync::Arc, vec::Vec};

use semel_types::{GroupId, Now};

record! {
    /// A name and a value: of a topic's setting, of a client's tag.
    StreamsPair {
        /// The name.
        key: Arc<str>,
        /// The value.
        value: Arc<str>,
    }
}

record! {
    /// A topic that the application keeps for itself.
    StreamsInternalTopic {
        /// Its name.
        name: Arc<str>,
        /// Its partitions; 0 to have them decided.
        partitions: i32,
        /// Its copies; 0 for the default.
        copies: i16,
        /// Its settings.
        settings: Vec<StreamsPair>,
    }
}

record! {
    /// Sources that need the same number of partitions, as indices of the subtopology's lists.
    StreamsCopartition {
        /// Of its sources.
        sources: Vec<i16>,
        /// Of its repartition sources.
        repartition_sources: Vec<i16>,
    }
}

record! {
    /// A part of a topology; it has one task per partition of its sources.
    StreamsSubtopology {
        /// Its name.
        id: Arc<str>,
        /// Topics that it reads.
        sources: Vec<Arc<str>>,
        /// Repartition topics that it reads.
        repartition_sources: Vec<StreamsInternalTopic>,
        /// Repartition topics that it writes.
        repartition_sinks: Vec<Arc<str>>,
        /// Changelogs of its stores.
        changelogs: Vec<StreamsInternalTopic>,
        /// Sources that need the same number of partitions.
        copartitions: Vec<StreamsCopartition>,
    }
}

record! {
    /// What an application looks like.
    StreamsTopology {
        /// Which one, in the application's own count; never negative.
        epoch: i32,
        /// Its parts, sorted by name.
        subtopologies: Vec<StreamsSubtopology>,
    }
}

record! {
    /// The group has this topology from here on.
    StreamsTopologySet {
        /// Which group.
        group: GroupId,
        /// The topology.
        topology: StreamsTopology,
        /// When.
        now: Now,
    }
}
