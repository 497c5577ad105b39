//! `kill -9` under load: acknowledged records once and in order, transactions whole, retries recognised.

mod support;

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use semel_certify::{
    Server, Session,
    session::{Isolation, Place, Versions},
};
use support::{Stop, idempotent::Idempotent, program, transactional::Transactional, values};

/// Kills at random moments.
const KILLS: usize = 30;

/// The whole load: three idempotent producers, two classic and two version 2 transactional ones.
struct Load {
    stop: Arc<Stop>,
    idempotent: Vec<JoinHandle<Idempotent>>,
    transactional: Vec<JoinHandle<Transactional>>,
}

/// What the load was promised.
struct Promises {
    idempotent: Vec<Idempotent>,
    transactional: Vec<Transactional>,
}

fn places() -> Vec<Place> {
    (0..3).map(|index| Place::of("transactions", index)).collect()
}

impl Load {
    fn start(address: &str) -> Self {
        let mut session = Session::connect(address).expect("the server is up");
        session.create_topic("records", 3).expect("the server is up");
        session.create_topic("transactions", 3).expect("the server is up");
        let stop = Arc::new(Stop::default());
        let idempotent = (0..3).map(|index| {
            let producer = Idempotent::new(&format!("i{index}"), Place::of("records", index));
            spawn(producer, address, &stop, Idempotent::run)
        });
        let transactional = (0..4).map(|index| {
            let versions = if index % 2 == 0 { Versions::CLASSIC } else { Versions::VERSION_2 };
            let producer = Transactional::new(&format!("t{index}"), places(), versions);
            spawn(producer, address, &stop, Transactional::run)
        });
        let (idempotent, transactional) = (idempotent.collect(), transactional.collect());
        Self { stop, idempotent, transactional }
    }

    fn stop(self) -> Promises {
        self.stop.set();
        let idempotent = self.idempotent.into_iter().map(|one| one.join().expect("no promise was broken"));
        let transactional =
            self.transactional.into_iter().map(|one| one.join().expect("no promise was broken"));
        Promises { idempotent: idempotent.collect(), transactional: transactional.collect() }
    }
}

fn spawn<T: Send + 'static>(
    mut producer: T,
    address: &str,
    stop: &Arc<Stop>,
    run: fn(&mut T, &str, &Stop),
) -> JoinHandle<T> {
    let (address, stop) = (address.to_owned(), Arc::clone(stop));
    thread::spawn(move || {
        run(&mut producer, &address, &stop);
        producer
    })
}

impl Promises {
    /// Reads everything and holds it against what was promised.
    fn check(&self, address: &str) {
        let mut session = Session::connect(address).expect("the server is up");
        for producer in &self.idempotent {
            producer.retry_last_five(&mut session);
            producer.check(&values(&mut session, producer.place(), Isolation::Committed));
        }
        // A new instance aborts what the last one left open, so that everything is decided.
        for index in 0..self.transactional.len() {
            session.init(Some(&format!("t{index}"))).expect("the server is up");
        }
        let reads: Vec<_> =
            places().iter().map(|place| values(&mut session, place, Isolation::Committed)).collect();
        self.transactional.iter().for_each(|producer| producer.check(&reads));
    }

    fn totals(&self) -> (usize, usize) {
        let records = self.idempotent.iter().map(|one| one.acknowledged.len()).sum();
        let transactions = self.transactional.iter().map(|one| one.fates.len()).sum();
        (records, transactions)
    }
}

/// A small generator of moments; a failing run is told apart by its seed.
fn moments(seed: u64) -> impl Iterator<Item = Duration> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_micros(2_000 + state % 150_000)
    })
}

#[test]
fn thirty_kills_at_random_moments_lose_nothing_double_nothing_and_tear_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let seed = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut server = Server::start(program(), directory.path(), &[]).expect("the server starts");
    let load = Load::start(server.address());
    for moment in moments(seed).take(KILLS) {
        thread::sleep(moment);
        server.kill().expect("the server runs");
        server.restart().expect("the server starts again");
    }
    let promises = load.stop();
    let (batches, transactions) = promises.totals();
    assert!(
        batches > 100 && transactions > 30,
        "seed {seed}: only {batches} batches, {transactions} transactions"
    );
    promises.check(server.address());
    server.kill().expect("the server runs");
    server.restart().expect("the server starts again");
    promises.check(server.address());
}

/// Places in the commit path, in a snapshot and in a file change where the server can be made to kill itself.
const POINTS: &[&str] = &[
    "before_write:40",
    "after_write:40",
    "after_sync:40",
    "after_publish:40",
    "snapshot_before_write:2",
    "snapshot_after_write:2",
    "snapshot_after_sync:2",
    "snapshot_after_rename:2",
    "snapshot_after_dir_sync:2",
    "file_change_before:2",
    "file_change_after:2",
];

#[test]
fn a_kill_at_each_named_point_breaks_no_promise() {
    for point in POINTS {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let environment = [("SEMEL_CRASH_POINT", *point)];
        let often = ["--set", "semel.snapshot.interval.bytes=65536"];
        let mut server =
            Server::start_with(program(), directory.path(), &often, &environment).expect("the server starts");
        let load = Load::start(server.address());
        server
            .wait_end(Duration::from_secs(30))
            .unwrap_or_else(|error| panic!("{point} was never passed: {error}"));
        server.restart_with(Vec::new()).expect("the server starts again");
        thread::sleep(Duration::from_millis(50));
        load.stop().check(server.address());
    }
}
