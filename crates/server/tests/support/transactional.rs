//! A transactional producer that writes to several partitions and knows what became of each transaction.

use semel_certify::{
    ClientError, Session,
    session::{Identity, Place, Versions, Write},
};
use semel_wire::WireCode;

use super::{Stop, connect, counts};

/// What is known of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Its commit was acknowledged.
    Committed,
    /// Its commit was never sent, or its abort was.
    Aborted,
    /// Its commit was sent and the answer lost.
    Unknown,
}

/// The producer and everything it was promised.
pub struct Transactional {
    id: String,
    places: Vec<Place>,
    versions: Versions,
    sequences: Vec<i32>,
    pub fates: Vec<Fate>,
}

impl Transactional {
    pub fn new(id: &str, places: Vec<Place>, versions: Versions) -> Self {
        let sequences = vec![0; places.len()];
        Self { id: id.to_owned(), places, versions, sequences, fates: Vec::new() }
    }

    /// Runs transactions until told to stop; a lost connection means a new instance.
    pub fn run(&mut self, address: &str, stop: &Stop) {
        while let Some(session) = connect(address, stop) {
            let mut session = session.speaking(self.versions);
            let _ = self.instance(&mut session, stop);
        }
    }

    fn instance(&mut self, session: &mut Session, stop: &Stop) -> Result<(), ClientError> {
        let mut identity = session.init(Some(&self.id))?;
        self.sequences.fill(0);
        while !stop.is_set() {
            let number = self.fates.len();
            self.fates.push(Fate::Aborted);
            self.write(session, identity, number)?;
            let commit = number % 3 != 2;
            if commit {
                self.fates[number] = Fate::Unknown;
            }
            let ended = session.end(&self.id, identity, commit)?;
            assert_eq!(ended.code, WireCode::NONE, "{}: end of transaction {number}", self.id);
            if commit {
                self.fates[number] = Fate::Committed;
            }
            if self.versions == Versions::VERSION_2 {
                identity = ended.identity.expect("version 5 tells the identity");
                self.sequences.fill(0);
            }
        }
        Ok(())
    }

    fn write(&mut self, session: &mut Session, identity: Identity, number: usize) -> Result<(), ClientError> {
        if self.versions == Versions::CLASSIC {
            let codes = session.add(&self.id, identity, &self.places)?;
            assert!(codes.iter().all(|code| !code.is_error()), "{}: {codes:?}", self.id);
        }
        for (index, place) in self.places.iter().enumerate() {
            let value = self.value(number, index);
            let values = [value.as_bytes()];
            let sequence = self.sequences[index];
            let transactional_id = Some(self.id.as_str());
            let write = Write { identity: Some(identity), sequence, values: &values, transactional_id };
            let answer = session.produce(place, write)?;
            assert_eq!(answer.code, WireCode::NONE, "{} {number}: {:?}", self.id, answer.message);
            self.sequences[index] += 1;
        }
        Ok(())
    }

    fn value(&self, number: usize, index: usize) -> String {
        format!("{}-{number}-{index}", self.id)
    }

    /// Checks full reads (read_committed) of its partitions: each transaction whole or not at all, as promised.
    pub fn check(&self, reads: &[Vec<String>]) {
        let reads: Vec<_> = reads.iter().map(|read| counts(read)).collect();
        for (number, fate) in self.fates.iter().enumerate() {
            let seen: Vec<usize> = (reads.iter().enumerate())
                .map(|(index, read)| {
                    read.get(self.value(number, index).as_str()).copied().unwrap_or_default()
                })
                .collect();
            let whole = seen.iter().all(|count| *count == 1);
            let none = seen.iter().all(|count| *count == 0);
            let kept = match fate {
                Fate::Committed => whole,
                Fate::Aborted => none,
                Fate::Unknown => whole || none,
            };
            assert!(kept, "{} transaction {number} ({fate:?}): seen {seen:?}", self.id);
        }
    }
}
