//! What is kept of one producer on one partition.

/// Placeholder until the next commit fills it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {}

/// What an idle entry shrinks to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stub {}
