//! Transactional producers, one transaction after the other; after an abort most write the same again.

use semel_eos::{Refusal, Reply};
use semel_events::{Outcome, Protocol};

use crate::{
    client::{Library, Stage},
    history::World,
    network::{Answer, Body},
    promises::{Attempt, Spot, broken},
};

impl World {
    pub fn act_transactional(&mut self, at: usize) {
        let client = &self.clients[at];
        if client.control.is_some() {
            return;
        }
        let id = client.id.expect("it has one");
        match client.stage {
            Stage::Dead => {}
            Stage::NeedsIdentity { recovers } => {
                let carried = client.identity.filter(|_| recovers);
                self.control(at, Body::Init { id: Some(id), carried });
            }
            Stage::Ready => self.begin(at),
            Stage::Writes => self.write(at, id),
            Stage::Aborts => self.abort(at, id),
        }
    }

    fn begin(&mut self, at: usize) {
        if self.clients[at].task.is_empty() {
            let size = 1 + self.dice.below(4);
            self.clients[at].task = (0..size).map(|_| (self.dice.below(3), self.value())).collect();
        }
        let offsets = if self.dice.one_in(3) { 2 } else { 0 };
        let offset = self.value();
        let id = self.clients[at].id.expect("it has one");
        self.promises.attempts.push(Attempt { id, offset, ..Attempt::default() });
        let client = &mut self.clients[at];
        client.offset = offset;
        client.attempt = Some(self.promises.attempts.len() - 1);
        (client.at, client.added, client.offsets) = (0, Default::default(), offsets);
        client.stage = Stage::Writes;
    }

    fn write(&mut self, at: usize, id: usize) {
        let client = &self.clients[at];
        let stamp = client.identity.expect("it has one");
        let classic = client.protocol == Protocol::Classic;
        for place in 0..client.parts.len() {
            let flights = &client.parts[place].unacknowledged;
            if let Some(refused) = flights.iter().position(|flight| !flight.outstanding) {
                return self.resend_from(at, place, refused);
            }
        }
        let (limit, of_place) =
            if client.habit == Library::Kafkajs { (1, 1) } else { (3, client.habit.in_flight(3)) };
        if let Some(&(place, value)) = client.task.get(client.at) {
            if self.places[place].is_none() {
                self.clients[at].stage = Stage::Aborts;
            } else if classic && !client.added[place] {
                self.control(at, Body::Add { id, stamp, place });
            } else if client.unacknowledged() < limit && client.parts[place].unacknowledged.len() < of_place {
                self.clients[at].at += 1;
                self.send_new(at, place, value);
            }
            return;
        }
        match client.offsets {
            2 if classic => self.control(at, Body::AddOffsets { id, stamp }),
            1 | 2 => {
                let offset = client.offset;
                self.control(at, Body::Offsets { id, stamp, offset });
            }
            _ if client.unacknowledged() > 0 => {}
            _ => {
                let outcome = if self.dice.one_in(4) { Outcome::Abort } else { Outcome::Commit };
                self.control(at, Body::End { id, stamp, outcome });
            }
        }
    }

    /// Once everything is answered: what was refused is given up, then the transaction ends.
    fn abort(&mut self, at: usize, id: usize) {
        let client = &mut self.clients[at];
        if client.outstanding() > 0 {
            return;
        }
        for part in &mut client.parts {
            if let Some(first) = part.unacknowledged.front().map(|flight| flight.first) {
                client.gave_up = true;
                if client.habit == Library::Kafkajs {
                    part.next = first;
                }
                part.unacknowledged.clear();
            }
        }
        let nothing_begun = client.protocol == Protocol::Classic
            && client.offsets != 1
            && client.added.iter().all(|added| !added);
        if nothing_begun {
            return self.ended(at, Outcome::Abort);
        }
        let stamp = client.identity.expect("it has one");
        self.control(at, Body::End { id, stamp, outcome: Outcome::Abort });
    }

    /// The client knows how its transaction ended.
    fn ended(&mut self, at: usize, outcome: Outcome) {
        let client = &mut self.clients[at];
        if let Some(attempt) = client.attempt.take() {
            self.promises.attempts[attempt].told = Some(outcome);
            match outcome {
                Outcome::Commit => self.totals.committed += 1,
                Outcome::Abort => self.totals.aborted += 1,
            }
        }
        // Some of those who cannot recover go on with something else, under the numbers they gave up.
        if outcome == Outcome::Commit || (client.habit == Library::Kafkajs && self.dice.one_in(2)) {
            client.task.clear();
        }
        let restarts_numbers = client.protocol == Protocol::Classic
            && client.gave_up
            && matches!(client.habit, Library::Java | Library::Librdkafka);
        client.stage = if restarts_numbers { Stage::NeedsIdentity { recovers: true } } else { Stage::Ready };
    }

    pub fn batch_answered(&mut self, at: usize, place: usize, flight: usize, answer: Answer) {
        match answer {
            Answer::Stored(spot) => self.batch_delivered(at, place, flight, spot),
            Answer::NoTopic => self.give_up(at, place, flight),
            Answer::NoRoom => self.batch_without_room(at, place, flight),
            Answer::Refused(refusal) => self.batch_refused(at, place, flight, refusal),
            Answer::Closed | Answer::Reply(_) => broken("an answer fits its request", &answer),
        }
    }

