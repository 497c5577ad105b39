//! EndTxn (key 26): commit or abort (KIP-98).
//!
//! Versions: 2 may answer 90. 3 is flexible. 4 may answer 120. 5 belongs to `transaction.version` 2: the epoch is bumped
//! at the end of each transaction, and the answer carries the new identity (KIP-890).

use crate::{RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// How a transaction ends.
    pub struct EndTxnRequest for EndTxn {
        /// The transactional id.
        [0..] transactional_id: Text,
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// True commits, false aborts.
        [0..] committed: bool,
    }
}

message! {
    /// The result.
    pub struct EndTxnResponse for EndTxn {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The producer id to go on with; -1 after an error.
        [5..] producer_id: RawProducerId,
        /// The epoch to go on with; -1 after an error.
        [5..] producer_epoch: RawProducerEpoch,
    }
}
