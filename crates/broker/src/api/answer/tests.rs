//! The table, all combinations.
