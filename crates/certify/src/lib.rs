//! Drives any Kafka-protocol broker over TCP with raw requests, and judges what it answers.
//!
//! Purpose: one client for tests, for `semel demo` and for judging brokers: exact frames, no retries, no caching, so
//! that a scenario says precisely what is sent. What it does not do: know anything of the broker's inside.

pub mod client;
pub mod process;
pub mod relay;
pub mod session;

pub use client::{Client, ClientError};
pub use process::{Server, ServerError};
pub use relay::Relay;
pub use session::{Identity, Session};
