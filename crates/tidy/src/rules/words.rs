//! Words that don't belong in the tree, or not there.
//!
//! Purpose: panics without a reason, unfinished work, async below the server, wire codes away from their table.
//! Invariants: code is searched by tokens, text by whole words. What it does not do: it doesn't judge names.

use super::at;
use crate::{File, Rule, RustSource, Token, Tree, Violation};

pub(super) fn unwraps(tree: &Tree) -> Vec<Violation> {
    let message = "say what always holds: `expect(\"...\")`, or hand the error on";
    let called = |before: &str, word: &str, _: &str| {
        matches!(word, "unwrap" | "unwrap_err") && matches!(before, "." | ":")
    };
    tree.rust()
        .flat_map(|(file, source)| {
            let lines = lines_where(source, called).filter(|line| !source.is_test_line(*line));
            lines.map(|line| at(file, line, Rule::Unwrap, message)).collect::<Vec<_>>()
        })
        .collect()
}

pub(super) fn unfinished(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in tree.rust() {
        let stubs =
            lines_where(source, |_, word, next| matches!(word, "todo" | "unimplemented") && next == "!");
        found.extend(stubs.map(|line| at(file, line, Rule::Unfinished, "finish it or leave it out")));
        let ignored = ignored_tests(&source.tokens);
        found.extend(
            ignored.map(|line| at(file, line, Rule::Unfinished, "a test that does not run proves nothing")),
        );
    }
    for file in tree.files().iter().filter(|file| !is_lock_file(&file.path)) {
        let marks = file.lines().filter(|(_, text)| MARKS.iter().any(|mark| has_word(text, mark)));
        found.extend(
            marks.map(|(line, _)| at(file, line, Rule::Unfinished, "do it, or file an issue and say why")),
        );
        let blocks = file.lines().filter(|(_, text)| text.contains(IGNORED_BLOCK));
        found.extend(
            blocks.map(|(line, _)| at(file, line, Rule::Unfinished, "an example that is never compiled")),
        );
    }
    found
}

/// Put together, so that this file does not find itself.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const IGNORED_BLOCK: &str = concat!("``", "`ignore");

pub(super) fn async_words(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| !may_be_async(file)) {
        let lines =
            lines_where(source, |before, word, _| word == "async" || (before == "." && word == "await"));
        found.extend(lines.map(|line| at(file, line, Rule::Async, "async lives in `server` only")));
    }
    let manifests =
        tree.files().iter().filter(|file| file.path.ends_with("Cargo.toml") && !may_be_async(file));
    for file in manifests.filter(|file| file.crate_name().is_some()) {
        let lines = file
            .lines()
            .filter(|(_, text)| ["tokio", "futures", "async-"].iter().any(|w| text.starts_with(w)));
        found.extend(lines.map(|(line, _)| at(file, line, Rule::Async, "an async runtime below the server")));
    }
    found
}

/// The server, and programs that stand outside and drive one.
fn may_be_async(file: &File) -> bool {
    let outside = ["xtask/", "clients/", "bench/"].iter().any(|folder| file.path.starts_with(folder));
    outside || matches!(file.crate_name(), Some("server" | "certify"))
}

pub(super) fn determinism(tree: &Tree) -> Vec<Violation> {
    let outside = |_: &str, word: &str, _: &str| OUTSIDE_WORLD.contains(&word);
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| file.path.starts_with("crates/broker/src/")) {
        let lines = lines_where(source, outside).chain(std_modules(&source.tokens));
        found.extend(lines.filter(|line| !source.is_test_line(*line)).map(|line| {
            at(
                file,
                line,
                Rule::Determinism,
                "the node steps on `Input` and `Context` alone, or the simulation lies",
            )
        }));
    }
    found
}

/// Clocks, sockets, and maps whose order depends on a random seed.
const OUTSIDE_WORLD: [&str; 9] = [
    "Instant",
    "SystemTime",
    "sleep",
    "TcpStream",
    "TcpListener",
    "HashMap",
    "HashSet",
    "RandomState",
    "getrandom",
];

