//! The topics in a consumer's metadata (upstream `ConsumerProtocolSubscription`): version, list of names, and more that
//! is not of interest here.

use semel_events::GroupMember;

/// Is the member subscribed to this topic? Metadata that cannot be read may name any topic.
pub(crate) fn names(member: &GroupMember, topic: &str) -> bool {
    member.protocols.iter().any(|protocol| has(&protocol.metadata, topic).unwrap_or(true))
}

/// Do these metadata name other topics than those did? What else stands in them changes with what a member owns.
pub(crate) fn differ(before: &[u8], now: &[u8]) -> bool {
    list(before) != list(now)
}

/// The bytes of the list of names.
fn list(metadata: &[u8]) -> Option<&[u8]> {
    let count = i32::from_be_bytes(metadata.get(2..6)?.try_into().ok()?);
    let mut end = 6;
    for _ in 0..count {
        let length = usize::from(u16::from_be_bytes(metadata.get(end..end + 2)?.try_into().ok()?));
        end += 2 + length;
    }
    metadata.get(2..end)
}

fn has(metadata: &[u8], topic: &str) -> Option<bool> {
    let count = i32::from_be_bytes(metadata.get(2..6)?.try_into().ok()?);
    let mut rest = metadata.get(6..)?;
    for _ in 0..count {
        let length = usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?));
        let name = rest.get(2..2 + length)?;
        if name == topic.as_bytes() {
            return Some(true);
        }
        rest = rest.get(2 + length..)?;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_and_damage_is_told() {
        let metadata = b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff";
        assert_eq!(has(metadata, "a"), Some(true));
        assert_eq!(has(metadata, "bc"), Some(true));
        assert_eq!(has(metadata, "b"), Some(false));
        assert_eq!(has(&metadata[..10], "bc"), None);
        assert_eq!(has(b"", "a"), None);
    }

    #[test]
    fn only_other_topics_are_another_subscription() {
        let metadata = b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff";
        assert!(!differ(metadata, b"\0\x02\0\0\0\x02\0\x01a\0\x02bcand more"));
        assert!(differ(metadata, b"\0\x01\0\0\0\x02\0\x01a\0\x02bd"));
        assert!(differ(metadata, b"\0\x01\0\0\0\x01\0\x01a\0\x02bc"));
    }
}
