//! Questions about the whole state, answered from a copy of it.
//!
//! Invariant: no answer, however long, is built on a thread of the network; the number built at a time is bounded, so
//! that copies of the state are few.

use std::{io, sync::Arc};

use semel_broker::{StateCall, api::Reply};
use tokio::sync::Semaphore;

use crate::net::listener::Shared;

/// Answers built at a time.
const ANSWERS_MAX: usize = 2;

/// Builds the answer.
///
/// # Errors
/// The thread failed.
pub async fn answer(shared: &Arc<Shared>, call: StateCall) -> io::Result<Reply> {
    let _permit = shared.state_calls.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(move || call.answer()).await.map_err(io::Error::other)
}

/// The bound on answers built at a time.
pub fn state_calls() -> Semaphore {
    Semaphore::new(ANSWERS_MAX)
}
