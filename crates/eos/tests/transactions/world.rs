//! A shard in a test: one state, its volatile part, a clock moved by hand, and the log of everything applied.
//! After each step the whole state is checked.

use std::sync::Arc;

use semel_eos::{
    BatchStamp, Command, Judgement, ProduceScope, Refusal, Reply, Request, Settings, State, Volatile, decide,
    txn::{TransactionState, TransactionalIdEntry, next_wake, start},
};
use semel_events::{
    Author, CommittedOffset, Event, Outcome, Protocol, TopicCreated, TransactionEnded, Visible,
};
use semel_types::{
    ConnectionNumber, Context, DurationMs, GroupId, LogSequence, Now, Offset, PartitionHandle,
    PayloadChecksum, ProducerEpoch, ProducerId, ProducerStamp, RequestToken, Sequence, TopicId, TopicName,
    TransactionalId, WallTime,
};

/// Partitions of the one topic in each world.
pub const PARTITIONS: u32 = 6;
/// The transaction timeout that [`World::init`] asks for.
pub const TIMEOUT_MS: i64 = 60_000;

pub type Answer = Result<Reply, Refusal>;

pub struct World {
    pub state: State,
    pub volatile: Volatile,
    pub settings: Settings,
    pub now_ms: i64,
    /// Every event, in order.
    pub log: Vec<Event>,
    /// Everything that readers were shown.
    pub visible: Vec<Visible>,
    /// The connection that requests come on.
    pub connection: u64,
    next_token: u64,
}

pub fn id(name: &str) -> TransactionalId {
    TransactionalId::from(name)
}

pub fn handle(partition: u32) -> PartitionHandle {
    PartitionHandle::new(partition)
}

pub fn stamp(id: i64, epoch: i16) -> ProducerStamp {
    ProducerStamp { id: ProducerId::new(id), epoch: ProducerEpoch::new(epoch) }
}

/// The same producer id, `by` epochs further.
pub fn shifted(identity: ProducerStamp, by: i16) -> ProducerStamp {
    stamp(identity.id.get(), identity.epoch.get() + by)
}

pub fn author(client: &str, api: &str) -> Author {
    Author {
        client_id: Arc::from(client),
        software: Arc::from("java 4.4.0"),
        address: Arc::from("10.0.0.7:51544"),
        api: api.to_string(),
    }
}

pub fn committed(partition: u32, offset: i64) -> CommittedOffset {
    CommittedOffset {
        partition: handle(partition),
        offset: Offset::new(offset),
        leader_epoch: None,
        metadata: Arc::from(""),
    }
}

impl World {
    pub fn new() -> Self {
        let mut world = Self {
            state: State::new(),
            volatile: Volatile::new(),
            settings: Settings::default(),
            now_ms: 1_000_000,
            log: Vec::new(),
            visible: Vec::new(),
            connection: 1,
            next_token: 0,
        };
        world.restart(false);
        world.apply(
            TopicCreated {
                id: TopicId::new([1; 16]),
                name: TopicName::from("t"),
                partitions: (0..PARTITIONS).map(handle).collect(),
                settings: Vec::new(),
                may_have_forgotten: ProducerId::new(0),
                now: Now::from_ms(world.now_ms),
            }
            .into(),
        );
        world
    }

    pub fn context(&self) -> Context {
        Context {
            now: Now::from_ms(self.now_ms),
            wall: WallTime::from_ms(self.now_ms),
            entropy: [self.log.len() as u8; 32],
        }
    }

    /// Stops and starts the shard; nothing volatile survives.
    pub fn restart(&mut self, may_have_lost_writes: bool) {
        self.volatile = Volatile::new();
        let events = start(&self.state, &self.context(), may_have_lost_writes, "test");
        events.into_iter().for_each(|event| self.apply(event));
    }

    pub fn apply(&mut self, event: Event) {
        self.log.push(event.clone());
        let sequence = LogSequence::new(self.log.len() as u64);
        self.state.apply(sequence, &event, &mut self.visible);
    }

    /// Decides and applies one request; the whole state is checked, and a refusal must have left it alone.
    pub fn ask(&mut self, command: Command) -> Answer {
        let (answer, checked) = self.ask_unchecked(command);
        assert_eq!(checked.state.check(), Ok(()));
        answer
    }

