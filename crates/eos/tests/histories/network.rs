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
    Init {
        id: Option<usize>,
        carried: Option<ProducerStamp>,
    },
    Add {
        id: usize,
        stamp: ProducerStamp,
        place: usize,
    },
    AddOffsets {
        id: usize,
        stamp: ProducerStamp,
    },
    /// The group of the transactional id; each transaction commits another offset.
    Offsets {
        id: usize,
        stamp: ProducerStamp,
        offset: Value,
    },
    End {
        id: usize,
        stamp: ProducerStamp,
        outcome: Outcome,
    },
    Batch {
        id: Option<usize>,
        stamp: ProducerStamp,
        first: i64,
        count: u32,
        value: Value,
        place: usize,
    },
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
    /// There is no room on the disk: 56 for a batch, 15 for every other request. All clients send it again.
    NoRoom,
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

/// The group whose offsets the transactions of an id carry.
fn group(id: usize) -> GroupId {
    GroupId::from(["g-0", "g-1", "g-2"][id])
}

/// Executes a request as the broker does: room is asked for before anything is decided, and a batch needs it only if it
/// would be appended.
pub fn execute(
    shard: &mut Shard,
    places: &[Option<PartitionHandle>; PLACES],
    connection: u64,
    sent: &Sent,
    has_room: bool,
) -> Answer {
    let protocol = sent.protocol;
    let command = match sent.body {
        Body::Batch { .. } => return produce(shard, places, connection, sent, has_room),
        _ if !has_room => return Answer::NoRoom,
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
            Command::AddOffsets { id: transactional_id(id), stamp, group: group(id) }
        }
        Body::Offsets { id, stamp, offset } => {
            let Some(partition) = places[0] else { return Answer::NoTopic };
            let offset = CommittedOffset {
                partition,
                offset: Offset::new(i64::from(offset)),
                leader_epoch: None,
                metadata: "".into(),
            };
            let (id, group, offsets) = (transactional_id(id), group(id), vec![offset]);
            Command::TxnOffsetCommit { id, stamp, group, offsets, protocol }
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
    has_room: bool,
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
    match shard.produce(&scope, handle, &batch, has_room) {
        Ok(Judgement::Append) if !has_room => Answer::NoRoom,
        Ok(Judgement::Append) => Answer::Stored(Spot { handle, offset: next.get() }),
        Ok(Judgement::Duplicate { first_offset, .. }) => {
            Answer::Stored(Spot { handle, offset: first_offset.get() })
        }
        Ok(Judgement::Refuse(refusal)) | Err(refusal) => Answer::of(Err(refusal)),
    }
}
