//! ListTransactions (key 66): the transactional ids that a broker coordinates (KIP-664).
//!
//! Versions: 0 is flexible. 1 filters by the age of the open transaction (KIP-994), 2 by a pattern of ids (KIP-1152).

use alloc::vec::Vec;

use crate::{RawProducerId, Text, WireCode, message::message};

message! {
    /// Which are wanted; an id must pass every filter, and an empty filter lets all pass.
    pub struct ListTransactionsRequest for ListTransactions {
        /// Names of states.
        [0..] state_filters: Vec<Text>,
        /// Producer ids.
        [0..] producer_id_filters: Vec<RawProducerId>,
        /// Open for longer than this many ms; -1 for all.
        [1..] duration_filter: i64 = -1,
        /// A regular expression (RE2) that the id must match; null or empty for all.
        [2.., null 2..] transactional_id_pattern: Option<Text>,
    }
}

message! {
    /// Those found.
    pub struct ListTransactionsResponse for ListTransactions {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Names of states in the request that do not exist.
        [0..] unknown_state_filters: Vec<Text>,
        /// The ids.
        [0..] transaction_states: Vec<ListedTransaction>,
    }
}

message! {
    /// One of them.
    pub struct ListedTransaction {
        /// The id.
        [0..] transactional_id: Text,
        /// Its producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// The state's name.
        [0..] transaction_state: Text,
    }
}
