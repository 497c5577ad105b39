//! Fetch and ListOffsets with every field: what a reader asked for exactly, and what exactly came.

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, WireCode,
    api::{
        fetch::{FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopic},
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic},
    },
    batch::Batch,
};

use super::{Actor, said};
use crate::{
    Answer, ClientError,
    scenario::Kept,
    session::{self, Isolation, Place},
};

/// A Fetch of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// From this offset.
    pub offset: i64,
    /// Up to which end.
    pub isolation: Isolation,
    /// At most this many bytes, but one whole batch.
    pub bytes_max: i32,
    /// Waits this long for a first byte.
    pub wait_ms: i32,
}

impl Look {
    /// Everything that readers of committed records may have, from an offset on, at once.
    #[must_use]
    pub const fn committed(offset: i64) -> Self {
        Self { offset, isolation: Isolation::Committed, bytes_max: 64 << 20, wait_ms: 0 }
    }

    /// Everything, from an offset on, at once.
    #[must_use]
    pub const fn uncommitted(offset: i64) -> Self {
        Self { isolation: Isolation::Uncommitted, ..Self::committed(offset) }
    }

    /// At most this many bytes, but one whole batch.
    #[must_use]
    pub const fn within(self, bytes_max: i32) -> Self {
        Self { bytes_max, ..self }
    }

    /// Waits for a first byte.
    #[must_use]
    pub const fn waiting(self, wait_ms: i32) -> Self {
        Self { wait_ms, ..self }
    }

    fn request(self, place: &Place) -> FetchRequest {
        let partition = FetchPartition {
            partition: PartitionIndex::new(place.index),
            fetch_offset: RawOffset(self.offset),
            partition_max_bytes: self.bytes_max,
            ..Default::default()
        };
        let topic = place.topic.as_str().into();
        FetchRequest {
            min_bytes: i32::from(self.wait_ms > 0),
            max_wait_ms: self.wait_ms,
            max_bytes: self.bytes_max,
            isolation_level: self.isolation.wire(),
            topics: vec![FetchTopic { topic, partitions: vec![partition], ..Default::default() }],
            ..Default::default()
        }
    }
}

/// What a Fetch gave.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The high watermark.
    pub high_watermark: i64,
    /// The last stable offset.
    pub last_stable: i64,
    /// The aborted transactions that it names: producer id and first offset, in order; `None` for null.
    pub aborted: Option<Vec<(i64, i64)>>,
    /// The whole batches.
    pub batches: Vec<Batch>,
    /// The values that a client of this isolation delivers.
    pub values: Vec<String>,
}

impl Fetched {
    /// Reads an answer.
    fn of(answer: &FetchPartitionResponse) -> Result<Self, ClientError> {
        let batches = session::whole_batches(answer)?;
        let values = session::deliver(answer, &batches)?;
        let aborted = answer.aborted_transactions.as_ref().map(|list| {
            let mut list: Vec<_> =
                list.iter().map(|one| (one.producer_id.get(), one.first_offset.get())).collect();
            list.sort_unstable_by_key(|(_, first)| *first);
            list
        });
        Ok(Self {
            high_watermark: answer.high_watermark.get(),
            last_stable: answer.last_stable_offset.get(),
            aborted,
            values: values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect(),
            batches,
        })
    }

    /// The offset behind the last batch; `None` if there is none.
    #[must_use]
    pub fn next_offset(&self) -> Option<i64> {
        self.batches.last().map(|batch| batch.last_offset().get() + 1)
    }

    /// How many of the batches are markers.
    #[must_use]
    pub fn markers(&self) -> usize {
        self.batches.iter().filter(|batch| batch.attributes().is_control()).count()
    }
}

/// What ListOffsets gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The offset, or -1.
    pub offset: i64,
    /// The timestamp of its record, or -1.
    pub timestamp: i64,
}

