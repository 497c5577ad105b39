//! Area `init`: identities are given once, to one producer, without waiting for the dead.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use semel_wire::api::{
    add_partitions_to_txn::AddPartitionsToTxnRequest,
    describe_configs::{DescribeConfigsRequest, DescribeConfigsResource},
    find_coordinator::{FindCoordinatorRequest, KEY_TYPE_TRANSACTION},
    metadata::MetadataRequest,
};

use crate::{
    Actor, Look,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::BUSY,
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B26, &B27, &B28, &B29, &B30, &B30K, &B31];

const B26: Scenario = Scenario {
    id: "B26",
    title: "a transaction timeout out of range",
    promise: "A timeout that the broker will not keep is refused at once, and nothing is left of the attempt.",
    source: "risingwavelabs/risingwave#7499; apache/flink PR #4239",
    ..Scenario::kafka(Area::Init, b26)
};

fn b26(probe: &mut Probe) -> Kept {
    let id = probe.id("x");
    let mut a = probe.actor("A")?;
    let max = longest_timeout(&mut a)?;
    for timeout_ms in [max.saturating_add(1), 0, -1] {
        a.until_free(|actor| actor.try_init(Some(&id), timeout_ms, None)).is(50)?;
    }
    a.describe(&id).is(105)?;
    a.init_within(&id, max)?;
    Ok(())
}

/// `transaction.max.timeout.ms` of the broker.
fn longest_timeout(a: &mut Actor) -> Kept<i32> {
    let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    let metadata = a.session.client.call(&request, 9)?;
    let node = metadata.brokers.first().map_or(0, |broker| broker.node_id).to_string();
    let resource = DescribeConfigsResource {
        resource_type: 4,
        resource_name: node.as_str().into(),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let code = |response: &semel_wire::api::describe_configs::DescribeConfigsResponse| {
        response.results.first().map_or(semel_wire::WireCode(-1), |result| result.error_code)
    };
    let answer = a.ask("DescribeConfigs of the broker", &request, 1, code).is(0)?;
    let mut configs = answer.results.into_iter().flat_map(|result| result.configs);
    let found = configs.find(|config| config.name.as_str() == "transaction.max.timeout.ms");
    let value = found.and_then(|config| config.value).and_then(|value| value.as_str().parse().ok());
    Ok(value.unwrap_or(900_000))
}

const B27: Scenario = Scenario {
    id: "B27",
    title: "null and empty transactional ids",
    promise: "A producer without transactions gets an identity of its own; an empty id is never taken for one.",
    source: "tulios/kafkajs#166",
    ..Scenario::kafka(Area::Init, b27)
};

fn b27(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut given = BTreeSet::new();
    for _ in 0..10 {
        let me = probe.actor("A")?.init_plain()?;
        probe.same("the epoch of a fresh identity", me.epoch(), 0)?;
        given.insert(me.producer_id());
    }
    probe.same("different producer ids of ten calls", given.len(), 10)?;
    let mut a = probe.actor("A")?;
    a.try_init(Some(""), 60_000, None).is(42)?;
    let nobody = Producer { id: Some(String::new()), ..a.init_plain()? };
    a.end(&nobody, Commit).is(42)?;
    let code = |response: &<AddPartitionsToTxnRequest as semel_wire::Request>::Response| {
        let topics = response.results_by_topic.iter();
        let mut partitions = topics.flat_map(|topic| &topic.results_by_partition);
        partitions.next().map_or(semel_wire::WireCode(-1), |partition| partition.partition_error_code)
    };
    let request = crate::actor::transact::add_request(&nobody, &[&t]);
    a.ask("AddPartitionsToTxn with an empty id", &request, 3, code).is(42)?;
    // One byte is an id like any other; it may have been taken in an earlier run.
    let (first, second) = (a.init("1")?, a.init("1")?);
    probe.same("the producer id, asked again", second.producer_id(), first.producer_id())?;
    probe.same("the epoch, asked again", second.epoch(), first.epoch() + 1)
}

const B28: Scenario = Scenario {
    id: "B28",
    title: "producer ids are never handed out twice",
    promise: "A new producer is never taken for an older one, whose numbers would swallow its first records.",
    source: "apache/kafka PR #21266 (KAFKA-20031), #13267 (KAFKA-14694), #10504 (KAFKA-12620)",
    basis: &[Basis::Thread],
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Init, b28)
};

fn b28(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let given = Mutex::new(Vec::new());
    for _ in 0..3 {
        take_identities_through_a_kill(probe, &given)?;
    }
    let given = given.into_inner().unwrap_or_else(PoisonError::into_inner);
    let distinct: BTreeSet<_> = given.iter().map(Producer::producer_id).collect();
    probe.same("producer ids that were given twice", given.len() - distinct.len(), 0)?;
    let (first, last) = (given[0].plain(), given[given.len() - 1].plain());
    let mut a = probe.actor("A")?;
    a.produce(&t, &Producer { id: None, ..first }, 0, &["first"]).is_stored_at(0)?;
    a.produce(&t, &Producer { id: None, ..last }, 0, &["last"]).is_stored_at(1)?;
    a.stores(&t, &["first", "last"])
}

