//! Area `admin`: operators are told the truth about transactions, and can find what blocks readers.

use crate::{
    Actor, Filter,
    Outcome::Commit,
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

use super::coordinator::QUICK_EXPIRY;

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B91, &B91G, &B93];

const B91: Scenario = Scenario {
    id: "B91",
    title: "one transactional id at every stage, described and listed",
    promise: "What an operator is shown of a transaction is what it is, from its first request to its oblivion.",
    source: "KIP-664; dpkp/kafka-python PR #3051; thomhurst/Dekaf#1162; confluentinc/librdkafka#5497; apache/kafka PR #10206, #10183, #11319",
    basis: &[Basis::Kip],
    versions: "DescribeTransactions 0, ListTransactions 0, DescribeProducers 0",
    needs: Needs::Settings(QUICK_EXPIRY),
    ..Scenario::kafka(Area::Admin, b91)
};

fn b91(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let (mut a, mut operator) = (probe.actor("A")?, probe.actor("operator")?);
    operator.describe(&id).is(105)?;
    probe.same("the state of an unknown id", operator.listed_state(&id)?, None)?;
    let me = a.init_within(&id, 3000)?;
    is_described(probe, &mut operator, &me, "Empty", &[])?;
    probe.same("producers of the partition", operator.describe_producers(&t).is(0)?.len(), 0)?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 0, &["1", "2"]).is_stored_at(0)?;
    is_described(probe, &mut operator, &me, "Ongoing", &[(&t.topic, 0)])?;
    is_known(probe, &mut operator, &t, &me, (1, 0))?;
    a.end(&me, Commit).is(0)?;
    operator.comes_to(&id, &["CompleteCommit"])?;
    is_described(probe, &mut operator, &me, "CompleteCommit", &[])?;
    a.settles(&t)?;
    is_known(probe, &mut operator, &t, &me, (1, -1))?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 2, &["3"]).is_stored_at(3)?;
    is_known(probe, &mut operator, &t, &me, (2, 3))?;
    // Its timeout is over: aborted under the next epoch, which is the partition's from here on.
    operator.comes_to(&id, &["CompleteAbort"])?;
    is_described(probe, &mut operator, &me.at_epoch(me.epoch() + 1), "CompleteAbort", &[])?;
    a.settles(&t)?;
    probe.eventually("the id is forgotten", || Ok(operator.listed_state(&id)?.is_none()))?;
    operator.describe(&id).is(105).map(|_| ())
}

/// DescribeTransactions and ListTransactions with every filter say the same of an id.
fn is_described(
    probe: &Probe,
    operator: &mut Actor,
    me: &Producer,
    state: &str,
    parts: &[(&str, i32)],
) -> Kept {
    let id = me.id_or_empty();
    let seen = operator.describe(id).is(0)?;
    probe.same("the state described", seen.transaction_state.as_str(), state)?;
    let identity = (seen.producer_id.get(), seen.producer_epoch.get());
    probe.same("the identity described", identity, (me.producer_id(), me.epoch()))?;
    let topics = seen
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic.as_str(), partition.get())));
    probe.same("the partitions described", topics.collect::<Vec<_>>(), parts.to_vec())?;
    let is_open = seen.transaction_start_time_ms > 0;
    probe.holds(is_open || state != "Ongoing", "the start of an open transaction", "a time")?;
    let pid = [me.producer_id()];
    let others = ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"]
        .map(|name| if name == state { "Dead" } else { name });
    for (filter, due) in [
        (Filter::default(), Some(state)),
        (Filter { states: &[state], ..Filter::default() }, Some(state)),
        (Filter { producer_ids: &pid, ..Filter::default() }, Some(state)),
        (Filter { states: &others, ..Filter::default() }, None),
        (Filter { producer_ids: &[pid[0] + 1_000_000], ..Filter::default() }, None),
    ] {
        let listing = operator.list_transactions(filter).is(0)?;
        probe.same(&format!("the state listed with {filter:?}"), listing.state_of(id), due)?;
    }
    let odd = operator.list_transactions(Filter { states: &["Pondering"], ..Filter::default() }).is(0)?;
    probe.same("states that do not exist", odd.unknown_states, vec!["Pondering".to_owned()])
}

