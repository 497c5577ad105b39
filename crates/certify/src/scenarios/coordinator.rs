//! Area `coordinator`: the transaction coordinator.

use crate::Scenario;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[];
