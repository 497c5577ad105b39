//! `docs/scenarios.md` names tests that exist, and every scenario test of this suite, and of the server's, is named there.

use std::collections::BTreeSet;

const SOURCES: [&str; 19] = [
    include_str!("alter.rs"),
    include_str!("bad_input.rs"),
    include_str!("coordinator.rs"),
    include_str!("dedup.rs"),
    include_str!("delete_records.rs"),
    include_str!("describe.rs"),
    include_str!("fencing.rs"),
    include_str!("group_histories.rs"),
    include_str!("groups.rs"),
    include_str!("init_producer_id.rs"),
    include_str!("markers.rs"),
    include_str!("offsets.rs"),
    include_str!("read_committed.rs"),
    include_str!("recovery.rs"),
    include_str!("stricter.rs"),
    include_str!("topics.rs"),
    include_str!("transaction_codes.rs"),
    include_str!("../../../server/tests/tcp/fights.rs"),
    include_str!("../../../server/tests/tcp/kills.rs"),
];

/// Names of all tests here, and of those that are scenarios.
fn tests() -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let lines = SOURCES.iter().flat_map(|source| source.lines());
    let names = lines.filter_map(|line| line.strip_prefix("fn ")?.split_once("() {").map(|(name, _)| name));
    let all: BTreeSet<_> = names.collect();
    let numbered = |name: &&str| {
        let rest = name.strip_prefix(['b', 's']).unwrap_or_default();
        rest.starts_with(|first: char| first.is_ascii_digit())
    };
    let scenarios = all.iter().copied().filter(|name| numbered(name)).collect();
    (all, scenarios)
}

#[test]
fn the_table_of_scenarios_and_the_tests_agree() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
    let table = std::fs::read_to_string(path).unwrap();
    let (all, scenarios) = tests();
    let quoted: BTreeSet<_> = table.split('`').skip(1).step_by(2).collect();
    for name in &scenarios {
        assert!(quoted.contains(name), "docs/scenarios.md does not name {name}");
    }
    let named = |quoted: &&&str| quoted.starts_with(['b', 's']) && quoted.contains('_');
    for name in quoted.iter().filter(named) {
        assert!(all.contains(name), "docs/scenarios.md names {name}, which is not here");
    }
}
