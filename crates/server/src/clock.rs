//! The only clock of the server, and its only source of randomness.
//!
//! Invariant: the broker's time is the larger of wall time at start and the last logged time, plus monotonic time
//! since: it never steps back or jumps, whatever happens to the wall clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use semel_types::{Context, Now, WallTime};

/// Gives the node its view of the world.
pub struct Clock {
    base: Now,
    started: Instant,
    pool: Vec<u8>,
}

/// Random bytes fetched from the system at once.
const POOL_BYTES: usize = 4096;

impl Clock {
    /// Starts at the larger of wall time and `last_logged`.
    pub fn start(last_logged: Now) -> Self {
        let base = last_logged.max(Now::from_ms(wall().as_ms()));
        Self { base, started: Instant::now(), pool: Vec::new() }
    }

    /// The broker's time.
    pub fn now(&self) -> Now {
        let elapsed_ms = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Now::from_ms(self.base.as_ms().saturating_add(elapsed_ms))
    }

    /// Time and randomness for one step.
    pub fn context(&mut self) -> Context {
        Context { now: self.now(), wall: wall(), entropy: self.entropy() }
    }

    fn entropy(&mut self) -> [u8; 32] {
        if self.pool.len() < 32 {
            self.pool.resize(POOL_BYTES, 0);
            getrandom::fill(&mut self.pool).expect("the system gives random bytes");
        }
        let rest = self.pool.len() - 32;
        let mut entropy = [0; 32];
        entropy.copy_from_slice(&self.pool[rest..]);
        self.pool.truncate(rest);
        entropy
    }
}

/// Wall clock; zero if it stands before 1970.
pub fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_broker_clock_never_starts_before_the_last_logged_time() {
        let future = Now::from_ms(wall().as_ms() + 1_000_000);
        let clock = Clock::start(future);
        assert!(clock.now() >= future);
    }

    #[test]
    fn no_two_steps_share_their_entropy() {
        let mut clock = Clock::start(Now::default());
        let first = clock.context().entropy;
        assert!((0..200).all(|_| clock.context().entropy != first));
    }
}
