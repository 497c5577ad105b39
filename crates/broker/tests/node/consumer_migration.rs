//! Groups that change between the classic protocol and KIP-848 while they have members.

use std::collections::BTreeSet;

use semel_groups::Kind;

use crate::support::*;

fn broker(settings: &[(&str, &str)]) -> Broker {
    let mut broker = Broker::with(settings);
    broker.topic("t", 4);
    broker
}

/// So many classic members with everything given out.
fn classics(broker: &mut Broker, count: usize, cooperative: bool) -> Vec<Classic> {
    let mut members: Vec<_> = (0..count).map(|_| Classic::new(broker, "g")).collect();
    for _ in 0..6 {
        for member in &mut members {
            member.cooperative = cooperative;
            member.step(broker);
        }
        broker.pass(3000);
    }
    assert!(members.iter().all(Classic::is_working));
    assert_eq!(all(&members, &[]), (0..4).collect());
    members
}

/// Everything that is owned, once each.
fn all(classics: &[Classic], consumers: &[&Consumer]) -> BTreeSet<i32> {
    let classic = classics.iter().flat_map(|member| member.owned.iter().copied());
    let owned: Vec<_> = classic.chain(consumers.iter().flat_map(|one| one.indexes())).collect();
    let set: BTreeSet<_> = owned.iter().copied().collect();
    assert_eq!(set.len(), owned.len(), "a partition is owned twice");
    set
}

fn kind(broker: &Broker) -> &'static str {
    broker.state().groups.group(&"g".into()).unwrap().kind().name()
}

/// Everybody steps until nothing moves.
fn settle(broker: &mut Broker, classics: &mut [Classic], consumers: &mut [&mut Consumer]) {
    for _ in 0..20 {
        classics.iter_mut().for_each(|member| member.step(broker));
        for consumer in consumers.iter_mut() {
            assert_eq!(broker.beat(consumer), 0);
        }
        let now: Vec<&Consumer> = consumers.iter().map(|one| &**one).collect();
        all(classics, &now);
        broker.pass(500);
    }
    assert!(classics.iter().all(Classic::is_working));
}

#[test]
fn a_classic_group_becomes_a_consumer_group_and_its_members_are_served_on() {
    for cooperative in [false, true] {
        let mut broker = broker(&[]);
        let mut old = classics(&mut broker, 2, cooperative);
        let place = ("t", *old[0].owned.first().unwrap());
        assert_eq!(broker.commit_as(&old[0].who, place, 5), 0);
        let mut new = Consumer::new("g", "new");
        assert_eq!(broker.beat(&mut new), 0);
        assert_eq!(kind(&broker), "consumer");
        assert_eq!((new.epoch, new.indexes().len()), (2, 0), "the others have everything still");
        assert_eq!(broker.commit_as(&old[0].who, place, 6), 0, "their generation is their epoch");
        assert_eq!(broker.heartbeat(&old[0].who), 27);
        broker.restart();
        old.iter_mut().for_each(|member| member.on = broker.connect());
        settle(&mut broker, &mut old, &mut [&mut new]);
        assert_eq!(all(&old, &[&new]), (0..4).collect());
        assert_eq!(new.indexes().len(), 1);
        assert_eq!(broker.offset_fetch("g", place, true), (0, 6));
        let described = broker.describe_consumers("g");
        let types: BTreeSet<_> = described.members.iter().map(|one| one.member_type).collect();
        assert_eq!((described.group_state.as_str(), types), ("Stable", BTreeSet::from([0, 1])));
    }
}

#[test]
fn when_the_last_consumer_leaves_the_group_is_classic_again_and_rebalances() {
    for crash in [false, true] {
        let mut broker = broker(&[]);
        let mut old = classics(&mut broker, 2, true);
        let mut new = Consumer::new("g", "new");
        settle(&mut broker, &mut old, &mut [&mut new]);
        if crash {
            for _ in 0..10 {
                broker.pass(5000);
                old.iter_mut().for_each(|member| member.step(&mut broker));
            }
        } else {
            assert_eq!(broker.leave_consumer(&new, -1), 0);
        }
        assert_eq!(kind(&broker), "classic");
        broker.restart();
        old.iter_mut().for_each(|member| member.on = broker.connect());
        old.iter_mut().filter(|member| !member.is_working()).for_each(|member| member.doing = Doing::Nothing);
        settle(&mut broker, &mut old, &mut []);
        assert_eq!(all(&old, &[]), (0..4).collect());
        assert!(old.iter().all(|member| member.who.generation > new.epoch), "the generation rises");
        assert_eq!(broker.beat(&mut new), 69, "a classic group has no such member");
    }
}

