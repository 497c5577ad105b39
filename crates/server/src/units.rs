//! Lengths of time, times and places as people read and write them: the one place for such texts.

use semel_types::{DurationMs, WallTime};

/// Units in falling order: letters and milliseconds.
const UNITS: [(&str, i64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time in at most two units: `850 ms`, `12.3 s`, `3 m 20 s`, `2 h 5 m`, `4 d 3 h`.
pub fn span(length: DurationMs) -> String {
    let ms = length.as_ms();
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 60_000 {
        return format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    }
    let first = UNITS.iter().position(|(_, unit)| ms >= *unit).unwrap_or(UNITS.len() - 2);
    let ((name, unit), (below_name, below)) = (UNITS[first], UNITS[first + 1]);
    match ms % unit / below {
        0 => format!("{} {name}", ms / unit),
        rest => format!("{} {name} {rest} {below_name}", ms / unit),
    }
}

/// Reads `500ms`, `30s`, `1m`, `1h30m`, `2d`.
///
/// # Errors
/// What was expected.
pub fn parse_span(text: &str) -> Result<DurationMs, String> {
    let wrong = || format!("{text:?} is no length of time (examples: 500ms, 30s, 1m, 1h30m, 2d)");
    let mut rest = text.trim();
    let mut total_ms = 0_i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let count: i64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(wrong)?.1;
        rest = rest[letters..].trim_start();
        let ms = count.checked_mul(unit).and_then(|ms| total_ms.checked_add(ms));
        total_ms = ms.ok_or_else(wrong)?;
    }
    if text.trim().is_empty() { Err(wrong()) } else { Ok(DurationMs::from_ms(total_ms)) }
}

/// Reads a time in UTC since 1970, `2026-11-29T12:00:00Z`, with or without milliseconds, `Z` or time of day. An earlier
/// one is refused: Kafka's ListOffsets gives negative timestamps meanings of their own.
///
/// # Errors
/// What was expected.
pub fn parse_time(text: &str) -> Result<WallTime, String> {
    let wrong =
        || format!("{text:?} is no time in UTC since 1970 (examples: 2026-11-29T12:00:00Z, 2026-11-29)");
    let (date, time) = text.trim().trim_end_matches('Z').split_once('T').unwrap_or((text.trim(), "0:0:0"));
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let numbers = |text: &str, by| -> Option<[i64; 3]> {
        let parsed: Result<Vec<i64>, _> = text.split(by).map(str::parse).collect();
        parsed.ok()?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = numbers(time, ':').ok_or_else(wrong)?;
    let ms: u16 = format!("{fraction:0<3}").get(..3).and_then(|ms| ms.parse().ok()).ok_or_else(wrong)?;
    let sane = (1..=12).contains(&month)
        && (1970..=9999).contains(&year)
        && (1..=month_days(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..61).contains(&second);
    if !sane {
        return Err(wrong());
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Ok(WallTime::from_ms(seconds * 1_000 + i64::from(ms)))
}

/// Days of a month of the Gregorian calendar.
const fn month_days(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970 to a date of the Gregorian calendar; years begin in March, so that a leap day is the last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// A count with its noun: `1 record`, `2 records`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for ms in [0, 951_782_400_123, 951_868_799_000, 1_796_000_000_000, 4_102_444_799_999] {
            let time = WallTime::from_ms(ms);
            assert_eq!(parse_time(&time.to_string()), Ok(time));
        }
        assert_eq!(parse_time("1970-01-02"), Ok(WallTime::from_ms(86_400_000)));
        assert_eq!(parse_time("1970-01-01T00:00:01.5"), Ok(WallTime::from_ms(1_500)));
        for text in ["", "now", "2026-13-01", "2026-11-29T24:00:00Z", "2026-11-29T12:00", "1-2"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_that_is_in_no_calendar_is_no_time() {
        for text in ["2026-02-29", "2026-02-30", "2026-11-31", "2026-04-31", "2100-02-29", "2026-01-32"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        for text in ["2028-02-29", "2000-02-29", "2026-11-30", "2026-12-31"] {
            assert!(parse_time(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_time_before_1970_is_refused_since_negative_timestamps_mean_something_else_to_list_offsets() {
        for text in ["1969-12-31T23:59:59.999Z", "1960-01-01", "0000-01-01", "1970-01-01T00:00:00.-1"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(parse_time("1970-01-01"), Ok(WallTime::from_ms(0)));
    }

    #[test]
    fn lengths_of_time_have_at_most_two_units() {
        let told = |ms| span(DurationMs::from_ms(ms));
        assert_eq!(told(0), "0 ms");
        assert_eq!(told(999), "999 ms");
        assert_eq!(told(12_345), "12.3 s");
        assert_eq!(told(60_000), "1 m");
        assert_eq!(told(200_000), "3 m 20 s");
        assert_eq!(told(7_500_000), "2 h 5 m");
        assert_eq!(told(356_400_000), "4 d 3 h");
    }

    #[test]
    fn lengths_of_time_are_read_in_any_unit_and_nonsense_is_refused_by_name() {
        let ms = |text| parse_span(text).map(DurationMs::as_ms);
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("1m"), Ok(60_000));
        assert_eq!(ms("1h 30m"), Ok(5_400_000));
        assert_eq!(ms("2d"), Ok(172_800_000));
        for text in ["", "5", "m", "1 minute", "-1s", "99999999999999999999s", "9223372036854775807d"] {
            let error = ms(text).expect_err("no length of time");
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn one_of_a_thing_has_no_s() {
        assert_eq!((count(1, "record"), count(2, "record")), ("1 record".to_owned(), "2 records".to_owned()));
    }
}