/// Connections that take identities side by side.
const TAKERS: usize = 5;

/// Half of a round's identities are taken, one in six of them transactional, then the broker is killed while more are
/// asked for; what is left is taken from the one that came up. The last one taken is plain.
fn take_identities_through_a_kill(probe: &mut Probe, given: &Mutex<Vec<Producer>>) -> Kept {
    let count = || given.lock().unwrap_or_else(PoisonError::into_inner).len();
    let (before, each) = (count(), probe.rounds(60, 120));
    let (address, ids) = (probe.address().to_owned(), probe.id("x"));
    thread::scope(|scope| -> Kept {
        let take = |taker: usize| {
            let (address, ids) = (&address, &ids);
            move || take_until_killed(address, &format!("{ids}-{before}-{taker}"), given)
        };
        let takers: Vec<_> = (0..TAKERS).map(|taker| scope.spawn(take(taker))).collect();
        probe.eventually("half of the identities are taken", || Ok(count() - before >= TAKERS * each / 2))?;
        probe.kill()?;
        takers.into_iter().for_each(|taker| taker.join().expect("a taker does not break off"));
        probe.restart()
    })?;
    let mut a = probe.actor("A")?;
    for number in 0.. {
        let is_last = count() - before >= TAKERS * each;
        let me = if number % 6 == 1 && !is_last { a.init(&probe.id("y"))? } else { a.init_plain()? };
        given.lock().unwrap_or_else(PoisonError::into_inner).push(me);
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Takes identities until the broker is gone: what was answered counts.
fn take_until_killed(address: &str, ids: &str, given: &Mutex<Vec<Producer>>) {
    let Ok(mut a) = Actor::connect("taker", address, &crate::Trace::default()) else { return };
    for number in 0.. {
        let me = if number % 6 == 1 { a.init(&format!("{ids}-{number}")) } else { a.init_plain() };
        let Ok(me) = me else { return };
        given.lock().unwrap_or_else(PoisonError::into_inner).push(me);
    }
}

const B29: Scenario = Scenario {
    id: "B29",
    title: "a restarted application does not wait for the old transaction's timeout",
    promise: "An instance that crashed in a transaction comes back in seconds, and readers with it.",
    source: "tulios/kafkajs#296; confluentinc/librdkafka#3003; corda/corda-runtime-os PR #6390",
    ..Scenario::kafka(Area::Init, b29)
};

fn b29(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    drop(probe.actor("A")?.open(&t, &id, "left open")?);
    let asked = Instant::now();
    let mut b = probe.actor("B")?;
    let mut refusals = 0;
    while b.try_init(Some(&id), 60_000, None).is_any(&[0, 51])?.0 == 51 {
        refusals += 1;
        // The pause of a client.
        thread::sleep(Duration::from_millis(50));
    }
    probe.holds(asked.elapsed() < Duration::from_secs(5), "the time until it was answered", "under 5 s")?;
    probe.holds(refusals < 100, "the number of answers 51", "under 100")?;
    b.reads(&t, &[])
}

const B30: Scenario = Scenario {
    id: "B30",
    title: "InitProducerId while a decided commit is written out",
    promise: "A commit that was acknowledged is never undone by the next instance that starts.",
    source: "tulios/kafkajs#166; akka/alpakka-kafka PR #752; streamnative/kop#1412",
    ..Scenario::kafka(Area::Init, b30)
};

fn b30(probe: &mut Probe) -> Kept {
    let width = probe.rounds(20, 50);
    let (t, id) = (probe.partitions(width)?, probe.id("x"));
    for round in 0..probe.rounds(20, 200) {
        let mut a = probe.actor("A")?;
        let me = a.init(&id)?;
        write_wide(&mut a, &t, &me, &format!("{round}"))?;
        // Sent, not awaited: the takeover comes while it is under way.
        let request = crate::actor::transact::end_request(&me, Commit);
        a.session.client.send(&request, 3)?;
        let mut b = probe.actor("B")?;
        thread::sleep(Duration::from_millis(round % 6));
        b.init(&id)?;
        let ended = a.session.client.receive::<semel_wire::api::end_txn::EndTxnRequest>(3);
        let is_committed = ended.is_ok_and(|ended| !ended.error_code.is_error());
        let visible = seen_everywhere(&mut b, &t, &format!("{round}"))?;
        let due = if is_committed { vec![width] } else { vec![0, width] };
        probe.holds(
            due.contains(&visible),
            &format!("{visible} of {width} partitions show it"),
            "all or none; all if committed",
        )?;
    }
    Ok(())
}

fn write_wide(a: &mut Actor, places: &[Place], me: &Producer, value: &str) -> Kept {
    let all: Vec<_> = places.iter().collect();
    a.add(me, &all)?;
    let values = [value];
    let batches: Vec<_> = all.iter().map(|place| (*place, 0, &values as &[_])).collect();
    a.produce_many(me, &batches).into_iter().try_for_each(|answer| answer.is(0).map(|_| ()))
}

/// On how many partitions a committed value is seen, once nothing is open.
fn seen_everywhere(a: &mut Actor, places: &[Place], value: &str) -> Kept<i32> {
    let mut count = 0;
    for place in places {
        // A round adds a record and a marker at most: it is among the last ones.
        let end = a.settles(place)?.last_stable;
        let last = a.walk(place, Look::committed((end - 4).max(0)))?;
        count += i32::from(last.iter().any(|seen| seen == value));
    }
    Ok(count)
}

const B30K: Scenario = Scenario {
    id: "B30k",
    title: "a kill between the commit and the next InitProducerId",
    promise: "A commit that was acknowledged survives a crash of the broker whole; one without an answer is all or nothing.",
    source: "tulios/kafkajs#166; streamnative/kop#1412",
    needs: Needs::Restart(&[]),
    ..Scenario::stricter_at_times(
        Area::Init,
        "killed between the decision and its markers it completes the transaction without them at times: S18",
        b30k,
    )
};

fn b30k(probe: &mut Probe) -> Kept {
    let width = probe.rounds(20, 50);
    let (t, id) = (probe.partitions(width)?, probe.id("x"));
    for round in 0..probe.rounds(3, 40) {
        let value = format!("{round}");
        let mut a = probe.actor("A")?;
        let me = a.init(&id)?;
        write_wide(&mut a, &t, &me, &value)?;
        let due = match round % 3 {
            0 => {
                a.end(&me, Commit).is(0)?;
                vec![width]
            }
            1 => {
                a.session.client.send(&crate::actor::transact::end_request(&me, Abort), 3)?;
                vec![0]
            }
            // Decided or not: nobody was told.
            _ => {
                a.session.client.send(&crate::actor::transact::end_request(&me, Commit), 3)?;
                thread::sleep(Duration::from_millis(round % 6));
                vec![0, width]
            }
        };
        probe.kill()?;
        probe.restart()?;
        let mut b = probe.actor("B")?;
        b.init(&id)?;
        let visible = seen_everywhere(&mut b, &t, &value)?;
        let said = format!("round {round}: {visible} of {width} partitions show it");
        probe.holds(due.contains(&visible), &said, "all if committed, none if aborted, else either")?;
    }
    Ok(())
}

const B31: Scenario = Scenario {
    id: "B31",
    title: "the first transaction on a freshly started broker",
    promise: "A broker of one node works out of the box; while it starts, clients are told to try again, nothing worse.",
    source: "testcontainers/testcontainers-java#1816; apache/kafka PR #12968 (KAFKA-14417)",
    basis: &[Basis::Thread],
    needs: Needs::Restart(&[]),
    left_out: "librdkafka, kafka-python and franz-go themselves: the suite sends their first requests",
    ..Scenario::kafka(Area::Init, b31)
};

fn b31(probe: &mut Probe) -> Kept {
    let (address, id) = (probe.address().to_owned(), probe.id("x"));
    let trace = probe.trace();
    let poller = thread::spawn(move || poll_from_the_start(&address, &id, &trace));
    probe.wipe()?;
    let (codes, me, took) = poller.join().expect("the poller does not break off")?;
    let said = format!("{took:?} from the open port to the identity");
    probe.holds(took < Duration::from_secs(probe.rounds(30, 10)), &said, "soon")?;
    let strange: Vec<_> = codes.into_iter().filter(|code| *code != 0 && !BUSY.contains(code)).collect();
    probe.same("codes that no client takes for busy", strange, Vec::new())?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    a.transact(&t, &me, (0, "first"), Commit)?;
    a.reads(&t, &["first"])
}

/// Asks for an identity from before the port opens until it is given; every code that came, and how long that took from
/// the first connection on.
fn poll_from_the_start(
    address: &str,
    id: &str,
    trace: &crate::Trace,
) -> Kept<(BTreeSet<i16>, Producer, Duration)> {
    let deadline = Instant::now() + Duration::from_secs(50);
    let (mut codes, mut opened) = (BTreeSet::new(), None);
    // Not the broker that is about to be killed: this one is gone once a connection fails.
    while Actor::connect("poller", address, trace).is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
    loop {
        if let Ok(mut a) = Actor::connect("poller", address, trace) {
            let opened: Instant = *opened.get_or_insert_with(Instant::now);
            let request = FindCoordinatorRequest {
                key: id.into(),
                key_type: KEY_TYPE_TRANSACTION,
                ..Default::default()
            };
            codes.extend(a.ask("FindCoordinator", &request, 2, |response| response.error_code).code());
            let answer = a.try_init(Some(id), 60_000, None);
            codes.extend(answer.code());
            if answer.code() == Some(0) {
                return Ok((codes, answer.is(0)?, opened.elapsed()));
            }
        }
        if Instant::now() > deadline {
            return Err(crate::Failure::broken(
                "InitProducerId from the start on",
                format!("{codes:?}"),
                "0 in 50 s",
            ));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
