//! Tables of codes by state and version: each row of a table of the protocol is tried.

use crate::Scenario;

/// All of them, by file.
pub(crate) const ALL: [&[&Scenario]; 0] = [];
