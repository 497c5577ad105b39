//! Idempotent producers without transactional id.

use semel_eos::{Refusal, Reply};
use semel_events::Protocol;
use semel_types::{ProducerEpoch, ProducerStamp};

use crate::{
    client::{Flight, Library, Part, Stage, count},
    history::World,
    network::{Answer, Body},
    promises::{Delivered, Spot, broken},
};

/// Unacknowledged batches of one place.
const IN_FLIGHT: usize = 5;

impl World {
    /// The client does the next thing it wants to.
    pub fn act_plain(&mut self, at: usize) {
        let client = &self.clients[at];
        if client.control.is_some() || client.is_dead() {
            return;
        }
        let Some(identity) = client.identity else {
            self.control(at, Body::Init { id: None, carried: None });
            return;
        };
        let place = self.dice.below(client.parts.len());
        if self.places[place].is_none() {
            return;
        }
        let limit = self.clients[at].habit.in_flight(IN_FLIGHT);
        let part = &mut self.clients[at].parts[place];
        if part.bump && part.outstanding() == 0 {
            return self.bump(at, place);
        }
        if let Some(refused) = part.unacknowledged.iter().position(|flight| !flight.outstanding) {
            if !part.bump {
                self.resend_from(at, place, refused);
            }
            return;
        }
        if part.bump || part.unacknowledged.len() >= limit {
            return;
        }
        if part.unacknowledged.is_empty() && part.stamp != identity {
            *part = Part::new(identity);
        }
        let value = self.value();
        self.send_new(at, place, value);
    }

    /// Refused ones go again, in order, with what is behind them.
    pub fn resend_from(&mut self, at: usize, place: usize, from: usize) {
        for flight in from..self.clients[at].parts[place].unacknowledged.len() {
            if !self.clients[at].parts[place].unacknowledged[flight].outstanding {
                self.send_flight(at, place, flight);
            }
        }
    }

    /// Raises the epoch, as the libraries do by themselves, and renumbers what is not acknowledged here.
    fn bump(&mut self, at: usize, place: usize) {
        self.totals.bumps += 1;
        let client = &mut self.clients[at];
        let identity = client.identity.expect("it writes");
        let bumped = ProducerStamp { epoch: ProducerEpoch::new(identity.epoch.get() + 1), ..identity };
        client.identity = Some(bumped);
        let part = &mut client.parts[place];
        let flights = std::mem::take(&mut part.unacknowledged);
        *part = Part::new(bumped);
        for flight in flights {
            self.send_new(at, place, flight.value);
        }
    }

    /// A batch with the next numbers of a place.
    pub fn send_new(&mut self, at: usize, place: usize, value: u32) {
        let request = self.request();
        let part = &mut self.clients[at].parts[place];
        let first = part.next;
        part.next += i64::from(count(value));
        part.unacknowledged.push_back(Flight { request, first, value, outstanding: true, no_room: None });
        let last = part.unacknowledged.len() - 1;
        self.send_flight(at, place, last);
    }

    pub fn send_flight(&mut self, at: usize, place: usize, flight: usize) {
        let client = &mut self.clients[at];
        let (id, stamp) = (client.id, client.parts[place].stamp);
        let flight = &mut client.parts[place].unacknowledged[flight];
        (flight.outstanding, flight.no_room) = (true, None);
        let (first, count, value, request) = (flight.first, flight.count(), flight.value, flight.request);
        self.send(at, request, Body::Batch { id, stamp, first, count, value, place });
    }

