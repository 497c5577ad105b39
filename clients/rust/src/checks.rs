//! Runs named checks and prints one line for each.
//!
//! A check fails by panicking; that ends the check, not the suite.

use std::env;
use std::fmt::Debug;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

static FAILED: AtomicBool = AtomicBool::new(false);

/// Whether the broker is Apache Kafka, whose own behaviour some expectations go beyond.
pub fn is_kafka() -> bool {
    env::var("PEER").is_ok_and(|peer| peer == "kafka")
}

/// Whether a check failed so far.
pub fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Runs one check. The panic that fails it is printed by the ordinary panic hook, with its place.
pub fn check(name: &str, body: impl FnOnce()) {
    let start = Instant::now();
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => println!("ok {name} ({:.1} s)", start.elapsed().as_secs_f32()),
        Err(_) => {
            FAILED.store(true, Ordering::Relaxed);
            println!("FAILED {name}: see the panic above");
        }
    }
}

/// A check that Apache Kafka fails, for the reason given: run on Semel only.
pub fn stricter(name: &str, reason: &str, body: impl FnOnce()) {
    if is_kafka() {
        println!("skipped {name}: stricter than Kafka: {reason}");
    } else {
        check(name, body);
    }
}

/// Panics unless both are equal.
#[track_caller]
pub fn equal<T: PartialEq + Debug>(expected: T, seen: T, what: &str) {
    if expected != seen {
        let short = |value: T| format!("{value:?}").chars().take(300).collect::<String>();
        panic!("{what}: expected {}, saw {}", short(expected), short(seen));
    }
}

/// Asks again until the condition holds; for what the broker does in its own time.
#[track_caller]
pub fn await_condition(limit: Duration, condition: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(50));
    }
}

/// What Kafka does some time after its answer, and Semel before it: awaited there, asserted here.
#[track_caller]
pub fn eventually(condition: impl Fn() -> bool, what: &str) {
    if is_kafka() {
        await_condition(Duration::from_secs(10), condition, what);
    } else {
        assert!(condition(), "{what}: not yet when the answer was here");
    }
}
