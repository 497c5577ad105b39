//! Golden tests of the node: requests as bytes through dispatch and step, answers as bytes back, a clock moved by hand.
//!
//! A test named `b01_...` is that scenario of the bug log, `s1_...` that line of the stricter expectations;
//! `docs/scenarios.md` lists them all. Nothing sleeps, nothing waits: each request is answered when `ask` returns.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod alter;
mod bad_input;
mod consumer_churn;
mod consumer_groups;
mod consumer_migration;
mod coordinator;
mod damage;
mod dedup;
mod delete_records;
mod describe;
mod fencing;
mod group_histories;
mod groups;
mod histories;
mod hostile;
mod init_producer_id;
mod markers;
mod offsets;
mod read_committed;
mod recovery;
mod retention;
mod scenarios;
mod streams_groups;
mod stricter;
mod support;
mod topics;
mod transaction_codes;
