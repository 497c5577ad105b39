//! The other commands: what they print, their fields as JSON, their exit statuses.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use crate::rig::{Rig, open, program, run, said, t};

#[test]
fn lso_names_the_holder_and_the_command_that_it_prints_ends_it() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    assert!(rig.text(&["lso", "t:0"]).contains("nothing holds it"));
    let id = "it's mine";
    let identity = app.init(Some(id)).expect("it serves");
    open(&mut app, id, identity, 0);
    let told = rig.text(&["lso", "t"]);
    assert!(told.contains("t-0: last stable offset 0, high watermark 1"), "{told}");
    assert!(
        told.contains("from offset 0 held by \"it's mine\", client \"app-1\" (java 4.4.0, 127.0.0.1:"),
        "{told}"
    );
    let (_, command) = told.split_once("to end it now: ").expect("it names a command");
    let path = program().parent().expect("it lies somewhere");
    let output =
        Command::new("/bin/sh").args(["-c", command.trim()]).env("PATH", path).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", said(&output));
    assert!(rig.text(&["lso", "t:0"]).contains("nothing holds it"));
    let again = rig.json(&["txn", "abort", id]);
    assert_eq!(again["aborted"], false, "nothing is open any more");
}

#[test]
fn list_and_describe_show_where_transactions_stand() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    let (idle, busy) =
        (app.init(Some("idle")).expect("it serves"), app.init(Some("busy")).expect("it serves"));
    open(&mut app, "busy", busy, 0);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let listed = rig.json(&[&["txn", "list"], arguments].concat());
        let all = listed["transactions"].as_array().expect("a list").clone();
        all.iter().filter_map(|one| one["transactional_id"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(ids(&[]), ["busy", "idle"]);
    assert_eq!(ids(&["--state", "Ongoing"]), ["busy"]);
    assert_eq!(ids(&["--longer-than", "1h"]), Vec::<String>::new());
    let described = rig.json(&["txn", "describe", "busy"]);
    assert_eq!(described["state"], "Ongoing");
    assert_eq!(described["producer_id"], busy.id.get());
    assert_eq!(described["partitions"][0]["topic"], "t");
    assert_ne!(idle.id, busy.id);
    let producers = rig.json(&["producers", "t:0"]);
    let producer = &producers["partitions"][0]["producers"][0];
    assert_eq!(
        (&producer["producer_id"], &producer["open_since_offset"]),
        (&busy.id.get().into(), &0.into())
    );
    assert_eq!(
        rig.text(&["txn", "hanging", "--older-than", "0s"]),
        "No hanging transactions.\n",
        "its coordinator knows it"
    );
}

#[test]
fn a_transaction_of_nothing_but_offsets_can_be_aborted() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    let identity = app.init(Some("offsets")).expect("it serves");
    assert!(!app.add_offsets("offsets", identity, "g").expect("it serves").is_error());
    assert_eq!(rig.json(&["txn", "abort", "offsets"])["aborted"], true);
    assert_eq!(rig.json(&["txn", "explain", "offsets"])["open"], Value::Null);
    let story = rig.story("offsets");
    let last = story.last().expect("it has a story");
    assert!(last.contains("Aborted by an administrator, client \"semel-cli\""), "{last}");
    assert!(last.contains("with WriteTxnMarkers"), "no takeover: {last}");
}

