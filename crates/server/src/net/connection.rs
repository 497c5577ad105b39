//! One connection: frames in, answers out, in order.
//!
//! One task does both, so that a peer that does not read its answers is not read from either: its memory is bounded
//! by the requests it may have unanswered, the answers that wait, and one response in writing.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use semel_broker::{
    Call, ClientInfo, Facts, NodeReply, NodeRequest,
    api::{self, Head, Reply, Route, Software},
};
use semel_types::{ConnectionNumber, LogSequence, RequestToken};
use tokio::{net::TcpStream, sync::watch};

use crate::net::{
    budget::Share,
    inbound::{Inbound, Stuck},
    listener::Shared,
    mailbox::{Delivery, Mailbox},
    outbound::{self, Outbound, STALLED_MAX},
    slots::{Held, Slot, Slots, Stage},
    state_call,
    view_call::{Attempt, Parked},
};

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
    /// A frame was begun and not finished.
    #[error("a frame was begun and not finished")]
    Stalled,
    /// The same, and others waited for the memory that it held.
    #[error(
        "a frame was begun and not finished: {} of {} bytes came, hardly any in the last second, and others wait for \
         memory (queued.max.request.bytes)",
        .0.received_bytes,
        .0.frame_bytes
    )]
    InTheWay(Stuck),
    /// An answer that its version cannot carry: a bug of ours, and better a closed connection than a wrong answer.
    #[error("an answer cannot be written: {0}")]
    Unanswerable(String),
}

/// One connection.
pub struct Connection {
    socket: TcpStream,
    number: ConnectionNumber,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    client: Arc<ClientInfo>,
    facts: Facts,
    mailbox: Arc<Mailbox>,
    deliveries: Vec<Delivery>,
    /// For the node, from the frames taken in one go.
    asked: Vec<NodeRequest>,
    slots: Slots,
    inbound: Inbound,
    outbound: Outbound,
    parked: Parked,
    /// Nothing more is taken; once what was decided is answered, the connection ends with this.
    closing: Option<Ending>,
    eager: bool,
}

