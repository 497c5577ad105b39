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

/// For people, in UTC: `2026-11-29T12:03:04.120Z`.
impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms_of_day) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let (seconds, ms) = (ms_of_day / 1000, ms_of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// For people, as if it were wall time: it is, unless the wall clock stood behind the log at a start or was set since.
impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WallTime(self.0).fmt(f)
    }
}

/// Year, month and day of a number of days since 1970, by the Gregorian calendar. Years are counted from March, so
/// that the leap day is the last one; 719,468 days lie between 1 March of year 0 and 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn utc_holds_at_leap_days_and_before_1970() {
        let utc = |ms| WallTime::from_ms(ms).to_string();
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(Now::from_ms(0).to_string(), utc(0));
    }
}
