//! Area `recovery`: kills and restarts.

use crate::Scenario;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[];
