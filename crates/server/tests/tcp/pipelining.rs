//! Several requests on their way on one connection.

use semel_certify::session::Isolation;
use semel_wire::{
    api::{
        api_versions::ApiVersionsRequest,
        fetch::FetchRequest,
        init_producer_id::InitProducerIdRequest,
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
        produce::ProduceRequest,
    },
    frame,
};

use crate::rig::{FETCH, Rig, assert_closed, batch, fate, fetch, hello, produce, produce_acks, record_bytes};

fn list_end() -> ListOffsetsRequest {
    let partition = ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: "t".into(), partitions: vec![partition] };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() }
}

#[test]
fn replies_come_in_the_order_of_the_requests_whoever_answers_them() {
    let rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    let mut client = rig.client();
    for round in 0..20 {
        client.send(&produce(b"x"), 9).expect("it listens");
        client.send(&hello(), 3).expect("it listens");
        client.send(&InitProducerIdRequest::default(), 4).expect("it listens");
        client.send(&list_end(), 7).expect("it listens");
        client.send(&produce(b"y"), 9).expect("it listens");
        assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("in order")), (0, round * 2));
        client.receive::<ApiVersionsRequest>(3).expect("in order");
        client.receive::<InitProducerIdRequest>(4).expect("in order");
        client.receive::<ListOffsetsRequest>(7).expect("in order");
        assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("in order")), (0, round * 2 + 1));
    }
}

#[test]
fn more_requests_than_a_connection_may_have_unanswered_are_all_answered() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let burst: Vec<u8> = (0..500)
        .flat_map(|correlation| {
            let acks = if correlation % 2 == 0 { 1 } else { -1 };
            frame::request(&produce_acks(b"x", acks), 9, correlation, None).expect("a request")
        })
        .collect();
    client.send_bytes(&burst).expect("it listens");
    for correlation in 0..500_i32 {
        let answer = client.receive_frame().expect("answered");
        assert_eq!(answer[..4], correlation.to_be_bytes());
    }
    assert_eq!(rig.end().get(), 500);
}

#[test]
fn a_burst_reads_back_its_own_write() {
    let rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    let mut client = rig.client();
    for round in 0..10 {
        client.send(&produce(b"x"), 9).expect("it listens");
        client.send(&list_end(), 7).expect("it listens");
        client.send(&fetch(round, (1, 0), Isolation::Uncommitted), FETCH).expect("it listens");
        assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("answered")), (0, round));
        let listed = client.receive::<ListOffsetsRequest>(7).expect("answered");
        assert_eq!(listed.topics[0].partitions[0].offset.get(), round + 1);
        let fetched = client.receive::<FetchRequest>(FETCH).expect("answered");
        assert_eq!(record_bytes(&fetched), batch(b"x").bytes().len(), "round {round}");
    }
}

#[test]
fn a_parked_long_poll_holds_back_later_answers_but_not_their_execution() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    client.send(&fetch(0, (1, 60_000), Isolation::Uncommitted), FETCH).expect("it listens");
    client.send(&hello(), 3).expect("it listens");
    // Executed behind the poll, it is what ends the poll.
    client.send(&produce(b"x"), 9).expect("it listens");
    let fetched = client.receive::<FetchRequest>(FETCH).expect("answered first");
    assert_eq!(record_bytes(&fetched), batch(b"x").bytes().len());
    client.receive::<ApiVersionsRequest>(3).expect("answered second");
    assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("answered last")), (0, 0));
}

#[test]
fn acks_0_is_stored_and_not_answered() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    client
        .send_bytes(&frame::request(&produce_acks(b"x", 0), 9, 1, None).expect("a request"))
        .expect("it listens");
    assert_eq!(fate(client.call(&produce(b"y"), 9).expect("the next answer is the next request's")), (0, 1));
}

#[test]
fn acks_0_closes_the_connection_on_an_error_and_what_follows_is_not_executed() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    let mut bad = produce_acks(b"x", 0);
    bad.topics[0].name = "nowhere".into();
    client.send(&produce(b"first"), 9).expect("it listens");
    client.send_bytes(&frame::request(&bad, 9, 2, None).expect("a request")).expect("it listens");
    let _ = client.send(&produce(b"last"), 9);
    assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("what came before is answered")), (0, 0));
    assert_closed(&mut client);
    assert_eq!(rig.end().get(), 1, "nothing behind the error was executed");
}

#[test]
fn a_client_that_has_closed_its_sending_side_is_answered_before_its_connection_is_closed() {
    let rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    let mut client = rig.client();
    client.send(&produce(b"x"), 9).expect("it listens");
    client.send(&fetch(0, (1, 0), Isolation::Uncommitted), FETCH).expect("it listens");
    client.finish_sending().expect("it listens");
    assert_eq!(fate(client.receive::<ProduceRequest>(9).expect("answered")), (0, 0));
    assert!(record_bytes(&client.receive::<FetchRequest>(FETCH).expect("answered")) > 0);
    assert_closed(&mut client);
}

#[test]
fn a_parked_poll_ends_when_its_client_has_gone() {
    let rig = Rig::with_topic(&[]);
    let mut client = rig.client();
    client.send(&fetch(0, (1, 60_000), Isolation::Uncommitted), FETCH).expect("it listens");
    client.finish_sending().expect("it listens");
    assert_closed(&mut client);
}
