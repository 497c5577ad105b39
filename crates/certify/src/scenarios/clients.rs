//! Area `clients`: what client libraries rely on, said as the requests that they send.

use std::time::Instant;

use bytes::Bytes;
use semel_types::PartitionIndex;
use semel_wire::{
    ApiKey, RawProducerEpoch, RawProducerId, WireCode,
    api::{
        add_partitions_to_txn::AddPartitionsToTxnRequest,
        end_txn::EndTxnRequest,
        produce::{ProducePartition, ProduceRequest, ProduceTopic},
    },
    batch::{Batch, BatchBuilder},
};

use crate::{
    Actor, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::{
        produce::{batch_of, records},
        transact::{add_request, end_request},
    },
    relay::Action,
    scenario::{Area, Basis, Kept},
    session::{Isolation, Place, Versions},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B86, &B87, &B87C, &B89, &B90];

const B86: Scenario = Scenario {
    id: "B86",
    title: "an abort right behind the first request of a transaction",
    promise: "An application that gives a transaction up at once can go on: its abort is not called a mistake.",
    source: "confluentinc/librdkafka#4849; karafka/waterdrop PR #910; confluentinc/confluent-kafka-python#1125",
    ..Scenario::stricter_at_times(
        Area::Clients,
        "AddPartitionsToTxn 51 while the last commit is completed, and then EndTxn(abort) 48: fatal for librdkafka",
        b86,
    )
};

fn b86(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    let rounds = probe.rounds(60, 1000);
    for round in 0..rounds {
        a.transact(&t, &me, (round, "kept"), Commit)?;
        a.session.client.send(&add_request(&me, &[&t]), 3)?;
        a.session.client.send(&end_request(&me, Abort), 3)?;
        let added = a.session.client.receive::<AddPartitionsToTxnRequest>(3)?;
        let codes = added.results_by_topic.iter().flat_map(|topic| &topic.results_by_partition);
        let added: Vec<_> = codes.map(|one| one.partition_error_code.get()).collect();
        let mut ended = a.session.client.receive::<EndTxnRequest>(3)?.error_code.get();
        if ended == 51 {
            // Busy: the client asks again.
            ended = a.end(&me, Abort).is_any(&[0, 48])?.0;
        }
        let said = format!("AddPartitionsToTxn {added:?}, EndTxn(abort) {ended}");
        probe.holds(ended == 0, &said, "0 for the abort")?;
    }
    a.reads(&t, &vec!["kept"; usize::try_from(rounds).expect("they are counted from 0")])
}

const B87: Scenario = Scenario {
    id: "B87",
    title: "the network is gone for longer than the transaction timeout",
    promise: "A client that comes back late is told that it is fenced, starts anew and works; no half is read.",
    source: "confluentinc/librdkafka#3297, #3444, #3041, PR #3971 and #4016; twmb/franz-go#855",
    basis: &[Basis::Protocol],
    versions: "those of librdkafka and of franz-go",
    left_out: "librdkafka and franz-go themselves: the suite sends what they send",
    ..Scenario::kafka(Area::Clients, b87)
};

fn b87(probe: &mut Probe) -> Kept {
    network_is_gone(probe, Versions::LIBRDKAFKA)?;
    if probe.needs_version_2().is_ok() { network_is_gone(probe, Versions::VERSION_2) } else { Ok(()) }
}

fn network_is_gone(probe: &Probe, versions: Versions) -> Kept {
    let (t, id) = (probe.partitions(2)?, probe.id("x"));
    let relay = probe.relay()?;
    let mut a = probe.actor_behind("A", &relay)?.speaking(versions);
    let me = a.init_within(&id, probe.rounds(1000, 5000))?;
    if !a.is_version_2() {
        a.add(&me, &[&t[0], &t[1]])?;
    }
    a.produce(&t[0], &me, 0, &["half"]).is_stored_at(0)?;
    relay.on(ApiKey::Produce, 1, Action::CutBefore);
    a.produce(&t[1], &me, 0, &["other half"]).is_cut()?;
    probe.actor("watcher")?.comes_to(&id, &["CompleteAbort", "Empty"])?;
    // Some time after that, as a network may take.
    std::thread::sleep(std::time::Duration::from_secs(probe.rounds(0, 6)));
    comes_back(probe, &t, &me, versions)?;
    t.iter().try_for_each(|place| probe.actor("reader")?.reads(place, &["after"]))
}

