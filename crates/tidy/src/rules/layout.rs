//! Where things stand and how files open.
//!
//! Purpose: a reader finds an API by its number and learns from the first line what a file is for. Invariants: a core
//! crate is `no_std` whenever it is not under test. What it does not do: it doesn't judge what the first line says.

use super::{CORE_CRATES, at, is_core};
use crate::{File, Rule, RustSource, Tree, Violation};

pub(super) fn no_std(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| is_core(file)) {
        if is_core_root(&file.path) && !declares_no_std(source) {
            found.push(at(file, 0, Rule::NoStd, "a core crate opens with `#![no_std]`"));
        }
        found.extend(std_words(file, source));
    }
    found
}

fn is_core_root(path: &str) -> bool {
    CORE_CRATES.iter().any(|name| path == format!("crates/{name}/src/lib.rs"))
}

fn declares_no_std(source: &RustSource) -> bool {
    source.syntax.attrs.iter().any(|attribute| {
        let text: String = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg_attr") => list.tokens.to_string(),
            syn::Meta::Path(path) => return path.is_ident("no_std"),
            syn::Meta::List(_) | syn::Meta::NameValue(_) => return false,
        };
        text.split_whitespace().collect::<String>() == "not(test),no_std"
    })
}

/// `extern crate std`, paths into `std`, and maps whose order depends on a random seed.
fn std_words(file: &File, source: &RustSource) -> Vec<Violation> {
    let tokens = source.tokens.iter().filter(|token| !source.is_test_line(token.line));
    let banned = tokens.filter(|token| matches!(token.text.as_str(), "std" | "HashMap" | "HashSet"));
    banned
        .map(|token| {
            at(file, token.line, Rule::NoStd, format!("`{}` in a core crate outside tests", token.text))
        })
        .collect()
}

pub(super) fn handler_names(tree: &Tree) -> Vec<Violation> {
    let handlers = tree.files().iter().filter_map(|file| Some((file, file.path.strip_prefix(HANDLERS)?)));
    let misnamed = handlers.filter(|(file, rest)| file.rust.is_some() && !is_handler_path(rest));
    misnamed
        .map(|(file, _)| {
            at(file, 0, Rule::HandlerName, "a handler is named `kNNN_name.rs` after its API key")
        })
        .collect()
}

const HANDLERS: &str = "crates/broker/src/api/";

/// `kNNN_name.rs` or what lies below `kNNN_name/`; the dispatch, the table of answers, and tests.
fn is_handler_path(rest: &str) -> bool {
    let first = rest.split('/').next().unwrap_or(rest);
    let name = first.trim_end_matches(".rs");
    matches!(name, "mod" | "answer" | "tests") || is_handler_name(name)
}

fn is_handler_name(name: &str) -> bool {
    let Some((number, words)) = name.strip_prefix('k').and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    number.len() == 3
        && number.bytes().all(|c| c.is_ascii_digit())
        && !words.is_empty()
        && words.chars().all(is_word)
}

pub(super) fn module_docs(tree: &Tree) -> Vec<Violation> {
    let undocumented = tree.rust().filter(|(file, _)| !opens_with_doc(file));
    undocumented
        .map(|(file, _)| at(file, 1, Rule::ModuleDoc, "open with `//!`: what the module is for"))
        .collect()
}

/// A script's `#!` line may stand before the doc.
fn opens_with_doc(file: &File) -> bool {
    let mut lines = file.text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("#!/"));
    lines.next().is_some_and(|line| line.starts_with("//!") && line.len() > 3)
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines_of;
    use super::*;

    #[test]
    fn a_core_crate_is_no_std() {
        let root = "crates/eos/src/lib.rs";
        assert_eq!(lines_of(no_std, root, "//! A.\nmod a;"), [0]);
        assert_eq!(lines_of(no_std, root, "#![cfg_attr(feature = \"x\", no_std)]"), [0]);
        assert!(lines_of(no_std, root, "//! A.\n#![no_std]").is_empty());
        assert!(lines_of(no_std, root, "#![cfg_attr(not(test), no_std)]").is_empty());
        assert!(lines_of(no_std, "crates/log/src/lib.rs", "//! A.").is_empty());
    }

    #[test]
    fn a_core_crate_reaches_for_std_in_tests_only() {
        let text =
            "#![no_std]\nextern crate std;\nuse hashbrown::HashMap;\n#[cfg(test)]\nmod t { use std::vec; }";
        assert_eq!(lines_of(no_std, "crates/eos/src/lib.rs", text), [2, 3]);
    }

    #[test]
    fn a_handler_is_named_after_its_key() {
        let is_found =
            |name: &str| !lines_of(handler_names, &format!("{HANDLERS}{name}"), "//! A.").is_empty();
        for bad in ["produce.rs", "k0_produce.rs", "k000.rs", "k000_.rs", "k000_Produce.rs", "common/a.rs"] {
            assert!(is_found(bad), "{bad}");
        }
        for good in
            ["mod.rs", "k022_init_producer_id.rs", "k000_produce/tests.rs", "answer.rs", "answer/tests.rs"]
        {
            assert!(!is_found(good), "{good}");
        }
    }

    #[test]
    fn a_module_opens_with_its_purpose() {
        assert_eq!(lines_of(module_docs, "crates/eos/src/a.rs", "// A.\nuse a;"), [1]);
        assert_eq!(lines_of(module_docs, "crates/eos/src/a.rs", "//!\nuse a;"), [1]);
        assert!(lines_of(module_docs, "crates/eos/src/a.rs", "\n//! A.").is_empty());
    }
}
