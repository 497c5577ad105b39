//! `docs/certify/mutations.md` is held against the faults that a test build can have, the places where they stand and
//! the scenarios. That the scenarios do notice is shown by `cargo xtask mutations`.

use std::{collections::BTreeSet, fs, path::Path};

use semel_certify::scenarios;
use semel_eos::dropped::Rule;
use semel_types::mutation::Mutation;

const PAGE: &str = include_str!("../../../docs/certify/mutations.md");

/// The cells of each row of a table: name, rule, places, and who notices or why nobody can.
fn rows(table: &str) -> Vec<[String; 4]> {
    let cells = |line: &str| {
        let cells = line.strip_prefix("| `")?.trim_end_matches('|').split('|');
        let cells: Vec<_> = cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        Some(cells.try_into().unwrap_or_else(|_| panic!("four cells: {line}")))
    };
    table.lines().filter_map(cells).collect()
}

/// Faults that the suite finds, and rules that it cannot be asked about.
fn tables() -> (Vec<[String; 4]>, Vec<[String; 4]>) {
    let (found, rest) = PAGE.split_once("\n## ").expect("two tables");
    (rows(found), rows(rest))
}

#[test]
fn the_page_names_every_fault_once() {
    let (found, rest) = tables();
    let named: Vec<_> = found.iter().chain(&rest).map(|[name, ..]| name.clone()).collect();
    let mutations = Mutation::ALL.iter().map(|mutation| mutation.name().to_owned());
    let faults: BTreeSet<_> = mutations.chain(Rule::ALL.iter().map(|rule| format!("{rule:?}"))).collect();
    assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), faults);
    assert_eq!(named.len(), faults.len(), "none stands twice");
    assert!(rest.iter().all(|[name, ..]| Rule::ALL.iter().any(|rule| format!("{rule:?}") == *name)));
}

#[test]
fn each_fault_is_noticed_by_scenarios_that_exist() {
    let ids: BTreeSet<_> = scenarios::all().iter().map(|scenario| scenario.id).collect();
    for [name, _, _, noticed] in tables().0 {
        assert!(!noticed.is_empty(), "{name} is noticed by nobody");
        for id in noticed.split(", ") {
            assert!(ids.contains(id), "{name}: there is no scenario {id}");
        }
    }
}

#[test]
fn each_fault_stands_where_the_page_says() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for [name, rule, places, _] in tables().0 {
        assert!(!rule.is_empty(), "{name}: which rule?");
        for place in places.split("`, `") {
            let code = fs::read_to_string(crates.join(place)).unwrap_or_default();
            let is_there = [format!("Mutation::{name})"), format!("Rule::{name})")];
            assert!(is_there.iter().any(|call| code.contains(call)), "{name} does not stand in {place}");
        }
    }
}
