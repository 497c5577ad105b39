//! A shard without a broker: judges, admits and applies as the node does.

use std::sync::Arc;

use semel_eos::{
    Admission, BatchStamp, Judgement, ProduceScope, Refusal, Settings, State, Volatile,
    txn::{self, Command, Reply, Request},
};
use semel_events::{
    Author, BatchAppended, Event, Outcome, ProducerIdsReserved, Protocol, ShardStarted, TopicCreated,
    TopicDeleted, Visible,
};
use semel_types::{
    ClusterId, ConnectionNumber, Context, DurationMs, LogSequence, Now, Offset, PartitionHandle,
    PayloadChecksum, ProducerEpoch, ProducerId, ProducerStamp, RequestToken, Sequence, ShardEpoch, ShardId,
    TopicId, TopicName, TransactionalId, WallTime,
};

/// The first producer id of a shard in tests.
pub const FIRST_ID: i64 = 1 << 20;

pub fn id(number: i64) -> ProducerId {
    ProducerId::new(FIRST_ID + number)
}

pub fn handle(number: u32) -> PartitionHandle {
    PartitionHandle::new(number)
}

pub fn sequence(number: i64) -> Sequence {
    let wrapped = i32::try_from(number.rem_euclid(1 << 31)).expect("31 bits");
    Sequence::from_wire(wrapped).expect("not negative")
}

pub fn now(ms: i64) -> Now {
    Now::from_ms(ms)
}

/// A plain batch.
pub fn batch(producer: ProducerId, epoch: i16, first: i64, count: u32) -> BatchStamp {
    BatchStamp {
        producer: ProducerStamp { id: producer, epoch: ProducerEpoch::new(epoch) },
        first_sequence: sequence(first),
        count,
        checksum: PayloadChecksum(7),
        transactional: false,
    }
}

/// The same batch with another payload.
pub fn other_payload(stamp: BatchStamp) -> BatchStamp {
    BatchStamp { checksum: PayloadChecksum(stamp.checksum.0 ^ 0xffff), ..stamp }
}

/// A transactional batch.
pub fn in_transaction(identity: ProducerStamp, first: i64, count: u32) -> BatchStamp {
    BatchStamp { transactional: true, ..batch(identity.id, identity.epoch.get(), first, count) }
}

/// A shard without a broker.
#[derive(Clone)]
pub struct Shard {
    pub state: State,
    pub volatile: Volatile,
    pub settings: Settings,
    pub sequence: u64,
    pub now: i64,
    pub visible: Vec<Visible>,
    /// Everything that was applied, in order.
    pub events: Vec<Event>,
    /// Of Produce: version 2 adds partitions by itself.
    pub protocol: Protocol,
    pub check: bool,
}

impl Shard {
    /// A shard that was started once, with 1,000 producer ids issued and one topic of `partitions` partitions.
    pub fn new(partitions: u32) -> Self {
        let mut shard = Self {
            state: State::new(),
            volatile: Volatile::new(),
            settings: Settings::default(),
            sequence: 0,
            now: 1_000_000,
            visible: Vec::new(),
            events: Vec::new(),
            protocol: Protocol::Classic,
            check: true,
        };
        shard.start(1, false);
        shard.apply(ProducerIdsReserved { first: id(0), end: id(1000) }.into());
        shard.create_topic(0, partitions, ProducerId::new(0));
        shard
    }

    pub fn apply(&mut self, event: Event) {
        self.sequence += 1;
        self.state.apply(LogSequence::new(self.sequence), &event, &mut self.visible);
        if self.check {
            self.state.check_event(&event).unwrap_or_else(|violation| panic!("{violation} after {event:?}"));
            self.state.check().unwrap_or_else(|violation| panic!("{violation} after {event:?}"));
        }
        self.events.push(event);
    }

    pub fn start(&mut self, shard_epoch: u32, may_have_lost_writes: bool) {
        self.volatile = Volatile::new();
        self.apply(
            ShardStarted {
                shard: ShardId::new(0),
                cluster: ClusterId::new([9; 16]),
                shard_epoch: ShardEpoch::new(shard_epoch),
                now: now(self.now),
                wall: WallTime::from_ms(self.now),
                may_have_lost_writes,
                software: "test".into(),
            }
            .into(),
        );
    }

    pub fn create_topic(&mut self, first: u32, partitions: u32, may_have_forgotten: ProducerId) {
        self.apply(
            TopicCreated {
                id: TopicId::new([first as u8 + 1; 16]),
                name: TopicName::from("t"),
                partitions: (first..first + partitions).map(handle).collect(),
                settings: Vec::new(),
                may_have_forgotten,
                now: now(self.now),
            }
            .into(),
        );
    }

    pub fn delete_topic(&mut self, first: u32, partitions: u32) -> ProducerId {
        let next_unissued = self.state.next_unissued_id(&self.volatile);
        self.apply(
            TopicDeleted {
                id: TopicId::new([first as u8 + 1; 16]),
                partitions: (first..first + partitions).map(handle).collect(),
                next_unissued,
                now: now(self.now),
            }
            .into(),
        );
        next_unissued
    }

    /// What Produce is told, and the batch appended if that is it.
    pub fn produce(&mut self, partition: u32, stamp: BatchStamp) -> Judgement {
        self.produce_on(1, None, partition, stamp)
    }

