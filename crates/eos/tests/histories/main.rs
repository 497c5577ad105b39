//! Random histories against a plain model of the promises: producers that behave as the client libraries do share
//! transactional ids, lose connections and answers, leave strays behind, are silent, are killed; the server restarts,
//! cleanly or with lost writes; administrators abort; topics are made anew.
//!
//! `promises.rs` knows no rule of the core: it believes the answers and holds them against the log. Each promise has
//! a name, with which a broken one is reported. With the feature `dropped-rules` (tests only) each rule of
//! `docs/dropped-rules.md` is dropped in turn, and the same histories must break a promise.
//!
//! `SEMEL_HISTORIES=N` runs N histories instead of the usual number, `SEMEL_SEED=S` starts at another seed.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]
#![allow(clippy::wildcard_enum_match_arm, reason = "the model looks only at what it knows")]
#![allow(clippy::print_stdout, reason = "a failing history is shown")]

mod client;
mod dice;
#[cfg(feature = "dropped-rules")]
mod dropped;
mod history;
mod network;
mod plain;
mod promises;
mod shard;
mod transactional;

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

/// Histories in a usual run.
const HISTORIES: u64 = 50_000;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_history_breaks_a_promise() {
    let (first, count) = (number("SEMEL_SEED", 1), number("SEMEL_HISTORIES", HISTORIES));
    let (next, broken) = (AtomicU64::new(first), Mutex::new(None));
    let totals = Mutex::new(history::Totals::default());
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(|| {
                let mut own = history::Totals::default();
                while broken.lock().unwrap().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    match history::run(seed) {
                        Ok(seen) => own.add(&seen),
                        Err(found) => *broken.lock().unwrap() = Some((seed, found)),
                    }
                }
                totals.lock().unwrap().add(&own);
            });
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("{totals:?}");
    if let Some((seed, found)) = broken.into_inner().unwrap() {
        panic!("history {seed} (SEMEL_SEED={seed} SEMEL_HISTORIES=1) breaks a promise: {found}");
    }
    totals.assert_everything_happened();
}
