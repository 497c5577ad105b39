//! The numbered invariants: text, code and tests name the same ones.
//!
//! Purpose: `docs/invariants.md` ties a rule to its function and its test, and stays true when files move. Invariants:
//! once that file exists, a number in code stands there, each entry there names a file, and every file that it names
//! exists. What it does not do: it doesn't prove that the named test tests the rule.

use std::collections::BTreeMap;

use super::at;
use crate::{File, Rule, Tree, Violation};

const DOCUMENT: &str = "docs/invariants.md";

pub(super) fn named(tree: &Tree) -> Vec<Violation> {
    let Some(document) = tree.files().iter().find(|file| file.path == DOCUMENT) else {
        return Vec::new();
    };
    let entries = entries(document);
    let mut found: Vec<_> = outside_tidy(tree).flat_map(|file| unknown_numbers(file, &entries)).collect();
    for entry in entries.values() {
        found.extend(wrong_files(tree, document, entry));
    }
    if entries.is_empty() {
        found.push(at(
            document,
            0,
            Rule::Invariants,
            "no entry: a heading, list item or row opens with its EOS-nn",
        ));
    }
    found
}

/// Code that speaks of real invariants; the snippets in the tests of this crate name invented ones.
fn outside_tidy(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().map(|(file, _)| file).filter(|file| file.crate_name() != Some("tidy"))
}

/// One numbered invariant: the lines up to the next one.
struct Entry {
    line: usize,
    number: String,
    files: Vec<String>,
}

/// An entry opens with a line whose first word is its number; marks of headings, lists, rows and bold are left aside.
fn entries(document: &File) -> BTreeMap<String, Entry> {
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut current = None;
    for (line, text) in document.lines() {
        let opening = text.trim_start_matches(['#', '|', '-', '*', ' ', '`', '[']);
        if let Some(number) = numbers(opening).into_iter().find(|number| opening.starts_with(number.as_str()))
        {
            entries.entry(number.clone()).or_insert(Entry {
                line,
                number: number.clone(),
                files: Vec::new(),
            });
            current = Some(number);
        }
        if let Some(entry) = current.as_ref().and_then(|number| entries.get_mut(number)) {
            entry.files.extend(named_files(text));
        }
    }
    entries
}

fn unknown_numbers(file: &File, entries: &BTreeMap<String, Entry>) -> Vec<Violation> {
    let mentions =
        file.lines().flat_map(|(line, text)| numbers(text).into_iter().map(move |number| (line, number)));
    mentions
        .filter(|(_, number)| !entries.contains_key(number))
        .map(|(line, number)| {
            at(file, line, Rule::Invariants, format!("{number} does not stand in {DOCUMENT}"))
        })
        .collect()
}

fn wrong_files(tree: &Tree, document: &File, entry: &Entry) -> Vec<Violation> {
    if entry.files.is_empty() {
        return vec![at(document, entry.line, Rule::Invariants, format!("{} names no file", entry.number))];
    }
    let exists = |path: &str| tree.has(path) || tree.has(&format!("crates/{path}"));
    let missing = entry.files.iter().filter(|path| !exists(path));
    missing
        .map(|path| {
            at(document, entry.line, Rule::Invariants, format!("{}: there is no `{path}`", entry.number))
        })
        .collect()
}

/// All `EOS-` followed by digits.
fn numbers(text: &str) -> Vec<String> {
    let after = text.match_indices("EOS-").map(|(start, mark)| &text[start + mark.len()..]);
    let digits = after.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    digits.filter(|digits| !digits.is_empty()).map(|digits| format!("EOS-{digits}")).collect()
}

/// Paths in backticks; what follows `:` or `#` (a symbol, a line) is left aside.
fn named_files(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let paths = quoted.map(|name| name.split([':', '#']).next().unwrap_or(name));
    paths.filter(|path| path.contains('/') && !path.contains(' ')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str, code: &str) -> Vec<String> {
        let tree = Tree::from_texts([(DOCUMENT, document), ("crates/eos/src/fence.rs", code)]);
        named(&tree).iter().map(ToString::to_string).collect()
    }

    const GOOD: &str = "# Invariants\n\n## EOS-01 One writer\nin `eos/src/fence.rs::judge`, as EOS-02 says\n\
                        | EOS-02 | two | `crates/eos/src/fence.rs` |\n";

    #[test]
    fn entries_and_mentions_that_agree_pass() {
        assert!(found(GOOD, "//! EOS-01, EOS-02").is_empty());
    }

    #[test]
    fn a_number_that_stands_nowhere_fails() {
        let found = found(GOOD, "//! A.\n// EOS-03\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/eos/src/fence.rs:2:"), "{found:?}");
    }

    #[test]
    fn an_entry_without_a_file_or_with_a_lost_file_fails() {
        assert_eq!(found("- **EOS-01** in `fence.rs`", "").len(), 1);
        assert_eq!(found("- **EOS-01** in `eos/src/fence.rs`, `eos/tests/lost.rs`", "").len(), 1);
        assert_eq!(found("no entries", "").len(), 1);
    }

    #[test]
    fn numbers_are_free_while_there_is_no_document() {
        assert!(named(&Tree::from_texts([("a.rs", "// EOS-99")])).is_empty());
    }
}
