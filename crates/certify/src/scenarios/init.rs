//! Area `init`: identities of producers.

use crate::Scenario;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[];
