//! Tables 3.4 and 3.5: how a transaction takes in partitions and groups, by version.

use semel_wire::{
    ApiKey, Request, WireCode,
    api::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction},
};

use super::{State, fenced, offered, outside, speaking, transactional_versions};
use crate::{
    Actor, Answer,
    Outcome::Commit,
    Probe, Producer, Scenario,
    actor::transact::add_request,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&IDENTITY, &STATES, &TOGETHER, &VERIFY, &UNADDED, &STRANGER];

const IDENTITY: Scenario = Scenario {
    id: "T3.4-identity",
    title: "AddPartitionsToTxn and AddOffsetsToTxn of somebody else",
    promise: "Nobody but its owner takes partitions or groups into a transaction.",
    source: "apache/kafka TransactionCoordinator.handleAddPartitionsToTransaction; KIP-588",
    versions: "AddPartitionsToTxn 0 to 3, AddOffsetsToTxn 0 to 4",
    ..Scenario::kafka(Area::Coordinator, identity)
};

fn identity(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.topic()?, probe.group("g"));
    let mut a = probe.actor("A")?;
    a.init(&probe.id("x"))?;
    let me = a.init(&probe.id("x"))?;
    let me = a.init(me.id_or_empty())?;
    for version in offered(probe, ApiKey::AddOffsetsToTxn, 0..=4)? {
        a.using(|versions| versions.add = version);
        for (who, due) in others(probe, &me, fenced(version, 2)) {
            if version <= 3 {
                a.until_free(|a| a.try_add(&who, &[&t])).is(due)?;
            }
            a.until_free(|a| a.try_add_offsets(&who, &g)).is(due)?;
        }
    }
    a.using(|versions| versions.add = 3).end(&me, Commit).is(0).map(|_| ())
}

/// Everybody who might ask for a transaction, its owner last, and the code that is due.
fn others(probe: &Probe, me: &Producer, fenced: i16) -> [(Producer, i16); 6] {
    [
        (me.with_producer_id(me.producer_id() + 1_000_000), 49),
        (Producer { id: Some(probe.id("unknown")), stamp: me.stamp }, 49),
        (Producer { id: Some(String::new()), stamp: me.stamp }, 42),
        (me.at_epoch(me.epoch() + 1), fenced),
        (me.at_epoch(me.epoch() - 1), fenced),
        (me.clone(), 0),
    ]
}

const STATES: Scenario = Scenario {
    id: "T3.4-states",
    title: "AddPartitionsToTxn and AddOffsetsToTxn by state",
    promise: "Whatever became of the last transaction, the next one can begin, and it begins once.",
    source: "apache/kafka TransactionCoordinator.handleAddPartitionsToTransaction",
    versions: "AddPartitionsToTxn 0 to 3, AddOffsetsToTxn 0 to 4",
    ..Scenario::kafka(Area::Coordinator, states)
};

fn states(probe: &mut Probe) -> Kept {
    let (t, g) = (probe.partitions(2)?, probe.group("g"));
    for version in offered(probe, ApiKey::AddOffsetsToTxn, 0..=4)? {
        for state in State::ALL {
            for is_group in [false, true].into_iter().filter(|is_group| version <= 3 || *is_group) {
                let mut a = probe.actor("A")?;
                let (me, _) = state.reach(probe, &mut a, &t[0])?;
                a.using(|versions| versions.add = version);
                // The second one is a repeat: it is in already.
                for _ in 0..2 {
                    if is_group { a.add_offsets(&me, &g)? } else { a.add(&me, &[&t[1]])? }
                }
                let seen = a.describe(me.id_or_empty()).is(0)?;
                probe.same(
                    &format!("the state after {state:?}"),
                    seen.transaction_state.as_str(),
                    "Ongoing",
                )?;
                a.end(&me, Commit).is(0)?;
            }
        }
    }
    Ok(())
}

const TOGETHER: Scenario = Scenario {
    id: "T3.4-together",
    title: "one bad partition keeps the others out",
    promise: "A request to take in several partitions is taken as a whole or not at all.",
    source: "apache/kafka KafkaApis.handleAddPartitionsToTxnRequest",
    versions: "AddPartitionsToTxn 0 to 3",
    ..Scenario::kafka(Area::Coordinator, together)
};

fn together(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let missing = Place::of(&format!("{}-missing", t.topic), 0);
    // A broker that has such a topic keeps it from clients; another one does not know it.
    let internal = Place::of("__transaction_state", 0);
    let mut a = probe.actor("A")?;
    let me = a.init(&probe.id("x"))?;
    for version in offered(probe, ApiKey::AddPartitionsToTxn, 0..=3)? {
        for (bad, due) in [(&missing, &[3][..]), (&internal, &[3, 29][..])] {
            let request = add_request(&me, &[&t, bad]);
            let said = "AddPartitionsToTxn of one for clients and one that is not";
            let answer = a.ask(said, &request, version, |response| code_of(response, &bad.topic));
            let (_, answer) = answer.is_any(due)?;
            probe.same("the code of the one for clients", code_of(&answer, &t.topic).get(), 55)?;
        }
    }
    a.produce(&t, &me, 0, &["not added"]).is(48).map(|_| ())?;
    a.end(&me, Commit).is(48).map(|_| ())
}

type Added = <AddPartitionsToTxnRequest as Request>::Response;

