//! Drives any Kafka-protocol broker over TCP with raw requests, and judges what it answers.
//!
//! Purpose: one client for tests, for `semel demo` and for judging brokers: exact frames, no retries, no caching, so
//! that a scenario says precisely what is sent; and the suite of `semel certify`, one promise per [`Scenario`] (how to
//! write one stands in [`scenarios`]). What it does not do: know anything of the broker's inside.

mod actor;
mod answer;
pub mod client;
mod codec;
mod failure;
pub mod host;
mod probe;
pub mod process;
pub mod relay;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod scenarios;
pub mod session;
mod stricter;
mod tables;

pub use actor::{
    Actor, Beaten, Consumer, Ends, Fetched, Filter, GroupOffset, Joined, Listed, Listing, Look, Marker,
    Member, Outcome, Producer,
};
pub use answer::{Answer, Step, Trace};
pub use client::{Client, ClientError};
pub use failure::Failure;
pub use probe::{Offers, Probe};
pub use process::{Server, ServerError};
pub use relay::Relay;
pub use scenario::Scenario;
pub use session::{Identity, Session};