impl Actor {
    /// One Fetch of one partition.
    pub fn look(&mut self, place: &Place, look: Look) -> Answer<Fetched> {
        let came = self.session.client.call(&look.request(place), 12).and_then(|response| fetched(&response));
        self.noted(format!("Fetch {} from {} {:?}", said(&[place]), look.offset, look.isolation), came)
    }

    /// Fetches until the end and takes the answers together: a broker may give less than there is.
    ///
    /// # Errors
    /// It stands still, or an exchange failed.
    pub fn look_all(&mut self, place: &Place, look: Look) -> Kept<Fetched> {
        let mut all = self.look(place, look).is(0)?;
        let mut next = all.next_offset();
        while let Some(offset) = next {
            let more = self.look(place, Look { offset, ..look }).is(0)?;
            next = more.next_offset();
            all.batches.extend(more.batches);
            all.values.extend(more.values);
            for one in more.aborted.unwrap_or_default() {
                let list = all.aborted.get_or_insert_default();
                if !list.contains(&one) {
                    list.push(one);
                }
            }
        }
        Ok(all)
    }

    /// Sends a Fetch and does not wait: [`Actor::next_looked`] takes the answer.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_look(&mut self, place: &Place, look: Look) -> Kept {
        Ok(self.session.client.send(&look.request(place), 12)?)
    }

    /// The answer to the oldest [`Actor::send_look`] that has none yet.
    pub fn next_looked(&mut self, sent: &str) -> Answer<Fetched> {
        let came = self.session.client.receive::<FetchRequest>(12).and_then(|response| fetched(&response));
        self.noted(format!("answer to {sent}"), came)
    }

    /// What a reader is given that asks for a few bytes at a time, from an offset on: every answer below the last
    /// stable offset has to move it on.
    ///
    /// # Errors
    /// It stands still, or an exchange failed.
    pub fn walk(&mut self, place: &Place, look: Look) -> Kept<Vec<String>> {
        let (mut values, mut look) = (Vec::new(), look);
        loop {
            let seen = self.look(place, look).is(0)?;
            values.extend(seen.values.iter().cloned());
            let end = match look.isolation {
                Isolation::Committed => seen.last_stable,
                Isolation::Uncommitted => seen.high_watermark,
            };
            match seen.next_offset() {
                Some(next) => look.offset = next,
                None if look.offset >= end => return Ok(values),
                None => {
                    let sent = format!("Fetch {} from {}", said(&[place]), look.offset);
                    let came = format!("no whole batch, the end is {end}");
                    return Err(crate::Failure::broken(sent, came, "a whole batch: the reader moves on"));
                }
            }
        }
    }

    /// ListOffsets at a timestamp; -1 is the end, -2 the start, -3 the largest timestamp.
    pub fn list_offsets(&mut self, place: &Place, timestamp: i64, isolation: Isolation) -> Answer<Listed> {
        let partition_index = PartitionIndex::new(place.index);
        let partition = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
        let topic = ListOffsetsTopic { name: place.topic.as_str().into(), partitions: vec![partition] };
        let isolation_level = isolation.wire();
        let request =
            ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic], ..Default::default() };
        let came = self.session.client.call(&request, 7).map(|response| {
            let mut partitions = response.topics.into_iter().flat_map(|topic| topic.partitions);
            partitions.next().map_or((WireCode(-1), Listed { offset: -1, timestamp: -1 }), |partition| {
                let listed = Listed { offset: partition.offset.get(), timestamp: partition.timestamp };
                (partition.error_code, listed)
            })
        });
        self.noted(format!("ListOffsets {} at {timestamp} {isolation:?}", said(&[place])), came)
    }
}

fn fetched(response: &FetchResponse) -> Result<(WireCode, Fetched), ClientError> {
    let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    let only = partitions.next().ok_or_else(|| std::io::Error::other("an answer without the partition"))?;
    Ok((only.error_code, Fetched::of(only)?))
}
