//! Frames: a big-endian `i32` length, then that many bytes.
//!
//! Purpose: cut a stream into frames and put frames together. It holds no buffer and no socket: the caller shows the
//! bytes that it has so far.

use alloc::vec::Vec;
use core::fmt;

use crate::{EncodeError, EncodeErrorKind, Message, RequestHeader, ResponseHeader, Text, Writer};

/// Bytes of a frame's length prefix.
pub const PREFIX_BYTES: usize = 4;

/// What the bytes so far amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// At least this many more bytes are needed before anything can be said or taken.
    NeedMore {
        /// Missing bytes.
        bytes: usize,
    },
    /// A whole frame is there: its content is `PREFIX_BYTES..PREFIX_BYTES + length`.
    Complete {
        /// Bytes of the content.
        length: usize,
    },
}

/// A length prefix that no frame may have; the connection cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadLength {
    /// The length claimed.
    pub length: i32,
    /// The largest allowed (`socket.request.max.bytes`).
    pub limit_bytes: usize,
}

impl fmt::Display for BadLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame of {} bytes, allowed are 0 to {}", self.length, self.limit_bytes)
    }
}

impl core::error::Error for BadLength {}

/// Looks at the bytes received so far, which begin with a length prefix.
///
/// # Errors
///
/// [`BadLength`] as soon as the prefix is there and negative or beyond the limit.
pub fn progress(received: &[u8], limit_bytes: usize) -> Result<Progress, BadLength> {
    let Some(prefix) = received.first_chunk::<PREFIX_BYTES>() else {
        let bytes = PREFIX_BYTES - received.len();
        return Ok(Progress::NeedMore { bytes });
    };
    let claimed = i32::from_be_bytes(*prefix);
    let length = usize::try_from(claimed)
        .ok()
        .filter(|length| *length <= limit_bytes)
        .ok_or(BadLength { length: claimed, limit_bytes })?;
    let present = received.len() - PREFIX_BYTES;
    Ok(if present < length {
        Progress::NeedMore { bytes: length - present }
    } else {
        Progress::Complete { length }
    })
}

/// A whole request frame, length prefix included.
///
/// # Errors
///
/// The message cannot be written in this version, or is longer than a frame can be.
pub fn request<M: Message>(
    message: &M,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Vec<u8>, EncodeError> {
    let header = RequestHeader {
        api_key: M::API.get(),
        version,
        correlation_id,
        client_id: client_id.map(Text::from),
    };
    let mut writer = Writer::copying(Vec::new());
    let start = open(&mut writer);
    header.encode(&mut writer)?;
    message.encode_body(version, &mut writer)?;
    close(&mut writer, start, M::NAME)?;
    Ok(writer.into_buffer())
}

/// Appends a whole response frame, length prefix included. With [`Writer::vectored`] large record slices are not
/// copied.
///
/// # Errors
///
/// The message cannot be written in this version, or is longer than a frame can be.
pub fn response<M: Message>(
    message: &M,
    version: i16,
    correlation_id: i32,
    writer: &mut Writer,
) -> Result<(), EncodeError> {
    let start = open(writer);
    ResponseHeader { correlation_id }.encode(writer, M::API, version);
    message.encode_body(version, writer)?;
    close(writer, start, M::NAME)
}

/// Where a frame starts in its writer.
struct Start {
    /// Position of the length prefix in the buffer.
    prefix: usize,
    /// Bytes written when the content begins.
    content: usize,
}

fn open(writer: &mut Writer) -> Start {
    let prefix = writer.buffered();
    writer.put(&[0; PREFIX_BYTES]);
    let content = writer.len();
    Start { prefix, content }
}

/// Fills in the length prefix.
fn close(writer: &mut Writer, start: Start, name: &'static str) -> Result<(), EncodeError> {
    let length = writer.len() - start.content;
    let too_long = EncodeError::of(EncodeErrorKind::TooLong { length });
    let prefix = i32::try_from(length).map_err(|_| too_long.named(name))?;
    writer.patch_i32(start.prefix, prefix);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_complete_when_all_its_bytes_are_there() {
        let bytes = [0, 0, 0, 2, 7, 8, 9];
        assert_eq!(progress(&[], 10), Ok(Progress::NeedMore { bytes: 4 }));
        assert_eq!(progress(&bytes[..3], 10), Ok(Progress::NeedMore { bytes: 1 }));
        assert_eq!(progress(&bytes[..5], 10), Ok(Progress::NeedMore { bytes: 1 }));
        assert_eq!(progress(&bytes[..6], 10), Ok(Progress::Complete { length: 2 }));
        assert_eq!(progress(&bytes, 10), Ok(Progress::Complete { length: 2 }));
    }

    #[test]
    fn a_negative_or_too_large_length_is_refused_at_once() {
        let negative = progress(&(-1_i32).to_be_bytes(), 10);
        assert_eq!(negative.map_err(|error| error.length), Err(-1));
        assert!(progress(&11_i32.to_be_bytes(), 10).is_err());
        assert!(progress(&10_i32.to_be_bytes(), 10).is_ok());
    }
}
