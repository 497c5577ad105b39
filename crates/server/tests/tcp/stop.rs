//! SIGTERM: an end within a second, nothing lost.

use std::{sync::Arc, thread, time::Duration};

use semel_certify::session::{Isolation, Place, Versions};

use crate::{
    rig::{FETCH, PATIENCE, Rig, assert_closed, fetch},
    support::{Stop, idempotent::Idempotent, transactional::Transactional, values},
};

#[test]
fn sigterm_under_load_ends_with_status_0_within_a_second_and_loses_nothing() {
    let mut rig = Rig::start(&[]);
    let mut session = rig.session();
    session.create_topic("records", 2).expect("it serves");
    session.create_topic("transactions", 3).expect("it serves");
    let places: Vec<_> = (0..3).map(|index| Place::of("transactions", index)).collect();
    let stop = Arc::new(Stop::default());
    let address = rig.server.address().to_owned();
    let idempotent: Vec<_> = (0..2)
        .map(|index| {
            let (address, stop) = (address.clone(), Arc::clone(&stop));
            let mut producer = Idempotent::new(&format!("i{index}"), Place::of("records", index));
            thread::spawn(move || {
                producer.run(&address, &stop);
                producer
            })
        })
        .collect();
    let transactional = {
        let (address, stop) = (address.clone(), Arc::clone(&stop));
        let mut producer = Transactional::new("t0", places.clone(), Versions::VERSION_2);
        thread::spawn(move || {
            producer.run(&address, &stop);
            producer
        })
    };
    for round in 0..3 {
        // The load runs when it has got this far.
        let place = Place::of("records", 0);
        let before = session.end_offset(&place, Isolation::Uncommitted).expect("it serves").get();
        while session.end_offset(&place, Isolation::Uncommitted).expect("it serves").get() < before + 30 {
            thread::yield_now();
        }
        let (status, took) = rig.server.terminate().expect("it stops");
        assert_eq!(status.code(), Some(0), "round {round}");
        assert!(took < Duration::from_secs(1), "round {round}: {took:?}");
        rig.server.restart().expect("it starts again");
        session = rig.session();
    }
    stop.set();
    for producer in idempotent {
        let producer = producer.join().expect("no promise was broken");
        assert!(producer.acknowledged.len() > 10);
        producer.retry_last_five(&mut session);
        producer.check(&values(&mut session, producer.place(), Isolation::Committed));
    }
    let transactional = transactional.join().expect("no promise was broken");
    session.init(Some("t0")).expect("it serves");
    let reads: Vec<_> =
        places.iter().map(|place| values(&mut session, place, Isolation::Committed)).collect();
    transactional.check(&reads);
}

#[test]
fn idle_connections_and_parked_polls_do_not_hold_the_end_up() {
    let mut rig = Rig::with_topic(&[]);
    let _idle: Vec<_> = (0..50).map(|_| rig.client()).collect();
    let mut parked = rig.client();
    parked.send(&fetch(0, (1, 60_000), Isolation::Uncommitted), FETCH).expect("it listens");
    let (status, took) = rig.server.terminate().expect("it stops");
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_closed(&mut parked);
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_the_end_up() {
    let mut rig = Rig::with_topic(&[]);
    let value = vec![7; 1_000_000];
    for _ in 0..8 {
        rig.client().call(&crate::rig::produce(&value), 9).expect("answered");
    }
    let mut request = fetch(0, (1, 0), Isolation::Uncommitted);
    (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) = (16 << 20, 16 << 20);
    let mut silent = rig.client();
    for _ in 0..5 {
        silent.send(&request, FETCH).expect("it listens");
    }
    let (status, took) = rig.server.terminate().expect("it stops");
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_clean_stop_says_so_and_the_next_start_finds_everything() {
    let mut rig = Rig::start(&[]);
    rig.session().create_topic("t", 1).expect("it serves");
    rig.client().call(&crate::rig::produce(b"x"), 9).expect("answered");
    rig.server.terminate().expect("it stops");
    let line = rig.server.wait_line("stopped", PATIENCE).expect("it says so");
    assert!(line.contains("stop_ms="), "{line}");
    rig.server.restart().expect("it starts again");
    assert_eq!(rig.end().get(), 1);
}
