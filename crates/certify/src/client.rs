//! A connection that sends exactly what it is told.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs},
    time::Duration,
};

use bytes::Bytes;
use semel_wire::{DecodeError, EncodeError, Message, Reader, Request, ResponseHeader, frame};

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The broker closed the connection, or the network failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The answer is not what its version says.
    #[error("the answer cannot be read: {0}")]
    Decode(#[from] DecodeError),
    /// The request cannot be written in its version.
    #[error("the request cannot be written: {0}")]
    Encode(#[from] EncodeError),
    /// The answer belongs to another request.
    #[error("answer {found} came where {due} was due")]
    Correlation {
        /// The correlation id that was due.
        due: i32,
        /// The one that came.
        found: i32,
    },
}

impl ClientError {
    /// True if the broker closed the connection instead of answering.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            ),
            Self::Decode(_) | Self::Encode(_) | Self::Correlation { .. } => false,
        }
    }
}

/// How long an answer may take before the client gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Largest answer taken.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// One connection.
pub struct Client {
    stream: TcpStream,
    client_id: String,
    correlation: i32,
    pending: VecDeque<i32>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::Io`] if nobody listens.
    pub fn connect(address: impl ToSocketAddrs) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, client_id: "certify".to_owned(), correlation: 0, pending: VecDeque::new() })
    }

    /// Names itself otherwise in all requests from here on.
    #[must_use]
    pub fn named(mut self, client_id: &str) -> Self {
        client_id.clone_into(&mut self.client_id);
        self
    }

    /// This side's address, as the broker sees it.
    ///
    /// # Errors
    /// [`ClientError::Io`] if the socket is gone.
    pub fn address(&self) -> Result<SocketAddr, ClientError> {
        Ok(self.stream.local_addr()?)
    }

    /// Gives up on an answer after this long.
    ///
    /// # Errors
    /// [`ClientError::Io`] if the socket is gone.
    pub fn set_patience(&self, patience: Duration) -> Result<(), ClientError> {
        Ok(self.stream.set_read_timeout(Some(patience))?)
    }

    /// Sends a request without waiting for its answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn send<Q: Request>(&mut self, request: &Q, version: i16) -> Result<(), ClientError> {
        self.correlation += 1;
        let bytes = frame::request(request, version, self.correlation, Some(&self.client_id))?;
        self.pending.push_back(self.correlation);
        self.send_bytes(&bytes)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// [`ClientError::Io`].
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Waits for the next answer, which must be of this kind and version.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::is_closed`] tells a closed connection.
    pub fn receive<Q: Request>(&mut self, version: i16) -> Result<Q::Response, ClientError> {
        let due = self.pending.pop_front().unwrap_or_default();
        let mut reader = Reader::new(self.receive_frame()?);
        let header = ResponseHeader::decode(&mut reader, Q::API, version)?;
        if header.correlation_id != due {
            return Err(ClientError::Correlation { due, found: header.correlation_id });
        }
        Ok(Q::Response::decode_body(&mut reader, version)?)
    }

    /// The next frame's content.
    ///
    /// # Errors
    /// [`ClientError::Io`].
    pub fn receive_frame(&mut self) -> Result<Bytes, ClientError> {
        let mut prefix = [0; frame::PREFIX_BYTES];
        self.stream.read_exact(&mut prefix)?;
        let length = usize::try_from(i32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
        if length > ANSWER_BYTES_MAX {
            return Err(io::Error::other(format!("an answer of {length} bytes")).into());
        }
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content)?;
        Ok(content.into())
    }

    /// Has anything of an answer come by now? True as well if the broker has closed the connection.
    ///
    /// # Errors
    /// [`ClientError::Io`].
    pub fn has_answer(&self) -> Result<bool, ClientError> {
        self.stream.set_nonblocking(true)?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match peeked {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn call<Q: Request>(&mut self, request: &Q, version: i16) -> Result<Q::Response, ClientError> {
        self.send(request, version)?;
        self.receive::<Q>(version)
    }

    /// Says that nothing more will be sent, keeps reading.
    ///
    /// # Errors
    /// [`ClientError::Io`].
    pub fn finish_sending(&self) -> Result<(), ClientError> {
        Ok(self.stream.shutdown(Shutdown::Write)?)
    }
}
