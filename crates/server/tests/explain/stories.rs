//! `semel txn explain`: six stories.

use semel_certify::Session;
use semel_certify::session::Write;
use semel_wire::{RawProducerEpoch, RawProducerId, Text, api::init_producer_id::InitProducerIdRequest};

use crate::rig::{PATIENCE, Rig, open, t};

#[track_caller]
fn assert_tells(sentence: Option<&String>, parts: &[&str]) {
    let sentence = sentence.expect("a sentence");
    let mut rest = sentence.as_str();
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not told (in order) by: {sentence}")
        };
        rest = after;
    }
}

#[test]
fn normal_who_used_the_id_and_what_its_last_transaction_wrote() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    let identity = app.init(Some("normal")).expect("it serves");
    open(&mut app, "normal", identity, 0);
    assert_tells(
        rig.story("normal").last(),
        &["Transaction 1", "is open for", "wrote to t-0 from offset 0 on"],
    );
    assert!(!app.end("normal", identity, true).expect("it serves").code.is_error());
    let story = rig.story("normal");
    assert_eq!(story.len(), 2, "{story:#?}");
    assert_tells(
        story.first(),
        &[
            "client \"app-1\" (java 4.4.0, 127.0.0.1:",
            "took the id into use with InitProducerId",
            "time out after 1 m",
        ],
    );
    assert_tells(
        story.last(),
        &["Transaction 1 was committed by its producer", "app-1", "had written to t-0 up to offset 0"],
    );
    let told = rig.text(&["txn", "explain", "normal"]);
    assert!(told.starts_with("Transactional id \"normal\": CompleteCommit, producer "), "{told}");
}

#[test]
fn taken_over_by_whom_and_what_became_of_the_open_transaction() {
    let rig = Rig::start();
    let mut old = rig.client("app-1");
    let identity = old.init(Some("taken")).expect("it serves");
    open(&mut old, "taken", identity, 0);
    rig.client("app-2").init(Some("taken")).expect("it serves");
    let story = rig.story("taken");
    assert_tells(
        story.last(),
        &[
            "Taken over by client \"app-2\" (java 4.4.0, 127.0.0.1:",
            "with InitProducerId: epoch 0 was replaced by 1",
            "client \"app-1\"",
            "is fenced",
            "transaction 1, open for ",
            "was aborted: records in 1 partition (t-0)",
        ],
    );
    assert_eq!(story.len(), 1, "the fence's sentence names both sides: {story:#?}");
}

#[test]
fn timed_out_whose_transaction_it_was_and_that_its_producer_is_fenced() {
    let mut rig = Rig::start();
    let mut app = rig.client("app-1");
    let (_, identity) = app.try_init(Some("slow"), 300, None).expect("it serves");
    open(&mut app, "slow", identity.expect("an identity"), 0);
    let line =
        rig.server.wait_line("silent for longer than its timeout", PATIENCE).expect("the server says it");
    assert!(line.contains("transactional id \"slow\": fenced: epoch 0 was replaced by 1"), "{line}");
    assert_tells(
        rig.story("slow").last(),
        &[
            "client \"app-1\"",
            "open for longer than its timeout",
            "epoch 0 was replaced by 1",
            "transaction 1, open for ",
        ],
    );
}

#[test]
fn a_zombie_wrote_late_and_was_refused() {
    let rig = Rig::start();
    let mut old = rig.client("app-1");
    let identity = old.init(Some("late")).expect("it serves");
    rig.client("app-2").init(Some("late")).expect("it serves");
    let write =
        Write { identity: Some(identity), sequence: 0, values: &[b"late"], transactional_id: Some("late") };
    let produced = old.produce(&t(), write).expect("it serves");
    assert_eq!(produced.code.get(), 47);
    let story = rig.story("late");
    assert_eq!(story.len(), 2, "counted once: {story:#?}");
    assert_tells(
        story.last(),
        &[
            "Produce of client \"app-1\" (java 4.4.0,",
            "was refused: fenced: epoch 0 was replaced by 1 at 20",
            "app-2",
        ],
    );
    let refused = rig.json(&["txn", "explain", "late"])["refused"].clone();
    assert_eq!((&refused["count"], &refused["last"][0]["by"]["api"]), (&1.into(), &"Produce".into()));
}

#[test]
fn an_administrator_aborted_it() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    let identity = app.init(Some("stuck")).expect("it serves");
    open(&mut app, "stuck", identity, 0);
    rig.text(&["txn", "abort", "stuck"]);
    assert_tells(
        rig.story("stuck").last(),
        &[
            "Aborted by an administrator, client \"semel-cli\" (semel-cli ",
            "with WriteTxnMarkers: epoch 0 was replaced by 1",
            "client \"app-1\"",
            "transaction 1",
            "t-0",
        ],
    );
}

/// Takes an id so often that its epochs are used up.
fn exhaust(session: &mut Session, id: &str) {
    let request = InitProducerIdRequest {
        transactional_id: Some(Text::from(id)),
        transaction_timeout_ms: 60_000,
        producer_id: RawProducerId::NONE,
        producer_epoch: RawProducerEpoch::NONE,
        ..Default::default()
    };
    let mut left = 32_768;
    while left > 0 {
        let count = left.min(256);
        (0..count).for_each(|_| session.client.send(&request, 4).expect("it serves"));
        for _ in 0..count {
            let response = session.client.receive::<InitProducerIdRequest>(4).expect("it serves");
            assert!(!response.error_code.is_error(), "{}", response.error_code);
        }
        left -= count;
    }
}

#[test]
fn exhausted_epochs_give_a_new_producer_id() {
    let rig = Rig::start();
    let mut app = rig.client("app-1");
    exhaust(&mut app, "worn");
    let story = rig.story("worn");
    assert_eq!(story.len(), 32, "the fence log keeps 32 of an id");
    assert_tells(
        story.last(),
        &[
            "client \"app-1\"",
            "epoch 32766 was replaced by producer ",
            "epoch 0, a new producer id because its epochs are used up",
        ],
    );
}
