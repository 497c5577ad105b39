//! The transaction coordinator from the outside: `decide`, `apply`, `judge`, `admit`, `tick`, `start`.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of event or answer")]

mod exhaustion;
mod fences;
mod founding;
mod model;
mod stricter;
mod table;
mod time;
mod world;