#[test]
fn the_generation_after_the_last_consumer_tells_who_left() {
    let mut broker = broker(&[]);
    let mut old = classics(&mut broker, 1, true);
    let mut new = Consumer::new("g", "new");
    settle(&mut broker, &mut old, &mut [&mut new]);
    assert_eq!(broker.leave_consumer(&new, -1), 0);
    settle(&mut broker, &mut old, &mut []);
    let generation = old[0].who.generation;
    let due = vec!["left new".to_owned(), "protocol-changed ".to_owned()];
    let rounds = broker.rounds("g");
    assert!(rounds.contains(&(new.epoch + 1, 1, due)), "{rounds:?}");
    let count = |wanted: i32| rounds.iter().filter(|(number, ..)| *number == wanted).count();
    assert!((1..=generation).all(|number| count(number) == 1), "each once: {rounds:?}");
}

#[test]
fn a_classic_member_joins_a_consumer_group_and_leaves_it() {
    let mut broker = broker(&[]);
    let mut new = Consumer::new("g", "new");
    broker.settle_consumers(&mut [&mut new]);
    let mut old = vec![Classic::new(&mut broker, "g")];
    settle(&mut broker, &mut old, &mut [&mut new]);
    assert_eq!((old[0].owned.len(), new.indexes().len()), (2, 2));
    let who = old[0].who.clone();
    assert_eq!(broker.heartbeat(&Someone { generation: 77, ..who.clone() }), 22);
    assert_eq!(broker.leave("g", &[&who]), [0]);
    assert_eq!(broker.heartbeat(&who), 25);
    broker.settle_consumers(&mut [&mut new]);
    assert_eq!(new.indexes(), [0, 1, 2, 3]);
    assert_eq!(kind(&broker), "consumer");
}

#[test]
fn a_classic_member_that_does_not_join_again_is_removed() {
    let mut broker = broker(&[]);
    let old = classics(&mut broker, 1, true);
    let mut new = Consumer::new("g", "new");
    for _ in 0..14 {
        assert_eq!(broker.beat(&mut new), 0);
        assert!([27, 25].contains(&broker.heartbeat(&old[0].who)));
        broker.pass(5000);
    }
    assert_eq!(broker.heartbeat(&old[0].who), 25);
    broker.settle_consumers(&mut [&mut new]);
    assert_eq!(new.indexes(), [0, 1, 2, 3]);
}

#[test]
fn the_policy_says_which_way_a_group_may_change() {
    for (policy, up, down) in
        [("disabled", false, false), ("upgrade", true, false), ("downgrade", false, true)]
    {
        let mut broker = broker(&[("group.consumer.migration.policy", policy)]);
        let mut old = classics(&mut broker, 1, true);
        let mut new = Consumer::new("g", "new");
        assert_eq!(broker.beat(&mut new), if up { 0 } else { 69 }, "{policy}");
        if !up {
            continue;
        }
        settle(&mut broker, &mut old, &mut [&mut new]);
        assert_eq!(broker.leave_consumer(&new, -1), 0);
        assert_eq!(kind(&broker) == "classic", down, "{policy}");
        settle(&mut broker, &mut old, &mut []);
        assert_eq!(old[0].owned.len(), 4);
    }
}

#[test]
fn an_empty_group_changes_at_once_and_keeps_its_offsets_and_its_count() {
    let mut broker = broker(&[]);
    let old = classics(&mut broker, 1, true);
    assert_eq!(broker.commit_as(&old[0].who, ("t", 0), 5), 0);
    assert_eq!(broker.leave("g", &[&old[0].who]), [0]);
    let generation = broker.state().groups.group(&"g".into()).unwrap().kind().epoch();
    let mut new = Consumer::new("g", "new");
    broker.settle_consumers(&mut [&mut new]);
    assert!(new.epoch > generation);
    assert_eq!(broker.offset_fetch("g", ("t", 0), true), (0, 5));
    assert_eq!(broker.leave_consumer(&new, -1), 0);
    let again = classics(&mut broker, 1, true);
    assert!(again[0].who.generation > new.epoch);
    let group = broker.state().groups.group(&"g".into()).unwrap();
    assert!(matches!(group.kind(), Kind::Classic(_)));
    assert_eq!(broker.offset_fetch("g", ("t", 0), true), (0, 5));
}

#[test]
fn a_group_of_another_protocol_type_does_not_change() {
    let mut broker = broker(&[]);
    let on = broker.connect();
    let mut who = Someone::new("g");
    let mut request = join_request(&who, &[("v1", b"x")]);
    request.protocol_type = semel_wire::Text::from("connect");
    let first = broker.park(
        on,
        3,
        &semel_wire::api::join_group::JoinGroupRequest { group_instance_id: None, ..request },
    );
    broker.pass(3000);
    broker.joined(first, &mut who);
    assert_eq!(broker.beat(&mut Consumer::new("g", "new")), 69);
}
