//! What consumers of the classic protocol say of themselves and get (upstream `ConsumerProtocolSubscription` and
//! `ConsumerProtocolAssignment`): read as far as it is of interest, and written.
//!
//! Invariants: nothing is reserved by a length that was read; a newer version is read like the newest known one, as
//! clients do. What it does not do: user data.

use alloc::{sync::Arc, vec::Vec};

use semel_events::{Blob, GroupMember};
use semel_types::PartitionIndex;

/// Newest version of both that is known.
const VERSION_MAX: i16 = 3;

/// A topic by name and some of its partitions.
pub(crate) type Named = Vec<(Arc<str>, Vec<PartitionIndex>)>;

/// What a consumer says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Subscription {
    /// The topics that it reads.
    pub(crate) topics: Vec<Arc<str>>,
    /// What it has; empty where the version lacks it.
    pub(crate) owned: Named,
    /// The rack that it is in.
    pub(crate) rack: Option<Arc<str>>,
}

/// Is the member subscribed to this topic? Metadata that cannot be read may name any topic.
pub(crate) fn names(member: &GroupMember, topic: &str) -> bool {
    let has = |metadata: &[u8]| {
        let topics = Cursor(metadata.get(2..)?).texts()?;
        Some(topics.iter().any(|name| **name == *topic))
    };
    member.protocols.iter().any(|protocol| has(&protocol.metadata).unwrap_or(true))
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

/// Reads metadata of a member; `None` if it is damaged.
pub(crate) fn read(metadata: &[u8]) -> Option<Subscription> {
    let mut cursor = Cursor(metadata);
    let version = cursor.i16()?;
    let mut read = Subscription { topics: cursor.texts()?, ..Subscription::default() };
    cursor.blob()?;
    if version >= 1 {
        read.owned = cursor.named()?;
    }
    if version >= 2 {
        cursor.i32()?;
    }
    if version >= 3 {
        let length = cursor.i16()?;
        read.rack = if length < 0 { None } else { Some(cursor.text(length)?) };
    }
    (version >= 0).then_some(read)
}

/// Reads what a member got; `None` if it is damaged. Nothing at all is an empty part.
pub(crate) fn read_assignment(bytes: &[u8]) -> Option<Named> {
    if bytes.is_empty() {
        return Some(Named::new());
    }
    let mut cursor = Cursor(bytes);
    let version = cursor.i16()?;
    if version < 0 { None } else { cursor.named() }
}

/// Does anything stand behind the topics that only the members' own assignor knows?
pub(crate) fn has_user_data(metadata: &[u8]) -> bool {
    let length = |metadata: &[u8]| {
        let mut cursor = Cursor(metadata);
        cursor.i16()?;
        cursor.texts()?;
        cursor.i32()
    };
    length(metadata).is_some_and(|length| length > 0)
}

/// Writes what a member gets, in the version in which it speaks of itself.
pub(crate) fn write_assignment(metadata: &[u8], part: &Named) -> Blob {
    let version = Cursor(metadata).i16().unwrap_or(0).clamp(0, VERSION_MAX);
    let mut out = Vec::new();
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&count(part.len()));
    for (name, partitions) in part {
        out.extend_from_slice(&i16::try_from(name.len()).unwrap_or(i16::MAX).to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&count(partitions.len()));
        partitions.iter().for_each(|partition| out.extend_from_slice(&partition.get().to_be_bytes()));
    }
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    Blob::from(&out[..])
}

fn count(length: usize) -> [u8; 4] {
    i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes()
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self, length: i16) -> Option<Arc<str>> {
        let bytes = self.take(usize::try_from(length).ok()?)?;
        core::str::from_utf8(bytes).ok().map(Arc::from)
    }

    fn texts(&mut self) -> Option<Vec<Arc<str>>> {
        let mut texts = Vec::new();
        for _ in 0..self.i32()? {
            let length = self.i16()?;
            texts.push(self.text(length)?);
        }
        Some(texts)
    }

    fn blob(&mut self) -> Option<()> {
        let length = self.i32()?;
        self.take(usize::try_from(length.max(0)).ok()?).map(|_| ())
    }

    fn named(&mut self) -> Option<Named> {
        let mut named = Named::new();
        for _ in 0..self.i32()? {
            let length = self.i16()?;
            let name = self.text(length)?;
            let mut partitions = Vec::new();
            for _ in 0..self.i32()? {
                partitions.push(PartitionIndex::new(self.i32()?));
            }
            named.push((name, partitions));
        }
        Some(named)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use semel_events::GroupProtocol;
    use semel_types::DurationMs;

    use super::*;

    const METADATA: &[u8] =
        b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff\0\0\0\x01\0\x01a\0\0\0\x01\0\0\0\x05";

    fn member(metadata: &[u8]) -> GroupMember {
        let protocol = GroupProtocol { name: Arc::from("range"), metadata: Blob::from(metadata) };
        GroupMember {
            id: Arc::from("m"),
            instance: None,
            client_id: Arc::from(""),
            client_host: Arc::from(""),
            session_timeout: DurationMs::from_ms(1),
            rebalance_timeout: DurationMs::from_ms(1),
            protocols: vec![protocol],
        }
    }

    #[test]
    fn topics_are_found_and_damage_may_name_any() {
        for (topic, due) in [("a", true), ("bc", true), ("b", false)] {
            assert_eq!(names(&member(METADATA), topic), due, "{topic}");
        }
        assert!(names(&member(&METADATA[..10]), "x"));
        assert!(names(&member(b""), "x"));
    }

    #[test]
    fn what_a_member_has_is_read_and_damage_is_told() {
        let read = read(METADATA).expect("whole");
        assert_eq!(read.topics, [Arc::from("a"), Arc::from("bc")]);
        assert_eq!(read.owned, [(Arc::from("a"), vec![PartitionIndex::new(5)])]);
        for cut in 0..METADATA.len() {
            assert_eq!(super::read(&METADATA[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn an_assignment_is_read_as_it_was_written() {
        let part = vec![(Arc::from("a"), vec![PartitionIndex::new(0), PartitionIndex::new(7)])];
        let written = write_assignment(METADATA, &part);
        assert_eq!(written[..2], [0, 1]);
        assert_eq!(read_assignment(&written), Some(part));
        assert_eq!(read_assignment(b""), Some(vec![]));
        assert_eq!(read_assignment(&written[..9]), None);
    }

    #[test]
    fn only_other_topics_are_another_subscription() {
        let metadata = b"\0\x01\0\0\0\x02\0\x01a\0\x02bc\xff\xff\xff\xff";
        assert!(!differ(metadata, b"\0\x02\0\0\0\x02\0\x01a\0\x02bcand more"));
        assert!(differ(metadata, b"\0\x01\0\0\0\x02\0\x01a\0\x02bd"));
        assert!(differ(metadata, b"\0\x01\0\0\0\x01\0\x01a\0\x02bc"));
    }
}