/// Lines of `std::fs` and its like, alone or in a list of imports.
fn std_modules(tokens: &[Token]) -> impl Iterator<Item = usize> + '_ {
    let paths = tokens.windows(4).enumerate();
    let paths = paths.filter(|(_, four)| four[0].text == "std" && four[1].text == ":" && four[2].text == ":");
    paths.flat_map(|(index, four)| {
        let names = if four[3].text == "{" { &tokens[index + 4..] } else { &tokens[index + 3..index + 4] };
        let names = names.iter().take_while(|token| token.text != "}");
        names.filter(|token| OUTSIDE_MODULES.contains(&token.text.as_str())).map(|token| token.line)
    })
}

const OUTSIDE_MODULES: [&str; 5] = ["env", "fs", "net", "process", "thread"];

pub(super) fn fence_codes(tree: &Tree) -> Vec<Violation> {
    let code = |_: &str, word: &str, _: &str| FENCE_CODES.contains(&word);
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| !may_name_fence_codes(file)) {
        let lines = lines_where(source, code).filter(|line| !source.is_test_line(*line));
        found.extend(lines.map(|line| {
            at(
                file,
                line,
                Rule::FenceCodes,
                "refuse with a typed refusal; the broker's `answer.rs` gives it its code",
            )
        }));
    }
    found
}

const FENCE_CODES: [&str; 2] = ["InvalidProducerEpoch", "ProducerFenced"];

/// The table of codes, the table of answers, and what stands outside and looks at answers.
fn may_name_fence_codes(file: &File) -> bool {
    let tables =
        ["crates/types/src/code.rs", "crates/broker/src/answer.rs", "crates/broker/src/api/answer.rs"];
    let judges = [
        "crates/certify/",
        "crates/sim/",
        "crates/server/src/cli/demo/",
        "crates/server/src/cli/demo.rs",
        "clients/",
        "bench/",
    ];
    tables.contains(&file.path.as_str()) || judges.iter().any(|folder| file.path.starts_with(folder))
}

pub(super) fn foreign(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files() {
        let lines = file.lines().filter(|(_, text)| FOREIGN.iter().any(|word| starts_word(text, word)));
        found.extend(
            lines.map(|(line, _)| at(file, line, Rule::ForeignWords, "the tree speaks of the project alone")),
        );
    }
    found
}

/// Places and persons of the machine that somebody happened to work on. Put together like `MARKS`.
const FOREIGN: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("sub", "agent"), concat!("helper", " session"), concat!(".lib", "rary")];

/// Lines of tokens for which `wanted(before, token, next)` holds.
fn lines_where<'a>(
    source: &'a RustSource,
    wanted: impl Fn(&str, &str, &str) -> bool + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let text = |index: usize| source.tokens.get(index).map_or("", |token: &Token| token.text.as_str());
    let found = move |(index, token): &(usize, &Token)| {
        let before = index.checked_sub(1).map_or("", text);
        wanted(before, &token.text, text(index + 1))
    };
    source.tokens.iter().enumerate().filter(found).map(|(_, token)| token.line)
}

/// Lines of `#[ignore]` and `#[cfg_attr(.., ignore)]`.
fn ignored_tests(tokens: &[Token]) -> impl Iterator<Item = usize> + '_ {
    let opens =
        tokens.windows(3).enumerate().filter(|(_, three)| three[0].text == "#" && three[1].text == "[");
    opens.filter_map(|(index, three)| match three[2].text.as_str() {
        "ignore" => Some(three[2].line),
        "cfg_attr" => {
            attribute_words(&tokens[index..]).find(|token| token.text == "ignore").map(|token| token.line)
        }
        _ => None,
    })
}

fn attribute_words(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    tokens.iter().take_while(|token| token.text != "]")
}

fn is_lock_file(path: &str) -> bool {
    ["Cargo.lock", "package-lock.json", "go.sum"].iter().any(|name| path.ends_with(name))
}

