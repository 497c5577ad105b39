//! Patterns of clients: written for RE2J, which Kafka uses, and read by the crate `regex`.
//!
//! Purpose: [`whole`] compiles one. The two engines are relatives: time grows with the name's length alone, and neither
//! knows lookarounds or references back. Invariants: a pattern matches whole names; one that would take much memory is
//! refused like a wrong one; `\Q...\E`, which Java's `Pattern.quote` makes, stands for its text; what `regex` would
//! read otherwise is refused: sets within sets, and what RE2J refuses too (one repetition right behind another, the
//! flags `x`, `u` and `R`).
//! What it does not do: judge names of Unicode classes, which differ too: `\p{IsGreek}` is a class for `regex` only.

use regex::{Regex, RegexBuilder};

/// Memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The pattern, for whole names.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn whole(pattern: &str) -> Result<Regex, String> {
    let text = translated(pattern)?;
    let build = |text: &str| RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    // By itself first: what stands around it must not make a bad one good.
    let built = build(&text).and_then(|_| build(&format!(r"\A(?:{text})\z")));
    built.map_err(|error| reason(&error))
}

/// The last line alone: those before it draw the pattern.
fn reason(error: &regex::Error) -> String {
    let all = error.to_string();
    let last = all.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// As `regex` has to read it.
fn translated(pattern: &str) -> Result<String, String> {
    let mut text = String::with_capacity(pattern.len());
    let (mut rest, mut was_repetition) = (pattern, false);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let (quoted, behind) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            text.push_str(&regex::escape(quoted));
            (rest, was_repetition) = (behind, false);
            continue;
        }
        let repetition = repetition(rest);
        if repetition.is_some() && was_repetition {
            return Err(format!("a repetition of a repetition at '{rest}'"));
        }
        was_repetition = repetition.is_some();
        let length = match repetition {
            Some(length) => length,
            None => piece(rest)?,
        };
        let (piece, behind) = rest.split_at(length);
        text.push_str(piece);
        rest = behind;
    }
    Ok(text)
}

/// Bytes of the repetition that stands here, with the `?` that makes it a lazy one.
fn repetition(rest: &str) -> Option<usize> {
    let length = match rest.as_bytes().first()? {
        b'*' | b'+' | b'?' => 1,
        b'{' => {
            let (counts, _) = rest[1..].split_once('}')?;
            let is_count = counts.starts_with(|digit: char| digit.is_ascii_digit())
                && counts.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
            is_count.then_some(counts.len() + 2)?
        }
        _ => return None,
    };
    Some(length + usize::from(rest[length..].starts_with('?')))
}

/// Bytes of whatever else stands here.
fn piece(rest: &str) -> Result<usize, String> {
    if rest.starts_with('[') {
        return class(rest);
    }
    if let Some(group) = rest.strip_prefix("(?") {
        check_flags(group)?;
        // Its question mark is no repetition.
        return Ok(2);
    }
    Ok(if rest.starts_with('\\') { escape(rest) } else { rest.chars().next().map_or(0, char::len_utf8) })
}

/// Bytes of an escape: two characters, and what stands in braces where that belongs to it.
fn escape(rest: &str) -> usize {
    let Some(escaped) = rest[1..].chars().next() else { return 1 };
    let length = 1 + escaped.len_utf8();
    let braces = matches!(escaped, 'p' | 'P' | 'x') && rest[length..].starts_with('{');
    let end = if braces { rest[length..].find('}').map(|at| at + 1) } else { None };
    length + end.unwrap_or(0)
}

/// Bytes of a set of characters; all that is left if it has no end.
fn class(rest: &str) -> Result<usize, String> {
    let mut at = 1 + usize::from(rest[1..].starts_with('^'));
    // As the first one it is a member.
    at += usize::from(rest[at..].starts_with(']'));
    while let Some(next) = rest[at..].chars().next() {
        let here = &rest[at..];
        if next == ']' {
            return Ok(at + 1);
        }
        let is_set = next == '[' && !here.starts_with("[:");
        if is_set || ["&&", "--", "~~"].iter().any(|operator| here.starts_with(operator)) {
            return Err(format!("a set within a set at '{here}'"));
        }
        at += match next {
            '\\' => escape(here),
            '[' => here.find(":]").map_or(1, |end| end + 2),
            other => other.len_utf8(),
        };
    }
    Ok(rest.len())
}

fn check_flags(group: &str) -> Result<(), String> {
    let flags = group.split([':', ')']).next().unwrap_or_default();
    let is_named = flags.starts_with(['P', '<']);
    match flags.chars().find(|flag| !"imsU-".contains(*flag)) {
        Some(flag) if !is_named => Err(format!("no such flag: '{flag}'")),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        whole(pattern).expect(pattern).is_match(name)
    }

    #[test]
    fn a_pattern_matches_whole_names_and_a_bad_one_is_refused() {
        assert!(matches("orders-.*", "orders-eu"));
        assert!(matches("a|orders", "orders"));
        assert!(!matches("orders", "orders-eu"));
        assert!(!matches("a|orders", "orders-eu"));
        for bad in ["(", "a)(b", "[", r"\", r"\E", "(?:x{1000}){1000}{1000}", "(?:(?:x{1000}){1000}){1000}"] {
            assert!(whole(bad).is_err(), "{bad}");
        }
        assert_eq!(whole("(").unwrap_err(), "unclosed group");
    }

    #[test]
    fn quoted_text_stands_for_itself() {
        for (pattern, name) in [
            (r"\Qa.b\E", "a.b"),
            (r"\Qa.b", "a.b"),
            (r"x-\Qa+\E.*", "x-a+yz"),
            (r"\Qab\E+", "abb"),
            (r"\Qa\E\\E\Qb\E", r"a\Eb"),
            (r"\Qa\E\Qb[\E", "ab["),
            (r"\\Q", r"\Q"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        assert!(!matches(r"\Qa.b\E", "axb"));
    }

    #[test]
    fn what_would_be_read_otherwise_is_refused() {
        for bad in ["a++", "a*+", "a?+", "a{2}+", "a{2,}+", "a??+", "a**", "a{2}{3}", "[a]++", r"\p{L}++"] {
            assert!(whole(bad).is_err_and(|why| why.starts_with("a repetition of")), "{bad}");
        }
        for bad in ["[a-z&&[r]]", "[a-z--r]", "[a~~b]", "[a[bc]]", "[^[b]]", r"[\]&&x]"] {
            assert!(whole(bad).is_err_and(|why| why.starts_with("a set within")), "{bad}");
        }
        for bad in ["(?x)a b", "(?x: a)", "(?i-u:a)", "(?R)a"] {
            assert!(whole(bad).is_err_and(|why| why.starts_with("no such flag")), "{bad}");
        }
    }

    #[test]
    fn what_both_know_is_left_alone() {
        for (pattern, name) in [
            ("a+?b*?c??d{1,2}?", "abcd"),
            ("(?:a+)+", "aa"),
            ("(?i)A", "a"),
            ("(?P<n>a)(?<m>b)", "ab"),
            ("[]a&-]+", "]&-a"),
            ("[[:alpha:]_]+", "a_b"),
            (r"\x{61}+[\x{62}]\++", "aab++"),
            (r"a\+*", "a++"),
            ("é+", "éé"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
    }
}
