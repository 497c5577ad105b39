//! InitProducerId (key 22): a producer's identity (KIP-98), bumped on recovery (KIP-360).
//!
//! Versions: 2 is flexible. 3 carries the pair of KIP-360. 4 may answer 90. 6 belongs to two-phase commit (KIP-939): it
//! can be decoded but is not advertised.

use crate::{RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Who asks for an identity.
    pub struct InitProducerIdRequest for InitProducerId {
        /// The transactional id; null for a merely idempotent producer.
        [0.., null 0..] transactional_id: Option<Text> = Some(Text::EMPTY),
        /// How long a transaction may stay open.
        [0..] transaction_timeout_ms: i32,
        /// The producer id that the client holds, or -1.
        [3..] producer_id: RawProducerId,
        /// Its epoch, or -1.
        [3..] producer_epoch: RawProducerEpoch,
        /// Two-phase commit?
        [6..] enable_two_phase_commit: bool,
        /// Keep a prepared transaction?
        [6..] keep_prepared_transaction: bool,
    }
}

message! {
    /// The identity.
    pub struct InitProducerIdResponse for InitProducerId {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The producer id; -1 after an error.
        [0..] producer_id: RawProducerId,
        /// Its epoch; -1 after an error.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// Producer id of the prepared transaction that was kept, or -1.
        [6..] ongoing_transaction_producer_id: RawProducerId,
        /// Its epoch, or -1.
        [6..] ongoing_transaction_producer_epoch: RawProducerEpoch,
    }
}
