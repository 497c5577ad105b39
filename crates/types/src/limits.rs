//! Every bound of the core in one place.

/// Batches remembered per producer and partition; mirrors the clients' limit of five requests in flight
/// (KIP-98, upstream `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
pub const REMEMBERED_BATCHES: usize = 5;

/// Highest epoch a producer may ever use; the bump that would pass it takes a new producer id instead, so that
/// 32767 is never stored for an owned id (design section 4).
pub const MAX_USABLE_EPOCH: i16 = 32766;

/// Partitions one transaction may hold; one more is refused when it is added, never at the commit.
pub const MAX_PARTITIONS_PER_TRANSACTION: usize = 10_000;

/// Producer ids reserved by one event (Kafka's `ProducerIdsBlock` size).
pub const PRODUCER_ID_BLOCK: i64 = 1000;

/// A data directory's first producer id is a random multiple of this ...
pub const PRODUCER_ID_BASE_STEP: i64 = 1 << 20;

/// ... below this, so that an old client never meets its id in other hands.
pub const PRODUCER_ID_BASE_LIMIT: i64 = 1 << 39;

/// Longest metadata string of a committed offset, in bytes (`offset.metadata.max.bytes`).
pub const AUTOMATIC_METADATA_LIMIT_BYTES: usize = 4096;
