//! Keeps a misbehaving client from flooding the server's log.

use std::{
    collections::HashSet,
    fmt,
    time::{Duration, Instant},
};

/// Lines that may be written at once, and then per second.
const LINES_PER_SECOND: u32 = 10;

/// Writes lines, at most so many a second, and says how many were left out.
pub struct RateLimit {
    window: Instant,
    written: u32,
    left_out: u64,
}

impl RateLimit {
    /// A fresh window.
    pub fn new() -> Self {
        Self { window: Instant::now(), written: 0, left_out: 0 }
    }

    /// Writes something that is no fault, if there is room for it in this second: only then it is put into words.
    pub fn inform(&mut self, line: &dyn fmt::Display) {
        if self.admits(Instant::now()) {
            tracing::info!("{line}");
        }
    }

    /// Writes a warning, if there is room for it in this second.
    pub fn say(&mut self, line: &str) {
        if self.admits(Instant::now()) {
            tracing::warn!("{line}");
        }
    }

    fn admits(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.window) >= Duration::from_secs(1) {
            if self.left_out > 0 {
                tracing::warn!("{} similar lines were left out", self.left_out);
            }
            *self = Self { window: now, written: 0, left_out: 0 };
        }
        let admitted = self.written < LINES_PER_SECOND;
        if admitted {
            self.written += 1;
        } else {
            self.left_out += 1;
        }
        admitted
    }
}

/// Lines that are remembered as said.
const REMEMBERED: usize = 1024;

/// Says each line once, however often it comes, and not too many a second.
pub struct SaidOnce {
    said: HashSet<String>,
    limit: RateLimit,
}

impl SaidOnce {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self { said: HashSet::new(), limit: RateLimit::new() }
    }

    /// Writes an error unless it was written before; one that finds no room in this second may come again.
    pub fn say(&mut self, line: &str) {
        if self.admits(line, Instant::now()) {
            tracing::error!("{line}");
        }
    }

    fn admits(&mut self, line: &str, now: Instant) -> bool {
        if self.said.contains(line) || !self.limit.admits(now) {
            return false;
        }
        if self.said.len() == REMEMBERED {
            self.said.clear();
        }
        self.said.insert(line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_ten_lines_a_second() {
        let mut limit = RateLimit::new();
        let start = Instant::now();
        assert_eq!((0..100).filter(|_| limit.admits(start)).count(), 10);
        assert_eq!(limit.left_out, 90);
        assert!(limit.admits(start + Duration::from_secs(2)));
    }

    #[test]
    fn a_line_is_said_once_also_if_it_had_to_wait_for_room() {
        let mut said = SaidOnce::new();
        let start = Instant::now();
        let line = |n: usize| format!("line {n}");
        assert_eq!((0..30).filter(|n| said.admits(&line(n % 15), start)).count(), 10);
        let later = start + Duration::from_secs(2);
        assert_eq!((0..30).filter(|n| said.admits(&line(n % 15), later)).count(), 5);
    }
}