/// What the first partition of a topic was answered.
fn code_of(response: &Added, topic: &str) -> WireCode {
    let batched = response.results_by_transaction.iter().flat_map(|one| &one.topic_results);
    let mut topics = response.results_by_topic.iter().chain(batched);
    let own = topics.find(|own| own.name.as_str() == topic);
    let own = own.and_then(|own| own.results_by_partition.first());
    own.map_or(WireCode(-1), |own| own.partition_error_code)
}

const VERIFY: Scenario = Scenario {
    id: "T3.4-verify",
    title: "what brokers ask a coordinator: is this partition in the transaction, or take it in",
    promise: "A partition's leader is never told that a record belongs to a transaction that does not know it.",
    source: "KIP-890; apache/kafka TransactionCoordinator.handleVerifyPartitionsInTransaction",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "AddPartitionsToTxn 4, 5",
    ..Scenario::kafka(Area::Coordinator, verify)
};

fn verify(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    for version in offered(probe, ApiKey::AddPartitionsToTxn, 4..=5)? {
        let mut a = probe.actor("A")?;
        a.init(&probe.id("x"))?;
        let id = probe.id("x");
        a.init(&id)?;
        let me = a.open(&t[0], &id, "a")?;
        for (who, due) in others(probe, &me, 90) {
            // An id that is empty is asked for by no broker.
            if who.id_or_empty().is_empty() {
                continue;
            }
            a.try_verify(&who, &t[0], version).is(due)?;
        }
        a.try_verify(&me, &t[1], version).is(120)?;
        a.try_batched(&me, &t[1], false, version).is(0)?;
        a.try_verify(&me, &t[1], version).is(0)?;
        a.end(&me, Commit).is(0)?;
        a.comes_to(&id, &["CompleteCommit"])?;
        a.try_verify(&me, &t[0], version).is(120)?;
    }
    Ok(())
}

impl Actor {
    /// AddPartitionsToTxn as brokers send it to one another: is a partition in a transaction?
    fn try_verify(&mut self, producer: &Producer, place: &Place, version: i16) -> Answer<()> {
        self.try_batched(producer, place, true, version)
    }

    /// AddPartitionsToTxn of one transaction as brokers send it to one another.
    fn try_batched(
        &mut self,
        producer: &Producer,
        place: &Place,
        verify_only: bool,
        version: i16,
    ) -> Answer<()> {
        let classic = add_request(producer, &[place]);
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: classic.transactional_id,
            producer_id: classic.producer_id,
            producer_epoch: classic.producer_epoch,
            verify_only,
            topics: classic.topics,
        };
        let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
        let word = if verify_only { "verify" } else { "add" };
        let said = format!("AddPartitionsToTxn: {word} {}-{} ({producer:?})", place.topic, place.index);
        self.ask(&said, &request, version, |response| {
            if response.error_code.is_error() { response.error_code } else { code_of(response, &place.topic) }
        })
        .map(|_| ())
    }
}

const UNADDED: Scenario = Scenario {
    id: "T3.4-produce",
    title: "a transactional write to a partition that was not added",
    promise: "A write outside of the transaction never opens one that nobody will close.",
    source: "KIP-890",
    basis: &[Basis::Kip],
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Coordinator, unadded)
};

fn unadded(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let mut a = probe.actor("A")?;
    let (me, _) = State::Ongoing.reach(probe, &mut a, &t[0])?;
    for version in offered(probe, ApiKey::Produce, 3..=11)? {
        let due = outside(version, 11);
        a.using(|versions| versions.produce = version);
        a.until_own_version(due, |actor| actor.produce_when_free(&t[1], &me, 0, &["outside"])).is(due)?;
    }
    a.end(&me, Commit).is(0)?;
    a.reads(&t[0], &["a"])?;
    a.reads(&t[1], &[])?;
    for version in transactional_versions(probe)?.into_iter().filter(|version| *version >= 12) {
        let t = probe.topic()?;
        let mut b = speaking(probe, version)?;
        let me = b.init(&probe.id("y"))?;
        b.transact(&t, &me, (0, "inside"), Commit)?;
        b.reads(&t, &["inside"])?;
    }
    Ok(())
}

const STRANGER: Scenario = Scenario {
    id: "T3.4-stranger",
    title: "a transactional write of somebody else",
    promise: "Nobody but its owner writes into a transaction, and a client of any age is told what it did wrong.",
    source: "KIP-890; apache/kafka AddPartitionsToTxnManager",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "Produce 3 to 13",
    ..Scenario::kafka(Area::Coordinator, stranger)
};

fn stranger(probe: &mut Probe) -> Kept {
    for version in transactional_versions(probe)? {
        let t = probe.topic()?;
        let mut a = speaking(probe, version)?;
        let id = probe.id("x");
        a.init(&id)?;
        let me = a.open(&t, &id, "mine")?;
        let unwritten = probe.topic()?;
        // 47 in every version: what Produce has for a producer that was replaced.
        for (who, due) in others(probe, &me, 47) {
            if who == me || who.id_or_empty().is_empty() {
                continue;
            }
            a.until_own_version(due, |a| a.produce_when_free(&unwritten, &who, 0, &["theirs"])).is(due)?;
        }
        a.end(&me, Commit).is(0)?;
        a.reads(&t, &["mine"])?;
        a.stores(&unwritten, &[])?;
    }
    Ok(())
}
