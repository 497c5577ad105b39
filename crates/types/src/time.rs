//! Times as plain values. Nothing here knows what time it is.

use core::fmt;

/// The broker's own clock in milliseconds: the larger of wall time at start and the last logged time, plus
/// monotonic time since. Never steps back or jumps; drives every timeout and expiry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Now(i64);

/// Wall clock in milliseconds since the epoch: only stamps records and answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallTime(i64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DurationMs(i64);

impl Now {
    /// Wraps milliseconds.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The value in milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This moment plus a length of time.
    #[must_use]
    pub const fn plus(self, length: DurationMs) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// Time since an earlier moment; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> DurationMs {
        let ms = self.0.saturating_sub(earlier.0);
        DurationMs(if ms < 0 { 0 } else { ms })
    }
}

impl WallTime {
    /// Wraps milliseconds since 1970.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }
}

impl DurationMs {
    /// Wraps milliseconds.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The value in milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for DurationMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// CRC32C of a batch's bytes after its 61-byte header: equal for a true retry, whatever a client restamped in the
/// header (design section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PayloadChecksum(pub u32);

/// What one step of the core may know of the world: given in, never asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The broker's clock: drives every timeout and expiry.
    pub now: Now,
    /// Wall clock: stamps records, markers and answers.
    pub wall: WallTime,
    /// Fresh random bytes for ids that this step makes.
    pub entropy: [u8; 32],
}
