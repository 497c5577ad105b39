//! What an operator may set. Read by `decide` only; whatever matters later stands in the event.

use semel_types::DurationMs;

/// The settings of the core, under Kafka's names, with Kafka's defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `transaction.max.timeout.ms`: the longest transaction timeout a client may ask for.
    pub transaction_max_timeout: DurationMs,
    /// `producer.id.expiration.ms`: an entry idle for as long becomes a stub.
    pub producer_id_expiration: DurationMs,
    /// `transactional.id.expiration.ms`: a transactional id idle for as long is forgotten.
    pub transactional_id_expiration: DurationMs,
    /// `semel.producer.stubs.max`: stubs above this number are dropped, oldest first.
    pub producer_stubs_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transaction_max_timeout: DurationMs::from_ms(900_000),
            producer_id_expiration: DurationMs::from_ms(86_400_000),
            transactional_id_expiration: DurationMs::from_ms(604_800_000),
            producer_stubs_max: 16 << 20,
        }
    }
}
