//! The core as the node drives it: judge, admit, decide, apply; a clock moved by hand; the log of every event. The
//! whole state is checked after each step.

use std::{collections::BTreeMap, sync::Arc};

use semel_eos::{
    BatchStamp, Command, Judgement, ProduceScope, Refusal, Reply, Request, Settings, State, Volatile, decide,
    txn::start,
};
use semel_events::{Author, Event, Reader, TopicCreated, TopicDeleted, Visible, membership_event};
use semel_types::{
    ConnectionNumber, Context, DurationMs, LogSequence, Now, PartitionHandle, ProducerId, RequestToken,
    TopicId, TopicName, TransactionalId, WallTime,
};

use crate::promises::broken;

pub const TXN_TIMEOUT_MS: i64 = 60_000;
pub const PRODUCER_EXPIRATION_MS: i64 = 600_000;
pub const TXN_ID_EXPIRATION_MS: i64 = 3_600_000;

/// Where records go: partition 0 and 1 of topic "t", partition 0 of topic "u", which is made anew now and then.
pub const PLACES: usize = 3;

pub struct Shard {
    pub state: State,
    pub volatile: Volatile,
    settings: Settings,
    pub now_ms: i64,
    pub log: Vec<Event>,
    pub visible: Vec<Visible>,
    next_token: u64,
}

pub fn author(api: &str) -> Author {
    Author {
        client_id: Arc::from("app"),
        software: Arc::from("x"),
        address: Arc::from("y"),
        api: api.to_owned(),
    }
}

impl Shard {
    pub fn new() -> Self {
        let settings = Settings {
            producer_id_expiration: DurationMs::from_ms(PRODUCER_EXPIRATION_MS),
            transactional_id_expiration: DurationMs::from_ms(TXN_ID_EXPIRATION_MS),
            ..Settings::default()
        };
        let mut shard = Self {
            state: State::new(),
            volatile: Volatile::new(),
            settings,
            now_ms: 1_000_000,
            log: Vec::new(),
            visible: Vec::new(),
            next_token: 0,
        };
        shard.start(false);
        shard.create("t", 2);
        shard.create("u", 1);
        shard
    }

    fn context(&self) -> Context {
        let mut entropy = [7; 32];
        entropy[..8].copy_from_slice(&(self.log.len() as u64).to_le_bytes());
        Context { now: Now::from_ms(self.now_ms), wall: WallTime::from_ms(self.now_ms), entropy }
    }

    pub fn now(&self) -> Now {
        Now::from_ms(self.now_ms)
    }

    pub fn apply(&mut self, event: Event) {
        let sequence = LogSequence::new(self.log.len() as u64 + 1);
        self.state.apply(sequence, &event, &mut self.visible);
        self.log.push(event);
    }

    pub fn check(&self) {
        if let Err(violation) = self.state.check() {
            broken("the state is sound", &violation);
        }
    }

    fn start(&mut self, may_have_lost_writes: bool) {
        self.volatile = Volatile::new();
        let events = start(&self.state, &self.context(), may_have_lost_writes, "test");
        events.into_iter().for_each(|event| self.apply(event));
        self.check();
    }

    /// The topics that exist: name, id and partitions.
    pub fn topics(&self) -> BTreeMap<&str, (TopicId, &[PartitionHandle])> {
        let mut topics = BTreeMap::new();
        for event in &self.log {
            match event {
                Event::TopicCreated(topic) => {
                    topics.insert(topic.name.as_str(), (topic.id, topic.partitions.as_slice()));
                }
                Event::TopicDeleted(gone) => topics.retain(|_, (id, _)| *id != gone.id),
                _ => {}
            }
        }
        topics
    }

    /// The handle of each place, if it exists.
    pub fn places(&self) -> [Option<PartitionHandle>; PLACES] {
        let topics = self.topics();
        let of = |name: &str, at: usize| topics.get(name).map(|(_, handles)| handles[at]);
        [of("t", 0), of("t", 1), of("u", 0)]
    }

    /// Makes a topic; a name that was deleted before may have been forgotten.
    pub fn create(&mut self, name: &str, partitions: u32) {
        let mut next = 0;
        let (mut ids, mut may_have_forgotten) = (Vec::new(), ProducerId::new(0));
        for event in &self.log {
            match event {
                Event::TopicCreated(topic) => {
                    next = topic.partitions.iter().map(|handle| handle.get() + 1).fold(next, u32::max);
                    if topic.name.as_str() == name {
                        ids.push(topic.id);
                    }
                }
                Event::TopicDeleted(gone) if ids.contains(&gone.id) => {
                    may_have_forgotten = gone.next_unissued
                }
                _ => {}
            }
        }
        let created = TopicCreated {
            id: TopicId::new([u8::try_from(next).unwrap() + 1; 16]),
            name: TopicName::from(name),
            partitions: (next..next + partitions).map(PartitionHandle::new).collect(),
            settings: Vec::new(),
            may_have_forgotten,
            now: self.now(),
        };
        self.apply(created.into());
        self.check();
    }

    pub fn delete(&mut self, name: &str) {
        let Some((id, partitions)) = self.topics().get(name).map(|(id, handles)| (*id, handles.to_vec()))
        else {
            return;
        };
        let next_unissued = self.state.next_unissued_id(&self.volatile);
        let now = self.now();
        self.apply(TopicDeleted { id, partitions, next_unissued, now }.into());
        self.check();
    }

