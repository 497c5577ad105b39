//! One test for each rule of recovery.
