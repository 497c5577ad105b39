//! Produce's own path, held against the founding text, the decision table, a plain model and Kafka's own cases.

mod expiry;
mod founding;
mod kafka;
mod model;
mod random;
mod shard;
mod snapshot;
mod stricter;
mod verdict_table;
mod volatile;
