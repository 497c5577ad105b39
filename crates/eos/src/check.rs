//! Whole-state checks: the invariants of `docs/invariants.md` that can be read off the state.

use alloc::string::String;
use core::fmt;

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Its number, as in `EOS-10`.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.found)
    }
}

impl core::error::Error for Violation {}
