//! Event 12: the oldest stubs were dropped (`semel.producer.stubs.max`).

use alloc::vec::Vec;

use semel_types::{PartitionHandle, ProducerId};

record! {
    /// In a bounded list of producers, all stubs were dropped; the partitions they stood in may have forgotten
    /// every id up to the highest of them.
    StubsDropped {
        /// Whose stubs.
        producers: Vec<ProducerId>,
        /// Partitions whose `may_have_forgotten` rises past the highest id named.
        partitions: Vec<PartitionHandle>,
    }
}
