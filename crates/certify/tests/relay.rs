//! The relay does exactly the harm it is told to, to exactly the frame it is told of; all others pass as they are.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use semel_certify::{Client, ClientError, Relay, relay::Action};
use semel_wire::{
    ApiKey, ResponseHeader, Writer,
    api::{
        api_versions::{ApiVersionsRequest, ApiVersionsResponse},
        end_txn::{EndTxnRequest, EndTxnResponse},
    },
    frame,
};

/// A broker that answers every request with an empty answer and tells which API it was asked.
fn broker() -> (String, Receiver<i16>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || serve(stream, |api| sender.send(api).is_ok()));
        }
    });
    (address, asked)
}

fn serve(mut stream: TcpStream, tell: impl Fn(i16) -> bool) -> Option<()> {
    loop {
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix).ok()?;
        let mut content = vec![0; u32::from_be_bytes(prefix) as usize];
        stream.read_exact(&mut content).ok()?;
        let api = i16::from_be_bytes([content[0], content[1]]);
        let correlation = i32::from_be_bytes([content[4], content[5], content[6], content[7]]);
        if !tell(api) {
            return None;
        }
        let mut writer = Writer::copying(Vec::new());
        let encoded = if api == ApiKey::EndTxn.get() {
            frame::response(&EndTxnResponse::default(), 0, correlation, &mut writer)
        } else {
            frame::response(&ApiVersionsResponse::default(), 0, correlation, &mut writer)
        };
        encoded.expect("an answer of version 0");
        stream.write_all(&writer.into_buffer()).ok()?;
    }
}

fn ask(client: &mut Client) -> Result<(), ClientError> {
    client.call(&ApiVersionsRequest::default(), 0).map(|_| ())
}

fn end(client: &mut Client) -> Result<(), ClientError> {
    client.call(&EndTxnRequest::default(), 0).map(|_| ())
}

#[test]
fn without_a_rule_everything_passes() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    let mut client = Client::connect(relay.address()).expect("it listens");
    for _ in 0..3 {
        ask(&mut client).expect("answered");
    }
    assert_eq!(asked.try_iter().count(), 3);
    assert_eq!(relay.fired(), 0);
}

#[test]
fn a_swallowed_answer_was_asked_and_its_connection_is_cut_while_others_live() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    let (mut client, mut other) = (
        Client::connect(relay.address()).expect("it listens"),
        Client::connect(relay.address()).expect("it listens"),
    );
    relay.on(ApiKey::EndTxn, 2, Action::SwallowAnswer);
    end(&mut client).expect("the first passes");
    ask(&mut client).expect("another API passes");
    assert!(end(&mut client).is_err_and(|error| error.is_closed()), "the second is lost");
    end(&mut other).expect("the third passes");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [26, 18, 26, 26]);
    assert_eq!(relay.fired(), 1);
}

#[test]
fn a_request_cut_before_never_reaches_the_broker() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    let mut client = Client::connect(relay.address()).expect("it listens");
    relay.on(ApiKey::EndTxn, 1, Action::CutBefore);
    assert!(end(&mut client).is_err_and(|error| error.is_closed()));
    assert_eq!(asked.try_iter().count(), 0);
}

#[test]
fn a_duplicated_request_is_answered_twice() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    let mut client = Client::connect(relay.address()).expect("it listens");
    relay.on(ApiKey::EndTxn, 1, Action::DuplicateRequest);
    end(&mut client).expect("answered");
    let again = client.receive_frame().expect("and once more");
    let mut reader = semel_wire::Reader::new(again);
    let header = ResponseHeader::decode(&mut reader, ApiKey::EndTxn, 0).expect("a header");
    assert_eq!(header.correlation_id, 1, "the same request's");
    assert_eq!(asked.try_iter().count(), 2);
}

#[test]
fn a_held_request_waits_until_it_is_released_and_holds_up_nobody_else() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    let (mut client, mut other) = (
        Client::connect(relay.address()).expect("it listens"),
        Client::connect(relay.address()).expect("it listens"),
    );
    relay.on(ApiKey::EndTxn, 1, Action::HoldRequest);
    client.send(&EndTxnRequest::default(), 0).expect("it listens");
    relay.wait_held();
    ask(&mut other).expect("answered");
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [18], "the held one is not there yet");
    assert!(!client.has_answer().expect("a socket"));
    relay.release();
    client.receive::<EndTxnRequest>(0).expect("answered");
    relay.wait_fired();
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), [26]);
}

#[test]
fn a_client_tells_an_answer_that_belongs_to_another_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut client = Client::connect(listener.local_addr().expect("bound")).expect("it listens");
    let (mut stream, _) = listener.accept().expect("it connects");
    client.send(&EndTxnRequest::default(), 0).expect("it listens");
    let mut writer = Writer::copying(Vec::new());
    frame::response(&EndTxnResponse::default(), 0, 9, &mut writer).expect("an answer");
    stream.write_all(&writer.into_buffer()).expect("it listens");
    let error = client.receive::<EndTxnRequest>(0).expect_err("not ours");
    assert!(matches!(error, ClientError::Correlation { due: 1, found: 9 }), "{error}");
}

#[test]
fn a_held_answer_comes_once_it_is_released() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    relay.on(ApiKey::EndTxn, 1, Action::HoldAnswer);
    let mut client = Client::connect(relay.address()).expect("it listens");
    client.send(&EndTxnRequest::default(), 0).expect("sent");
    relay.wait_held();
    assert_eq!(asked.recv(), Ok(ApiKey::EndTxn.get()), "the broker has it");
    assert!(!client.has_answer().expect("connected"));
    relay.release();
    client.receive::<EndTxnRequest>(0).expect("answered");
}

#[test]
fn a_dropped_answer_leaves_the_connection() {
    let (address, asked) = broker();
    let relay = Relay::start(&address).expect("a relay");
    relay.on(ApiKey::EndTxn, 1, Action::DropAnswer);
    let mut client = Client::connect(relay.address()).expect("it listens");
    client.send(&EndTxnRequest::default(), 0).expect("sent");
    assert_eq!(asked.recv(), Ok(ApiKey::EndTxn.get()), "the broker has it");
    client.send(&ApiVersionsRequest::default(), 0).expect("the connection stays");
    // What comes next belongs to the second request: the first one's answer is missing.
    let error = client.receive::<EndTxnRequest>(0).expect_err("the first has none");
    assert!(matches!(error, ClientError::Correlation { due: 1, found: 2 }), "{error}");
}
