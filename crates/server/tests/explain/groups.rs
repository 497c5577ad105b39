//! `semel group`: what it prints, what it changes, and how it counts what a group has yet to read.

use std::collections::BTreeSet;

use semel_certify::{Session, session::Write};
use semel_types::PartitionIndex;
use semel_wire::{
    RawLeaderEpoch, RawOffset, Text,
    api::{
        join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
        leave_group::{LeaveGroupRequest, LeavingMember},
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        sync_group::{SyncGroupRequest, SyncGroupRequestAssignment},
    },
};

use crate::{
    commands::names,
    rig::{Rig, open, said, t},
};

/// Commits an offset from outside of the group.
#[track_caller]
fn commit(session: &mut Session, group: &str, offset: i64) -> i16 {
    let partition = OffsetCommitPartition {
        partition_index: PartitionIndex::new(0),
        committed_offset: RawOffset(offset),
        committed_leader_epoch: RawLeaderEpoch::NONE,
        committed_metadata: Some(Text::EMPTY),
    };
    let request = OffsetCommitRequest {
        group_id: Text::from(group),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitTopic {
            name: Text::from("t"),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = session.client.call(&request, 8).expect("it serves");
    answer.topics[0].partitions[0].error_code.get()
}

/// Joins as the only member; its id.
fn join(session: &mut Session, group: &str) -> JoinGroupResponse {
    let metadata = b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff".to_vec();
    let protocol = JoinGroupRequestProtocol { name: Text::from("range"), metadata: metadata.into() };
    let request = JoinGroupRequest {
        group_id: Text::from(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: Text::from("consumer"),
        protocols: vec![protocol],
        ..Default::default()
    };
    session.client.call(&request, 3).expect("it serves")
}

/// A member that has partition 0 of `t`.
fn settle(session: &mut Session, group: &str) -> JoinGroupResponse {
    let joined = join(session, group);
    assert_eq!(joined.error_code.get(), 0);
    let assignment = b"\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\xff\xff\xff\xff".to_vec();
    let request = SyncGroupRequest {
        group_id: Text::from(group),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: assignment.into(),
        }],
        ..Default::default()
    };
    assert_eq!(session.client.call(&request, 2).expect("it serves").error_code.get(), 0);
    joined
}

fn write(session: &mut Session, values: &[&[u8]]) {
    let write = Write { identity: None, sequence: -1, values, transactional_id: None };
    assert!(!session.produce(&t(), write).expect("it serves").code.is_error());
}

/// Offsets 0 to 2 plain records, 3 aborted and 4 its marker, 5 committed and 6 its marker, 7 undecided.
fn mixture(rig: &Rig) -> Session {
    let mut app = rig.client("app-1");
    write(&mut app, &[b"a", b"b", b"c"]);
    let identity = app.init(Some("tx")).expect("it serves");
    for (sequence, commits) in [(0, Some(false)), (1, Some(true)), (2, None)] {
        open(&mut app, "tx", identity, sequence);
        if let Some(commit) = commits {
            assert!(!app.end("tx", identity, commit).expect("it serves").code.is_error());
        }
    }
    app
}

#[test]
fn lag_counts_the_records_that_a_reader_gets_and_raw_offsets_beside_them() {
    let rig = Rig::start();
    let mut app = mixture(&rig);
    for (committed, records, offsets) in [(0, 4, 8), (1, 3, 7), (3, 1, 5), (4, 1, 4), (6, 0, 2), (7, 0, 1)] {
        assert_eq!(commit(&mut app, "g", committed), 0);
        let described = rig.json(&["group", "describe", "g"]);
        let offset = &described["offsets"][0];
        let lag = (offset["lag_records"].as_i64(), offset["lag_offsets"].as_i64());
        assert_eq!(lag, (Some(records), Some(offsets)), "committed {committed}");
        assert_eq!((&offset["last_stable_offset"], &offset["high_watermark"]), (&7.into(), &8.into()));
    }
    let uncounted = rig.json(&["group", "describe", "g", "--no-count"]);
    assert!(uncounted["offsets"][0]["lag_records"].is_null());
    assert_eq!(rig.run(&["group", "describe", "no"]).status.code(), Some(3));
}

#[test]
fn offsets_are_moved_only_when_told_to_and_within_the_log() {
    let rig = Rig::start();
    let mut app = mixture(&rig);
    assert_eq!(commit(&mut app, "g", 3), 0);
    let reset = |arguments: &[&str]| {
        let moved = rig.json(&[&["group", "reset-offsets", "g"], arguments].concat());
        let offset = &moved["offsets"][0];
        (offset["before"].as_i64(), offset["after"].as_i64())
    };
    assert_eq!(reset(&["--to-latest"]), (Some(3), Some(8)));
    assert_eq!(reset(&["--to-earliest", "--topic", "t"]), (Some(3), Some(0)), "nothing was changed before");
    assert_eq!(reset(&["--shift-by", "-2", "--execute"]), (Some(3), Some(1)));
    assert_eq!(reset(&["--shift-by", "-5", "--topic", "t:0", "--execute"]), (Some(1), Some(0)));
    assert_eq!(reset(&["--to-offset", "99", "--execute"]), (Some(0), Some(8)));
    // The records here have no time; the first marker has one.
    assert_eq!(reset(&["--to-datetime", "1970-01-01", "--execute"]), (Some(8), Some(4)));
    assert_eq!(reset(&["--to-datetime", "9999-12-31"]), (Some(4), Some(8)), "none is so late: the end");
    let fresh = rig.json(&["group", "reset-offsets", "new", "--topic", "t", "--to-earliest", "--execute"]);
    assert!(fresh["offsets"][0]["before"].is_null(), "a group is made by its first offset");
    assert_eq!(rig.json(&["group", "describe", "new"])["offsets"][0]["committed_offset"], 0);
    for (arguments, exit) in [
        (&["--topic", "no", "--to-earliest"][..], 3),
        (&["--topic", "t:7", "--to-earliest"], 3),
        (&["--topic", "t"], 2),
        (&["--to-datetime", "2026-11-31"], 2),
        (&["--to-earliest", "--to-latest"], 2),
    ] {
        let output = rig.run(&[&["group", "reset-offsets", "g"], arguments].concat());
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn a_group_with_a_member_is_described_explained_and_neither_reset_nor_deleted() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    write(&mut app, &[b"a"]);
    let joined = settle(&mut app, "g");
    let listed = rig.json(&["group", "list"]);
    assert_eq!(
        (&listed["groups"][0]["group"], &listed["groups"][0]["state"]),
        (&"g".into(), &"Stable".into())
    );
    assert_eq!(rig.json(&["group", "list", "--state", "Empty"])["groups"], serde_json::json!([]));
    let described = rig.json(&["group", "describe", "g"]);
    let member = &described["members"][0];
    assert_eq!((&member["client_id"], &member["leader"]), (&"app-1".into(), &true.into()));
    assert_eq!(member["client_host"], "127.0.0.1", "without Java's slash");
    assert_eq!(member["partitions"], serde_json::json!([{ "topic": "t", "partition": 0 }]));
    for command in [
        &["group", "delete", "g"][..],
        &["group", "reset-offsets", "g", "--topic", "t", "--to-latest", "--execute"],
    ] {
        let output = rig.run(command);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("has members"), "{}", said(&output));
        assert!(!said(&output).contains("txn abort"), "no transaction is in the way: {}", said(&output));
    }
    let leaving = LeavingMember { member_id: joined.member_id.clone(), ..Default::default() };
    let request =
        LeaveGroupRequest { group_id: Text::from("g"), members: vec![leaving], ..Default::default() };
    assert_eq!(app.client.call(&request, 4).expect("it serves").error_code.get(), 0);
    let explained = rig.json(&["group", "explain", "g"]);
    let rounds = explained["rebalances"].as_array().expect("it rebalanced").clone();
    let reasons: Vec<_> =
        rounds.iter().map(|round| (round["epoch"].as_i64(), round["causes"][0]["reason"].as_str())).collect();
    assert_eq!(reasons, [(Some(1), Some("joined")), (Some(2), Some("left"))]);
    let told = rig.text(&["group", "explain", "g"]);
    assert!(told.contains("Epoch 2 with 0 members") && told.contains("left"), "{told}");
    assert_eq!(rig.json(&["group", "delete", "g"])["deleted"], serde_json::json!(["g"]));
    for command in ["delete", "describe", "explain"] {
        let output = rig.run(&["group", command, "g"]);
        assert_eq!(output.status.code(), Some(3), "a deleted group is gone, {command}: {}", said(&output));
    }
    settle(&mut app, "g");
    let anew = rig.json(&["group", "explain", "g"]);
    assert_eq!(anew["rebalances"].as_array().map(Vec::len), Some(1), "its history is its own: {anew}");
    assert_eq!(rig.run(&["group", "explain", "never"]).status.code(), Some(3));
}

#[test]
fn of_several_groups_those_that_are_gone_are_told_before_those_that_are_not() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    write(&mut app, &[b"a"]);
    for group in ["ga", "gb", "gc"] {
        assert_eq!(commit(&mut app, group, 0), 0);
    }
    let output = rig.run(&["group", "delete", "ga", "nope", "gb", "ga", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON in spite of an error");
    assert_eq!(told["deleted"], serde_json::json!(["ga", "gb"]));
    assert_eq!(told["failed"][0]["group"], "nope");
    assert_eq!(told["failed"].as_array().map(Vec::len), Some(1), "{told}");
    let output = rig.run(&["group", "delete", "gc", "gc", "nope"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Deleted group \"gc\".\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "semel: there is no group \"nope\"\n");
}

#[test]
fn offsets_of_a_group_that_does_not_exist_are_not_reset_without_a_topic() {
    let rig = Rig::start();
    let output = rig.run(&["group", "reset-offsets", "nope", "--to-earliest"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
}

#[test]
fn control_characters_of_a_groups_name_stay_in_its_line() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    assert_eq!(commit(&mut app, "a\nb\u{1b}[2J", 0), 0);
    let told = rig.text(&["group", "list"]);
    assert!(told.lines().count() == 2 && told.contains(r"a\nb\u{1b}[2J"), "{told:?}");
}

#[test]
fn a_group_that_an_undecided_transaction_holds_is_not_deleted_and_the_error_says_how_to_end_it() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    let identity = app.init(Some("tx")).expect("it serves");
    assert!(!app.add_offsets("tx", identity, "g").expect("it serves").is_error());
    let offset = (&t(), semel_types::Offset::ZERO);
    assert!(!app.commit_offset("tx", identity, "g", offset).expect("it serves").is_error());
    let output = rig.run(&["group", "delete", "g"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("semel txn abort ID"), "{}", said(&output));
    assert!(!said(&output).contains("has members"), "{}", said(&output));
}

#[test]
fn every_field_of_a_groups_json_stands_in_the_page_of_commands() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    write(&mut app, &[b"a"]);
    assert_eq!(commit(&mut app, "g", 0), 0);
    settle(&mut app, "g");
    let page = include_str!("../../../../docs/commands.md");
    for arguments in [
        &["group", "list"][..],
        &["group", "describe", "g"],
        &["group", "explain", "g"],
        &["group", "reset-offsets", "g", "--to-latest"],
    ] {
        let heading = format!("## semel {}", arguments[..2].join(" "));
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
