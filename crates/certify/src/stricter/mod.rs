//! Where Apache Kafka 4.4 breaks its own promise and Semel keeps it: each head has Kafka's answer beside ours.
//!
//! Invariant: every one of these fails on Apache Kafka 4.4, in every run or, where the head says so, in some; one that
//! does not is no longer stricter and is a `kafka` promise.

mod late;
mod restarts;
mod transactions;
mod writes;

pub(crate) use writes::SHORT_EXPIRY;

use crate::Scenario;

/// All of them, by file.
pub(crate) const ALL: [&[&Scenario]; 4] = [writes::ALL, transactions::ALL, late::ALL, restarts::ALL];
