//! One history: what happens next is thrown.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use semel_eos::{Command, Refusal, Reply};
use semel_events::{InitCause, Outcome, Protocol, TransactionalIdInitialized};
use semel_types::{
    DurationMs, MAX_USABLE_EPOCH, PartitionHandle, ProducerEpoch, ProducerId, ProducerStamp, WallTime,
};

use crate::{
    client::{Client, Library, Part, Stage, count},
    dice::Dice,
    network::{Answer, Body, Line, Sent, execute},
    promises::{Promises, Spot, broken},
    shard::{
        PLACES, PRODUCER_EXPIRATION_MS, Shard, TXN_ID_EXPIRATION_MS, TXN_TIMEOUT_MS, author, transactional_id,
    },
};

/// Steps of a history.
const STEPS: usize = 200;

/// How often things happened, so that a run in which something never does is found.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub acknowledged: u64,
    pub committed: u64,
    pub aborted: u64,
    pub fenced: u64,
    pub known: u64,
    pub gaps: u64,
    pub forgotten: u64,
    pub bumps: u64,
    pub strays: u64,
    pub late_copies: u64,
    pub closed: u64,
    pub old_requests: u64,
    pub crashes: u64,
    pub admin_aborts: u64,
    pub without_room: u64,
    pub controls_without_room: u64,
}

impl Totals {
    fn all(&mut self) -> [&mut u64; 16] {
        [
            &mut self.acknowledged,
            &mut self.committed,
            &mut self.aborted,
            &mut self.fenced,
            &mut self.known,
            &mut self.gaps,
            &mut self.forgotten,
            &mut self.bumps,
            &mut self.strays,
            &mut self.late_copies,
            &mut self.closed,
            &mut self.old_requests,
            &mut self.crashes,
            &mut self.admin_aborts,
            &mut self.without_room,
            &mut self.controls_without_room,
        ]
    }

    pub fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        self.all().into_iter().zip(other.all()).for_each(|(sum, one)| *sum += *one);
    }

    /// A run that never met one of these proves nothing of it.
    pub fn assert_everything_happened(mut self) {
        let shown = format!("{self:?}");
        let is_long = self.acknowledged > 100_000;
        assert!(!is_long || self.all().into_iter().all(|count| *count > 100), "{shown}");
    }
}

pub struct World {
    pub shard: Shard,
    pub dice: Dice,
    pub places: [Option<PartitionHandle>; PLACES],
    pub lines: Vec<Line>,
    pub clients: Vec<Client>,
    pub promises: Promises,
    pub totals: Totals,
    /// Which client was given which id without owner.
    pub plain_sessions: Vec<(u64, ProducerId)>,
    /// Answered requests: the highest connection on which each was done, and the place it meant then.
    done: BTreeMap<u64, (u64, Option<PartitionHandle>)>,
    /// Batches that were acknowledged, as they were sent, and where they stand.
    old: Vec<(Sent, Spot)>,
    numbers: u64,
    connections: u64,
    values: u32,
    /// In durability `interval` a crash may lose the end of the log.
    is_interval: bool,
    disk: Disk,
    shown: usize,
}

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disk {
    /// Enough for everything.
    Roomy,
    /// Now and then not for records and new identities.
    Tight,
    /// Now and then not even for the end of a transaction.
    Full,
}

/// Runs the history of a seed; the promise that it breaks, if it does.
pub fn run(seed: u64) -> Result<Totals, String> {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed);
        let shows = std::env::var_os("SEMEL_SHOW").is_some();
        for _ in 0..STEPS {
            world.step();
            if shows {
                world.show_new();
            }
        }
        world.finish();
        world.totals
    }));
    ran.map_err(|found| {
        let text = found.downcast_ref::<String>().cloned();
        text.or_else(|| found.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })
}

impl World {
    fn new(seed: u64) -> Self {
        let shard = Shard::new();
        let mut world = Self {
            places: shard.places(),
            shard,
            dice: Dice::new(seed),
            lines: Vec::new(),
            clients: Vec::new(),
            promises: Promises::default(),
            totals: Totals::default(),
            plain_sessions: Vec::new(),
            done: BTreeMap::new(),
            old: Vec::new(),
            numbers: 0,
            connections: 0,
            values: 0,
            is_interval: seed.is_multiple_of(3),
            disk: Disk::Roomy,
            shown: 0,
        };
        if seed.is_multiple_of(5) {
            world.near_the_last_epoch();
        }
        let ids = 2 + world.dice.below(2);
        for number in 0..2 + world.dice.below(4) {
            let id = if world.dice.one_in(3) { None } else { Some(number % ids) };
            let client = world.client(id);
            world.clients.push(client);
        }
        world
    }

