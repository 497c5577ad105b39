//! AddOffsetsToTxn (key 25): a group's offsets join a transaction (KIP-98).
//!
//! Versions: 2 may answer 90. 3 is flexible. 4 may answer 120.

use crate::{RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Whose offsets join which transaction.
    pub struct AddOffsetsToTxnRequest for AddOffsetsToTxn {
        /// The transactional id.
        [0..] transactional_id: Text,
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// The group.
        [0..] group_id: Text,
    }
}

message! {
    /// The result.
    pub struct AddOffsetsToTxnResponse for AddOffsetsToTxn {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
