//! Area `markers`: markers and the last stable offset.

use crate::Scenario;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[];