    /// Epochs of the first id are almost used up.
    fn near_the_last_epoch(&mut self) {
        let connection = self.connection();
        let command = Command::InitProducerId {
            transactional_id: Some(transactional_id(0)),
            timeout: DurationMs::from_ms(TXN_TIMEOUT_MS),
            carried: None,
            author: author("InitProducerId"),
        };
        let Ok(Reply::Identity(identity)) = self.shard.ask(connection, command) else {
            broken("a new id is given", &0)
        };
        let epoch = ProducerEpoch::new(MAX_USABLE_EPOCH - 3);
        let event = TransactionalIdInitialized {
            id: transactional_id(0),
            cause: InitCause::Takeover,
            identity: ProducerStamp { epoch, ..identity },
            carried: None,
            timeout: DurationMs::from_ms(TXN_TIMEOUT_MS),
            author: author("InitProducerId"),
            now: self.shard.now(),
            wall: WallTime::from_ms(self.shard.now_ms),
        };
        self.shard.apply(event.into());
        self.promises.observe(&self.shard, None);
    }

    pub fn value(&mut self) -> u32 {
        self.values += 1;
        self.values
    }

    pub fn request(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn connection(&mut self) -> u64 {
        self.connections += 1;
        self.connections
    }

    fn client(&mut self, id: Option<usize>) -> Client {
        let (serial, line) = (self.request(), self.connection());
        let libraries =
            [Library::Java, Library::Java, Library::Librdkafka, Library::Kafkajs, Library::Aiokafka];
        let library = self.dice.pick(&libraries);
        let newest = matches!(library, Library::Java | Library::Librdkafka) && self.dice.one_in(2);
        let nobody = ProducerStamp { id: ProducerId::new(0), epoch: ProducerEpoch::ZERO };
        Client {
            serial,
            habit: library,
            protocol: if newest { Protocol::Version2 } else { Protocol::Classic },
            id,
            line,
            identity: None,
            stage: Stage::NeedsIdentity { recovers: false },
            control: None,
            parts: std::array::from_fn(|_| Part::new(nobody)),
            task: Vec::new(),
            at: 0,
            attempt: None,
            added: Default::default(),
            offsets: 0,
            offset: 0,
            gave_up: false,
        }
    }

    /// Prints what was appended since the last call (`SEMEL_SHOW`).
    fn show_new(&mut self) {
        if self.shard.log.len() < self.shown {
            println!("the log lost its end: {} of {} events left", self.shard.log.len(), self.shown);
        }
        self.shard.log.iter().skip(self.shown).for_each(|event| println!("{event:?}"));
        self.shown = self.shard.log.len();
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..=37 => self.deliver_any(),
            38..=75 => self.act(),
            76..=80 => self.cut_any(),
            81..=86 => self.old_request(),
            87..=89 => self.stale_identity(),
            90 => self.intruder(),
            91 => self.admin(),
            92..=93 => self.pass(),
            94 => self.restart(),
            95 => self.remake_topic(),
            96 => self.disk = self.dice.pick(&[Disk::Roomy, Disk::Roomy, Disk::Tight, Disk::Full]),
            _ => self.new_instance(),
        }
        self.promises.observe(&self.shard, None);
    }

    fn act(&mut self) {
        let at = self.dice.below(self.clients.len());
        match self.clients[at].id {
            Some(_) => self.act_transactional(at),
            None => self.act_plain(at),
        }
    }

    /// Puts a request on the client's connection.
    pub fn send(&mut self, at: usize, request: u64, body: Body) {
        let client = &self.clients[at];
        let sent = Sent { request, serial: client.serial, protocol: client.protocol, body };
        self.put(at, sent);
    }

    fn put(&mut self, at: usize, sent: Sent) {
        let number = self.clients[at].line;
        match self.lines.iter_mut().find(|line| line.number == number) {
            Some(line) => line.queue.push_back(sent),
            None => self.lines.push(Line { number, queue: [sent].into(), left: false }),
        }
    }

    /// A request whose answer the client waits for.
    pub fn control(&mut self, at: usize, body: Body) {
        let request = self.request();
        let client = &mut self.clients[at];
        let sent = Sent { request, serial: client.serial, protocol: client.protocol, body };
        client.control = Some(sent.clone());
        self.put(at, sent);
    }

    fn deliver_any(&mut self) {
        let busy: Vec<usize> = (0..self.lines.len()).filter(|at| !self.lines[*at].queue.is_empty()).collect();
        if busy.is_empty() {
            return self.act();
        }
        let line = self.dice.pick(&busy);
        // Strays are slow.
        if self.lines[line].left && !self.dice.one_in(3) {
            return;
        }
        self.deliver(line);
    }

