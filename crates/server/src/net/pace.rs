//! How fast a begun frame arrives.
//!
//! Invariant: a frame of which [`PROGRESS_BYTES`] arrive in each [`PROGRESS_TIME`] is never called stuck, and one that
//! stops is stuck after at most two of them. What it does not do: act on it.

use std::time::Duration;

use tokio::time::Instant;

/// What has to arrive of a frame in [`PROGRESS_TIME`] while others wait for the bytes that it holds.
pub const PROGRESS_BYTES: usize = 64 * 1024;
/// The time in which [`PROGRESS_BYTES`] have to arrive.
pub const PROGRESS_TIME: Duration = Duration::from_secs(1);

/// When real progress was last made, and how much had arrived then.
#[derive(Clone, Copy)]
pub struct Pace {
    since: Instant,
    at_bytes: usize,
}

impl Pace {
    /// The clock of a frame of which `bytes` are there runs from `now`.
    pub const fn start(now: Instant, bytes: usize) -> Self {
        Self { since: now, at_bytes: bytes }
    }

    /// `bytes` of the frame are there now.
    pub const fn note(&mut self, now: Instant, bytes: usize) {
        if bytes >= self.at_bytes + PROGRESS_BYTES {
            *self = Self::start(now, bytes);
        }
    }

    /// When the frame is stuck, unless more of it arrives.
    pub fn stuck_at(self) -> Instant {
        self.since + PROGRESS_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_frame_is_not_stuck_and_a_trickle_is() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut slow = Pace::start(start, 0);
        let mut trickle = slow;
        for step in 1..100 {
            assert!(after(step * 900) < slow.stuck_at());
            slow.note(after(step * 900), usize::try_from(step).expect("small") * PROGRESS_BYTES);
        }
        for step in 1..=10 {
            trickle.note(after(step * 100), usize::try_from(step).expect("small"));
        }
        assert_eq!(trickle.stuck_at(), after(1000));
    }
}
