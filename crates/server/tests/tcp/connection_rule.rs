//! Late copies of requests, on connections that their client has left (stricter.md S6, S7, S21).

use semel_certify::{
    Client, Relay, Session,
    relay::Action,
    session::{Identity, Isolation, Write},
};
use semel_types::Offset;
use semel_wire::{
    ApiKey, RawOffset,
    api::{
        end_txn::EndTxnRequest,
        init_producer_id::InitProducerIdRequest,
        offset_fetch::{OffsetFetchRequest, OffsetFetchTopic},
        txn_offset_commit::{TxnOffsetCommitPartition, TxnOffsetCommitRequest, TxnOffsetCommitTopic},
    },
};

use crate::rig::{FETCH, Rig, assert_closed, fetch, hello, produce, t, values, write};

const ID: &str = "tx";
const GROUP: &str = "group";

fn record<'a>(identity: Identity, sequence: i32, values: &'a [&'a [u8]]) -> Write<'a> {
    Write { identity: Some(identity), sequence, values, transactional_id: Some(ID) }
}

fn add_and_write(session: &mut Session, identity: Identity, sequence: i32, value: &str) {
    let codes = session.add(ID, identity, &[t()]).expect("answered");
    assert!(codes.iter().all(|code| !code.is_error()), "{codes:?}");
    assert_eq!(write(session, record(identity, sequence, &[value.as_bytes()])).0, 0);
}

fn end_request(identity: Identity, committed: bool) -> EndTxnRequest {
    EndTxnRequest {
        transactional_id: ID.into(),
        producer_id: identity.id.into(),
        producer_epoch: identity.epoch.into(),
        committed,
    }
}

#[test]
fn s6_a_late_end_of_transaction_on_an_older_connection_is_not_executed_and_its_connection_is_closed() {
    let rig = Rig::with_topic(&[]);
    let relay = Relay::start(rig.server.address()).expect("a relay");
    let mut left = Session::connect(&relay.address()).expect("it listens");
    let identity = left.init(Some(ID)).expect("it serves");
    add_and_write(&mut left, identity, 0, "1");
    relay.on(ApiKey::EndTxn, 1, Action::HoldRequest);
    left.client.send(&end_request(identity, true), 3).expect("it listens");
    relay.wait_held();
    let mut used = rig.session();
    assert_eq!(used.end(ID, identity, true).expect("answered").code.get(), 0);
    add_and_write(&mut used, identity, 1, "2");
    relay.release();
    assert_closed(&mut left.client);
    assert_eq!(write(&mut used, record(identity, 2, &[b"3"])).0, 0);
    assert_eq!(used.end(ID, identity, false).expect("answered").code.get(), 0);
    assert_eq!(values(&mut used, Isolation::Committed), ["1"]);
}

fn offset_commit(identity: Identity, offset: i64) -> TxnOffsetCommitRequest {
    let partition = TxnOffsetCommitPartition {
        committed_offset: RawOffset::from(Offset::new(offset)),
        committed_leader_epoch: semel_wire::RawLeaderEpoch::NONE,
        ..Default::default()
    };
    let topic = TxnOffsetCommitTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    TxnOffsetCommitRequest {
        transactional_id: ID.into(),
        group_id: GROUP.into(),
        producer_id: identity.id.into(),
        producer_epoch: identity.epoch.into(),
        topics: vec![topic],
        ..Default::default()
    }
}

fn committed_offset(client: &mut Client) -> i64 {
    let topic = OffsetFetchTopic { name: "t".into(), partition_indexes: vec![Default::default()] };
    let request =
        OffsetFetchRequest { group_id: GROUP.into(), topics: Some(vec![topic]), ..Default::default() };
    let answer = client.call(&request, 6).expect("answered");
    answer.topics[0].partitions[0].committed_offset.get()
}

#[test]
fn s7_a_late_offset_of_an_aborted_transaction_does_not_enter_the_next_one() {
    let rig = Rig::with_topic(&[]);
    let relay = Relay::start(rig.server.address()).expect("a relay");
    let mut left = Session::connect(&relay.address()).expect("it listens");
    let identity = left.init(Some(ID)).expect("it serves");
    assert_eq!(left.add_offsets(ID, identity, GROUP).expect("answered").get(), 0);
    relay.on(ApiKey::TxnOffsetCommit, 1, Action::HoldRequest);
    left.client.send(&offset_commit(identity, 100), 3).expect("it listens");
    relay.wait_held();
    let mut used = rig.session();
    assert_eq!(used.end(ID, identity, false).expect("answered").code.get(), 0);
    assert_eq!(used.add_offsets(ID, identity, GROUP).expect("answered").get(), 0);
    let code = used.commit_offset(ID, identity, GROUP, (&t(), Offset::new(50))).expect("answered");
    assert_eq!(code.get(), 0);
    relay.release();
    assert_closed(&mut left.client);
    assert_eq!(used.end(ID, identity, true).expect("answered").code.get(), 0);
    assert_eq!(committed_offset(&mut used.client), 50);
}

#[test]
fn s21_a_late_copy_of_init_producer_id_does_not_fence_its_own_client() {
    let rig = Rig::with_topic(&[]);
    let relay = Relay::start(rig.server.address()).expect("a relay");
    let mut left = Session::connect(&relay.address()).expect("it listens");
    relay.on(ApiKey::InitProducerId, 1, Action::HoldRequest);
    let request = InitProducerIdRequest {
        transactional_id: Some(ID.into()),
        transaction_timeout_ms: 60_000,
        producer_id: semel_wire::RawProducerId::NONE,
        producer_epoch: semel_wire::RawProducerEpoch::NONE,
        ..Default::default()
    };
    left.client.send(&request, 4).expect("it listens");
    relay.wait_held();
    let mut used = rig.session();
    let identity = used.init(Some(ID)).expect("it serves");
    relay.release();
    assert_closed(&mut left.client);
    add_and_write(&mut used, identity, 0, "1");
    assert_eq!(used.end(ID, identity, true).expect("answered").code.get(), 0);
    assert_eq!(values(&mut used, Isolation::Committed), ["1"]);
}

#[test]
fn a_late_copy_of_a_batch_on_an_older_connection_closes_it_and_the_client_goes_on() {
    let rig = Rig::with_topic(&[]);
    let relay = Relay::start(rig.server.address()).expect("a relay");
    let mut left = Session::connect(&relay.address()).expect("it listens");
    let identity = left.init(None).expect("it serves");
    relay.on(ApiKey::Produce, 1, Action::HoldRequest);
    let first = Write { identity: Some(identity), sequence: 0, values: &[b"1"], transactional_id: None };
    let request = semel_certify::session::produce_request(&[(&t(), first.batch())], None);
    left.client.send(&request, 9).expect("it listens");
    relay.wait_held();
    let mut used = rig.session();
    assert_eq!(write(&mut used, first), (0, 0));
    relay.release();
    assert_closed(&mut left.client);
    assert_eq!(write(&mut used, Write { sequence: 1, values: &[b"2"], ..first }), (0, 1));
    assert_eq!(values(&mut used, Isolation::Committed), ["1", "2"]);
}

#[test]
fn a_classic_end_of_transaction_is_dropped_when_its_client_has_gone_before_it_was_taken() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.session();
    let identity = client.init(Some(ID)).expect("it serves");
    add_and_write(&mut client, identity, 0, "1");
    // A parked poll and 99 answers behind it: the connection may not take more before the poll ends.
    let mut last = rig.client();
    last.send(&fetch(1, (1, 60_000), Isolation::Uncommitted), FETCH).expect("it listens");
    for _ in 0..99 {
        last.send(&hello(), 3).expect("it listens");
    }
    last.send(&end_request(identity, true), 3).expect("it listens");
    last.finish_sending().expect("it listens");
    rig.client().call(&produce(b"2"), 9).expect("answered");
    for _ in 0..100 {
        last.receive_frame().expect("answered before the end was taken");
    }
    assert_closed(&mut last);
    // Had the commit been executed, this would be 48.
    assert_eq!(client.end(ID, identity, false).expect("answered").code.get(), 0);
    assert_eq!(values(&mut client, Isolation::Committed), ["2"]);
}

#[test]
fn a_connection_that_was_accepted_later_has_a_higher_number_whichever_is_used_first() {
    let rig = Rig::with_topic(&[]);
    for round in 0..20 {
        let (mut older, mut newer) = (rig.session(), rig.session());
        let id = format!("tx{round}");
        let identity = newer.init(Some(&id)).expect("it serves");
        assert_eq!(newer.add(&id, identity, &[t()]).expect("answered")[0].get(), 0);
        let refused = older.add(&id, identity, &[t()]);
        assert!(crate::rig::is_closed(&refused), "round {round}: {refused:?}");
    }
}
