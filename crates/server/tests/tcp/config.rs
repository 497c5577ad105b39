//! Where settings come from.

use serde_json::Value;

use crate::rig::{Rig, hello, run, said};

/// Value and source of a setting, as `semel config --json` tells.
fn shown(arguments: &[&str], environment: &[(&str, &str)], name: &str) -> (String, String) {
    let mut all = vec!["config", "--json"];
    all.extend(arguments);
    let output = run(&all, environment);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row =
        rows.as_array().and_then(|rows| rows.iter().find(|row| row["name"] == name)).expect("it is listed");
    let text = |key: &str| row[key].as_str().expect("a text").to_owned();
    (text("value"), text("source"))
}

fn pair(value: &str, source: &str) -> (String, String) {
    (value.to_owned(), source.to_owned())
}

#[test]
fn a_flag_beats_the_environment_that_beats_the_file_that_beats_the_default() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in [("semel.toml", "num.partitions = 3\n"), ("server.properties", "num.partitions=3\n")]
    {
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("it is ours");
        let file = file.to_str().expect("a path of ours");
        let environment = [("SEMEL_NUM_PARTITIONS", "4")];
        let flag = ["--config", file, "--set", "num.partitions=5"];
        let name = "num.partitions";
        assert_eq!(shown(&[], &[], name), pair("1", "default"));
        assert_eq!(shown(&flag[..2], &[], name), pair("3", &format!("file {file}")));
        assert_eq!(shown(&flag[..2], &environment, name), pair("4", "environment SEMEL_NUM_PARTITIONS"));
        assert_eq!(shown(&flag, &environment, name), pair("5", "flag"));
    }
}

#[test]
fn every_wrong_source_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("semel.toml");
    std::fs::write(&file, "num.partition = 3\n").expect("it is ours");
    let path = file.to_str().expect("a path of ours");
    let fails = |arguments: &[&str], environment: &[(&str, &str)], texts: &[&str]| {
        let mut all = vec!["config"];
        all.extend(arguments);
        let output = run(&all, environment);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for text in texts {
            assert!(said(&output).contains(text), "{text:?} is not in {}", said(&output));
        }
    };
    fails(&["--config", path], &[], &[path, "num.partition", "did you mean num.partitions?"]);
    fails(&[], &[("SEMEL_NUM_PARTITIONS", "0")], &["SEMEL_NUM_PARTITIONS", "num.partitions"]);
    fails(&["--set", "num.partitions"], &[], &["--set", "key=value"]);
    fails(&["--config", "/nowhere/semel.toml"], &[], &["/nowhere/semel.toml"]);
    std::fs::write(&file, "num.partitions = = 3\n").expect("it is ours");
    fails(&["--config", path], &[], &[path, "TOML"]);
}

#[test]
fn people_get_each_setting_on_a_line_with_its_source() {
    let output = run(&["config", "--set", "node.id=7"], &[]);
    assert!(said(&output).lines().any(|line| line.starts_with("node.id = 7") && line.contains("(flag)")));
}

#[test]
fn clients_are_told_the_transaction_version_of_the_flag() {
    for (flag, level) in [(None, Some(2)), (Some("0"), None), (Some("1"), Some(1)), (Some("2"), Some(2))] {
        let mut arguments = vec!["--durability", "memory"];
        arguments.extend(flag.into_iter().flat_map(|level| ["--transaction-version", level]));
        let response = Rig::start(&arguments).client().call(&hello(), 4).expect("it serves");
        let mut features = response.finalized_features.iter();
        let told = features.find(|feature| feature.name.as_str() == "transaction.version");
        let told = told.map(|feature| feature.max_version_level);
        assert_eq!(told, level, "{flag:?}");
    }
    let refused = run(&["serve", "--transaction-version", "3"], &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
}