    fn batch_delivered(&mut self, at: usize, place: usize, flight: usize, spot: Spot) {
        let client = &mut self.clients[at];
        let flight = client.parts[place].unacknowledged.remove(flight).expect("it is there");
        self.promises.acknowledged_at(flight.value, spot);
        let attempt = client.attempt.expect("it writes in one");
        let record = self.promises.stored[&spot];
        self.promises.attempts[attempt].acknowledged.push((record, spot));
        self.totals.acknowledged += 1;
    }

    fn give_up(&mut self, at: usize, place: usize, flight: usize) {
        let client = &mut self.clients[at];
        client.parts[place].unacknowledged[flight].outstanding = false;
        client.stage = Stage::Aborts;
    }

    fn batch_refused(&mut self, at: usize, place: usize, flight: usize, refusal: Refusal) {
        let library = self.clients[at].habit;
        let found = self.clients[at].parts[place].unacknowledged[flight];
        match refusal {
            Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. } if library != Library::Kafkajs => {
                self.totals.known += 1;
                let handle = self.places[place].expect("it was judged there");
                let spot = self.promises.acknowledged_somewhere(found.value, handle);
                self.batch_delivered(at, place, flight, spot);
            }
            Refusal::OutOfOrder { .. } if flight > 0 => {
                self.totals.gaps += 1;
                self.clients[at].parts[place].unacknowledged[flight].outstanding = false;
            }
            Refusal::ForgottenProducer { .. }
                if self.clients[at].parts[place].waits_behind(flight, self.places[place]) =>
            {
                broken("what comes behind waits", &(library, found, &refusal));
            }
            Refusal::ForgottenProducer { .. } | Refusal::NotInTransaction { .. }
                if library == Library::Aiokafka && self.dice.one_in(2) =>
            {
                self.give_up(at, place, flight);
            }
            _ if library == Library::Aiokafka => self.dies(at, true, &refusal),
            Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. } => self.give_up(at, place, flight),
            Refusal::OutOfOrder { .. } | Refusal::StrayOfEndedTransaction { .. } => {
                // Only who takes given up numbers again meets this.
                match library {
                    Library::Kafkajs => self.dies(at, true, &refusal),
                    _ => broken("never 45 for what comes next", &(library, found, &refusal)),
                }
            }
            Refusal::ForgottenProducer { .. } => {
                self.totals.forgotten += 1;
                if library == Library::Kafkajs {
                    self.dies(at, true, &refusal);
                } else {
                    self.give_up(at, place, flight);
                }
            }
            Refusal::NotInTransaction { .. } => self.give_up(at, place, flight),
            Refusal::Fenced { .. } if library == Library::Java => {
                self.totals.fenced += 1;
                self.must_be_fenced(at, &refusal);
                for part in &mut self.clients[at].parts {
                    part.unacknowledged.clear();
                }
                self.clients[at].stage = Stage::NeedsIdentity { recovers: true };
            }
            refusal => self.dies(at, false, &refusal),
        }
    }

    fn must_be_fenced(&self, at: usize, refusal: &Refusal) {
        let client = &self.clients[at];
        let id = client.id.expect("it has one");
        if self.promises.current[id] == client.identity {
            broken("a live producer is not shut out", &(client.habit, client.identity, refusal));
        }
    }

    /// The client is of no more use: because another one owns its id, or for reasons of its own.
    fn dies(&mut self, at: usize, own_fault: bool, refusal: &Refusal) {
        if !own_fault {
            self.must_be_fenced(at, refusal);
            self.totals.fenced += 1;
        }
        self.clients[at].stage = Stage::Dead;
    }

    pub fn control_answered(&mut self, at: usize, body: &Body, answer: Answer) {
        let client = &mut self.clients[at];
        match (body, answer) {
            (Body::Init { carried, .. }, Answer::Reply(Reply::Identity(identity))) => {
                client.identity_is(identity);
                client.task.truncate(if carried.is_some() { client.task.len() } else { 0 });
                match client.attempt {
                    Some(_) => self.ended(at, Outcome::Abort),
                    None => client.stage = Stage::Ready,
                }
            }
            (Body::Add { place, .. }, Answer::Reply(_)) => client.added[*place] = true,
            (Body::Add { .. } | Body::Offsets { .. }, Answer::NoTopic) => client.stage = Stage::Aborts,
            (Body::AddOffsets { .. }, Answer::Reply(_)) => client.offsets = 1,
            (Body::Offsets { .. }, Answer::Reply(_)) => {
                client.offsets = 0;
                if let Some(attempt) = client.attempt {
                    self.promises.attempts[attempt].offset_taken = true;
                }
            }
            (Body::End { outcome, .. }, Answer::Reply(Reply::Ended(identity))) => {
                // A classic answer has no identity.
                if client.protocol == Protocol::Version2 {
                    client.identity_is(identity);
                }
                self.ended(at, *outcome);
            }
            (Body::End { .. }, Answer::Refused(Refusal::AbortedMeanwhile { .. }))
                if client.habit == Library::Java =>
            {
                client.stage = Stage::Aborts;
            }
            (_, Answer::Refused(refusal)) => self.dies(at, false, &refusal),
            (_, answer) => broken("an answer fits its request", &answer),
        }
    }
}
