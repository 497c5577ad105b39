//! Strings on the wire.

use alloc::{string::String, sync::Arc};
use core::{fmt, num::NonZeroU32, ops::Deref};

use bytes::Bytes;

/// Longest string on the wire, in every version: what was read can be sent back in any other version.
pub(crate) const LONGEST_TEXT_BYTES: usize = i16::MAX as usize;

/// A string that borrows from the frame it was read from, without a lifetime: 16 bytes, cheap to clone.
///
/// Bytes that are not UTF-8 read as `?`, one for one: Kafka takes such names and client ids too (with U+FFFD for them),
/// and a text that never grows can be sent back in every version.
///
/// It keeps its whole frame alive. State that outlives a request holds a name of `semel-types`
/// (`TopicName::new(&text)`) instead.
#[derive(Clone)]
pub struct Text {
    /// `None` for the empty string.
    frame: Option<Arc<Bytes>>,
    start: u32,
    /// One more than the length: leaves zero as the niche that keeps `Option<Text>` at 16 bytes.
    length_plus_one: NonZeroU32,
}

impl Text {
    /// The empty string; allocates nothing.
    pub const EMPTY: Self = Self { frame: None, start: 0, length_plus_one: NonZeroU32::MIN };

    /// A slice of a frame; `None` if it is not UTF-8, or lies outside of the first 4 GiB.
    pub(crate) fn slice(frame: &Arc<Bytes>, start: usize, length: usize) -> Option<Self> {
        let bytes = frame.get(start..start.checked_add(length)?)?;
        core::str::from_utf8(bytes).ok()?;
        Some(Self {
            frame: Some(Arc::clone(frame)),
            start: u32::try_from(start).ok()?,
            length_plus_one: NonZeroU32::MIN.checked_add(u32::try_from(length).ok()?)?,
        })
    }

    /// A copy of bytes that are not UTF-8, with `?` for each offending byte.
    pub(crate) fn cleaned(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().map(|_| '?'));
        }
        Self::owned(Bytes::from(text))
    }

    fn owned(bytes: Bytes) -> Self {
        let length = bytes.len();
        Self::slice(&Arc::new(bytes), 0, length).expect("UTF-8, and a wire string is shorter than 4 GiB")
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let Some(frame) = &self.frame else { return "" };
        let start = self.start as usize;
        let bytes = &frame[start..start + self.length_plus_one.get() as usize - 1];
        core::str::from_utf8(bytes).expect("checked when the text was made")
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<&str> for Text {
    /// Copies a string.
    ///
    /// # Panics
    ///
    /// If it is longer than 4 GiB; no wire string is.
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::EMPTY;
        }
        Self::owned(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_sixteen_bytes_also_when_optional() {
        assert_eq!(size_of::<Text>(), 16);
        assert_eq!(size_of::<Option<Text>>(), 16);
    }

    #[test]
    fn text_compares_by_content() {
        assert_eq!(Text::from("a"), Text::from("a"));
        assert_ne!(Text::from("a"), Text::EMPTY);
        assert_eq!(Text::from(""), "");
    }
}
