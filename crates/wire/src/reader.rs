//! Reads primitive values from one frame, within its bytes and within a bound on memory.

use alloc::{sync::Arc, vec::Vec};

use bytes::Bytes;

use crate::{DecodeError, DecodeErrorKind, Text, text::LONGEST_TEXT_BYTES};

/// Memory that the decoded form of a small frame may always use, in bytes.
pub const SMALL_FRAME_ALLOWANCE_BYTES: usize = 64 * 1024;

/// Memory that the decoded form may use for each byte of a larger frame.
pub const ALLOWANCE_PER_FRAME_BYTE: usize = 4;

/// What the copy of a string that is not UTF-8 takes besides its length.
const CLEANED_TEXT_BYTES: usize = 64;

/// How the length of a string or an array is written.
#[derive(Clone, Copy)]
pub(crate) enum Prefix {
    /// A variable-length number, one more than the length; 0 is null (KIP-482).
    Compact,
    /// 16 bits; -1 is null.
    Short,
    /// 32 bits; -1 is null.
    Long,
}

impl Prefix {
    pub(crate) const fn of_text(compact: bool) -> Self {
        if compact { Self::Compact } else { Self::Short }
    }

    pub(crate) const fn of_array(compact: bool) -> Self {
        if compact { Self::Compact } else { Self::Long }
    }
}

/// A cursor over one frame.
///
/// Strings and record bytes are slices of the frame. Only arrays take memory, and strings that are not UTF-8 (see
/// [`Text`]): their capacity is bounded by the bytes that are present, and in total by the larger of [`SMALL_FRAME_ALLOWANCE_BYTES`] and
/// [`ALLOWANCE_PER_FRAME_BYTE`] times the frame; beyond that, reading fails with [`DecodeErrorKind::TooDense`].
#[derive(Debug)]
pub struct Reader {
    frame: Bytes,
    /// The frame once more, shared by the texts read from it; made by the first of them.
    shared: Option<Arc<Bytes>>,
    at: usize,
    end: usize,
    allowance_bytes: usize,
}

impl Reader {
    /// Starts at the first byte of a frame (without its length prefix).
    #[must_use]
    pub fn new(frame: impl Into<Bytes>) -> Self {
        let frame = frame.into();
        let allowance_bytes =
            frame.len().saturating_mul(ALLOWANCE_PER_FRAME_BYTE).max(SMALL_FRAME_ALLOWANCE_BYTES);
        Self { end: frame.len(), frame, shared: None, at: 0, allowance_bytes }
    }

    /// Bytes not read yet.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.end - self.at
    }

    /// Position of the next byte within the frame.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The bytes not read yet, as a slice of the frame.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        self.frame.slice(self.at..self.end)
    }

    /// Fails if anything is left.
    ///
    /// # Errors
    ///
    /// [`DecodeErrorKind::TrailingBytes`].
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            count => Err(self.error(DecodeErrorKind::TrailingBytes { count })),
        }
    }

    pub(crate) const fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError::at(self.at, kind)
    }

    fn take(&mut self, needed: usize) -> Result<usize, DecodeError> {
        let left = self.left();
        if needed > left {
            return Err(self.error(DecodeErrorKind::Truncated { needed, left }));
        }
        let start = self.at;
        self.at += needed;
        Ok(start)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.take(N)?;
        let mut out = [0; N];
        out.copy_from_slice(&self.frame[start..start + N]);
        Ok(out)
    }

    /// A variable-length unsigned integer of at most 32 bits (KIP-482).
    pub(crate) fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let start = self.at;
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::at(start, DecodeErrorKind::VarintTooLong))
    }

    /// A length: `None` for null.
    fn length(&mut self, prefix: Prefix) -> Result<Option<usize>, DecodeError> {
        let start = self.at;
        let length = match prefix {
            Prefix::Compact => return Ok((self.unsigned_varint()? as usize).checked_sub(1)),
            Prefix::Short => i32::from(i16::from_be_bytes(self.array()?)),
            Prefix::Long => i32::from_be_bytes(self.array()?),
        };
        match length {
            -1 => Ok(None),
            _ => {
                let negative = DecodeErrorKind::NegativeLength(i64::from(length));
                usize::try_from(length).map(Some).map_err(|_| DecodeError::at(start, negative))
            }
        }
    }

    pub(crate) fn text(&mut self, compact: bool) -> Result<Option<Text>, DecodeError> {
        let length_at = self.at;
        let Some(length) = self.length(Prefix::of_text(compact))? else {
            return Ok(None);
        };
        if length > LONGEST_TEXT_BYTES {
            return Err(DecodeError::at(length_at, DecodeErrorKind::TextTooLong { length }));
        }
        let start = self.take(length)?;
        if length == 0 {
            return Ok(Some(Text::EMPTY));
        }
        let shared = self.shared.get_or_insert_with(|| Arc::new(self.frame.clone()));
        if let Some(text) = Text::slice(shared, start, length) {
            return Ok(Some(text));
        }
        self.pay(length + CLEANED_TEXT_BYTES)?;
        Ok(Some(Text::cleaned(&self.frame[start..start + length])))
    }

    pub(crate) fn bytes(&mut self, compact: bool) -> Result<Option<Bytes>, DecodeError> {
        let Some(length) = self.length(Prefix::of_array(compact))? else {
            return Ok(None);
        };
        let start = self.take(length)?;
        Ok(Some(self.frame.slice(start..start + length)))
    }

    /// The count of an array whose elements take at least `element_bytes` each on the wire; `None` for null.
    pub(crate) fn count(
        &mut self,
        compact: bool,
        element_bytes: usize,
    ) -> Result<Option<usize>, DecodeError> {
        let start = self.at;
        let Some(count) = self.length(Prefix::of_array(compact))? else {
            return Ok(None);
        };
        let left = self.left();
        if count > left / element_bytes.max(1) {
            let kind = DecodeErrorKind::CountBeyondFrame { count, left };
            return Err(DecodeError::at(start, kind));
        }
        Ok(Some(count))
    }

    /// An empty vector with room for exactly `count` elements, paid from the allowance.
    pub(crate) fn vector<T>(&mut self, count: usize) -> Result<Vec<T>, DecodeError> {
        self.pay(count.saturating_mul(size_of::<T>()))?;
        Ok(Vec::with_capacity(count))
    }

    /// Takes memory from the allowance.
    fn pay(&mut self, bytes: usize) -> Result<(), DecodeError> {
        match self.allowance_bytes.checked_sub(bytes) {
            Some(rest) => self.allowance_bytes = rest,
            None => return Err(self.error(DecodeErrorKind::TooDense)),
        }
        Ok(())
    }

    /// Reads a section of tagged fields: `known` reads the value of a tag that it knows and returns true, or leaves
    /// the reader alone and returns false; unknown tags are skipped.
    pub(crate) fn tagged(
        &mut self,
        mut known: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let fields = self.unsigned_varint()?;
        for _ in 0..fields {
            let start = self.at;
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            let value_start = self.take(size)?;
            let value_end = self.at;
            let outer_end = core::mem::replace(&mut self.end, value_end);
            self.at = value_start;
            let is_known = known(self, tag)?;
            self.end = outer_end;
            if is_known && self.at != value_end {
                return Err(DecodeError::at(start, DecodeErrorKind::TagSizeMismatch { tag }));
            }
            self.at = value_end;
        }
        Ok(())
    }
}