    pub fn ask_unchecked(&mut self, command: Command) -> (Answer, &Self) {
        self.next_token += 1;
        let token = RequestToken::new(self.next_token);
        let request = Request { token, connection: ConnectionNumber::new(self.connection), command };
        let decision = decide(&self.state, &self.volatile, &self.settings, &request, &self.context());
        let [(answered, answer)] = <[_; 1]>::try_from(decision.answers).expect("one answer");
        assert_eq!(answered, token);
        assert!(answer.is_ok() || decision.events.is_empty(), "a refusal made events: {:?}", decision.events);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.volatile.apply_changes(decision.changes);
        (answer, self)
    }

    /// One tick; returns when the next is due.
    pub fn tick(&mut self) -> Option<Now> {
        let request = Request {
            token: RequestToken::new(0),
            connection: ConnectionNumber::new(0),
            command: Command::Tick,
        };
        let decision = decide(&self.state, &self.volatile, &self.settings, &request, &self.context());
        assert_eq!(decision.answers, Vec::new());
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.volatile.apply_changes(decision.changes);
        assert_eq!(self.state.check(), Ok(()));
        if decision.wake_at != Some(Now::from_ms(self.now_ms)) {
            assert_eq!(decision.wake_at, self.next_wake(), "wake_at agrees with next_wake");
        }
        decision.wake_at
    }

    pub fn next_wake(&self) -> Option<Now> {
        next_wake(&self.state, &self.settings)
    }

