//! Which crate may depend on which.
//!
//! Purpose: the compiler keeps a crate from using what it does not depend on; this keeps the list of what it depends
//! on. Invariants: the table below is the whole truth, a crate that is not in it fails. What it does not do: crates
//! from outside are judged by `deny.toml`, async ones by the rule `async`.

use super::at;
use crate::{File, Rule, Tree, Violation};

/// Crate, and the crates of this repository that it may depend on.
const EDGES: [(&str, &[&str]); 12] = [
    ("types", &[]),
    ("wire", &["types"]),
    ("events", &["types"]),
    ("eos", &["types", "events"]),
    ("groups", &["types", "events"]),
    ("log", &["types", "events", "wire"]),
    ("broker", &["types", "wire", "events", "eos", "groups", "log"]),
    // The binary carries the suite and the demonstration that drives a broker with it.
    ("server", &["types", "wire", "events", "eos", "groups", "log", "broker", "certify"]),
    ("certify", &["types", "wire"]),
    ("sim", &["types", "wire", "events", "eos", "groups", "log", "broker", "certify"]),
    ("tidy", &[]),
    ("xtask", &[]),
];

/// Features that let tests break a rule, and the one manifest that defines each.
const SWITCHES: [(&str, &str); 2] =
    [("dropped-rules", "crates/eos/Cargo.toml"), ("mutations", "crates/types/Cargo.toml")];

/// The one place besides that may turn them on: a feature of the binary, for `cargo xtask mutations` alone.
const BROKEN_BINARY: (&str, &str) = ("crates/server/Cargo.toml", "mutations = [");

/// What the tests of the crates above the core may use besides.
const TEST_TOOLS: [&str; 2] = ["certify", "sim"];

pub(super) fn edges(tree: &Tree) -> Vec<Violation> {
    let mut found: Vec<_> = manifests(tree).flat_map(|(file, name)| forbidden_edges(file, name)).collect();
    let manifests = tree.files().iter().filter(|file| file.path.ends_with("Cargo.toml"));
    found.extend(manifests.flat_map(switches_turned_on));
    found
}

fn switches_turned_on(file: &File) -> Vec<Violation> {
    let message =
        "switches that break rules are for tests: only the binary's feature `mutations` may turn them on";
    let (binary, feature) = BROKEN_BINARY;
    let is_turned_on = |text: &str| {
        let text = text.split('#').next().unwrap_or(text);
        let named = SWITCHES.iter().any(|(word, of)| text.contains(word) && file.path != *of);
        named && !(file.path == binary && text.starts_with(feature))
    };
    let lines = file.lines().filter(|(_, text)| is_turned_on(text));
    lines.map(|(line, _)| at(file, line, Rule::Layering, message)).collect()
}

pub(super) fn lints(tree: &Tree) -> Vec<Violation> {
    let lax = manifests(tree).filter(|(file, _)| !takes_workspace_lints(&file.text));
    lax.map(|(file, _)| at(file, 0, Rule::Lints, "add `[lints] workspace = true`")).collect()
}

/// The manifests of the workspace, each with the short name of its crate.
fn manifests(tree: &Tree) -> impl Iterator<Item = (&File, &str)> {
    tree.files().iter().filter_map(|file| match file.path.as_str() {
        "xtask/Cargo.toml" => Some((file, "xtask")),
        path => Some((file, path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?)),
    })
}

fn forbidden_edges(file: &File, name: &str) -> Vec<Violation> {
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        return vec![at(file, 0, Rule::Layering, format!("`{name}` is not in the table of layers: add it"))];
    };
    let tools: &[&str] = if matches!(name, "log" | "broker" | "server") { &TEST_TOOLS } else { &[] };
    let is_allowed = |edge: &Edge| {
        // A crate's tests may name the crate itself, to switch a feature on.
        let to = edge.to.as_str();
        allowed.contains(&to) || (edge.for_tests && (to == name || tools.contains(&to)))
    };
    let forbidden = own_dependencies(file).into_iter().filter(|edge| !is_allowed(edge));
    forbidden
        .map(|edge| at(file, edge.line, Rule::Layering, format!("`{name}` may not depend on `{}`", edge.to)))
        .collect()
}