    fn deliver(&mut self, line: usize) {
        let sent = self.lines[line].queue.pop_front().expect("something is on its way");
        let (number, left) = (self.lines[line].number, self.lines[line].left);
        let answer = self.execute(number, &sent);
        if matches!(answer, Answer::Closed) {
            self.totals.closed += 1;
            self.lines[line].queue.clear();
        }
        let Some(at) = self.clients.iter().position(|client| client.line == number && !left) else {
            self.totals.strays += 1;
            return;
        };
        if matches!(answer, Answer::Closed) || self.dice.one_in(12) {
            return self.cut(at); // The answer is lost.
        }
        self.answered(at, &sent, answer);
    }

    /// Executes one request and holds what it did against the promises.
    fn execute(&mut self, connection: u64, sent: &Sent) -> Answer {
        let before = self.shard.log.len();
        let has_room = self.has_room(&sent.body);
        let answer = execute(&mut self.shard, &self.places, connection, sent, has_room);
        if matches!(answer, Answer::NoRoom) && self.shard.log.len() > before {
            broken("a refusal touches nothing", &sent);
        }
        let (sender, meant) = match sent.body {
            Body::Batch { id, place, .. } => (id, self.places[place]),
            Body::Add { place, .. } => (None, self.places[place]),
            _ => (None, None),
        };
        self.promises.observe(&self.shard, sender);
        let done = self.done.get(&sent.request).copied();
        if let Some((highest, place)) = done
            && connection < highest
            && place == meant
        {
            self.totals.late_copies += 1;
            if self.shard.log.len() > before {
                broken("a late copy does nothing", &(sent, &answer));
            }
        }
        if answer.is_done() {
            self.done.insert(sent.request, (connection.max(done.map_or(0, |done| done.0)), meant));
        }
        match &answer {
            Answer::Reply(Reply::Identity(identity) | Reply::Ended(identity)) => match sent.body {
                Body::Init { id: None, .. } => self.promises.issued(*identity),
                // A classic end tells no identity.
                Body::End { .. } if sent.protocol == Protocol::Classic => {}
                _ => self.promises.given(*identity, sent.serial),
            },
            Answer::Stored(spot) => self.old.push((sent.clone(), *spot)),
            Answer::Reply(Reply::Done)
            | Answer::Refused(_)
            | Answer::Closed
            | Answer::NoTopic
            | Answer::NoRoom => {}
        }
        answer
    }

    fn answered(&mut self, at: usize, sent: &Sent, answer: Answer) {
        if let Body::Batch { place, .. } = sent.body {
            let flights = &self.clients[at].parts[place].unacknowledged;
            let Some(flight) = flights.iter().position(|flight| flight.request == sent.request) else {
                return;
            };
            return match self.clients[at].id {
                Some(_) => self.batch_answered(at, place, flight, answer),
                None => self.plain_answered(at, place, flight, answer),
            };
        }
        let is_awaited = |control: &Sent| control.request == sent.request;
        if !self.clients[at].control.as_ref().is_some_and(is_awaited) {
            return;
        }
        if matches!(answer, Answer::NoRoom) {
            self.totals.controls_without_room += 1;
            return self.put(at, sent.clone()); // Every library asks again.
        }
        self.clients[at].control = None;
        match self.clients[at].id {
            Some(_) => self.control_answered(at, &sent.body, answer),
            None => self.plain_control_answered(at, &answer),
        }
    }

    fn cut_any(&mut self) {
        let at = self.dice.below(self.clients.len());
        self.cut(at);
    }

    /// The client's connection is gone: it takes a new one and sends again what was not answered.
    fn cut(&mut self, at: usize) {
        let old = self.clients[at].line;
        self.leave(old);
        self.clients[at].line = self.connection();
        if self.clients[at].habit == Library::Kafkajs && self.dice.one_in(2) {
            self.give_all_up(at);
        }
        if let Some(control) = self.clients[at].control.clone() {
            self.put(at, control);
        }
        for place in 0..PLACES {
            for flight in 0..self.clients[at].parts[place].unacknowledged.len() {
                let found = self.clients[at].parts[place].unacknowledged[flight];
                if found.outstanding || (found.no_room.is_some() && !self.clients[at].parts[place].bump) {
                    self.send_flight(at, place, flight);
                }
            }
        }
    }

