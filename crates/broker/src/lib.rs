//! The node: a Kafka broker as a step function, without sockets, files, clocks or threads.
//!
//! Purpose: [`api::dispatch`] reads a request, [`Node::step`] decides it, [`api::Reply`] writes the answer. Invariants:
//! every event is applied through one [`State::apply`], live and on replay; every answer rests on what was proposed
//! before it, refusals and duplicates included; no rule of exactly-once stands here (they are in `semel-eos`).
//! What it does not do: wait, order answers, know when something became durable (that is the server and the log).
//!
//! | module | what it is |
//! |---|---|
//! | [`api`] | one file for each Kafka API; `answer.rs` turns refusals into codes |
//! | [`node`] | the step function |
//! | [`state`] | everything the log holds |
//! | [`catalog`] | topics |
//! | [`group_settings`] | settings of groups |
//! | [`settings`] | every setting, once |
#![forbid(unsafe_code)]

mod alter;
pub mod api;
mod call;
pub mod catalog;
mod common;
mod facts;
pub mod group_settings;
mod groups;
mod inquiry;
pub mod node;
mod offsets;
mod offsets_topic;
mod pattern;
pub mod room;
pub mod settings;
pub mod state;
mod streams;
pub mod topic_name;
mod topics_now;

pub use call::{Answer, Asked, Call, ClientInfo, Input, Inspection, NodeReply, NodeRequest, Outputs};
pub use facts::{Endpoint, Facts};
pub use inquiry::{Inquiry, StateCall};
pub use node::Node;
pub use room::{RoomKeeper, Unlimited};
pub use settings::Settings;
pub use state::State;