    pub fn plain_answered(&mut self, at: usize, place: usize, flight: usize, answer: Answer) {
        let client = &mut self.clients[at];
        let library = client.habit;
        match answer {
            Answer::Stored(spot) => self.plain_delivered(at, place, flight, spot),
            Answer::NoTopic => client.parts[place].unacknowledged[flight].outstanding = false,
            Answer::NoRoom => self.batch_without_room(at, place, flight),
            Answer::Refused(refusal) => match refusal {
                Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. } => {
                    self.totals.known += 1;
                    if matches!(library, Library::Kafkajs) {
                        return self.clients[at].stage = Stage::Dead;
                    }
                    self.plain_known(at, place, flight);
                }
                Refusal::OutOfOrder { .. } => self.plain_gap(at, place, flight, &refusal),
                Refusal::ForgottenProducer { .. } => {
                    self.totals.forgotten += 1;
                    self.plain_forgotten(at, place, flight);
                }
                refusal => broken("a live producer is not shut out", &(library, refusal)),
            },
            Answer::Closed | Answer::Reply(_) => broken("an answer fits its request", &answer),
        }
    }

    fn plain_delivered(&mut self, at: usize, place: usize, flight: usize, spot: Spot) {
        let client = &mut self.clients[at];
        let flight = client.parts[place].unacknowledged.remove(flight).expect("it is there");
        let in_order = client.habit != Library::Kafkajs;
        let delivered =
            Delivered { serial: client.serial, value: flight.value, handle: spot.handle, in_order };
        self.promises.acknowledged_at(flight.value, spot);
        self.promises.delivered.push(delivered);
        self.totals.acknowledged += 1;
    }

    /// 46: delivered, wherever.
    fn plain_known(&mut self, at: usize, place: usize, flight: usize) {
        let handle = self.places[place].expect("it was judged there");
        let value = self.clients[at].parts[place].unacknowledged[flight].value;
        let spot = self.promises.acknowledged_somewhere(value, handle);
        self.plain_delivered(at, place, flight, spot);
    }

    /// 45: what is before it comes first. For the next one expected it would be the end of librdkafka.
    fn plain_gap(&mut self, at: usize, place: usize, flight: usize, refusal: &Refusal) {
        self.totals.gaps += 1;
        let client = &mut self.clients[at];
        let found = &mut client.parts[place].unacknowledged[flight];
        found.outstanding = false;
        let handle = self.places[place].expect("it was judged there");
        if client.gave_up {
            // Its numbers were taken again, by a batch of another size.
            return client.stage = Stage::Dead;
        }
        let record = (client.habit, *found, refusal);
        if self.promises.is_stored(found.value, handle) {
            broken("never 45 for what is stored", &record);
        }
        if flight == 0 {
            broken("never 45 for what comes next", &record);
        }
    }

    /// 59: Java and librdkafka go on under a new epoch, the others have to be made anew.
    fn plain_forgotten(&mut self, at: usize, place: usize, flight: usize) {
        let client = &mut self.clients[at];
        let found = &mut client.parts[place].unacknowledged[flight];
        found.outstanding = false;
        let handle = self.places[place].expect("it was judged there");
        if self.promises.is_stored(found.value, handle) {
            broken("never 45 for what is stored", &(client.habit, *found, 59));
        }
        if client.parts[place].waits_behind(flight, Some(handle)) {
            broken("what comes behind waits", &(client.habit, flight, 59));
        }
        match client.habit {
            Library::Java | Library::Librdkafka => client.parts[place].bump = true,
            Library::Kafkajs | Library::Aiokafka => client.stage = Stage::Dead,
        }
    }

    /// 56: it goes again. kafkajs does that a few times, then gives it up and takes its numbers again.
    pub fn batch_without_room(&mut self, at: usize, place: usize, flight: usize) {
        self.totals.without_room += 1;
        let handle = self.places[place];
        let gives_up = self.clients[at].habit == Library::Kafkajs && self.dice.one_in(4);
        let client = &mut self.clients[at];
        let part = &mut client.parts[place];
        let found = &mut part.unacknowledged[flight];
        (found.outstanding, found.no_room) = (false, handle);
        if gives_up {
            part.next = found.first;
            part.unacknowledged.clear();
            client.gave_up = true;
            if client.stage == Stage::Writes {
                client.stage = Stage::Aborts;
            }
        }
    }

    pub fn plain_control_answered(&mut self, at: usize, answer: &Answer) {
        let Answer::Reply(Reply::Identity(identity)) = answer else {
            broken("an answer fits its request", answer)
        };
        let client = &mut self.clients[at];
        client.identity_is(*identity);
        client.stage = Stage::Ready;
        client.protocol = Protocol::Version2;
        self.plain_sessions.push((client.serial, identity.id));
    }
}
