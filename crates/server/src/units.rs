//! Lengths of time, times and places as people read and write them: the one place for such texts.

use semel_types::DurationMs;

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

/// A count with its noun: `1 record`, `2 records`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
