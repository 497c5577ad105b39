//! Offsets are forgotten when nobody needs them, and never before.

use crate::support::*;

const T: Place<'static> = ("t", 0);
const MINUTE_MS: i64 = 60_000;

/// Offsets are kept for ten minutes and looked at every minute.
const SETTINGS: &[(&str, &str)] =
    &[("offsets.retention.minutes", "10"), ("offsets.retention.check.interval.ms", "60000")];

fn broker() -> Broker {
    let mut broker = Broker::with(SETTINGS);
    broker.topic("t", 2);
    broker.topic("u", 1);
    broker
}

fn exists(broker: &Broker, group: &str) -> bool {
    broker.state().groups.group(&group.into()).is_some()
}

#[test]
fn an_offset_of_a_group_without_members_goes_by_its_age_and_then_the_group() {
    let mut broker = broker();
    let on = broker.connect();
    assert_eq!(broker.offset_commit(on, "g", T, 5), 0);
    broker.pass(5 * MINUTE_MS);
    assert_eq!(broker.offset_commit(on, "g", ("t", 1), 6), 0);
    broker.pass(4 * MINUTE_MS);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5), "it is not old enough");
    broker.restart_with(SETTINGS);
    broker.pass(2 * MINUTE_MS);
    assert_eq!(broker.offset_fetch("g", T, true), (0, -1));
    assert_eq!(broker.offset_fetch("g", ("t", 1), true), (0, 6), "each has its own age");
    broker.pass(5 * MINUTE_MS);
    assert!(!exists(&broker, "g"), "nothing is left of it");
    broker.restart_with(SETTINGS);
    assert!(!exists(&broker, "g"));
}

#[test]
fn a_group_that_lost_its_members_keeps_its_offsets_from_then_on() {
    let mut broker = broker();
    let members = broker.stable_group("g", 1);
    let (_, who) = &members[0];
    assert_eq!(broker.commit_as(who, T, 5), 0);
    for _ in 0..60 * 12 {
        broker.pass(5_000);
        assert_eq!(broker.heartbeat(who), 0);
    }
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5), "a member reads the topic: it is kept for ever");
    assert_eq!(broker.leave("g", &[who]), [0]);
    broker.pass(9 * MINUTE_MS);
    broker.restart_with(SETTINGS);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5));
    broker.pass(3 * MINUTE_MS);
    assert!(!exists(&broker, "g"));
}

#[test]
fn a_consuming_group_loses_offsets_of_topics_that_nobody_reads() {
    let mut broker = broker();
    let members = broker.stable_group("g", 1);
    let (_, who) = &members[0];
    assert_eq!((broker.commit_as(who, T, 5), broker.commit_as(who, ("u", 0), 6)), (0, 0));
    for _ in 0..12 * 12 {
        broker.pass(5_000);
        assert_eq!(broker.heartbeat(who), 0);
    }
    assert_eq!(broker.offset_fetch("g", T, true), (0, 5));
    assert_eq!(broker.offset_fetch("g", ("u", 0), true), (0, -1), "it reads another topic");
}

#[test]
fn an_offset_that_a_transaction_is_about_to_replace_stays() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 900_000);
    assert_eq!(broker.offset_commit(on, "g", T, 5), 0);
    assert_eq!(broker.offset_commit(on, "g", ("t", 1), 6), 0);
    broker.pass(4 * MINUTE_MS);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, 9)]).answer(), [0]);
    broker.pass(9 * MINUTE_MS);
    assert_eq!(broker.offset_fetch("g", T, false), (0, 5), "an undecided transaction carries one");
    assert_eq!(broker.offset_fetch("g", ("t", 1), false), (0, -1));
    assert_eq!(broker.abort(on, "tx", stamp), 0);
    broker.pass(2 * MINUTE_MS);
    assert!(!exists(&broker, "g"));
}

#[test]
fn a_group_of_a_transaction_alone_is_not_forgotten() {
    let mut broker = broker();
    let on = broker.connect();
    let stamp = broker.init(on, "tx", 900_000);
    assert_eq!(broker.add_offsets(on, 3, "tx", stamp, "g"), 0);
    assert_eq!(broker.txn_offset_commit(on, 3, "tx", stamp, "g", &[(T, 9)]).answer(), [0]);
    broker.pass(14 * MINUTE_MS);
    assert_eq!(broker.commit(on, "tx", stamp), 0);
    assert_eq!(broker.offset_fetch("g", T, true), (0, 9));
}

#[test]
fn thousands_of_groups_are_walked_through_in_one_interval() {
    let mut broker = broker();
    let on = broker.connect();
    for number in 0..3000 {
        broker.offset_commit(on, &format!("g{number}"), T, 1);
    }
    broker.pass(12 * MINUTE_MS);
    assert!(broker.state().groups.is_empty());
}