/// A crate of this repository named in a dependency section.
struct Edge {
    to: String,
    line: usize,
    for_tests: bool,
}

/// Reads the sections line by line: a crate of ours is named `semel-...` as key, header or `package`.
fn own_dependencies(file: &File) -> Vec<Edge> {
    let mut section = String::new();
    let mut edges = Vec::new();
    for (line, text) in file.lines() {
        let text = text.split('#').next().unwrap_or(text);
        if text.trim_start().starts_with('[') {
            section = text.trim().to_owned();
        }
        if section.contains("dependencies") {
            let for_tests = section.contains("dev-dependencies");
            edges.extend(own_crates(text).into_iter().map(|to| Edge { to, line, for_tests }));
        }
    }
    edges
}

fn own_crates(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = text.split(|c| !is_part(c)).filter_map(|word| word.strip_prefix("semel-"));
    let mut names: Vec<_> = words.map(str::to_owned).collect();
    names.dedup();
    names
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let compact: String = manifest.lines().map(|line| line.replace(' ', "") + "\n").collect();
    compact.contains("\n[lints]\nworkspace=true\n") || compact.contains("\nlints.workspace=true\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::lines_of;
    use super::*;

    fn found(name: &str, manifest: &str) -> Vec<usize> {
        lines_of(edges, &format!("crates/{name}/Cargo.toml"), manifest)
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_fails_however_it_is_written() {
        assert_eq!(
            found("eos", "[package]\nname = \"semel-eos\"\n[dependencies]\nsemel-log.workspace = true\n"),
            [4]
        );
        assert_eq!(
            found("eos", "[dependencies]\nx = { package = \"semel-wire\", path = \"../wire\" }\n"),
            [2]
        );
        assert_eq!(found("eos", "[dependencies.semel-broker]\nworkspace = true\n"), [1]);
        assert_eq!(found("eos", "[target.'cfg(unix)'.dependencies]\nsemel-groups.workspace = true\n"), [2]);
        assert_eq!(found("eos", "[dev-dependencies]\nsemel-sim.workspace = true\n"), [2]);
    }

    #[test]
    fn switches_that_drop_rules_are_turned_on_nowhere_else() {
        let on = "[dependencies]\nsemel-eos = { workspace = true, features = [\"dropped-rules\"] }\n";
        assert_eq!(found("broker", on), [2]);
        assert!(found("eos", "[features]\ndropped-rules = []\n").is_empty());
        let feature = "[features]\nmutations = [\"semel-types/mutations\", \"semel-eos/dropped-rules\"]\n";
        assert!(found("server", feature).is_empty());
        assert_eq!(found("broker", feature), [2]);
        assert_eq!(found("server", "[features]\ndefault = [\"mutations\"]\n"), [2]);
        assert!(found("server", "# mutations are told in src/mutations.rs\n").is_empty());
    }

    #[test]
    fn edges_of_the_table_pass() {
        assert!(found("eos", "[dependencies]\nsemel-types.workspace = true # not semel-log\n").is_empty());
        assert!(found("broker", "[dev-dependencies]\nsemel-certify.workspace = true\n").is_empty());
        assert_eq!(found("broker", "[dependencies]\nsemel-certify.workspace = true\n"), [2]);
    }

    #[test]
    fn a_crate_without_a_layer_fails() {
        assert_eq!(found("helpers", "[package]\n"), [0]);
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_fails() {
        let path = "crates/eos/Cargo.toml";
        assert_eq!(lines_of(lints, path, "[package]\nname = \"semel-eos\"\n[lints.rust]\n"), [0]);
        assert!(lines_of(lints, path, "[package]\n\n[lints]\nworkspace = true\n").is_empty());
    }
}