/// The client's next requests are refused with codes that its library knows; a new producer works at once.
fn comes_back(probe: &Probe, t: &[Place], me: &Producer, versions: Versions) -> Kept {
    let mut a = probe.actor("A back")?.speaking(versions);
    a.produce(&t[1], me, 0, &["other half"]).is_any(&[47, 48, 90, 120])?;
    // 120 since KIP-890: abort, and go on.
    a.end(me, Commit).is_any(if a.is_version_2() { &[47, 48, 90, 120] } else { &[47, 48, 90] })?;
    let back = Instant::now();
    let next = a.init(me.id_or_empty())?;
    write_both(&mut a, t, &next, "after")?;
    a.end(&next, Commit).is(0)?;
    probe.holds(back.elapsed().as_secs() < 10, "the time until it works again", "under 10 s")
}

fn write_both(a: &mut Actor, t: &[Place], me: &Producer, value: &str) -> Kept {
    if !a.is_version_2() {
        a.add(me, &[&t[0], &t[1]])?;
    }
    t.iter().try_for_each(|place| a.produce_when_free(place, me, 0, &[value]).is(0).map(|_| ()))
}

const B87C: Scenario = Scenario {
    id: "B87c",
    title: "the network is gone in the middle of a commit",
    promise: "A commit that reached the broker stands although its answer was lost; one that did not, is nowhere read.",
    source: "confluentinc/librdkafka#3297, #3444, #3041, PR #3971 and #4016",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Clients, b87c)
};

fn b87c(probe: &mut Probe) -> Kept {
    for (is_heard, action) in [(true, Action::SwallowAnswer), (false, Action::CutBefore)] {
        let (t, id, relay) = (probe.partitions(2)?, probe.id("x"), probe.relay()?);
        let mut a = probe.actor_behind("A", &relay)?;
        let me = a.init_within(&id, 1000)?;
        write_both(&mut a, &t, &me, "first")?;
        relay.on(ApiKey::EndTxn, 1, action);
        a.try_end(&me, Commit).is_cut()?;
        let due = if is_heard { "CompleteCommit" } else { "CompleteAbort" };
        probe.actor("watcher")?.comes_to(&id, &[due])?;
        let mut a = probe.actor("A back")?;
        a.end(&me, Commit).is_any(if is_heard { &[0] } else { &[47, 48, 90] })?;
        let next = a.init(&id)?;
        write_both(&mut a, &t, &next, "after")?;
        a.end(&next, Commit).is(0)?;
        let due: &[&str] = if is_heard { &["first", "after"] } else { &["after"] };
        t.iter().try_for_each(|place| a.reads(place, due))?;
    }
    Ok(())
}

const B89: Scenario = Scenario {
    id: "B89",
    title: "many transactions in a row, in the versions of the common libraries",
    promise: "Every client library of the field commits, aborts and moves groups, transaction after transaction.",
    source: "IBM/sarama#2859 and #2915; fede1024/rust-rdkafka#349; aio-libs/aiokafka#1098",
    basis: &[Basis::Protocol],
    versions: "those of librdkafka, sarama, kafkajs, aiokafka, and version 2",
    left_out: "the libraries themselves: the suite sends what they send",
    ..Scenario::kafka(Area::Clients, b89)
};

/// The versions that a library sends.
const LIBRARIES: [(&str, Versions); 5] = [
    ("librdkafka", Versions::LIBRDKAFKA),
    ("sarama", Versions { produce: 10, end_txn: 3, init_producer_id: 4, add: 3, txn_offset_commit: 3 }),
    ("kafkajs", Versions { produce: 7, end_txn: 1, init_producer_id: 1, add: 1, txn_offset_commit: 1 }),
    ("aiokafka", Versions::OLDEST),
    ("current Java and franz-go", Versions::VERSION_2),
];

fn b89(probe: &mut Probe) -> Kept {
    for (library, versions) in LIBRARIES {
        if versions == Versions::VERSION_2 && probe.needs_version_2().is_err() {
            continue;
        }
        let (t, g) = (probe.topic()?, probe.group("g"));
        let mut a = probe.actor(library)?.speaking(versions);
        let mut me = a.init(&probe.id("x"))?;
        let (mut due, mut position, mut sequence) = (Vec::new(), -1, 0);
        for round in 0..probe.rounds(30, 1000) {
            let value = round.to_string();
            if !a.is_version_2() {
                a.add(&me, &[&t])?;
            }
            a.produce_when_free(&t, &me, sequence, &[&value]).is(0)?;
            let outcome = if round % 5 == 4 { Abort } else { Commit };
            if round % 2 == 0 {
                if !a.is_version_2() {
                    a.add_offsets(&me, &g)?;
                }
                a.commit_offset(&me, &g, (&t, round)).is(0)?;
                position = if outcome == Commit { round } else { position };
            }
            if outcome == Commit {
                due.push(value);
            }
            me = a.end(&me, outcome).is(0)?;
            sequence = if a.is_version_2() { 0 } else { sequence + 1 };
        }
        let mut reader = probe.actor("reader")?;
        reader.settles(&t)?;
        probe.same("committed records", reader.values(&t, Isolation::Committed)?, due)?;
        reader.group_stands_at(&g, &t, position)?;
    }
    Ok(())
}

