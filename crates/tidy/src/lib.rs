//! The habits of this repository, as checks that a machine makes.
//!
//! Purpose: what a reviewer would have to look for in every change (sizes, forbidden words, who may depend on whom,
//! where an epoch may be compared) is looked for here, with the test run. Invariants: a rule that cannot fail is no
//! rule, so each has a unit test with a small bad snippet; an exception is written down in `exceptions.txt` with its
//! reason, and one that excuses nothing fails. What it does not do: it reads files and nothing else; formatting,
//! lints and behaviour belong to rustfmt, clippy and the other tests.
//!
//! Run it with `cargo xtask test --only tidy`, `cargo run -p semel-tidy` or `cargo test -p semel-tidy`.
#![forbid(unsafe_code)]

mod exceptions;
mod report;
pub mod rules;
mod source;
mod tree;
mod violation;

pub use exceptions::{Exceptions, Judged};
pub use report::SizeReport;
pub use source::{Function, RustSource, Token};
pub use tree::{File, Tree};
pub use violation::{Rule, Violation};

/// Where the exceptions stand, from the root of the repository.
pub const EXCEPTIONS_PATH: &str = "crates/tidy/exceptions.txt";

/// Checks `tree` by every rule and takes away what its exceptions excuse.
///
/// What is left, in order of path and line, is what has to be mended; exceptions that excuse nothing are in it.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let exceptions = Exceptions::parse(tree.text(EXCEPTIONS_PATH).unwrap_or_default());
    let mut left = exceptions.judge(rules::all(tree)).left;
    left.sort();
    left
}
