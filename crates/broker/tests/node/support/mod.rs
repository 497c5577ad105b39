//! A broker without a server: dispatch, node, and a log in memory that is durable at once.

mod classics;
mod client;
mod consumers;
mod dice;
mod log;
mod members;
mod reader;

use std::sync::Arc;

use bytes::Bytes;
use semel_broker::{
    Answer, ClientInfo, Endpoint, Facts, Input, Node, NodeReply, NodeRequest, Outputs, Settings, State,
    api::{Head, Reply, Route, ViewAnswer, ViewCall, dispatch},
    room::{Room, RoomClass, RoomKeeper},
    settings::Source,
};
use semel_log::{ReadMode, SnapshotSource, StateMachine};
use semel_types::{ConnectionNumber, Context, LeaderEpoch, LogSequence, Now, RequestToken, WallTime};
use semel_wire::{Message, Reader, ResponseHeader, Writer, frame};

pub use classics::*;
pub use client::*;
pub use consumers::*;
pub use dice::Dice;
pub use members::*;
pub use reader::*;

use self::log::MemoryLog;

/// Wall time minus broker time, so that a test sees which of the two was used.
const WALL_AHEAD_MS: i64 = 1_000_000;

/// How full the disk is, shared with the test.
#[derive(Clone, Default)]
pub struct Disk(Arc<std::sync::Mutex<Option<Room>>>);

impl Disk {
    /// From now on the log says this to records and identities; the reserve always has room.
    pub fn say(&self, room: Room) {
        *self.0.lock().unwrap() = Some(room);
    }
}

impl RoomKeeper for Disk {
    fn ask(&self, _bytes: u64, class: RoomClass) -> Room {
        match (class, *self.0.lock().unwrap()) {
            (RoomClass::Reserve, _) | (_, None) => Room::Enough,
            (RoomClass::Produce | RoomClass::Identity, Some(room)) => room,
        }
    }
}

/// What came back on a connection.
#[derive(Debug)]
pub enum Outcome<T> {
    /// This answer.
    Answer(T),
    /// Nothing, and nothing will (acks 0).
    Silence,
    /// The connection was closed.
    Closed,
}

impl<T: std::fmt::Debug> Outcome<T> {
    /// The answer.
    #[track_caller]
    pub fn answer(self) -> T {
        match self {
            Self::Answer(answer) => answer,
            other @ (Self::Silence | Self::Closed) => panic!("expected an answer, got {other:?}"),
        }
    }

    /// Was the connection closed?
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }
}

/// A request that may be parked.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    connection: ConnectionNumber,
    token: RequestToken,
    head: Head,
}

/// A broker under test.
pub struct Broker {
    node: Node,
    settings: Arc<Settings>,
    facts: Facts,
    log: MemoryLog,
    /// How full its disk is.
    pub disk: Disk,
    now: Now,
    wake_at: Option<Now>,
    connections: u64,
    requests: u64,
    entropy: u64,
    deferred: Vec<Input>,
    /// What the node said for the server's log.
    pub notes: Vec<String>,
    synced: bool,
    /// Answers to requests that had been parked.
    late: Vec<Answer>,
}