    /// Lets time pass, then ticks; idle producers shrink.
    pub fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        self.tick();
        while let Some(event) = self.state.producers_due(&self.settings, Now::from_ms(self.now_ms)).event {
            self.apply(event);
        }
        assert_eq!(self.state.check(), Ok(()));
    }

    pub fn init_command(&self, name: Option<&str>, carried: Option<ProducerStamp>) -> Command {
        Command::InitProducerId {
            transactional_id: name.map(id),
            timeout: DurationMs::from_ms(TIMEOUT_MS),
            carried,
            author: author("app", "InitProducerId"),
        }
    }

    pub fn try_init(&mut self, name: &str, carried: Option<ProducerStamp>) -> Answer {
        self.ask(self.init_command(Some(name), carried))
    }

    /// InitProducerId that must succeed.
    pub fn init(&mut self, name: &str, carried: Option<ProducerStamp>) -> ProducerStamp {
        identity_of(self.try_init(name, carried))
    }

    pub fn add(&mut self, name: &str, stamp: ProducerStamp, partitions: &[u32]) -> Answer {
        self.ask(Command::AddPartitions {
            id: id(name),
            stamp,
            partitions: partitions.iter().copied().map(handle).collect(),
            verify_only: false,
            protocol: Protocol::Classic,
        })
    }

    pub fn verify(&mut self, name: &str, stamp: ProducerStamp, partitions: &[u32]) -> Answer {
        self.ask(Command::AddPartitions {
            id: id(name),
            stamp,
            partitions: partitions.iter().copied().map(handle).collect(),
            verify_only: true,
            protocol: Protocol::Classic,
        })
    }

    pub fn add_offsets(&mut self, name: &str, stamp: ProducerStamp, group: &str) -> Answer {
        self.ask(Command::AddOffsets { id: id(name), stamp, group: GroupId::from(group) })
    }

    pub fn commit_offset(
        &mut self,
        name: &str,
        stamp: ProducerStamp,
        group: &str,
        offset: i64,
        protocol: Protocol,
    ) -> Answer {
        let offsets = vec![committed(0, offset)];
        let group = GroupId::from(group);
        self.ask(Command::TxnOffsetCommit { id: id(name), stamp, group, offsets, protocol })
    }

    pub fn end(&mut self, name: &str, stamp: ProducerStamp, outcome: Outcome, protocol: Protocol) -> Answer {
        self.ask(Command::EndTxn { id: id(name), stamp, outcome, protocol, author: author("app", "EndTxn") })
    }

    pub fn classic_end(&mut self, name: &str, stamp: ProducerStamp, outcome: Outcome) -> Answer {
        self.end(name, stamp, outcome, Protocol::Classic)
    }

    pub fn end_v2(&mut self, name: &str, stamp: ProducerStamp, outcome: Outcome) -> Answer {
        self.end(name, stamp, outcome, Protocol::Version2)
    }

    pub fn marker(&mut self, stamp: ProducerStamp, outcome: Outcome, partitions: &[u32]) -> Answer {
        self.ask(Command::WriteMarker {
            stamp,
            outcome,
            partitions: partitions.iter().copied().map(handle).collect(),
            groups: Vec::new(),
            author: author("admin", "WriteTxnMarkers"),
        })
    }

    /// One transactional record; `Ok` if it was appended or had been.
    pub fn write(
        &mut self,
        name: &str,
        stamp: ProducerStamp,
        partition: u32,
        sequence: i32,
        protocol: Protocol,
    ) -> Result<Judgement, Refusal> {
        let id = id(name);
        let connection = ConnectionNumber::new(self.connection);
        let scope = ProduceScope { transactional_id: Some(&id), protocol, connection };
        let batch = BatchStamp {
            producer: stamp,
            first_sequence: Sequence::from_wire(sequence).expect("a sequence"),
            count: 1,
            checksum: PayloadChecksum(sequence.unsigned_abs()),
            transactional: true,
        };
        let partition = handle(partition);
        let judgement = self.state.judge(&self.volatile, &scope, partition, &batch);
        self.volatile.note_produce(&scope, &batch, partition, &judgement);
        match judgement {
            Judgement::Refuse(refusal) => {
                let now = Now::from_ms(self.now_ms);
                self.volatile.note_refused_batch(&self.state, &scope, now, &refusal);
                return Err(refusal);
            }
            Judgement::Duplicate { .. } => return Ok(judgement),
            Judgement::Append => {}
        }
        let now = Now::from_ms(self.now_ms);
        let admission = self.state.admit(&scope, partition, &batch, now)?;
        if let Some(extension) = admission.extension.clone() {
            self.apply(extension.into());
        }
        let event = self.state.append_event(partition, 1, Some((&batch, &admission)), now);
        self.apply(event.into());
        assert_eq!(self.state.check(), Ok(()));
        Ok(judgement)
    }

    pub fn entry(&self, name: &str) -> Option<&TransactionalIdEntry> {
        self.state.transactions().get(&id(name))
    }

    pub fn identity(&self, name: &str) -> ProducerStamp {
        self.entry(name).expect("a known id").identity
    }

    pub fn stage(&self, name: &str) -> Option<TransactionState> {
        self.entry(name).map(TransactionalIdEntry::state)
    }

    /// Last stable offset and next offset of a partition.
    pub fn offsets(&self, partition: u32) -> (i64, i64) {
        let numbers = self.state.partition(handle(partition)).expect("a partition");
        (numbers.last_stable_offset().get(), numbers.next_offset().get())
    }

    /// The last end in the log.
    pub fn last_end(&self) -> &TransactionEnded {
        let ended = |event: &Event| matches!(event, Event::TransactionEnded(_));
        match self.log.iter().rfind(|event| ended(event)) {
            Some(Event::TransactionEnded(ended)) => ended,
            other => panic!("no end in the log: {other:?}"),
        }
    }

    /// How a record at an offset was decided: by the first marker of its producer past it.
    pub fn outcome_at(&self, partition: u32, offset: i64) -> Option<Outcome> {
        let partition = handle(partition);
        let producer = self.log.iter().find_map(|event| match event {
            Event::BatchAppended(batch)
                if batch.partition == partition && batch.base_offset.get() == offset =>
            {
                batch.producer.as_ref().map(|producer| producer.stamp.id)
            }
            _ => None,
        })?;
        self.log.iter().find_map(|event| match event {
            Event::TransactionEnded(end) if end.marker_stamp.id == producer => {
                let mut markers = end.markers.iter();
                let after = |at: Offset| at.get() > offset;
                markers
                    .any(|marker| marker.partition == partition && after(marker.offset))
                    .then_some(end.outcome)
            }
            _ => None,
        })
    }

    /// EOS-40: replaying the log gives the same state, and so does a snapshot of it.
    pub fn assert_replays(&self) {
        let mut replayed = State::new();
        for (number, event) in (1..).zip(&self.log) {
            replayed.apply(LogSequence::new(number), event, &mut Vec::new());
        }
        assert!(replayed == self.state, "replay differs from live");
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        let mut reader = semel_events::Reader::new(&bytes);
        let decoded = State::decode(&mut reader).expect("a snapshot that reads back");
        assert!(decoded == self.state, "a snapshot differs from its origin");
        assert!(reader.is_empty());
    }
}

pub fn identity_of(answer: Answer) -> ProducerStamp {
    match answer {
        Ok(Reply::Identity(identity) | Reply::Ended(identity)) => identity,
        other => panic!("no identity: {other:?}"),
    }
}

pub fn is_fenced(answer: &Answer) -> bool {
    matches!(answer, Err(Refusal::Fenced { .. }))
}