    pub fn ask(&mut self, connection: u64, command: Command) -> Result<Reply, Refusal> {
        self.next_token += 1;
        let token = RequestToken::new(self.next_token);
        let request = Request { token, connection: ConnectionNumber::new(connection), command };
        let decision = decide(&self.state, &self.volatile, &self.settings, &request, &self.context());
        let [(_, answer)] = <[_; 1]>::try_from(decision.answers).expect("one answer");
        if answer.is_err() && !decision.events.is_empty() {
            broken("a refusal touches nothing", &request.command);
        }
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.volatile.apply_changes(decision.changes);
        self.check();
        answer
    }

    /// One batch of Produce, as the broker's handler takes it: judged, then room, then admitted. Without room a batch
    /// that would be appended is marked, and is not.
    pub fn produce(
        &mut self,
        scope: &ProduceScope<'_>,
        partition: PartitionHandle,
        batch: &BatchStamp,
        has_room: bool,
    ) -> Result<Judgement, Refusal> {
        let judgement = self.state.judge(&self.volatile, scope, partition, batch);
        self.volatile.note_produce(scope, batch, partition, &judgement);
        match judgement {
            Judgement::Refuse(refusal) => return Err(refusal),
            Judgement::Duplicate { .. } => return Ok(judgement),
            Judgement::Append if !has_room => {
                self.volatile.refused_for_room(partition, batch);
                return Ok(judgement);
            }
            Judgement::Append => {}
        }
        let admission = self.state.admit(scope, partition, batch, self.now())?;
        if let Some(extension) = admission.extension.clone() {
            self.apply(extension.into());
        }
        let event = self.state.append_event(partition, batch.count, Some((batch, &admission)), self.now());
        self.apply(event.into());
        self.check();
        Ok(judgement)
    }

    /// Lets time pass, and does what it brings about.
    pub fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        loop {
            let token = RequestToken::new(0);
            let request = Request { token, connection: ConnectionNumber::default(), command: Command::Tick };
            let decision = decide(&self.state, &self.volatile, &self.settings, &request, &self.context());
            decision.events.into_iter().for_each(|event| self.apply(event));
            self.volatile.apply_changes(decision.changes);
            if decision.wake_at != Some(self.now()) {
                break;
            }
        }
        while let Some(event) = self.state.producers_due(&self.settings, self.now()).event {
            self.apply(event);
        }
        self.check();
    }

    /// Stops and starts: replay of the log, and a snapshot, give the state that was live.
    pub fn restart(&mut self) {
        let replayed = self.replayed();
        if replayed.state != self.state {
            broken("a restart gives the state that was", &"replay");
        }
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        match State::decode(&mut Reader::new(&bytes)) {
            Ok(decoded) if decoded == self.state => self.state = decoded,
            other => broken("a restart gives the state that was", &other.is_ok()),
        }
        self.start(false);
    }

    /// Stops as the machine does in durability `interval`, and starts: events after the last synced one may be gone.
    pub fn crash(&mut self, lost: usize) {
        let mut kept = self.log.len();
        while self.log.len() - kept < lost && kept > 0 && !is_synced(&self.log[..kept]) {
            kept -= 1;
        }
        self.log.truncate(kept);
        let replayed = self.replayed();
        (self.state, self.visible) = (replayed.state, replayed.visible);
        self.start(true);
    }

    fn replayed(&self) -> Replayed {
        let mut replayed = Replayed { state: State::new(), visible: Vec::new() };
        for (number, event) in (1..).zip(&self.log) {
            replayed.state.apply(LogSequence::new(number), event, &mut replayed.visible);
        }
        replayed
    }
}

struct Replayed {
    state: State,
    visible: Vec<Visible>,
}

/// True if the last event is synced before its answer in durability `interval` too (design section 4).
fn is_synced(log: &[Event]) -> bool {
    match log.last() {
        None => true,
        Some(
            Event::BatchAppended(_)
            | Event::PendingOffsetsAdded(_)
            | Event::OffsetsCommitted(_)
            | Event::TopicCreated(_)
            | Event::TopicDeleted(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::GroupDeleted(_)
            | Event::RecordsDeleted(_)
            | Event::TopicSettingsChanged(_)
            | Event::PartitionsAdded(_)
            | Event::GroupSettingsChanged(_)
            | Event::OffsetsDeleted(_),
        ) => false,
        Some(Event::TransactionExtended(event)) => {
            let earlier = log[..log.len() - 1].iter().rev();
            let mut same = earlier.filter_map(|earlier| match earlier {
                Event::TransactionExtended(other) if other.id == event.id => Some(true),
                Event::TransactionEnded(other) if other.id == event.id => Some(false),
                Event::TransactionalIdInitialized(other) if other.id == event.id => Some(false),
                _ => None,
            });
            same.next() != Some(true)
        }
        Some(
            Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionEnded(_)
            | Event::TransactionalIdExpired(_)
            | membership_event!(),
        ) => true,
    }
}

/// Which client asks, for messages.
pub fn transactional_id(number: usize) -> TransactionalId {
    TransactionalId::from(["tx-0", "tx-1", "tx-2"][number])
}
