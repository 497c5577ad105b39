//! Where Apache Kafka 4.4 breaks its own promise and Semel keeps it: each head has Kafka's answer beside ours.
//!
//! Invariant: every one of these fails on Apache Kafka 4.4; one that does not is no longer stricter and is a `kafka`
//! promise.

mod restarts;
mod writes;

use crate::Scenario;

/// All of them, by file.
pub(crate) const ALL: [&[&Scenario]; 2] = [writes::ALL, restarts::ALL];
