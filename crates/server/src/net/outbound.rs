//! Answers on their way to the socket.
//!
//! Invariant: a peer that takes nothing for [`STALLED_MAX`] is given up, so that one that never reads does not hold
//! blocks of the cache and bytes of the budget for ever. What it does not do: decide when an answer is due.

use std::{collections::VecDeque, io, io::IoSlice, time::Duration};

use bytes::{Buf, Bytes};
use semel_broker::api::{Head, Reply};
use semel_wire::{EncodeError, Writer};
use tokio::net::TcpStream;

/// How long a peer may neither take a byte of an answer nor send one of a frame that it has begun: what clients wait
/// for an answer (`request.timeout.ms`).
pub const STALLED_MAX: Duration = Duration::from_secs(30);

/// Record slices smaller than this are copied together; larger ones are written as they are.
const COPIED_BELOW_BYTES: usize = 4096;
/// Chunks written with one call.
const SLICES_MAX: usize = 64;

/// What has been taken for writing.
#[derive(Default)]
pub struct Outbound {
    chunks: VecDeque<Bytes>,
}

/// Writes an answer into memory. Records are not copied, unless they are small.
///
/// # Errors
/// A value that the version cannot carry.
pub fn encode(head: &Head, reply: &Reply) -> Result<Vec<Bytes>, EncodeError> {
    let mut writer = Writer::vectored(Vec::new(), COPIED_BELOW_BYTES);
    reply.encode(head, &mut writer)?;
    Ok(writer.into_chunks())
}

impl Outbound {
    /// Appends an encoded answer.
    pub fn push(&mut self, chunks: Vec<Bytes>) {
        self.chunks.extend(chunks);
    }

    /// Writes everything, several chunks with one call.
    ///
    /// # Errors
    /// The socket's; [`io::ErrorKind::TimedOut`] if the peer takes nothing.
    pub async fn flush(&mut self, socket: &TcpStream) -> io::Result<()> {
        while !self.chunks.is_empty() {
            match self.write_some(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.consume(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::timeout(STALLED_MAX, socket.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_some(&self, socket: &TcpStream) -> io::Result<usize> {
        if let [only] = self.chunks.as_slices().0
            && self.chunks.len() == 1
        {
            return socket.try_write(only);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = self.chunks.len().min(SLICES_MAX);
        for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slice = IoSlice::new(chunk);
        }
        socket.try_write_vectored(&slices[..count])
    }

    /// Drops `written` bytes from the front, chunks without a byte included.
    fn consume(&mut self, mut written: usize) {
        while let Some(front) = self.chunks.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_write_goes_on_where_it_stopped() {
        let mut outbound = Outbound::default();
        outbound.push(vec![Bytes::from_static(b"abc"), Bytes::from_static(b"defg")]);
        outbound.consume(2);
        outbound.consume(3);
        let left: Vec<_> = outbound.chunks.iter().flat_map(|chunk| chunk.to_vec()).collect();
        assert_eq!(left, b"fg");
        outbound.consume(2);
        assert!(outbound.chunks.is_empty());
    }
}
