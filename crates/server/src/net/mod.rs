//! The network: listeners, connections, held answers.
//!
//! Invariants: requests of a connection are executed in arrival order and answered in that order; an answer leaves
//! only when everything it rests on is published; memory of a connection is bounded (requests, bytes, one response
//! in writing). What it does not do: decide anything.

pub mod budget;
pub mod connection;
pub mod endpoint;
pub mod inbound;
pub mod listener;
pub mod mailbox;
pub mod outbound;
pub mod pace;
pub mod slots;
pub mod state_call;
pub mod view_call;
