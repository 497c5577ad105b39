//! Named places at which a test may kill the process: debug builds only.

/// Kills the process (as `kill -9` does) if `SEMEL_CRASH_POINT` is `name`, or `name:n` at the n-th pass.
#[cfg(debug_assertions)]
pub fn crash_point(name: &str) {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };
    static WANTED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("SEMEL_CRASH_POINT").ok()?;
        let (name, pass) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), AtomicU64::new(pass.parse().unwrap_or(1))))
    });
    if let Some((wanted, passes_left)) = wanted
        && wanted == name
        && passes_left.fetch_sub(1, Ordering::AcqRel) == 1
    {
        let me = rustix::process::getpid();
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Nothing in release builds.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn crash_point(_name: &str) {}
