//! The rules, one file for each kind.
//!
//! Purpose: every rule is a function from the tree to what breaks it. Invariants: a rule knows nothing of exceptions.
//! What it does not do: rules have no order and no state.

mod epochs;
mod invariants;
mod layering;
mod layout;
mod size;
mod words;

use crate::{File, Rule, Tree, Violation};

/// Everything that breaks a rule in `tree`, exceptions not considered.
pub fn all(tree: &Tree) -> Vec<Violation> {
    let rules: [fn(&Tree) -> Vec<Violation>; 15] = [
        unreadable,
        size::function_length,
        size::function_median,
        size::file_length,
        words::unwraps,
        words::unfinished,
        words::async_words,
        words::determinism,
        words::fence_codes,
        words::foreign,
        layout::no_std,
        layout::handler_names,
        layout::module_docs,
        epochs::comparisons,
        invariants::named,
    ];
    rules
        .iter()
        .flat_map(|rule| rule(tree))
        .chain(layering::edges(tree))
        .chain(layering::lints(tree))
        .collect()
}

fn unreadable(tree: &Tree) -> Vec<Violation> {
    let errors = tree.files().iter().filter_map(|file| Some((file, file.rust.as_ref()?.as_ref().err()?)));
    errors.map(|(file, error)| at(file, 0, Rule::Parse, error.clone())).collect()
}

/// Crates that are `no_std` and hold no rule of the outside world.
const CORE_CRATES: [&str; 5] = ["types", "wire", "events", "eos", "groups"];

fn is_core(file: &File) -> bool {
    file.crate_name().is_some_and(|name| CORE_CRATES.contains(&name))
}

fn at(file: &File, line: usize, rule: Rule, message: impl Into<String>) -> Violation {
    Violation { path: file.path.clone(), line, rule, message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines at which `rule` finds something in one file.
    pub fn lines_of(rule: fn(&Tree) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        rule(&Tree::from_texts([(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_file_that_is_no_rust_is_reported() {
        assert_eq!(lines_of(all, "crates/eos/src/a.rs", "//! A.\nfn {").len(), 1);
    }

    #[test]
    fn every_kind_of_rule_is_among_all() {
        let bad = [
            ("crates/eos/src/lib.rs", "fn a() { x.unwrap(); todo!(); }"),
            ("crates/eos/Cargo.toml", "[dependencies]\nsemel-log.workspace = true"),
            (
                "crates/broker/src/api/produce.rs",
                "async fn a() { ErrorCode::ProducerFenced; a.epoch < b; Instant::now(); }",
            ),
            ("docs/invariants.md", "## EOS-01\nin `no/such.rs`"),
        ];
        let mut found: Vec<_> = all(&Tree::from_texts(bad)).iter().map(|violation| violation.rule).collect();
        found.sort();
        found.dedup();
        let silent = [Rule::Parse, Rule::FunctionLength, Rule::FunctionMedian, Rule::FileLength];
        let expected: Vec<_> = Rule::ALL
            .iter()
            .copied()
            .filter(|rule| !silent.contains(rule) && ![Rule::ForeignWords, Rule::Exceptions].contains(rule))
            .collect();
        assert_eq!(found, expected);
    }
}
