//! Event 11: idle producer entries became stubs (`producer.id.expiration.ms`, KIP-854).

use semel_types::{Now, ProducerId};

record! {
    /// In a bounded range of producer ids, each entry without an open transaction whose last batch is older than
    /// `idle_since` became a stub.
    ProducersShrunk {
        /// First id of the range.
        first: ProducerId,
        /// Id after the last of the range.
        end: ProducerId,
        /// Entries last written before this moment are shrunk.
        idle_since: Now,
    }
}
