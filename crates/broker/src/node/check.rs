//! The whole-state checks after a step, in debug builds.
//!
//! Invariant: bounded work. A check walks the whole state, so it runs after each of the first steps and then at
//! powers of two only: a long run in a debug build stays usable, and tests call [`State::check`] themselves.

use semel_types::{LogSequence, mutation};

use crate::state::State;

/// Checks after each step up to this sequence.
const ALWAYS_UP_TO: u64 = 2_000;

/// Panics if an invariant does not hold: going on would write the damage into the log.
pub(super) fn after_step(state: &State, last: LogSequence) {
    let due = cfg!(debug_assertions)
        && mutation::CHECKS_ITSELF
        && (last.get() <= ALWAYS_UP_TO || last.get().is_power_of_two());
    if let Err(violation) = if due { state.check(last) } else { Ok(()) } {
        panic!("the state is broken after {last}: {violation}");
    }
}