impl Broker {
    /// With all defaults.
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With these settings.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        Self::seeded(settings, 1)
    }

    /// With settings and a seed of its randomness: another data directory has another seed.
    pub fn seeded(given: &[(&str, &str)], seed: u64) -> Self {
        let mut settings = Settings::new();
        for (name, value) in given {
            settings.set(name, value, Source::Flag).unwrap();
        }
        let settings = Arc::new(settings);
        let disk = Disk::default();
        let node =
            Node::new(Arc::clone(&settings), State::new(), LogSequence::default(), Box::new(disk.clone()));
        let facts = facts(&settings, LeaderEpoch::new(1));
        let now = Now::from_ms(10_000_000);
        let mut broker = Self {
            node,
            settings,
            facts,
            log: MemoryLog::new(),
            disk,
            now,
            wake_at: None,
            connections: 0,
            requests: 0,
            entropy: seed,
            deferred: Vec::new(),
            notes: Vec::new(),
            synced: false,
            late: Vec::new(),
        };
        broker.start_node(false);
        broker
    }

    fn start_node(&mut self, may_have_lost_writes: bool) {
        let context = self.context();
        let outputs = self.node.start(&context, may_have_lost_writes, "test");
        self.facts.leader_epoch = LeaderEpoch::from(self.node.state().eos.shard_epoch());
        self.log.set_leader_epoch(self.facts.leader_epoch);
        self.take(outputs);
    }

    /// Kills the node and starts it again: the state is replayed from the log, and must be what it was.
    pub fn restart(&mut self) {
        self.restart_after(false);
    }

    /// The same, as after an unclean stop in durability `interval`.
    pub fn restart_after(&mut self, may_have_lost_writes: bool) {
        let before = encoded(self.node.state());
        let (state, last) = self.log.replay();
        assert_eq!(encoded(&state), before, "replay gives the state that was live");
        let mut restored = State::new();
        restored.restore(&mut semel_events::Reader::new(&before)).unwrap();
        assert_eq!(encoded(&restored), before, "a snapshot gives the state that was live");
        let (settings, disk) = (Arc::clone(&self.settings), self.disk.clone());
        self.node = Node::new(settings, restored, last, Box::new(disk));
        self.late.clear();
        self.start_node(may_have_lost_writes);
    }

    /// The same data directory with other settings.
    pub fn restart_with(&mut self, given: &[(&str, &str)]) {
        let mut settings = Settings::new();
        for (name, value) in given {
            settings.set(name, value, Source::Flag).unwrap();
        }
        self.settings = Arc::new(settings);
        self.facts = facts(&self.settings, self.facts.leader_epoch);
        self.restart();
    }

    /// The last rounds of a group: the generation, how many members it has, and the causes with their member.
    pub fn rounds(&self, group: &str) -> Vec<(i32, usize, Vec<String>)> {
        let (groups, group) = (self.node.inspect().groups, group.into());
        let rounds = groups.history().of(&group);
        let told = rounds.map(|round| {
            let causes = round.causes.iter().map(|cause| format!("{} {}", cause.reason.name(), cause.member));
            (round.generation, round.members, causes.collect())
        });
        told.collect()
    }

    /// Lets time pass, waking the node whenever it asked to be.
    pub fn pass(&mut self, ms: i64) {
        let until = self.now.plus(semel_types::DurationMs::from_ms(ms));
        while let Some(at) = self.wake_at.filter(|at| *at <= until) {
            self.now = self.now.max(at);
            let context = self.context();
            let outputs = self.node.step(&context, Input::Wake);
            let (answers, _) = self.take(outputs);
            self.late.extend(answers);
        }
        self.now = until;
    }

    fn context(&mut self) -> Context {
        self.entropy += 1;
        let mut entropy = [0; 32];
        for (chunk, salt) in entropy.chunks_mut(8).zip(1..) {
            let mixed =
                self.entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(salt * 13) ^ u64::from(salt);
            chunk.copy_from_slice(&mixed.to_le_bytes());
        }
        let wall = WallTime::from_ms(self.now.as_ms() + WALL_AHEAD_MS);
        Context { now: self.now, wall, entropy }
    }

    /// Did a proposal since the last call ask for a sync in durability `interval` too?
    pub fn synced(&mut self) -> bool {
        std::mem::take(&mut self.synced)
    }

    /// Broker time in milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.now.as_ms()
    }

    /// Wall time in milliseconds.
    pub fn wall_ms(&self) -> i64 {
        self.now.as_ms() + WALL_AHEAD_MS
    }

    /// The shard's epoch, which is the coordinator's.
    pub fn shard_epoch(&self) -> i32 {
        semel_types::CoordinatorEpoch::from(self.state().eos.shard_epoch()).get()
    }

    /// How many events there are.
    pub fn event_count(&self) -> u64 {
        self.node.last_sequence().get()
    }

    /// The node's state.
    pub fn state(&self) -> &State {
        self.node.state()
    }

    /// A new connection; later ones have higher numbers.
    pub fn connect(&mut self) -> ConnectionNumber {
        self.connections += 1;
        ConnectionNumber::new(self.connections)
    }

    /// Sends a request and gives what came back.
    pub fn ask<Q: Message, A: Message>(
        &mut self,
        on: ConnectionNumber,
        version: i16,
        body: &Q,
    ) -> Outcome<A> {
        let bytes = frame::request(body, version, 7, Some("test")).unwrap();
        self.ask_bytes::<A>(on, Bytes::from(bytes).slice(frame::PREFIX_BYTES..), version)
    }

    /// Sends a frame (without its length prefix) and reads the answer in the given version.
    pub fn ask_bytes<A: Message>(&mut self, on: ConnectionNumber, frame: Bytes, version: i16) -> Outcome<A> {
        match self.ask_raw(on, frame) {
            Outcome::Closed => Outcome::Closed,
            Outcome::Silence => Outcome::Silence,
            Outcome::Answer(bytes) => Outcome::Answer(decode(bytes, version)),
        }
    }

    /// Sends a frame and gives the answer's bytes without the length prefix.
    pub fn ask_raw(&mut self, on: ConnectionNumber, frame: Bytes) -> Outcome<Bytes> {
        match dispatch(&self.facts, frame) {
            Err(_) => Outcome::Closed,
            Ok(routed) => match self.follow(on, routed.route) {
                Outcome::Answer(reply) => Outcome::Answer(encode(&reply, &routed.head)),
                Outcome::Silence => Outcome::Silence,
                Outcome::Closed => Outcome::Closed,
            },
        }
    }

    fn follow(&mut self, on: ConnectionNumber, route: Route) -> Outcome<Reply> {
        match route {
            Route::Reply(reply) | Route::Refused(reply, _) | Route::Hello(reply, _) => Outcome::Answer(reply),
            Route::View(call) => self.view(on, &call),
            Route::Node(call) => {
                self.requests += 1;
                let client = Arc::new(ClientInfo {
                    client_id: Arc::from("test"),
                    software: Arc::from("harness 1"),
                    address: Arc::from(format!("127.0.0.1:{}", on.get())),
                });
                let token = RequestToken::new(self.requests);
                let request = NodeRequest { connection: on, token, client, call };
                let context = self.context();
                let outputs = self.node.step(&context, Input::Request(request));
                self.finish(on, outputs)
            }
        }
    }

    fn finish(&mut self, on: ConnectionNumber, outputs: Outputs) -> Outcome<Reply> {
        let (answers, close) = self.take(outputs);
        if close.contains(&on) {
            return Outcome::Closed;
        }
        let token = RequestToken::new(self.requests);
        let (own, others): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.connection == on && answer.token == token);
        self.late.extend(others);
        let mut answers = own.into_iter().map(|answer| answer.reply);
        match (answers.next(), answers.next()) {
            (Some(NodeReply::Reply(reply)), None) => Outcome::Answer(reply),
            (Some(NodeReply::View(call)), None) => self.view(on, &call),
            (Some(NodeReply::State(call)), None) => Outcome::Answer(call.answer()),
            (Some(NodeReply::Nothing), None) => Outcome::Silence,
            (None, None) => Outcome::Silence,
            other => panic!("one answer for one request, not {other:?}"),
        }
    }

    /// Sends a request that may be parked: what to ask [`Broker::late`] for.
    pub fn park<Q: Message>(&mut self, on: ConnectionNumber, version: i16, body: &Q) -> Ticket {
        let bytes = frame::request(body, version, 7, Some("test")).unwrap();
        let frame = Bytes::from(bytes).slice(frame::PREFIX_BYTES..);
        let routed = dispatch(&self.facts, frame).unwrap();
        let head = routed.head;
        let outcome = self.follow(on, routed.route);
        let token = RequestToken::new(self.requests);
        if let Outcome::Answer(reply) = outcome {
            self.late.push(Answer { connection: on, token, reply: NodeReply::Reply(reply) });
        }
        Ticket { connection: on, token, head }
    }

    /// The answer to a request that was parked, once there is one; it is given once.
    pub fn late<A: Message>(&mut self, ticket: Ticket) -> Option<A> {
        let is_it = |answer: &Answer| answer.connection == ticket.connection && answer.token == ticket.token;
        let at = self.late.iter().position(is_it)?;
        match self.late.remove(at).reply {
            NodeReply::Reply(reply) => Some(decode(encode(&reply, &ticket.head), ticket.head.version)),
            other @ (NodeReply::View(_) | NodeReply::State(_) | NodeReply::Nothing) => panic!("{other:?}"),
        }
    }

    /// The client's end of a connection closes.
    pub fn close(&mut self, on: ConnectionNumber) {
        let context = self.context();
        let outputs = self.node.step(&context, Input::ConnectionClosed(on));
        let (answers, _) = self.take(outputs);
        self.late.extend(answers);
    }

    fn take(&mut self, outputs: Outputs) -> (Vec<Answer>, Vec<ConnectionNumber>) {
        if let Some(proposal) = outputs.proposal {
            self.synced |= proposal.sync_now;
            self.log.append(proposal);
        }
        assert_eq!(self.log.last_sequence(), self.node.last_sequence(), "the log counts as the node does");
        self.wake_at = outputs.wake_at;
        self.notes.extend(outputs.notes);
        self.deferred.extend(outputs.deferred);
        (outputs.answers, outputs.close)
    }

    /// Sends deferred input again; gives the answers.
    pub fn retry_deferred(&mut self, on: ConnectionNumber) -> Outcome<Reply> {
        let input = self.deferred.remove(0);
        let context = self.context();
        let outputs = self.node.step(&context, input);
        self.finish(on, outputs)
    }

    fn view(&mut self, on: ConnectionNumber, call: &ViewCall) -> Outcome<Reply> {
        let answer = call.answer_from(&self.facts, &self.log.published);
        match answer {
            ViewAnswer::Reply(reply) => Outcome::Answer(reply),
            ViewAnswer::Node(call) => self.follow(on, Route::Node(call)),
            ViewAnswer::Fetch(plan) => {
                let finished = plan.finish(&self.log.cache, ReadMode::MayBlock).unwrap();
                self.notes.extend(finished.failures);
                Outcome::Answer(finished.reply)
            }
            ViewAnswer::ListOffsets(plan) => {
                let finished = plan.finish(&self.log.cache, ReadMode::MayBlock).unwrap();
                self.notes.extend(finished.failures);
                Outcome::Answer(finished.reply)
            }
        }
    }

    /// Changes the stored bytes of `text`.
    pub fn damage(&mut self, text: &str, change: impl Fn(&mut [u8])) {
        self.log.damage(text.as_bytes(), change);
    }

    /// Would a Fetch be answered now, or wait for more?
    pub fn fetch_is_ready(&self, call: &ViewCall) -> bool {
        match call.answer_from(&self.facts, &self.log.published) {
            ViewAnswer::Fetch(plan) => plan.is_ready(),
            other @ (ViewAnswer::Reply(_) | ViewAnswer::Node(_) | ViewAnswer::ListOffsets(_)) => {
                panic!("not a Fetch: {other:?}")
            }
        }
    }
}

fn facts(settings: &Arc<Settings>, leader_epoch: LeaderEpoch) -> Facts {
    Facts {
        settings: Arc::clone(settings),
        cluster_id: Arc::from("test-cluster"),
        advertised: Endpoint { host: Arc::from("broker.test"), port: 9092 },
        leader_epoch,
    }
}

fn encoded(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    bytes
}

/// The answer's bytes without the length prefix.
fn encode(reply: &Reply, head: &Head) -> Bytes {
    let mut writer = Writer::copying(Vec::new());
    reply.encode(head, &mut writer).unwrap();
    Bytes::from(writer.into_buffer()).slice(frame::PREFIX_BYTES..)
}

fn decode<A: Message>(bytes: Bytes, version: i16) -> A {
    let mut reader = Reader::new(bytes);
    let header = ResponseHeader::decode(&mut reader, A::API, version).unwrap();
    assert_eq!(header.correlation_id, 7);
    A::decode_body(&mut reader, version).unwrap()
}