impl Connection {
    /// Makes a connection known to the node. `number` rises with each accepted one.
    ///
    /// # Errors
    /// The socket's: it is closed already.
    pub fn new(socket: TcpStream, number: ConnectionNumber, shared: Arc<Shared>) -> io::Result<Self> {
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
            inbound: Inbound::new(shared.budget.clone(), shared.request_bytes_max),
            stop: shared.stop.clone(),
            socket,
            number,
            shared,
            client: Arc::new(client),
            facts,
            mailbox,
            deliveries: Vec::new(),
            asked: Vec::new(),
            slots: Slots::default(),
            outbound: Outbound::default(),
            parked: Parked::default(),
            closing: None,
            eager: false,
        })
    }

    /// Who is at the other end, as far as it is known.
    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// Serves it until it ends.
    pub async fn run(&mut self) -> Ending {
        loop {
            if let Err(ending) = self.turn().await {
                return ending;
            }
        }
    }

    /// Does all that can be done now, then waits for something to happen.
    async fn turn(&mut self) -> Result<(), Ending> {
        self.collect()?;
        self.take_frames()?;
        self.release().await?;
        if self.inbound.is_at_end() && !self.inbound.has_frame() {
            self.closing.get_or_insert(Ending::Closed);
        }
        if self.slots.is_empty() || self.is_left() && self.slots.front_is_view() {
            self.closing.take().map_or(Ok(()), Err)?;
        }
        let more = self.may_take() && !self.inbound.wants_share() && self.inbound.has_frame();
        if more || !self.listens() { Ok(()) } else { self.wait().await }
    }

    const fn is_stopping(&self) -> bool {
        matches!(self.closing, Some(Ending::Stopping))
    }

    /// Nobody waits for a long poll any more. What was decided is still answered, as Kafka does: a client may have
    /// closed its sending side only.
    const fn is_left(&self) -> bool {
        matches!(self.closing, Some(Ending::Stopping | Ending::Closed))
    }

    fn may_take(&self) -> bool {
        self.closing.is_none() && self.slots.has_room()
    }

    /// Tells the node whether a decision is news by itself; false if there is one already.
    fn listens(&mut self) -> bool {
        let eager = self.slots.waits_for_the_node();
        if !eager && !self.eager {
            return true;
        }
        self.eager = eager;
        self.mailbox.listen(eager)
    }

    async fn wait(&mut self) -> Result<(), Ending> {
        let may_read = self.may_take() && !self.inbound.wants_share() && !self.inbound.is_at_end();
        let (patience, impatient) = self.patience(may_read);
        let awaited = self.slots.awaited();
        if !may_read {
            self.inbound.forgive();
        }
        tokio::select! {
            biased;
            () = self.mailbox.arrived() => {}
            () = reached(&self.shared, awaited), if awaited.is_some() => {}
            ready = self.socket.readable(), if may_read => {
                ready?;
                self.read()?;
            }
            () = self.parked.wait(), if self.parked.is_waiting() => {}
            stuck = self.inbound.granted_or_stuck(may_read) => {
                stuck.map_or(Ok(()), |stuck| Err(Ending::InTheWay(stuck)))?;
            }
            () = stopping(&mut self.stop), if !self.is_stopping() => self.closing = Some(Ending::Stopping),
            () = tokio::time::sleep(patience.unwrap_or_default()), if patience.is_some() => return Err(impatient),
        }
        Ok(())
    }

    /// How long nothing may happen, and what it means if nothing does.
    fn patience(&self, may_read: bool) -> (Option<Duration>, Ending) {
        if may_read && self.inbound.is_in_frame() {
            return (Some(STALLED_MAX), Ending::Stalled);
        }
        (self.shared.idle_max.filter(|_| self.slots.is_empty()), Ending::Idle)
    }

    fn read(&mut self) -> Result<(), Ending> {
        self.inbound.read(&self.socket)?;
        if self.inbound.is_at_end() {
            self.mailbox.leave();
        }
        Ok(())
    }

    /// Hands complete frames on, as many as the connection may have unanswered.
    fn take_frames(&mut self) -> Result<(), Ending> {
        while self.may_take() {
            match self.inbound.next_frame() {
                Ok(Some((body, share))) => self.take_request(body, share)?,
                Ok(None) => break,
                Err(error) => self.closing = Some(Ending::Malformed(error.to_string())),
            }
        }
        if !self.asked.is_empty() && !self.shared.node.requests(&mut self.asked) {
            self.slots.cut_undecided();
            self.closing = Some(Ending::Stopping);
        }
        Ok(())
    }

    fn take_request(&mut self, body: Bytes, share: Share) -> Result<(), Ending> {
        let routed = match api::dispatch(&self.facts, body) {
            Ok(routed) => routed,
            Err(error) => {
                self.closing = Some(Ending::Malformed(error.to_string()));
                return Ok(());
            }
        };
        self.learn_client_id(&routed.client_id);
        let (token, head) = (self.slots.next_token(), routed.head);
        // Nobody waits for a classic transaction request whose client has gone, and executed late it could end the
        // next transaction instead.
        let stage = match routed.route {
            Route::Node(call)
                if call.is_classic_transaction_request() && self.inbound.ends_here(&self.socket) =>
            {
                return Ok(());
            }
            Route::Node(call) => {
                self.ask_node(token, call);
                Stage::Undecided
            }
            Route::View(call) => Stage::View(call),
            Route::Reply(reply) => immediate(&head, &reply)?,
            Route::Refused(reply, why) => {
                self.shared.complain(&self.client, &why);
                immediate(&head, &reply)?
            }
            Route::Hello(reply, software) => {
                self.learn_software(software);
                immediate(&head, &reply)?
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

    fn ask_node(&mut self, token: RequestToken, call: Call) {
        let (connection, client) = (self.number, Arc::clone(&self.client));
        self.asked.push(NodeRequest { connection, token, client, call });
    }

    fn collect(&mut self) -> Result<(), Ending> {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        self.mailbox.take(&mut deliveries);
        for delivery in deliveries.drain(..) {
            match delivery {
                Delivery::Answer { token, reply, rests_on } => self.decided(token, reply, rests_on)?,
                Delivery::Close => {
                    self.slots.cut_undecided();
                    self.closing.get_or_insert(Ending::ByNode);
                }
            }
        }
        self.deliveries = deliveries;
        Ok(())
    }

    /// Written at once, so that the bytes that wait are known.
    fn decided(
        &mut self,
        token: RequestToken,
        reply: NodeReply,
        rests_on: LogSequence,
    ) -> Result<(), Ending> {
        let Some(head) = self.slots.undecided(token) else { return Ok(()) };
        let answer = match reply {
            NodeReply::Reply(reply) => Held::Bytes(encode(&head, &reply)?),
            NodeReply::View(call) => Held::View(call),
            NodeReply::State(call) => Held::State(call),
            NodeReply::Nothing => Held::Bytes(Vec::new()),
        };
        self.slots.decide(token, answer, rests_on);
        Ok(())
    }

    /// Writes every answer that is due, in order.
    async fn release(&mut self) -> Result<(), Ending> {
        while let Some(slot) = self.slots.front() {
            match &slot.stage {
                Stage::Undecided => break,
                Stage::Held { rests_on, .. } if !self.is_published(*rests_on) => break,
                Stage::Held { answer: Held::State(_), .. } => {
                    self.outbound.flush(&self.socket).await?;
                    self.answer_from_state().await?;
                }
                Stage::Held { .. } => self.take_answer(),
                Stage::View(_) => {
                    self.outbound.flush(&self.socket).await?;
                    if !self.answer_view().await? {
                        break;
                    }
                }
            }
        }
        Ok(self.outbound.flush(&self.socket).await?)
    }

    /// Answers the front from the published view; false if it waits.
    async fn answer_view(&mut self) -> Result<bool, Ending> {
        let Some(mut slot) = self.slots.pop() else { return Ok(true) };
        let Stage::View(call) = &slot.stage else { return Ok(true) };
        match self.parked.attempt(&self.shared, &self.facts, call).await {
            Attempt::Answered(reply) => {
                self.outbound.push(encode(&slot.head, &reply)?);
                Ok(true)
            }
            Attempt::Node(call) => {
                self.ask_node(slot.token, call);
                slot.stage = Stage::Undecided;
                self.slots.push_front(slot);
                self.take_frames()?;
                Ok(false)
            }
            Attempt::Failed(error) => Err(error.into()),
            Attempt::Parked => {
                self.slots.push_front(slot);
                Ok(false)
            }
        }
    }

    /// Answers the front from its copy of the state, on a thread that may take its time.
    async fn answer_from_state(&mut self) -> Result<(), Ending> {
        let Some(slot) = self.slots.pop() else { return Ok(()) };
        if let Stage::Held { answer: Held::State(call), .. } = slot.stage {
            let reply = state_call::answer(&self.shared, call).await?;
            self.outbound.push(encode(&slot.head, &reply)?);
        }
        Ok(())
    }

    fn is_published(&self, sequence: LogSequence) -> bool {
        self.shared.published.sequence() >= sequence
    }

    /// Takes the front, which is due.
    fn take_answer(&mut self) {
        let Some(mut slot) = self.slots.pop() else { return };
        match slot.stage {
            Stage::Held { answer: Held::Bytes(chunks), .. } => self.outbound.push(chunks),
            Stage::Held { answer: Held::View(call), .. } => {
                slot.stage = Stage::View(call);
                self.slots.push_front(slot);
            }
            Stage::Held { answer: Held::State(_), .. } | Stage::Undecided | Stage::View(_) => {}
        }
    }
}

impl Drop for Connection {
    /// However it ends, the node has nothing to remember of it.
    fn drop(&mut self) {
        self.mailbox.leave();
        self.shared.node.disconnected(self.number);
    }
}

fn immediate(head: &Head, reply: &Reply) -> Result<Stage, Ending> {
    let answer = Held::Bytes(encode(head, reply)?);
    Ok(Stage::Held { answer, rests_on: LogSequence::default() })
}

fn encode(head: &Head, reply: &Reply) -> Result<Vec<Bytes>, Ending> {
    outbound::encode(head, reply).map_err(|error| Ending::Unanswerable(error.to_string()))
}

async fn reached(shared: &Shared, awaited: Option<LogSequence>) {
    if let Some(sequence) = awaited {
        shared.published.reached(sequence).await;
    }
}

/// Completes when the server stops.
async fn stopping(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop as well.
    let _ = stop.wait_for(|stopping| *stopping).await;
}