    /// What was on its way may still arrive, or a part of it.
    fn leave(&mut self, number: u64) {
        let keep = self.dice.below(4);
        if let Some(line) = self.lines.iter_mut().find(|line| line.number == number) {
            line.left = true;
            line.queue.truncate(keep);
        }
        self.lines.retain(|line| !line.left || !line.queue.is_empty());
    }

    /// The numbers of what is given up are taken again.
    fn give_all_up(&mut self, at: usize) {
        let client = &mut self.clients[at];
        for part in &mut client.parts {
            if let Some(first) = part.unacknowledged.front().map(|flight| flight.first) {
                part.next = first;
                part.unacknowledged.clear();
                client.gave_up = true;
                if client.stage == Stage::Writes {
                    client.stage = Stage::Aborts;
                }
            }
        }
    }

    /// Any batch that was ever acknowledged arrives again, on the connection that its client uses now.
    fn old_request(&mut self) {
        if self.old.is_empty() {
            return;
        }
        let (sent, spot) = self.old[self.dice.below(self.old.len())].clone();
        let Body::Batch { id, stamp, place, value, .. } = sent.body else { return };
        let is_there = self.promises.stored.get(&spot).is_some_and(|record| record.value == value);
        if self.places[place] != Some(spot.handle) || !is_there {
            return;
        }
        let of = self.clients.iter().find(|client| client.serial == sent.serial);
        let line = of.map(|client| client.line);
        let line = line.unwrap_or_else(|| self.connection());
        let before = self.shard.log.len();
        let has_room = self.has_room(&sent.body);
        let answer = execute(&mut self.shard, &self.places, line, &sent, has_room);
        if self.shard.log.len() > before {
            broken("an old request does nothing", &(&sent, &answer));
        }
        self.totals.old_requests += 1;
        let in_doubt = (stamp, value, spot, &answer);
        match (&answer, id) {
            (Answer::Stored(again), None) if *again == spot => {}
            (Answer::Refused(Refusal::AlreadyStored { .. }), None) => {}
            (Answer::Refused(Refusal::Fenced { .. }), _) => {}
            (Answer::NoRoom, _) => broken("what is stored needs no room", &in_doubt),
            (_, None) => broken("never 45 for what is stored", &in_doubt),
            (Answer::Stored(again), Some(_)) => {
                let partition = self.shard.state.partition(spot.handle);
                let open = partition.and_then(|partition| partition.open_transaction(stamp.id));
                if *again != spot || open.is_none_or(|first| spot.offset < first.get()) {
                    broken("no stray is acknowledged", &in_doubt);
                }
            }
            (Answer::Refused(_) | Answer::Closed, Some(_)) => {}
            (Answer::Reply(_) | Answer::NoTopic, Some(_)) => broken("an answer fits its request", &answer),
        }
    }

    /// A copy of a request that some identity of before sent when it ended or recovered.
    fn stale_identity(&mut self) {
        let held: Vec<_> = self.promises.holders.iter().map(|(stamp, serial)| (*stamp, *serial)).collect();
        if held.is_empty() {
            return;
        }
        let (stamp, serial) = self.dice.pick(&held);
        let id = (0..3).find(|id| self.promises.current[*id].is_some_and(|now| now.id == stamp.id));
        let Some(id) = id.filter(|id| self.promises.current[*id] != Some(stamp)) else { return };
        let outcome = if self.dice.one_in(2) { Outcome::Commit } else { Outcome::Abort };
        let body = match self.dice.below(3) {
            0 => Body::Init { id: Some(id), carried: Some(stamp) },
            1 => Body::End { id, stamp, outcome },
            _ => Body::Batch { id: Some(id), stamp, first: 0, count: 1, value: self.value(), place: 0 },
        };
        let protocol = if self.dice.one_in(2) { Protocol::Classic } else { Protocol::Version2 };
        let (connection, request) = (self.connection(), self.request());
        let before = self.shard.log.len();
        let answer = self.execute(connection, &Sent { request, serial, protocol, body });
        if self.shard.log.len() > before {
            broken("a stale identity does nothing", &(stamp, answer));
        }
    }

