//! Collects the bytes of one message.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::{EncodeError, EncodeErrorKind, reader::Prefix, text::LONGEST_TEXT_BYTES};

/// Bytes of a message in the making: a buffer, and large record slices kept aside uncopied.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Slices that belong at a position of `buffer`, in rising order.
    aside: Vec<(usize, Bytes)>,
    aside_bytes: usize,
    /// Slices of at least this many bytes are kept aside.
    aside_from_bytes: Option<usize>,
}

impl Writer {
    /// Appends to an existing buffer and copies everything into it.
    #[must_use]
    pub const fn copying(buffer: Vec<u8>) -> Self {
        Self { buffer, aside: Vec::new(), aside_bytes: 0, aside_from_bytes: None }
    }

    /// Appends to an existing buffer, but keeps record slices of at least `aside_from_bytes` as they are, for a
    /// vectored write.
    #[must_use]
    pub const fn vectored(buffer: Vec<u8>, aside_from_bytes: usize) -> Self {
        Self { buffer, aside: Vec::new(), aside_bytes: 0, aside_from_bytes: Some(aside_from_bytes) }
    }

    /// Bytes written so far, slices kept aside included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.aside_bytes
    }

    /// Bytes in the buffer alone.
    pub(crate) const fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// True if nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer; complete if the writer copies.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        debug_assert!(self.aside.is_empty(), "a vectored writer is taken apart with into_chunks");
        self.buffer
    }

    /// Everything written, in order, as slices.
    #[must_use]
    pub fn into_chunks(self) -> Vec<Bytes> {
        let mut rest = Bytes::from(self.buffer);
        let mut taken = 0;
        let mut chunks = Vec::with_capacity(2 * self.aside.len() + 1);
        for (position, slice) in self.aside {
            if position > taken {
                chunks.push(rest.split_to(position - taken));
                taken = position;
            }
            chunks.push(slice);
        }
        if !rest.is_empty() {
            chunks.push(rest);
        }
        chunks
    }

    /// Overwrites four bytes at `position` of the buffer with a big-endian number; used for length prefixes.
    pub(crate) fn patch_i32(&mut self, position: usize, value: i32) {
        self.buffer[position..position + 4].copy_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(crate) fn put_slice(&mut self, slice: &Bytes) {
        if self.aside_from_bytes.is_some_and(|from| slice.len() >= from) {
            self.aside.push((self.buffer.len(), slice.clone()));
            self.aside_bytes += slice.len();
        } else {
            self.put(slice);
        }
    }

    pub(crate) fn unsigned_varint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.buffer.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
    }

    /// A length, `None` for null; the caller has checked that it fits.
    fn length(&mut self, length: Option<usize>, prefix: Prefix) {
        match prefix {
            Prefix::Compact => self.unsigned_varint(length.map_or(0, |length| length as u32 + 1)),
            Prefix::Short => self.put(&length.map_or(-1, |length| length as i16).to_be_bytes()),
            Prefix::Long => self.put(&length.map_or(-1, |length| length as i32).to_be_bytes()),
        }
    }

    pub(crate) fn text(&mut self, text: Option<&str>, compact: bool) -> Result<(), EncodeError> {
        let length = text.map(str::len);
        check_length(length, LONGEST_TEXT_BYTES)?;
        self.length(length, Prefix::of_text(compact));
        self.put(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    pub(crate) fn count(&mut self, count: Option<usize>, compact: bool) -> Result<(), EncodeError> {
        check_length(count, LARGEST_COUNT)?;
        self.length(count, Prefix::of_array(compact));
        Ok(())
    }
}

/// Most elements of an array, and bytes of records, in every version.
const LARGEST_COUNT: usize = i32::MAX as usize;

fn check_length(length: Option<usize>, largest: usize) -> Result<(), EncodeError> {
    match length {
        Some(length) if length > largest => Err(EncodeError::of(EncodeErrorKind::TooLong { length })),
        _ => Ok(()),
    }
}

/// The tagged fields of one struct, gathered before their number is known.
#[derive(Default)]
pub(crate) struct TaggedFields {
    fields: Vec<(u32, Vec<u8>)>,
}

impl TaggedFields {
    /// Adds the field `tag`; callers add in rising order of tags.
    pub(crate) fn add(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut value = Writer::copying(Vec::new());
        write(&mut value)?;
        self.fields.push((tag, value.into_buffer()));
        Ok(())
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        writer.unsigned_varint(self.fields.len() as u32);
        for (tag, value) in self.fields {
            writer.unsigned_varint(tag);
            writer.unsigned_varint(value.len() as u32);
            writer.put(&value);
        }
    }
}
