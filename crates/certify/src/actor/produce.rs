//! Produce.

use std::time::{SystemTime, UNIX_EPOCH};

use semel_types::{PartitionIndex, WallTime};
use semel_wire::{
    Text, WireCode,
    api::produce::{ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic},
    batch::{Batch, BatchBuilder, NewRecord},
};

use super::{Actor, Producer, said};
use crate::{
    Answer, ClientError,
    session::{self, Place, Produced},
};

/// The version of Produce from which on topics are named by their ids.
const IDS_SINCE: i16 = 13;

/// A batch of a producer; transactional if it has an id.
#[must_use]
pub fn batch_of(producer: &Producer, sequence: i32, values: &[&str]) -> Batch {
    let sequence = semel_types::Sequence::from_wire(sequence).unwrap_or_default();
    let builder = BatchBuilder::new().stamped(producer.stamp, sequence);
    let builder = if producer.id.is_some() { builder.transactional() } else { builder };
    builder.records(records(values)).build()
}

/// Records as a client makes them now: brokers forget producers by the age of their records.
pub fn records<'a>(values: &'a [&'a str]) -> impl Iterator<Item = NewRecord<'a>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let timestamp = i64::try_from(now).ok().map(WallTime::from_ms);
    values.iter().map(move |value| NewRecord { timestamp, ..NewRecord::of(value.as_bytes()) })
}

/// A Produce request of one batch per partition, acks as told.
#[must_use]
pub fn request_of(id: Option<&str>, acks: i16, batches: &[(&Place, Batch)]) -> ProduceRequest {
    let topics = batches.iter().map(|(place, batch)| {
        let (index, records) = (PartitionIndex::new(place.index), Some(batch.bytes().clone()));
        let partitions = vec![ProducePartition { index, records }];
        ProduceTopic { name: place.topic.as_str().into(), partitions, ..Default::default() }
    });
    ProduceRequest {
        transactional_id: id.map(Text::from),
        acks,
        timeout_ms: 30_000,
        topics: topics.collect(),
    }
}

impl Actor {
    /// `P(pid, ep, seq, n)` or, for a producer with a transactional id, `Ptx(...)`: one batch to one partition.
    pub fn produce(
        &mut self,
        place: &Place,
        producer: &Producer,
        sequence: i32,
        values: &[&str],
    ) -> Answer<Produced> {
        let said =
            format!("Produce {} seq {sequence} ({}) to {}", short(values), producer.said(), said(&[place]));
        self.produce_batch(&said, place, producer.id.as_deref(), batch_of(producer, sequence, values))
    }

    /// As [`Actor::produce`], asked again while the coordinator is busy (51, which older versions hear as 19).
    pub fn produce_when_free(
        &mut self,
        place: &Place,
        producer: &Producer,
        sequence: i32,
        values: &[&str],
    ) -> Answer<Produced> {
        self.until_not(&[19, 51], |actor| actor.produce(place, producer, sequence, values))
    }

    /// A record of nobody: no identity.
    pub fn produce_plain(&mut self, place: &Place, values: &[&str]) -> Answer<Produced> {
        let batch = BatchBuilder::new().records(records(values)).build();
        let said = format!("Produce {} (without identity) to {}", short(values), said(&[place]));
        self.produce_batch(&said, place, None, batch)
    }

    /// Any batch to one partition; `id` is the request's transactional id.
    pub fn produce_batch(
        &mut self,
        said: &str,
        place: &Place,
        id: Option<&str>,
        batch: Batch,
    ) -> Answer<Produced> {
        let version = self.session.versions.produce;
        let came = self.exchange(id, &[(place, batch)]).and_then(|mut answers| {
            let only = answers.pop().map(|(_, produced)| produced);
            only.ok_or_else(|| std::io::Error::other("an answer without the partition").into())
        });
        self.noted(format!("{said}, v{version}"), came.map(|produced| (produced.code, produced)))
    }