    pub fn produce_on(
        &mut self,
        connection: u64,
        transactional_id: Option<&TransactionalId>,
        partition: u32,
        stamp: BatchStamp,
    ) -> Judgement {
        let judgement = self.judge_on(connection, transactional_id, partition, stamp);
        if judgement != Judgement::Append {
            return judgement;
        }
        let scope = ProduceScope { protocol: self.protocol, ..scope(connection, transactional_id) };
        match self.state.admit(&scope, handle(partition), &stamp, now(self.now)) {
            Err(refusal) => Judgement::Refuse(refusal),
            Ok(admission) => {
                self.append(partition, stamp, admission);
                Judgement::Append
            }
        }
    }

    fn append(&mut self, partition: u32, stamp: BatchStamp, mut admission: Admission) {
        if let Some(extension) = admission.extension.take() {
            self.apply(extension.into());
        }
        let event = self.state.append_event(
            handle(partition),
            stamp.count,
            Some((&stamp, &admission)),
            now(self.now),
        );
        self.apply(event.into());
    }

    /// Judges and notes, appends nothing.
    pub fn judge_on(
        &mut self,
        connection: u64,
        transactional_id: Option<&TransactionalId>,
        partition: u32,
        stamp: BatchStamp,
    ) -> Judgement {
        let scope = scope(connection, transactional_id);
        let judgement = self.state.judge(&self.volatile, &scope, handle(partition), &stamp);
        self.volatile.note_produce(&scope, &stamp, handle(partition), &judgement);
        judgement
    }

    /// Records that have no producer id.
    pub fn produce_anonymously(&mut self, partition: u32, count: u32) {
        let event: BatchAppended = self.state.append_event(handle(partition), count, None, now(self.now));
        self.apply(event.into());
    }

    pub fn ask(&mut self, command: Command) -> Result<Reply, Refusal> {
        let token = RequestToken::new(1);
        let request = Request { token, connection: ConnectionNumber::new(1), command };
        let context = Context { now: now(self.now), wall: WallTime::from_ms(self.now), entropy: [3; 32] };
        let decision = txn::decide(&self.state, &self.volatile, &self.settings, &request, &context);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.volatile.apply_changes(decision.changes);
        decision.answers.into_iter().next().map_or(Ok(Reply::Done), |(_, answer)| answer)
    }

    /// InitProducerId without a pair.
    pub fn init(&mut self, owner: &str) -> ProducerStamp {
        let answer = self.ask(Command::InitProducerId {
            transactional_id: Some(owner.into()),
            timeout: DurationMs::from_ms(60_000),
            carried: None,
            author: author(),
        });
        match answer {
            Ok(Reply::Identity(identity)) => identity,
            other => panic!("InitProducerId: {other:?}"),
        }
    }

    /// EndTxn; the identity from here on.
    pub fn end(
        &mut self,
        owner: &str,
        stamp: ProducerStamp,
        outcome: Outcome,
        protocol: Protocol,
    ) -> Result<ProducerStamp, Refusal> {
        let (id, author) = (owner.into(), author());
        match self.ask(Command::EndTxn { id, stamp, outcome, protocol, author })? {
            Reply::Ended(identity) => Ok(identity),
            Reply::Identity(_) | Reply::Done => panic!("EndTxn answers with an identity"),
        }
    }

    /// AddPartitionsToTxn, classic.
    pub fn add(&mut self, owner: &str, stamp: ProducerStamp, partition: u32) -> Result<Reply, Refusal> {
        self.ask(Command::AddPartitions {
            id: owner.into(),
            stamp,
            partitions: vec![handle(partition)],
            verify_only: false,
            protocol: Protocol::Classic,
        })
    }

    /// Time passes until whatever was written so far is idle for too long.
    pub fn wait_for_expiry(&mut self) {
        self.now += self.settings.producer_id_expiration.as_ms() * 101 / 100;
    }

    /// Applies everything that is due now.
    pub fn expire(&mut self) {
        while let Some(event) = self.state.producers_due(&self.settings, now(self.now)).event {
            self.apply(event);
        }
    }

    pub fn next_offset(&self, partition: u32) -> i64 {
        self.state.partition(handle(partition)).expect("exists").next_offset().get()
    }

    pub fn stable_offset(&self, partition: u32) -> i64 {
        self.state.partition(handle(partition)).expect("exists").last_stable_offset().get()
    }
}

pub fn scope(connection: u64, transactional_id: Option<&TransactionalId>) -> ProduceScope<'_> {
    let connection = ConnectionNumber::new(connection);
    ProduceScope { transactional_id, protocol: Protocol::Classic, connection }
}

pub fn author() -> Author {
    Author { client_id: Arc::from("c"), software: Arc::from(""), address: Arc::from("h"), api: "test".into() }
}

/// The answer to a retry of the batch at this offset.
pub fn duplicate_at(offset: i64, appended_at: i64) -> Judgement {
    Judgement::Duplicate { first_offset: Offset::new(offset), appended_at: now(appended_at) }
}

/// The code that Produce answers, by the table of the design (the broker's own table is tested there).
pub fn code(judgement: &Judgement) -> i16 {
    match judgement {
        Judgement::Append | Judgement::Duplicate { .. } => 0,
        Judgement::Refuse(Refusal::OutOfOrder { .. } | Refusal::StrayOfEndedTransaction { .. }) => 45,
        Judgement::Refuse(Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. }) => 46,
        Judgement::Refuse(Refusal::Fenced { .. }) => 47,
        Judgement::Refuse(Refusal::PlainBatchOfOwnedId { .. } | Refusal::NotInTransaction { .. }) => 48,
        Judgement::Refuse(Refusal::WrongOwner { .. }) => 49,
        Judgement::Refuse(Refusal::ForgottenProducer { .. }) => 59,
        Judgement::Refuse(Refusal::UnknownPartition { .. }) => 3,
        Judgement::Refuse(other) => panic!("Produce has no code for {other:?}"),
    }
}