/// DescribeProducers knows a producer with its last sequence and the start of its open transaction (-1 for none).
fn is_known(probe: &Probe, operator: &mut Actor, t: &Place, me: &Producer, due: (i32, i64)) -> Kept {
    let seen = operator.describe_producers(t).is(0)?;
    let own = seen.iter().find(|one| one.producer_id.get() == me.producer_id());
    let own = own.map(|one| (one.producer_epoch, (one.last_sequence, one.current_txn_start_offset.get())));
    probe.same("epoch, last sequence and start", own, Some((i32::from(me.epoch()), due)))
}

const B91G: Scenario = Scenario {
    id: "B91g",
    title: "a group's offsets in an open transaction, described",
    promise: "An operator sees that a transaction holds a group's position, and which one does.",
    source: "KIP-664; dpkp/kafka-python PR #3051",
    basis: &[Basis::Kip],
    versions: "DescribeTransactions 0, DescribeProducers 0",
    ..Scenario::kafka(Area::Admin, b91g)
};

fn b91g(probe: &mut Probe) -> Kept {
    let (t, id, g) = (probe.topic()?, probe.id("x"), probe.group("g"));
    let (mut a, mut operator) = (probe.actor("A")?, probe.actor("operator")?);
    let me = a.init(&id)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 7)).is(0)?;
    let seen = operator.describe(&id).is(0)?;
    let places: Vec<_> = seen
        .topics
        .iter()
        .flat_map(|topic| {
            topic.partitions.iter().map(|partition| Place::of(topic.topic.as_str(), partition.get()))
        })
        .collect();
    let names: Vec<_> = places.iter().map(|place| place.topic.as_str()).collect();
    probe.same("the topics of the transaction", names, vec!["__consumer_offsets"])?;
    // 3 where the topic is only a name, and groups are kept elsewhere.
    let (code, holders) = operator.describe_producers(&places[0]).is_any(&[0, 3])?;
    let own = holders.iter().find(|one| one.producer_id.get() == me.producer_id());
    probe.holds(
        code == 3 || own.is_some_and(|own| own.current_txn_start_offset.get() >= 0),
        "DescribeProducers of the group's partition",
        "the producer with the start of its transaction",
    )?;
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 7)
}

const B93: Scenario = Scenario {
    id: "B93",
    title: "who holds back the readers of a partition",
    promise: "When readers stand still, two questions name the transactional id that they wait for.",
    source: "softwaremill/klag-exporter#104; KIP-664",
    basis: &[Basis::Kip],
    versions: "DescribeProducers 0, DescribeTransactions 0",
    left_out: "metrics: brokers have none in common",
    ..Scenario::kafka(Area::Admin, b93)
};

fn b93(probe: &mut Probe) -> Kept {
    let (t, g, id) = (probe.topic()?, probe.group("g"), probe.id("holder"));
    let mut a = probe.actor("A")?;
    a.produce_plain(&t, &["read"; 200]).is_stored_at(0)?;
    a.commit_group_offset(&g, (&t, 200)).is(0)?;
    let holder = a.open(&t, &id, "open")?;
    a.produce_plain(&t, &["behind it"; 1462]).is_stored_at(201)?;
    let mut operator = probe.actor("operator")?;
    let ends = operator.ends(&t)?;
    probe.same("the ends", (ends.last_stable, ends.high_watermark), (200, 1663))?;
    operator.group_stands_at(&g, &t, ends.last_stable)?;
    let producers = operator.describe_producers(&t).is(0)?;
    let open: Vec<_> =
        producers.iter().filter(|one| one.current_txn_start_offset.get() == ends.last_stable).collect();
    probe.same("producers whose transaction starts there", open.len(), 1)?;
    let pid = open[0].producer_id.get();
    let listing = operator.list_transactions(Filter { producer_ids: &[pid], ..Filter::default() }).is(0)?;
    let names: Vec<_> = listing.found.iter().map(|(id, _, _)| id.as_str()).collect();
    probe.same("the transactional id", names, vec![id.as_str()])?;
    a.end(&holder, Commit).is(0)?;
    a.settles(&t).map(|_| ())
}
