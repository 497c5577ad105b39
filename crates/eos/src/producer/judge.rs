//! The decision table.
