//! Offsets of groups without members, plain and in transactions.

use semel_wire::Text;

use crate::support::*;

const T: Place<'static> = ("t", 0);

fn broker() -> Broker {
    let mut broker = Broker::new();
    broker.topic("t", 2);
    broker
}

#[test]
fn b45_a_transaction_made_only_of_offsets() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 5000);
    for (offset, commit, visible) in [(42, true, 42), (50, false, 42)] {
        assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
        assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, offset)]).answer(), [0]);
        assert_eq!(broker.end_raw(on, 3, "tx", stamp, commit).answer().error_code.get(), 0);
        assert_eq!(broker.offset_fetch("g", T, true), (0, visible));
    }
    broker.open_with(on, "tx", stamp, T, "data");
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 42), "nothing leaks into the next transaction");
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, 60)]).answer(), [0]);
    assert_eq!(broker.offset_fetch("g", T, true), (88, -1));
    broker.pass(6000);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 42), "a timeout releases the group");
}

#[test]
fn b68_offsets_of_an_open_transaction_who_sees_what() {
    let mut broker = broker();
    let on = broker.connect();
    assert_eq!(broker.offset_commit(on, "g", T, 100), 0);
    let stamp = broker.init(on, "tx", 10_000);
    let (first, second) = (T, ("t", 1));
    assert_eq!(broker.offset_fetch("g", second, false), (0, -1));
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    let sent = broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(first, 200), (second, 7)]);
    assert_eq!(sent.answer(), [0, 0]);
    assert_eq!(broker.offset_fetch("g", first, false), (0, 100));
    assert_eq!(broker.offset_fetch("g", first, true), (88, -1));
    assert_eq!(broker.offset_fetch("g", second, true), (88, -1));
    broker.restart();
    broker.pass(30_000);
    for stable in [false, true] {
        assert_eq!(broker.offset_fetch("g", first, stable), (0, 100));
        assert_eq!(broker.offset_fetch("g", second, stable), (0, -1));
    }
}

#[test]
fn b69_no_group_stays_unstable_when_no_transaction_is_alive() {
    let mut broker = broker();
    for round in 0..20 {
        let on = broker.connect();
        let id = format!("tx-{round}");
        let stamp = broker.init(on, &id, 5000);
        assert_eq!(broker.add_offsets(on, 3, &id, stamp, "g"), 0);
        assert_eq!(broker.txn_offset_commit(on, 3, &id, stamp, "g", &[(T, round)]).answer(), [0]);
        if round % 4 == 0 {
            broker.restart();
        }
        broker.pass(5001);
        assert_eq!(broker.offset_fetch("g", T, true), (0, -1));
    }
}

#[test]
fn b71_a_claimed_membership_is_refused_and_leaves_nothing_pending() {
    let mut broker = broker();
    let on = broker.connect();
    assert_eq!(broker.offset_commit(on, "g", T, 1), 0);
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    let mut request = txn_offset_commit_request("tx", stamp, "g", &[(T, 9)]);
    request.generation_id_or_member_epoch = 1;
    request.member_id = Text::from("nobody");
    assert_eq!(broker.ask_txn_offset_commit(on, 3, &request).answer(), [25]);
    request.group_id = Text::from("unknown");
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "unknown"), 0);
    assert_eq!(broker.ask_txn_offset_commit(on, 3, &request).answer(), [22]);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 1));
    for version in 0..3 {
        assert_eq!(broker.txn_offset_commit(on, version, "tx", stamp, "g", &[(T, 5)]).answer(), [0]);
    }
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5));
}

#[test]
fn without_a_generation_anybody_commits_in_a_group_without_members_but_not_in_a_transaction() {
    let mut broker = broker();
    let stranger = Someone { id: "nobody".to_owned(), generation: -1, ..Someone::new("g") };
    assert_eq!(broker.commit_as(&stranger, T, 1), 0, "the group is new");
    assert_eq!(broker.commit_as(&stranger, T, 2), 0, "and has no members");
    let named = Someone { instance: Some("name"), ..stranger.clone() };
    assert_eq!(broker.commit_as(&named, T, 3), 0);
    assert_eq!(broker.commit_as(&Someone { generation: 0, ..stranger.clone() }, T, 4), 25);
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    let mut request = txn_offset_commit_request("tx", stamp, "g", &[(T, 9)]);
    request.member_id = Text::from("nobody");
    assert_eq!(broker.ask_txn_offset_commit(on, 3, &request).answer(), [25], "KIP-447: a zombie");
    assert_eq!(broker.offset_fetch("g", T, false), (0, 3));
    broker.stable_group("g", 1);
    assert_eq!(broker.commit_as(&stranger, T, 5), 25, "it has members");
}