#[test]
fn exit_statuses_are_those_of_the_help() {
    let rig = Rig::start();
    let status = |arguments: &[&str]| rig.run(arguments).status.code();
    assert_eq!(status(&["txn", "list"]), Some(0));
    assert_eq!(status(&["txn", "hanging"]), Some(0));
    for unknown in [
        &["txn", "describe", "nobody"][..],
        &["txn", "explain", "nobody"],
        &["txn", "abort", "nobody"],
        &["producers", "nowhere"],
        &["producers", "t:9"],
        &["lso", "nowhere"],
        &["lso", "t:9"],
    ] {
        let output = rig.run(unknown);
        assert_eq!(output.status.code(), Some(3), "{unknown:?}: {}", said(&output));
    }
    for (wrong, named) in [
        (&["txn"][..], ""),
        (&["txn", "describe"], ""),
        (&["lso", "t:x"], ""),
        (&["fences", "--since", "soon"], ""),
        (&["txn", "list", "--state", "bogus"], "PrepareCommit"),
        (&["group", "list", "--state", "emtpy"], "Empty, PreparingRebalance"),
        (&["group", "describe", ""], "not empty"),
        (&["group", "reset-offsets", "", "--to-earliest"], "not empty"),
        (&["group", "reset-offsets", "g", "--to-datetime", "2026-02-30"], "2026-02-30"),
        (&["group", "reset-offsets", "g", "--to-datetime", "1960-01-01"], "since 1970"),
        (&["txn", "list", "--bootstrap", "foo"], "HOST:PORT"),
        (&["fences", "--admin", "foo"], "HOST:PORT"),
        (&["certify", "--bootstrap", "foo"], "HOST:PORT"),
    ] {
        let output = rig.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", said(&output));
        assert!(said(&output).contains(named), "{wrong:?}: {}", said(&output));
    }
}

#[test]
fn addresses_of_two_brokers_are_not_put_together() {
    let (one, other) = (Rig::start(), Rig::start());
    let addresses = [("SEMEL_BOOTSTRAP", one.server.address()), ("SEMEL_ADMIN", other.server.admin())];
    for command in [&["group", "describe", "g"][..], &["lso", "t"]] {
        let output = run(command, &addresses);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", said(&output));
        for address in [one.server.address(), other.server.admin(), other.server.address()] {
            assert!(said(&output).contains(address), "{address}: {}", said(&output));
        }
    }
}

#[test]
fn nobody_at_the_address_is_said_with_the_flag_that_names_another() {
    let nowhere = [("SEMEL_BOOTSTRAP", "127.0.0.1:1"), ("SEMEL_ADMIN", "127.0.0.1:1")];
    for (arguments, what) in [
        (&["txn", "list"][..], "cannot reach a broker at 127.0.0.1:1: "),
        (&["producers", "t"], "--bootstrap names another address"),
        (&["fences"], "cannot reach the broker's admin endpoint at 127.0.0.1:1: "),
        (&["fences", "--follow"], "--admin names another address"),
        (&["lso", "t:0"], "is it running (semel serve)?"),
    ] {
        let output = run(arguments, &nowhere);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(what), "{arguments:?}: {}", said(&output));
    }
}

/// Every name of a field in a value.
pub fn names(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
            into.insert(name.clone());
            names(inner, into);
        }),
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_of_json_stands_in_the_page_of_commands() {
    let rig = Rig::start();
    let (mut old, mut new) = (rig.client("app-1"), rig.client("app-2"));
    let identity = old.init(Some("a")).expect("it serves");
    open(&mut old, "a", identity, 0);
    let next = new.init(Some("a")).expect("it serves");
    old.add("a", identity, &[t()]).expect("it serves");
    open(&mut new, "a", next, 0);
    let page = include_str!("../../../../docs/commands.md");
    for arguments in [
        &["txn", "list"][..],
        &["txn", "describe", "a"],
        &["txn", "explain", "a"],
        &["txn", "hanging"],
        &["producers", "t"],
        &["fences"],
        &["lso", "t"],
        &["txn", "abort", "a"],
    ] {
        let command = format!("## semel {}", arguments[..arguments.len().min(2)].join(" "));
        let heading = if arguments[0] == "txn" { command } else { format!("## semel {}", arguments[0]) };
        let (_, section) =
            page.split_once(&heading).unwrap_or_else(|| panic!("{heading} is not in the page"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let mut found = BTreeSet::new();
        names(&rig.json(arguments), &mut found);
        assert!(!found.is_empty(), "{arguments:?}");
        for name in found {
            assert!(section.contains(&format!("`{name}`")), "{heading} does not name the field {name}");
        }
    }
}