const B90: Scenario = Scenario {
    id: "B90",
    title: "malformed writes",
    promise: "Damaged or forged batches are refused by name; nothing of them is stored, nothing else is hurt.",
    source: "apache/kafka PR #3118 and #4567; KIP-98",
    basis: &[Basis::Thread, Basis::Protocol],
    versions: "Produce 9",
    ..Scenario::kafka(Area::Clients, b90)
};

fn b90(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let mut a = probe.actor("A")?;
    let (me, owner) = (a.init_plain()?, a.init(&probe.id("x"))?);
    a.produce(&t[1], &me, 0, &["good"]).is_stored_at(0)?;
    for (number, (what, due, bytes)) in (0..).zip(malformed(&me, &owner)) {
        let batches = [(&t[0], batch_of(&me, number, &["neighbour"]).into_bytes()), (&t[1], bytes)];
        let codes = a.produce_raw(what, &batches)?;
        if codes.1 != due {
            let came = WireCode(codes.1);
            return Err(Failure::broken(format!("Produce: {what}"), came, WireCode(due)));
        }
        // The neighbour in the same request has its own fate.
        let is_whole = what.starts_with("a transactional batch");
        probe.same("the code of the neighbour", codes.0, if is_whole { due } else { 0 })?;
        if is_whole {
            a.produce(&t[0], &me, number, &["neighbour"]).is(0)?;
        }
        a.stores(&t[1], &["good"])?;
    }
    a.produce(&t[1], &me, 1, &["good, too"]).is_stored_at(1)?;
    a.stores(&t[1], &["good", "good, too"])
}

/// What is wrong, the code that is due, and the bytes.
fn malformed(me: &Producer, owner: &Producer) -> Vec<(&'static str, i16, Bytes)> {
    let good = || batch_of(me, 1, &["bad"]);
    let stamped = |builder: BatchBuilder| {
        let (id, epoch) = (RawProducerId(me.producer_id()), RawProducerEpoch(me.epoch()));
        builder.stamped_raw(id, epoch, 1).records(records(&["bad"])).build()
    };
    vec![
        ("a control batch", 87, stamped(BatchBuilder::new().control()).into_bytes()),
        (
            "two batches for one partition",
            87,
            [good().into_bytes(), batch_of(me, 2, &["bad"]).into_bytes()].concat().into(),
        ),
        ("a batch of an older format", 87, changed(&good(), 16, 2 ^ 1)),
        ("a batch of the oldest format", 87, changed(&good(), 16, 2)),
        ("a wrong checksum", 2, changed(&good(), 20, 0xff)),
        ("a wrong number of records", 87, counted(&good())),
        ("a transactional batch without transactional id", 53, batch_of(owner, 0, &["bad"]).into_bytes()),
    ]
}

/// A batch with one byte changed, checksum or not.
fn changed(batch: &Batch, at: usize, byte: u8) -> Bytes {
    let mut bytes = batch.bytes().to_vec();
    bytes[at] ^= byte;
    bytes.into()
}

/// A batch whose header counts one record more than it has, with a true checksum.
fn counted(batch: &Batch) -> Bytes {
    let mut bytes = batch.bytes().to_vec();
    bytes[60] += 1;
    let checksum = semel_wire::crc::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

impl Actor {
    /// Bytes as they are for two partitions of one topic, in one request; both codes.
    fn produce_raw(&mut self, said: &str, batches: &[(&Place, Bytes)]) -> Kept<(i16, i16)> {
        let partitions = batches.iter().map(|(place, bytes)| ProducePartition {
            index: PartitionIndex::new(place.index),
            records: Some(bytes.clone()),
        });
        let topic = ProduceTopic {
            name: batches[0].0.topic.as_str().into(),
            partitions: partitions.collect(),
            ..Default::default()
        };
        let request =
            ProduceRequest { transactional_id: None, acks: -1, timeout_ms: 30_000, topics: vec![topic] };
        let answer = self.ask(&format!("Produce: {said}"), &request, 9, |_| WireCode::NONE).is(0)?;
        let codes: Vec<_> = answer.responses.iter().flat_map(|topic| &topic.partitions).collect();
        let code_of =
            |due: i32| codes.iter().find(|one| one.index.get() == due).map_or(-1, |one| one.error_code.get());
        Ok((code_of(0), code_of(1)))
    }
}
