//! Area `security`: who may do what.

use crate::Scenario;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[];