    /// One request with a batch for each partition; an answer for each, in order.
    pub fn produce_many(
        &mut self,
        producer: &Producer,
        batches: &[(&Place, i32, &[&str])],
    ) -> Vec<Answer<Produced>> {
        let made: Vec<_> = batches
            .iter()
            .map(|(place, sequence, values)| (*place, batch_of(producer, *sequence, values)))
            .collect();
        let came = self.exchange(producer.id.as_deref(), &made);
        let failed = |text: &str| Err(ClientError::from(std::io::Error::other(text.to_owned())));
        let answers = batches.iter().map(|(place, sequence, values)| {
            let said =
                format!("Produce {} seq {sequence} to {} in one request", short(values), said(&[place]));
            let own = match &came {
                Ok(answers) => answers.iter().find(|(answered, _)| answered == *place).map_or_else(
                    || failed("no answer for the partition"),
                    |(_, own)| Ok((own.code, own.clone())),
                ),
                Err(error) => failed(&error.to_string()),
            };
            self.noted(said, own)
        });
        answers.collect()
    }

    /// Sends a Produce and does not wait: [`Actor::next_produced`] takes the answer.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_produce(
        &mut self,
        place: &Place,
        producer: &Producer,
        sequence: i32,
        values: &[&str],
    ) -> Result<(), ClientError> {
        let batch = batch_of(producer, sequence, values);
        let request = self.request(producer.id.as_deref(), &[(place, batch)])?;
        self.session.client.send(&request, self.session.versions.produce)
    }

    /// The answer to the oldest [`Actor::send_produce`] that has none yet.
    pub fn next_produced(&mut self, said: &str) -> Answer<Produced> {
        let version = self.session.versions.produce;
        let came = self.session.client.receive::<ProduceRequest>(version).map(|response| {
            let mut partitions = response.responses.into_iter().flat_map(|topic| topic.partitions);
            let produced = partitions.next().map(session::produced);
            let code = produced.as_ref().map_or(WireCode(-1), |produced| produced.code);
            (code, produced)
        });
        let came = came.and_then(|(code, produced)| match produced {
            Some(produced) => Ok((code, produced)),
            None => Err(std::io::Error::other("an answer without the partition").into()),
        });
        self.noted(format!("answer to {said}"), came)
    }

    fn exchange(
        &mut self,
        id: Option<&str>,
        batches: &[(&Place, Batch)],
    ) -> Result<Vec<(Place, Produced)>, ClientError> {
        let request = self.request(id, batches)?;
        let response = self.session.client.call(&request, self.session.versions.produce)?;
        Ok(answers(&request, response))
    }

    /// The request with acks -1; from [`IDS_SINCE`] on its topics have the ids that the broker tells.
    fn request(
        &mut self,
        id: Option<&str>,
        batches: &[(&Place, Batch)],
    ) -> Result<ProduceRequest, ClientError> {
        let mut request = request_of(id, -1, batches);
        if self.session.versions.produce >= IDS_SINCE {
            for topic in &mut request.topics {
                topic.topic_id = self.session.topic_id(topic.name.as_str())?;
            }
        }
        Ok(request)
    }
}

/// What each partition was answered.
fn answers(request: &ProduceRequest, response: ProduceResponse) -> Vec<(Place, Produced)> {
    let answers = response.responses.into_iter().flat_map(|topic| {
        // The answer names its topics as the request did: by name, or by id.
        let is_by_id = topic.name.as_str().is_empty();
        let mut topics = request.topics.iter();
        let asked = topics.find(|asked| is_by_id && asked.topic_id == topic.topic_id);
        let name = asked.map_or(topic.name, |asked| asked.name.clone());
        topic.partitions.into_iter().map(move |partition| {
            (Place::of(name.as_str(), partition.index.get()), session::produced(partition))
        })
    });
    answers.collect()
}

/// Values for people.
fn short(values: &[&str]) -> String {
    let all = values.join(",");
    if all.len() <= 40 { all } else { format!("{} values of {} bytes", values.len(), all.len()) }
}
