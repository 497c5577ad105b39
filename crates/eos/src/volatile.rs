//! What the node remembers outside the log: empty at start, never read by `apply`.

use crate::{ids::IdBlock, producer::Recent};

/// Connection numbers, the block of producer ids in use, marks of refusals.
#[derive(Clone, Debug, Default)]
pub struct Volatile {
    pub(crate) produce: Recent,
    pub(crate) ids: IdBlock,
}

impl Volatile {
    /// Nothing remembered, as at a start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
