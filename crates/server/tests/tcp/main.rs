//! The server over real connections: what goes in, what comes out, in which order, and what it costs.

mod bad_input;
mod churn;
mod config;
mod connection_rule;
mod demo;
mod fights;
mod kills;
mod long_poll;
mod pipelining;
mod pressure;
mod rig;
mod salvage;
mod start;
mod stop;
mod time;

#[path = "../support/mod.rs"]
mod support;
