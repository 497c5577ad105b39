//! One connection: frames in, answers out, in order.
//!
//! One task does both, so that a peer that does not read its answers is not read from either: its memory is bounded
//! by the requests it may have unanswered and by one response in writing.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use semel_broker::{
    Call, ClientInfo, Facts, NodeReply, NodeRequest,
    api::{self, Head, Reply, Route, Software},
};
use semel_types::{ConnectionNumber, LogSequence, RequestToken};
use semel_wire::{
    Writer,
    frame::{self, BadLength, PREFIX_BYTES, Progress},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::net::{
    budget::Share,
    listener::Shared,
    mailbox::{Delivery, Mailbox},
    slots::{Slot, Slots, Stage},
    view_call::{Attempt, Parked},
};

/// Bytes read from a socket at once while no frame asks for more.
const READ_BYTES: usize = 64 * 1024;
/// Record slices smaller than this are copied together; larger ones are written as they are.
const COPIED_BELOW_BYTES: usize = 4096;
/// Chunks written with one call.
const SLICES_MAX: usize = 64;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum Ending {
    /// The peer closed it.
    #[error("closed by the client")]
    Closed,
    /// The node asked for it: a superseded connection or an error of an unanswered request.
    #[error("closed by the broker")]
    ByNode,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer sent something that is no request.
    #[error("{0}")]
    Malformed(String),
    /// Silence longer than `connections.max.idle.ms`.
    #[error("idle for too long")]
    Idle,
    /// An answer that its version cannot carry: a bug of ours, and better a closed connection than a wrong answer.
    #[error("an answer cannot be written: {0}")]
    Unanswerable(String),
}

/// One connection.
pub struct Connection {
    socket: TcpStream,
    number: ConnectionNumber,
    shared: Arc<Shared>,
    client: Arc<ClientInfo>,
    facts: Facts,
    mailbox: Arc<Mailbox>,
    slots: Slots,
    input: BytesMut,
    output: Vec<Bytes>,
    parked: Parked,
    /// A frame announced in `input` that waits for its share of the byte budget.
    wanted_bytes: Option<usize>,
    share: Option<Share>,
    at_end: bool,
    by_node: bool,
}

impl Connection {
    /// Serves a socket until it ends.
    pub async fn serve(socket: TcpStream, number: ConnectionNumber, shared: Arc<Shared>) -> Ending {
        match Self::new(socket, number, shared) {
            Ok(mut connection) => connection.run().await,
            Err(error) => Ending::Io(error),
        }
    }

    fn new(socket: TcpStream, number: ConnectionNumber, shared: Arc<Shared>) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let client = ClientInfo {
            client_id: Arc::default(),
            software: Arc::default(),
            address: socket.peer_addr()?.to_string().into(),
        };
        let facts = shared.facts_for(socket.local_addr()?);
        let mailbox = Mailbox::new();
        shared.node.connected(number, Arc::clone(&mailbox));
        Ok(Self {
            socket,
            number,
            shared,
            client: Arc::new(client),
            facts,
            mailbox,
            slots: Slots::default(),
            input: BytesMut::new(),
            output: Vec::new(),
            parked: Parked::default(),
            wanted_bytes: None,
            share: None,
            at_end: false,
            by_node: false,
        })
    }

    async fn run(&mut self) -> Ending {
        let ending = loop {
            match self.turn().await {
                Ok(()) => {}
                Err(ending) => break ending,
            }
        };
        self.shared.node.disconnected(self.number);
        ending
    }

    /// Does all that can be done now, then waits for something to happen.
    async fn turn(&mut self) -> Result<(), Ending> {
        self.collect();
        self.take_frames()?;
        self.release().await?;
        if self.by_node && self.slots.is_empty() {
            return Err(Ending::ByNode);
        }
        if self.at_end && (self.slots.is_empty() || self.input.is_empty()) {
            return Err(Ending::Closed);
        }
        if self.input_has_work() {
            return Ok(());
        }
        self.wait().await
    }

    fn input_has_work(&self) -> bool {
        self.may_take()
            && self.wanted_bytes.is_none()
            && matches!(self.progress(), Ok(Progress::Complete { .. }))
    }

    fn may_take(&self) -> bool {
        self.slots.has_room() && !self.by_node
    }

    fn progress(&self) -> Result<Progress, BadLength> {
        frame::progress(&self.input, self.shared.request_bytes_max)
    }

    async fn wait(&mut self) -> Result<(), Ending> {
        let idle = self.shared.idle_max.filter(|_| self.slots.is_empty()).unwrap_or(Duration::MAX);
        let may_read = self.may_take() && self.wanted_bytes.is_none() && !self.at_end;
        let stopping = self.slots.is_empty() || self.only_views();
        let awaited = self.slots.awaited();
        let wanted = self.wanted_bytes;
        tokio::select! {
            ready = self.socket.readable(), if may_read => {
                ready?;
                self.read()?;
            }
            () = self.mailbox.arrived() => {}
            () = self.shared.published.reached(awaited.unwrap_or_default()), if awaited.is_some() => {}
            () = self.parked.wait(), if self.parked.is_waiting() => {}
            share = self.shared.budget.take(wanted.unwrap_or_default()), if wanted.is_some() => {
                self.share = Some(share);
                self.wanted_bytes = None;
            }
            () = self.shared.stopping(), if stopping => return Err(Ending::Stopping),
            () = tokio::time::sleep(idle), if idle != Duration::MAX => return Err(Ending::Idle),
        }
        Ok(())
    }

    fn only_views(&self) -> bool {
        self.slots.front().is_some_and(|slot| matches!(slot.stage, Stage::View(_)))
    }

    /// Reads what the socket has, so that an end of file behind the last request is seen before it is decided.
    fn read(&mut self) -> Result<(), Ending> {
        loop {
            self.input.reserve(self.missing_bytes());
            match self.socket.try_read_buf(&mut self.input) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(_) if self.input.len() < READ_BYTES => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How much to make room for: the rest of an announced frame whose share is granted, else a little.
    fn missing_bytes(&self) -> usize {
        match self.progress() {
            Ok(Progress::NeedMore { bytes }) if self.share.is_some() => bytes.max(READ_BYTES),
            Ok(_) | Err(_) => READ_BYTES,
        }
    }

    /// Hands complete frames on, as many as the connection may have unanswered.
    fn take_frames(&mut self) -> Result<(), Ending> {
        while self.may_take() && self.wanted_bytes.is_none() {
            match self.progress().map_err(|error| Ending::Malformed(error.to_string()))? {
                Progress::NeedMore { .. } if self.input.len() < PREFIX_BYTES => break,
                Progress::NeedMore { bytes } => {
                    self.grant(self.input.len() - PREFIX_BYTES + bytes);
                    break;
                }
                Progress::Complete { length } => {
                    self.grant(length);
                    let Some(share) = self.share.take() else { break };
                    self.input.advance(PREFIX_BYTES);
                    let body = self.input.split_to(length).freeze();
                    self.take_request(body, share)?;
                }
            }
        }
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        Ok(())
    }

    /// Takes a share of the byte budget for a frame, or notes that one is to be waited for.
    fn grant(&mut self, bytes: usize) {
        if self.share.is_none() {
            self.share = self.shared.budget.try_take(bytes);
            self.wanted_bytes = self.share.is_none().then_some(bytes);
        }
    }

    fn take_request(&mut self, body: Bytes, share: Share) -> Result<(), Ending> {
        let token = self.slots.next_token();
        let routed =
            api::dispatch(&self.facts, body).map_err(|error| Ending::Malformed(error.to_string()))?;
        self.learn_client_id(&routed.client_id);
        let head = routed.head;
        // Nobody waits for a classic transaction request whose client has gone, and executed late it could end the
        // next transaction instead.
        let stage = match routed.route {
            Route::Node(call) if self.at_end && call.is_classic_transaction_request() => return Ok(()),
            Route::Node(call) => {
                self.ask_node(token, call);
                Stage::Undecided
            }
            Route::View(call) => Stage::View(call),
            Route::Reply(reply) => Stage::Immediate(reply),
            Route::Hello(reply, software) => {
                self.learn_software(software);
                Stage::Immediate(reply)
            }
        };
        self.slots.push(Slot { token, head, stage, _share: share });
        Ok(())
    }

    fn learn_client_id(&mut self, client_id: &str) {
        if &*self.client.client_id != client_id {
            self.client = Arc::new(ClientInfo { client_id: client_id.into(), ..(*self.client).clone() });
        }
    }

    fn learn_software(&mut self, software: Option<Software>) {
        if let Some(Software { name, version }) = software {
            let software = format!("{name} {version}").into();
            self.client = Arc::new(ClientInfo { software, ..(*self.client).clone() });
        }
    }

    fn ask_node(&self, token: RequestToken, call: Call) {
        let (connection, client) = (self.number, Arc::clone(&self.client));
        self.shared.node.request(NodeRequest { connection, token, client, call });
    }

    fn collect(&mut self) {
        for delivery in self.mailbox.take() {
            match delivery {
                Delivery::Answer { token, reply, rests_on } => self.slots.decide(token, reply, rests_on),
                Delivery::Close => self.by_node = true,
            }
        }
    }

    /// Writes every answer that is due, in order.
    async fn release(&mut self) -> Result<(), Ending> {
        while let Some(slot) = self.slots.front() {
            match &slot.stage {
                Stage::Undecided => break,
                Stage::Decided { rests_on, .. } if !self.is_published(*rests_on) => break,
                Stage::Decided { .. } | Stage::Immediate(_) => self.take_answer()?,
                Stage::View(_) => {
                    self.flush().await?;
                    if !self.answer_view().await? {
                        break;
                    }
                }
            }
        }
        self.flush().await
    }

    /// Answers the front from the published view; false if it waits.
    async fn answer_view(&mut self) -> Result<bool, Ending> {
        let Some(mut slot) = self.slots.pop() else { return Ok(true) };
        let Stage::View(call) = &slot.stage else { return Ok(true) };
        match self.parked.attempt(&self.shared, &self.facts, call).await {
            Attempt::Answered(reply) => {
                self.encode(slot.head, &reply)?;
                Ok(true)
            }
            Attempt::Node(call) => {
                self.ask_node(slot.token, call);
                slot.stage = Stage::Undecided;
                self.slots.push_front(slot);
                Ok(false)
            }
            Attempt::Failed(error) => Err(error.into()),
            Attempt::Parked => {
                self.slots.push_front(slot);
                Ok(false)
            }
        }
    }

    fn is_published(&self, sequence: LogSequence) -> bool {
        self.shared.published.sequence() >= sequence
    }

    /// Takes the front, which is due, and writes it into the output.
    fn take_answer(&mut self) -> Result<(), Ending> {
        let Some(mut slot) = self.slots.pop() else { return Ok(()) };
        match slot.stage {
            Stage::Decided { reply: NodeReply::Reply(reply), .. } | Stage::Immediate(reply) => {
                self.encode(slot.head, &reply)
            }
            Stage::Decided { reply: NodeReply::View(call), .. } => {
                slot.stage = Stage::View(call);
                self.slots.push_front(slot);
                Ok(())
            }
            Stage::Decided { reply: NodeReply::Nothing, .. } | Stage::Undecided | Stage::View(_) => Ok(()),
        }
    }

    fn encode(&mut self, head: Head, reply: &Reply) -> Result<(), Ending> {
        let mut writer = Writer::vectored(Vec::new(), COPIED_BELOW_BYTES);
        let encoded = reply.encode(&head, &mut writer);
        encoded.map_err(|error| Ending::Unanswerable(error.to_string()))?;
        self.output.extend(writer.into_chunks());
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Ending> {
        if self.output.is_empty() {
            return Ok(());
        }
        write_all(&mut self.socket, std::mem::take(&mut self.output)).await?;
        Ok(())
    }
}

/// Writes all chunks, several with one call.
async fn write_all(socket: &mut TcpStream, chunks: Vec<Bytes>) -> io::Result<()> {
    let mut chunks: VecDeque<Bytes> = chunks.into();
    while !chunks.is_empty() {
        let slices: Vec<_> = chunks.iter().take(SLICES_MAX).map(|chunk| IoSlice::new(chunk)).collect();
        let written = socket.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        consume(&mut chunks, written);
    }
    Ok(())
}

/// Drops `written` bytes from the front.
fn consume(chunks: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(front) = chunks.front_mut() {
        if written < front.len() {
            front.advance(written);
            return;
        }
        written -= front.len();
        chunks.pop_front();
    }
}