/// Whether `word` occurs in `text` with no letter or digit on either side.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let after = text[start + word.len()..].chars().next();
        is_boundary(text[..start].chars().next_back()) && is_boundary(after)
    })
}

/// Whether `word` occurs in `text` with no letter or digit before it.
fn starts_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| is_boundary(text[..start].chars().next_back()))
}

fn is_boundary(neighbour: Option<char>) -> bool {
    neighbour.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines_of;
    use super::*;

    const EOS: &str = "crates/eos/src/a.rs";

    #[test]
    fn unwrap_is_found_in_macros_and_paths_but_not_in_tests() {
        let text = "fn a() {\nx.unwrap();\nassert!(x.unwrap());\ny.map(Option::unwrap);\nx.unwrap_or(1);\n}\n\
                    #[test]\nfn t() { x.unwrap(); }\n";
        assert_eq!(lines_of(unwraps, EOS, text), [2, 3, 4]);
    }

    #[test]
    fn stubs_and_ignored_tests_are_unfinished() {
        let text = "fn a() { todo!() }\nfn b() { unimplemented!(\"x\") }\n#[test]\n#[ignore = \"slow\"]\nfn c() {}\n\
                    #[cfg_attr(miri, ignore)]\nfn d() {}\nfn ignore(todo: u8) {}\n";
        assert_eq!(lines_of(unfinished, EOS, text), [1, 2, 4, 6]);
    }

    #[test]
    fn marks_are_unfinished_in_any_file_as_whole_words() {
        for mark in MARKS {
            assert_eq!(lines_of(unfinished, "clients/go/run", &format!("# a\n# {mark}: b\n")), [2]);
            assert!(lines_of(unfinished, "README.md", &format!("a{mark}b")).is_empty());
            assert!(lines_of(unfinished, "Cargo.lock", mark).is_empty());
        }
    }

    #[test]
    fn an_example_that_is_not_compiled_is_unfinished() {
        assert_eq!(lines_of(unfinished, EOS, &format!("/// {IGNORED_BLOCK}\nfn a() {{}}")), [1]);
    }

    #[test]
    fn async_stands_in_the_server_only() {
        let text = "async fn a() {\nb.await;\n}";
        assert_eq!(lines_of(async_words, "crates/log/src/a.rs", text), [1, 2]);
        assert!(lines_of(async_words, "crates/server/src/a.rs", text).is_empty());
        assert_eq!(lines_of(async_words, "crates/log/Cargo.toml", "[dependencies]\ntokio = \"1\""), [2]);
    }

    #[test]
    fn the_node_reaches_for_nothing_outside() {
        let text = "fn a() {\nInstant::now();\nstd::thread::spawn(b);\n}\nuse std::collections::HashMap;\n\
                    use std::{fmt, fs};\nconst A: Source = Source::File;\n#[test]\nfn t() { Instant::now(); }";
        assert_eq!(lines_of(determinism, "crates/broker/src/node.rs", text), [2, 5, 3, 6]);
        assert!(lines_of(determinism, "crates/server/src/node.rs", text).is_empty());
    }

    #[test]
    fn fence_codes_are_named_in_their_tables_and_by_judges() {
        let text = "fn a() {\nErrorCode::ProducerFenced;\nInvalidProducerEpoch;\n}\n#[test]\nfn t() { ProducerFenced; }";
        assert_eq!(lines_of(fence_codes, "crates/broker/src/api/k000_produce.rs", text), [2, 3]);
        assert!(lines_of(fence_codes, "crates/broker/src/answer.rs", text).is_empty());
        assert!(lines_of(fence_codes, "crates/certify/src/a.rs", text).is_empty());
    }

    #[test]
    fn foreign_words_are_found_at_their_start_only() {
        for word in FOREIGN {
            assert_eq!(lines_of(foreign, "docs/a.md", &format!("x\nsee {word}x")), [2]);
        }
        assert!(
            lines_of(foreign, "docs/a.md", concat!("java.lib", "rary.path and frame", "/wo", "rks"))
                .is_empty()
        );
    }
}
