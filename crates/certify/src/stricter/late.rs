//! Stricter promises about late copies: a request on a connection that its client has left is not executed.
//!
//! A relay holds the copy until the client has gone on over another connection, then lets it through. What the broker
//! answers there is its own affair (Semel closes the connection); judged is what became of the records.

use semel_wire::{
    ApiKey,
    api::{
        end_txn::EndTxnRequest, init_producer_id::InitProducerIdRequest,
        txn_offset_commit::TxnOffsetCommitRequest,
    },
};

use crate::{
    Outcome::{Abort, Commit},
    Probe, Scenario,
    actor::transact::{end_request, init_request, offset_commit_request},
    relay::Action,
    scenario::{Area, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&S6, &S7, &S21];

const S6: Scenario = Scenario {
    id: "S6",
    title: "a late copy of EndTxn(commit)",
    promise: "Half of a transaction is never committed by a copy of the last transaction's commit.",
    source: "found on Apache Kafka 4.4; KIP-890 names the hazard",
    ..Scenario::stricter(
        Area::Coordinator,
        "the copy is executed: record 2 is committed, record 3 answered 48",
        s6,
    )
};

fn s6(probe: &mut Probe) -> Kept {
    let (t, id, relay) = (probe.topic()?, probe.id("x"), probe.relay()?);
    let mut left = probe.actor_behind("A before", &relay)?;
    let me = left.open(&t, &id, "1")?;
    relay.on(ApiKey::EndTxn, 1, Action::HoldRequest);
    left.session.client.send(&end_request(&me, Commit), 3)?;
    relay.wait_held();
    let mut a = probe.actor("A")?;
    a.end(&me, Commit).is(0)?;
    a.add(&me, &[&t])?;
    a.produce(&t, &me, 1, &["2"]).is(0)?;
    relay.release();
    // Answered or closed: it has been dealt with.
    drop(left.session.client.receive::<EndTxnRequest>(3));
    a.produce_when_free(&t, &me, 2, &["3"]).is(0)?;
    a.end(&me, Abort).is(0)?;
    a.reads(&t, &["1"])
}

const S7: Scenario = Scenario {
    id: "S7",
    title: "a late copy of TxnOffsetCommit",
    promise: "The position of an aborted transaction never becomes the group's: no input is skipped.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter(
        Area::Groups,
        "the late one enters the next transaction: the group stands at 100",
        s7,
    )
};

fn s7(probe: &mut Probe) -> Kept {
    let (t, id, g, relay) = (probe.topic()?, probe.id("x"), probe.group("g"), probe.relay()?);
    let mut left = probe.actor_behind("A before", &relay)?;
    let me = left.init(&id)?;
    left.add_offsets(&me, &g)?;
    relay.on(ApiKey::TxnOffsetCommit, 1, Action::HoldRequest);
    left.session.client.send(&offset_commit_request(&me, &g, (&t, 100)), 3)?;
    relay.wait_held();
    let mut a = probe.actor("A")?;
    a.end(&me, Abort).is(0)?;
    a.add_offsets(&me, &g)?;
    a.commit_offset(&me, &g, (&t, 50)).is(0)?;
    relay.release();
    // Answered or closed: it has been dealt with.
    drop(left.session.client.receive::<TxnOffsetCommitRequest>(3));
    a.end(&me, Commit).is(0)?;
    a.group_stands_at(&g, &t, 50)
}

const S21: Scenario = Scenario {
    id: "S21",
    title: "a late copy of InitProducerId",
    promise: "A client that asked again over a new connection is not fenced by its own first request.",
    source: "found on Apache Kafka 4.4",
    ..Scenario::stricter(Area::Init, "the copy is executed: the client is fenced by itself", s21)
};

fn s21(probe: &mut Probe) -> Kept {
    let (t, id, relay) = (probe.topic()?, probe.id("x"), probe.relay()?);
    let mut left = probe.actor_behind("A before", &relay)?;
    relay.on(ApiKey::InitProducerId, 1, Action::HoldRequest);
    left.session.client.send(&init_request(Some(&id), 60_000, None), 4)?;
    relay.wait_held();
    let mut a = probe.actor("A")?;
    let me = a.init(&id)?;
    relay.release();
    // Answered or closed: it has been dealt with.
    drop(left.session.client.receive::<InitProducerIdRequest>(4));
    a.transact(&t, &me, (0, "kept"), Commit)?;
    a.reads(&t, &["kept"])
}
