//! What a connection has received and not yet taken: whole frames, the start of one more, and that one's share of the
//! byte budget.
//!
//! Invariants: an idle connection holds no buffer; what is read beyond the budget is at most [`READ_BYTES`]; memory for
//! a large frame is taken when its share is granted, never because a length prefix says so; a frame that has its share
//! and does not arrive is known to be stuck once others wait for that share ([`Inbound::granted_or_stuck`]). What it
//! does not do: look into frames, end connections.

use std::{cell::RefCell, io};

use bytes::{Buf, Bytes, BytesMut};
use rustix::net::RecvFlags;
use semel_wire::frame::{self, BadLength, PREFIX_BYTES, Progress};
use tokio::{net::TcpStream, time::Instant};

use crate::net::{
    budget::{Budget, Share},
    pace::Pace,
};

/// Bytes read at once while no granted frame asks for more.
const READ_BYTES: usize = 16 * 1024;
/// Bytes read in a row, so that one connection does not keep a worker from the others.
const READ_IN_A_ROW_BYTES: usize = 1 << 20;

thread_local! {
    /// One buffer for each worker: what is read is copied into a buffer of just its size, so that a small request
    /// that waits in the node does not keep a large buffer alive.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// A frame that does not arrive while others wait for its share.
#[derive(Debug)]
pub struct Stuck {
    /// Bytes of it that are there.
    pub received_bytes: usize,
    /// Its bytes with the prefix.
    pub frame_bytes: usize,
}

/// The receiving side of one connection.
pub struct Inbound {
    bytes: BytesMut,
    budget: Budget,
    limit_bytes: usize,
    share: Option<Share>,
    /// How the frame that has the share arrives.
    pace: Option<Pace>,
    /// Bytes of an announced frame whose share is to be waited for.
    wanted_bytes: Option<usize>,
    at_end: bool,
}

impl Inbound {
    /// Nothing received yet; `limit_bytes` is `socket.request.max.bytes`.
    pub fn new(budget: Budget, limit_bytes: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            budget,
            limit_bytes,
            share: None,
            pace: None,
            wanted_bytes: None,
            at_end: false,
        }
    }

    /// The peer will send nothing more.
    pub const fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// True if the peer has closed its side and nothing stands between what was read and that end.
    pub fn ends_here(&self, socket: &TcpStream) -> bool {
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.at_end || matches!(rustix::net::recv(socket, &mut [0_u8; 1][..], peek), Ok((0, _)))
    }

    /// The next frame has to wait for its share: see [`Inbound::granted_or_stuck`].
    pub const fn wants_share(&self) -> bool {
        self.wanted_bytes.is_some()
    }

    /// A frame has begun to arrive, and others may be waiting for the bytes granted to it.
    pub fn is_in_frame(&self) -> bool {
        self.share.is_some() && matches!(self.progress(), Ok(Progress::NeedMore { .. }))
    }

    /// Completes when the begun frame makes no real progress while others wait for the bytes granted to it.
    async fn stuck(&self) -> Stuck {
        let (Some(share), Some(pace)) = (&self.share, self.pace) else { return std::future::pending().await };
        tokio::time::sleep_until(pace.stuck_at()).await;
        share.contended().await;
        match self.progress() {
            Ok(Progress::NeedMore { bytes }) => {
                Stuck { received_bytes: self.bytes.len(), frame_bytes: self.bytes.len() + bytes }
            }
            Ok(Progress::Complete { .. }) | Err(_) => std::future::pending().await,
        }
    }

    /// The time that passed without reading is not the peer's.
    pub fn forgive(&mut self) {
        self.pace = self.pace.map(|_| Pace::start(Instant::now(), self.bytes.len()));
    }

    fn note_progress(&mut self) {
        if self.share.is_some() {
            let (now, bytes) = (Instant::now(), self.bytes.len());
            self.pace.get_or_insert_with(|| Pace::start(now, bytes)).note(now, bytes);
        }
    }

    /// A whole frame is there.
    pub fn has_frame(&self) -> bool {
        matches!(self.progress(), Ok(Progress::Complete { .. }))
    }

    fn progress(&self) -> Result<Progress, BadLength> {
        frame::progress(&self.bytes, self.limit_bytes)
    }

    /// Reads what the socket has, its end included, so that an end of file behind a request is known before the
    /// request is handed on.
    ///
    /// # Errors
    /// The socket's.
    pub fn read(&mut self, socket: &TcpStream) -> io::Result<()> {
        let result = self.read_what_there_is(socket);
        self.note_progress();
        result
    }

    fn read_what_there_is(&mut self, socket: &TcpStream) -> io::Result<()> {
        let mut in_a_row = 0;
        while in_a_row < READ_IN_A_ROW_BYTES && self.may_read() {
            match self.read_once(socket) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(read) => in_a_row += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Not while a frame waits for its share, nor when there is plenty to do already.
    fn may_read(&mut self) -> bool {
        match self.progress() {
            Err(_) => false,
            Ok(Progress::Complete { .. }) => self.bytes.len() < READ_BYTES,
            Ok(Progress::NeedMore { bytes }) => {
                self.bytes.len() < PREFIX_BYTES || self.grant(self.bytes.len() - PREFIX_BYTES + bytes)
            }
        }
    }

    fn read_once(&mut self, socket: &TcpStream) -> io::Result<usize> {
        match self.progress() {
            Ok(Progress::NeedMore { bytes }) if self.share.is_some() => {
                self.bytes.reserve(bytes);
                socket.try_read_buf(&mut self.bytes)
            }
            Ok(_) | Err(_) => SCRATCH.with_borrow_mut(|scratch| {
                let read = socket.try_read(scratch)?;
                self.bytes.extend_from_slice(&scratch[..read]);
                Ok(read)
            }),
        }
    }

    /// The next whole frame without its prefix, with its share; `None` if more has to arrive or to be granted first.
    ///
    /// # Errors
    /// [`BadLength`]: nothing behind it can be read.
    pub fn next_frame(&mut self) -> Result<Option<(Bytes, Share)>, BadLength> {
        let Progress::Complete { length } = self.progress()? else {
            self.give_back_empty();
            return Ok(None);
        };
        self.grant(length);
        let Some(share) = self.share.take() else { return Ok(None) };
        self.pace = None;
        self.bytes.advance(PREFIX_BYTES);
        Ok(Some((self.bytes.split_to(length).freeze(), share)))
    }

    fn give_back_empty(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Takes a share for a frame, or notes that one is to be waited for; true if it is there.
    fn grant(&mut self, bytes: usize) -> bool {
        if self.share.is_none() {
            self.share = self.budget.try_take(bytes);
            self.wanted_bytes = self.share.is_none().then_some(bytes);
        }
        self.share.is_some()
    }

    /// Waits for the share that [`Inbound::wants_share`] speaks of; if there is none to wait for and the connection
    /// `reads`, for the begun frame to be stuck.
    pub async fn granted_or_stuck(&mut self, reads: bool) -> Option<Stuck> {
        match self.wanted_bytes {
            Some(bytes) => self.share = Some(self.budget.take(bytes).await),
            None if reads => return Some(self.stuck().await),
            None => std::future::pending().await,
        }
        self.wanted_bytes = None;
        self.note_progress();
        None
    }
}
