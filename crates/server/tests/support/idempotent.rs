//! An idempotent producer that keeps five batches in flight and retries each until it is acknowledged.

use std::collections::VecDeque;

use semel_certify::{
    ClientError, Session,
    session::{Identity, Place, Write, produce_request, produced},
};
use semel_types::ErrorCode;
use semel_wire::{api::produce::ProduceRequest, batch::Batch};

use super::{Stop, connect};

/// A client's limit with idempotence.
const IN_FLIGHT: usize = 5;
/// Records of one batch.
const RECORDS: i32 = 3;

/// One batch and what became of it.
#[derive(Clone)]
pub struct Sent {
    pub sequence: i32,
    pub batch: Batch,
    pub values: Vec<String>,
    /// The first offset it was acknowledged with.
    pub offset: Option<i64>,
}

/// The producer and everything it was promised.
pub struct Idempotent {
    place: Place,
    name: String,
    identity: Option<Identity>,
    next_sequence: i32,
    unacknowledged: VecDeque<Sent>,
    pub acknowledged: Vec<Sent>,
}

impl Idempotent {
    pub fn new(name: &str, place: Place) -> Self {
        let (unacknowledged, acknowledged) = (VecDeque::new(), Vec::new());
        Self { place, name: name.to_owned(), identity: None, next_sequence: 0, unacknowledged, acknowledged }
    }

    /// Where it writes.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Writes until told to stop, over as many connections as it takes.
    pub fn run(&mut self, address: &str, stop: &Stop) {
        while let Some(mut session) = connect(address, stop) {
            // A lost connection is what this is about: everything unacknowledged is sent again.
            let _ = self.write(&mut session, stop);
        }
    }

    fn write(&mut self, session: &mut Session, stop: &Stop) -> Result<(), ClientError> {
        if self.identity.is_none() {
            self.identity = Some(session.init(None)?);
        }
        let mut in_flight = 0;
        for index in 0..self.unacknowledged.len() {
            self.send(session, index)?;
            in_flight += 1;
        }
        while !stop.is_set() || in_flight > 0 {
            while in_flight < IN_FLIGHT && !stop.is_set() {
                self.make();
                self.send(session, self.unacknowledged.len() - 1)?;
                in_flight += 1;
            }
            self.receive(session)?;
            in_flight -= 1;
        }
        Ok(())
    }

    fn make(&mut self) {
        let sequence = self.next_sequence;
        self.next_sequence += RECORDS;
        let values: Vec<_> =
            (sequence..sequence + RECORDS).map(|one| format!("{}-{one}", self.name)).collect();
        let bytes: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
        let write = Write { identity: self.identity, sequence, values: &bytes, transactional_id: None };
        self.unacknowledged.push_back(Sent { sequence, batch: write.batch(), values, offset: None });
    }

    fn send(&self, session: &mut Session, index: usize) -> Result<(), ClientError> {
        let batch = self.unacknowledged[index].batch.clone();
        let request = produce_request(&[(&self.place, batch)], None);
        session.client.send(&request, session.versions.produce)
    }

    fn receive(&mut self, session: &mut Session) -> Result<(), ClientError> {
        let response = session.client.receive::<ProduceRequest>(session.versions.produce)?;
        let answers = response.responses.into_iter().flat_map(|topic| topic.partitions);
        let answer = answers.map(produced).next().expect("one partition was written");
        let known = answer.code.known();
        assert!(
            known == Some(ErrorCode::None),
            "{}: sequence {} answered {:?} {:?}",
            self.name,
            self.unacknowledged[0].sequence,
            known,
            answer.message
        );
        let mut sent = self.unacknowledged.pop_front().expect("answers come in order");
        sent.offset = Some(answer.base_offset.get());
        self.acknowledged.push(sent);
        Ok(())
    }

    /// Sends each of the last five acknowledged batches again and demands the first offset it had.
    pub fn retry_last_five(&self, session: &mut Session) {
        let last = self.acknowledged.iter().rev().take(IN_FLIGHT);
        // What was sent after them and not acknowledged may stand in the window, too.
        for sent in last.take(IN_FLIGHT.saturating_sub(self.unacknowledged.len())) {
            let request = produce_request(&[(&self.place, sent.batch.clone())], None);
            let response = session.client.call(&request, session.versions.produce).expect("the server is up");
            let answers = response.responses.into_iter().flat_map(|topic| topic.partitions);
            let answer = answers.map(produced).next().expect("one partition was written");
            assert_eq!(
                answer.code.known(),
                Some(ErrorCode::None),
                "{} sequence {}",
                self.name,
                sent.sequence
            );
            assert_eq!(
                Some(answer.base_offset.get()),
                sent.offset,
                "{} sequence {}",
                self.name,
                sent.sequence
            );
        }
    }

    /// Checks a full read of its partition: acknowledged records once and in order, others at most once.
    pub fn check(&self, read: &[String]) {
        let mine: Vec<_> =
            read.iter().filter(|value| value.starts_with(&format!("{}-", self.name))).collect();
        let acknowledged: Vec<_> = self.acknowledged.iter().flat_map(|sent| &sent.values).collect();
        let tail: Vec<_> = self.unacknowledged.iter().flat_map(|sent| &sent.values).collect();
        assert!(mine.len() >= acknowledged.len(), "{}: {} of {}", self.name, mine.len(), acknowledged.len());
        assert_eq!(mine[..acknowledged.len()], acknowledged, "{}: lost, doubled or out of order", self.name);
        let rest = &mine[acknowledged.len()..];
        assert_eq!(rest, &tail[..rest.len().min(tail.len())], "{}: not what was sent", self.name);
    }
}
