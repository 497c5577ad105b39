//! Load that knows what it was promised, for tests that kill the server.

pub mod idempotent;
pub mod transactional;

use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use semel_certify::{
    Session,
    session::{Isolation, Place},
};

/// The server under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_semel"))
}

/// Tells the load to stop.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Connects as soon as the server is there; `None` once the load is to stop.
pub fn connect(address: &str, stop: &Stop) -> Option<Session> {
    while !stop.is_set() {
        if let Ok(session) = Session::connect(address) {
            return Some(session);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Every value that a reader of this isolation gets from a partition, with how often it came.
pub fn values(session: &mut Session, place: &Place, isolation: Isolation) -> Vec<String> {
    let values = session.read(place, isolation).expect("the server is up");
    values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

/// How often each value came.
pub fn counts(values: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for value in values {
        *counts.entry(value.as_str()).or_default() += 1;
    }
    counts
}
