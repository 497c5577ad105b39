//! Connections: requests of one arrive in order; a client that leaves one forgets it, and what was on its way there
//! may still arrive, much later.

use std::collections::VecDeque;

use semel_eos::{BatchStamp, Command, Judgement, ProduceScope, Refusal, Reply};
use semel_events::{CommittedOffset, Outcome, Protocol};
use semel_types::{
    ConnectionNumber, DurationMs, GroupId, Offset, PartitionHandle, PayloadChecksum, ProducerStamp, Sequence,
};

use crate::{
    promises::{Spot, Value},
    shard::{PLACES, Shard, TXN_TIMEOUT_MS, author, transactional_id},
};

#[derive(Clone, Debug)]
pub enum Body {
    Init { id: Option<usize>, carried: Option<ProducerStamp> },
    Add { id: usize, stamp: ProducerStamp, place: usize },
    AddOffsets { id: usize, stamp: ProducerStamp },
    Offsets { id: usize, stamp: ProducerStamp },
    End { id: usize, stamp: ProducerStamp, outcome: Outcome },
    Batch { id: Option<usize>, stamp: ProducerStamp, first: i64, count: u32, value: Value, place: usize },
}

/// A request on its way.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The same for all copies of a request.
    pub request: u64,
    pub serial: u64,
    pub protocol: Protocol,
    pub body: Body,
}

pub struct Line {
    pub number: u64,
    pub queue: VecDeque<Sent>,
    /// The client uses another one now.
    pub left: bool,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum Answer {
    Reply(Reply),
    /// Stored, now or before.
    Stored(Spot),
    Refused(Refusal),
    /// Not executed; the connection is closed.
    Closed,
    /// There is no such topic (3).
    NoTopic,
}

impl Answer {
    fn of(answer: Result<Reply, Refusal>) -> Self {
        match answer {
            Ok(reply) => Self::Reply(reply),
            Err(Refusal::SupersededConnection { .. }) => Self::Closed,
            Err(refusal) => Self::Refused(refusal),
        }
    }

    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Reply(_) | Self::Stored(_))
    }
}

/// Executes a request as the broker does.
pub fn execute(
    shard: &mut Shard,
    places: &[Option<PartitionHandle>; PLACES],
    connection: u64,
    sent: &Sent,
) -> Answer {
    let protocol = sent.protocol;
    let group = || GroupId::from("g");
    let command = match sent.body {
        Body::Batch { .. } => return produce(shard, places, connection, sent),
        Body::Init { id, carried } => Command::InitProducerId {
            transactional_id: id.map(transactional_id),
            timeout: DurationMs::from_ms(TXN_TIMEOUT_MS),
            carried,
            author: author("InitProducerId"),
        },
        Body::Add { id, stamp, place } => {
            let Some(partition) = places[place] else { return Answer::NoTopic };
            let (id, partitions) = (transactional_id(id), vec![partition]);
            Command::AddPartitions { id, stamp, partitions, verify_only: false, protocol }
        }
        Body::AddOffsets { id, stamp } => {
            Command::AddOffsets { id: transactional_id(id), stamp, group: group() }
        }
        Body::Offsets { id, stamp } => {
            let Some(partition) = places[0] else { return Answer::NoTopic };
            let offset = CommittedOffset {
                partition,
                offset: Offset::new(1),
                leader_epoch: None,
                metadata: "".into(),
            };
            let (id, offsets) = (transactional_id(id), vec![offset]);
            Command::TxnOffsetCommit { id, stamp, group: group(), offsets, protocol }
        }
        Body::End { id, stamp, outcome } => {
            Command::EndTxn { id: transactional_id(id), stamp, outcome, protocol, author: author("EndTxn") }
        }
    };
    Answer::of(shard.ask(connection, command))
}

fn produce(
    shard: &mut Shard,
    places: &[Option<PartitionHandle>; PLACES],
    connection: u64,
    sent: &Sent,
) -> Answer {
    let Body::Batch { id, stamp, first, count, value, place } = sent.body else { unreachable!() };
    let Some(handle) = places[place] else { return Answer::NoTopic };
    let id = id.map(transactional_id);
    let scope = ProduceScope {
        transactional_id: id.as_ref(),
        protocol: sent.protocol,
        connection: ConnectionNumber::new(connection),
    };
    let batch = BatchStamp {
        producer: stamp,
        first_sequence: Sequence::from_wire(i32::try_from(first).unwrap()).unwrap(),
        count,
        checksum: PayloadChecksum(value),
        transactional: id.is_some(),
    };
    let next = shard.state.partition(handle).expect("it exists").next_offset();
    match shard.produce(&scope, handle, &batch) {
        Ok(Judgement::Append) => Answer::Stored(Spot { handle, offset: next.get() }),
        Ok(Judgement::Duplicate { first_offset, .. }) => {
            Answer::Stored(Spot { handle, offset: first_offset.get() })
        }
        Ok(Judgement::Refuse(refusal)) | Err(refusal) => Answer::of(Err(refusal)),
    }
}
