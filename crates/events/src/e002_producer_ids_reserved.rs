//! Event 2: a block of producer ids may be issued from here on (upstream `ProducerIdsRecord`).

use semel_types::ProducerId;

record! {
    /// A block of producer ids may be issued. The rest of an older block is given up at a restart.
    ProducerIdsReserved {
        /// The first id of the block; in a new data directory the random base.
        first: ProducerId,
        /// The id after the block's last.
        end: ProducerId,
    }
}