#[test]
fn version_5_refused_by_the_group_adds_nothing_to_the_transaction() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    let mut request = txn_offset_commit_request("tx", stamp, "unknown", &[(T, 9)]);
    request.generation_id_or_member_epoch = 3;
    assert_eq!(broker.ask_txn_offset_commit(on, 5, &request).answer(), [22]);
    assert_eq!(broker.end_raw(on, 5, "tx", stamp, true).answer().error_code.get(), 48, "nothing was started");
}

#[test]
fn b72_retried_and_conflicting_offsets_the_last_one_wins() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    for offset in [10, 10] {
        assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, offset)]).answer(), [0]);
    }
    let mixed = [(T, 12), (("nowhere", 0), 1)];
    assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &mixed).answer(), [0, 3]);
    let stale = semel_types::ProducerStamp { epoch: semel_types::ProducerEpoch::new(7), ..stamp };
    assert_eq!(broker.txn_offset_commit(on, 3, "tx", stale, "g", &[(T, 99)]).answer(), [47]);
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    let late = broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, 98)]).answer();
    assert_eq!(late, [48]);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 12));
}

#[test]
fn b75_a_commit_is_never_followed_by_the_old_offset() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 60_000);
    for offset in 1..300 {
        assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
        assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, offset)]).answer(), [0]);
        assert_eq!(broker.commit(on, "tx", stamp), 0);
        assert_eq!(broker.offset_fetch("g", T, true), (0, offset));
    }
}

/// The scenario has 25 for version 3; kafka-facts 3.4 has 48, which the table takes.
#[test]
fn b76_offsets_without_add_offsets() {
    for (version, code) in [(3, 48), (4, 120), (5, 0)] {
        let mut broker = broker();
        let on = broker.connect();
        let stamp = broker.init(on, "tx", 5000);
        assert_eq!(broker.txn_offset_commit(on, version, "tx", stamp, "g", &[(T, 5)]).answer(), [code]);
        broker.pass(6000);
        assert_eq!(broker.offset_fetch("g", T, true), (0, -1));
    }
}

#[test]
fn a_note_that_is_too_long_and_a_negative_offset_are_told_for_their_partition_alone() {
    use semel_wire::{RawOffset, api::offset_commit::*};
    let mut broker = broker();
    let on = broker.connect();
    let partition = |index, offset, note: &str| OffsetCommitPartition {
        partition_index: semel_types::PartitionIndex::new(index),
        committed_offset: RawOffset(offset),
        committed_metadata: Some(Text::from(note)),
        ..Default::default()
    };
    let partitions = vec![partition(0, 5, &"n".repeat(4097)), partition(1, 6, "note"), partition(0, -5, "")];
    let topic = OffsetCommitTopic { name: Text::from("t"), partitions, ..Default::default() };
    let request =
        OffsetCommitRequest { group_id: Text::from("g"), topics: vec![topic], ..Default::default() };
    let response: OffsetCommitResponse = broker.ask(on, 8, &request).answer();
    let codes: Vec<_> = response.topics[0].partitions.iter().map(|one| one.error_code.get()).collect();
    assert_eq!(codes, [12, 0, 42]);
    assert_eq!(broker.offset_fetch("g", T, false), (0, -1));
    assert_eq!(broker.offset_fetch("g", ("t", 1), false), (0, 6));
}

#[test]
fn offsets_of_all_topics_are_told_by_name_and_by_id_and_go_with_the_topic() {
    use semel_wire::api::offset_fetch::*;
    let mut broker = broker();
    broker.topic("u", 1);
    let on = broker.connect();
    for (place, offset) in [(T, 1), (("t", 1), 2), (("u", 0), 3)] {
        assert_eq!(broker.offset_commit(on, "g", place, offset), 0);
    }
    let all = |broker: &mut Broker| -> Vec<(String, i32, i64)> {
        let group = OffsetFetchGroup { group_id: Text::from("g"), topics: None, ..Default::default() };
        let request = OffsetFetchRequest { groups: vec![group], ..Default::default() };
        let on = broker.connect();
        let response: OffsetFetchResponse = broker.ask(on, 9, &request).answer();
        let topics = response.groups[0].topics.iter();
        let of_topic = |topic: &OffsetFetchGroupTopicResponse| {
            let name = topic.name.as_str().to_owned();
            let partitions = topic.partitions.clone().into_iter();
            partitions.map(move |one| (name.clone(), one.partition_index.get(), one.committed_offset.get()))
        };
        topics.flat_map(of_topic).collect()
    };
    let expected =
        [("t", 0, 1), ("t", 1, 2), ("u", 0, 3)].map(|(name, index, offset)| (name.to_owned(), index, offset));
    assert_eq!(all(&mut broker), expected);
    broker.delete_topic("t");
    assert_eq!(all(&mut broker), expected[2..]);
    broker.topic("t", 2);
    assert_eq!(broker.offset_fetch("g", T, false), (0, -1));
}
