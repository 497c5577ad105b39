//! Which names a topic may have (upstream `Topic.validate`, `Topic.hasCollision`).

use std::{borrow::Cow, fmt};

/// Longest topic name, in bytes: Kafka names directories after topics.
pub const MAX_TOPIC_NAME_BYTES: usize = 249;

/// Topics that exist in Kafka and not here: their state is events of the log.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__cluster_metadata"];

/// Why a topic cannot have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It is `.` or `..`.
    Dots,
    /// It is longer than [`MAX_TOPIC_NAME_BYTES`].
    TooLong,
    /// It has a character other than ASCII letters, digits, `.`, `_` and `-`.
    Character,
    /// It names one of Kafka's internal topics.
    Internal,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a topic name cannot be empty"),
            Self::Dots => f.write_str("a topic name cannot be \".\" or \"..\""),
            Self::TooLong => write!(f, "a topic name has at most {MAX_TOPIC_NAME_BYTES} characters"),
            Self::Character => f.write_str("a topic name has only ASCII letters, digits, '.', '_' and '-'"),
            Self::Internal => f.write_str("this is an internal topic of Kafka and does not exist here"),
        }
    }
}

impl std::error::Error for NameError {}

/// May a topic have this name?
///
/// # Errors
/// The first [`NameError`] that holds.
pub fn check(name: &str) -> Result<(), NameError> {
    match name {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Dots),
        name if name.len() > MAX_TOPIC_NAME_BYTES => Err(NameError::TooLong),
        name if !name.bytes().all(is_allowed) => Err(NameError::Character),
        name if is_internal(name) => Err(NameError::Internal),
        _ => Ok(()),
    }
}

/// Is it one of Kafka's internal topics?
#[must_use]
pub fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

/// The form under which `a.b` and `a_b` are the same: Kafka's metric names cannot tell them apart, so only one of
/// them may exist.
#[must_use]
pub fn collision_key(name: &str) -> Cow<'_, str> {
    if name.contains('.') { Cow::Owned(name.replace('.', "_")) } else { Cow::Borrowed(name) }
}

const fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_kafka_does() {
        let long = "a".repeat(MAX_TOPIC_NAME_BYTES + 1);
        for (name, expected) in [
            ("orders", Ok(())),
            ("A-1_b.c", Ok(())),
            (&long[1..], Ok(())),
            ("", Err(NameError::Empty)),
            (".", Err(NameError::Dots)),
            ("..", Err(NameError::Dots)),
            (&long, Err(NameError::TooLong)),
            ("a b", Err(NameError::Character)),
            ("é", Err(NameError::Character)),
            ("__consumer_offsets", Err(NameError::Internal)),
        ] {
            assert_eq!(check(name), expected, "{name}");
        }
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
        assert_ne!(collision_key("a.b"), collision_key("a-b"));
    }
}