    /// Somebody writes in the name of an id that is not his, or names an epoch that nobody was given.
    fn intruder(&mut self) {
        let owned: Vec<_> = (0..3).filter_map(|id| Some((id, self.promises.current[id]?))).collect();
        if owned.is_empty() {
            return;
        }
        let (owner, stamp) = self.dice.pick(&owned);
        let higher = ProducerStamp { epoch: stamp.epoch.next(), ..stamp };
        let (id, stamp) = match self.dice.below(3) {
            0 => (None, self.dice.pick(&[stamp, higher])),
            1 => (Some((owner + 1) % 3), stamp),
            _ => (Some(owner), higher),
        };
        let (connection, request, value) = (self.connection(), self.request(), self.value());
        let body = Body::Batch { id, stamp, first: 0, count: count(value), value, place: self.dice.below(2) };
        let sent = Sent { request, serial: 0, protocol: Protocol::Version2, body };
        let before = self.shard.log.len();
        let answer = execute(&mut self.shard, &self.places, connection, &sent, true);
        if self.shard.log.len() > before || answer.is_done() {
            broken("nobody writes for another", &(id, stamp, answer));
        }
    }

    fn admin(&mut self) {
        let held: Vec<_> = self.promises.holders.keys().copied().collect();
        if held.is_empty() {
            return;
        }
        let stamp = self.dice.pick(&held);
        let outcome = if self.dice.one_in(4) { Outcome::Commit } else { Outcome::Abort };
        let is_current = self.promises.current.contains(&Some(stamp));
        let partitions = self.places.iter().flatten().copied().collect();
        let connection = self.connection();
        let before = self.shard.log.len();
        let command = Command::WriteMarker {
            stamp,
            outcome,
            partitions,
            groups: Vec::new(),
            author: author("WriteTxnMarkers"),
        };
        let answer = self.shard.ask(connection, command);
        let wrote = self.shard.log.len() > before;
        self.totals.admin_aborts += u64::from(wrote);
        if wrote && !(is_current && outcome == Outcome::Abort) {
            broken("an administrator only aborts what is open", &(stamp, outcome, answer));
        }
    }

    fn pass(&mut self) {
        let lengths =
            [10, 1000, 20_000, TXN_TIMEOUT_MS, 2 * PRODUCER_EXPIRATION_MS, 2 * TXN_ID_EXPIRATION_MS];
        let ms = self.dice.pick(&lengths);
        if ms > TXN_ID_EXPIRATION_MS {
            self.lines.retain(|line| !line.left); // Nothing is on its way for that long.
        }
        self.shard.now_ms += ms;
        // Without room what is due waits.
        if self.disk != Disk::Full || self.dice.one_in(2) {
            self.shard.pass(0);
        }
    }

    /// Room as the broker asks for it, by what the request would write.
    fn has_room(&mut self, body: &Body) -> bool {
        let is_end = matches!(body, Body::End { .. });
        match self.disk {
            Disk::Roomy => true,
            Disk::Tight => is_end || self.dice.one_in(2),
            Disk::Full => self.dice.one_in(2),
        }
    }

    /// Connections end with the process, and with them what was on its way.
    fn restart(&mut self) {
        self.lines.clear();
        if self.is_interval && self.dice.one_in(2) {
            self.totals.crashes += 1;
            let lost = self.dice.below(12);
            self.promises.observe(&self.shard, None);
            self.shard.crash(lost);
            self.promises.lost(&self.shard);
            self.places = self.shard.places();
        } else {
            self.shard.restart();
        }
        for at in 0..self.clients.len() {
            self.cut(at);
        }
        // The broker's marks are gone, too.
        let parts = self.clients.iter_mut().flat_map(|client| &mut client.parts);
        parts.flat_map(|part| &mut part.unacknowledged).for_each(|flight| flight.no_room = None);
    }

    fn remake_topic(&mut self) {
        if self.places[2].is_some() {
            self.shard.delete("u");
            self.shard.pass(0);
        }
        if self.dice.one_in(4) {
            self.places = self.shard.places();
            return; // It stays away for a while.
        }
        self.shard.create("u", 1);
        self.places = self.shard.places();
    }

    /// Another instance of an application; the one before may go on, not knowing.
    fn new_instance(&mut self) {
        let dead = self.clients.iter().position(Client::is_dead);
        if dead.is_none() && !self.dice.one_in(3) {
            return;
        }
        if self.places[2].is_none() && self.dice.one_in(2) {
            self.shard.create("u", 1);
            self.places = self.shard.places();
        }
        let at = dead.unwrap_or_else(|| self.dice.below(self.clients.len()));
        let id = self.clients[at].id;
        let client = self.client(id);
        if dead.is_none() && self.clients.len() < 5 {
            return self.clients.push(client);
        }
        let line = self.clients[at].line;
        self.leave(line);
        self.clients[at] = client;
    }

    /// Everything that is open ends by itself; then what was promised is looked at.
    fn finish(&mut self) {
        self.shard.restart();
        self.shard.pass(2 * TXN_TIMEOUT_MS);
        self.promises.observe(&self.shard, None);
        self.promises.assert_kept(&self.shard);
    }
}
