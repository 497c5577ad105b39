//! Random histories: several clients of both protocols share three transactional ids, lose answers, leave late
//! copies behind, time out, are aborted by an administrator and by unclean starts.
//!
//! Checked after every step: the invariants of the whole state; a refused request and a late copy touch nothing;
//! epochs only rise, and a producer id that was left never comes back. Checked at every end and at the end of the
//! history: what a client was told of its transaction is what readers see of each of its records.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, sample::Index};
use semel_eos::{Command, Refusal, Reply, State};
use semel_events::{Event, Outcome, Protocol};
use semel_types::{GroupId, ProducerId, ProducerStamp};

use super::world::{Answer, PARTITIONS, TIMEOUT_MS, World, author, committed, handle, id};

const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS: usize = 5;

/// What happens to a request on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It arrives and is answered.
    Straight,
    /// It is held up; the client tries again on a new connection; the copy may arrive much later.
    HeldUp,
    /// It arrives, its answer is lost; the client tries again on a new connection.
    AnswerLost,
}

#[derive(Clone, Debug)]
enum Op {
    Init { client: usize, with_pair: bool, way: Way },
    Add { client: usize, partition: u32, way: Way },
    Write { client: usize, partition: u32, way: Way },
    Offsets { client: usize, way: Way },
    End { client: usize, outcome: Outcome, way: Way },
    Late(Index),
    Admin { name: usize, partition: u32 },
    Pass { ms: i64 },
    Expire,
    Restart { unclean: bool },
}

/// A request as it stands in the network.
#[derive(Clone, Debug)]
enum Sent {
    Command(Box<Command>),
    Write { name: &'static str, stamp: ProducerStamp, partition: u32, sequence: i32, protocol: Protocol },
}

/// An application with its producer. It believes what it was told.
struct Client {
    name: &'static str,
    protocol: Protocol,
    connection: u64,
    identity: Option<ProducerStamp>,
    next_sequence: BTreeMap<u32, i32>,
    added: BTreeSet<u32>,
    offsets_added: bool,
    /// Records acknowledged in the transaction that it believes open.
    written: Vec<(u32, i64)>,
    /// It must get an identity before anything else.
    broken: bool,
}

struct History {
    world: World,
    clients: Vec<Client>,
    next_connection: u64,
    late: Vec<(u64, Sent)>,
    /// Records whose transaction was reported to its client as ended so.
    promised: Vec<(u32, i64, Outcome)>,
    /// The highest epoch seen of each producer id.
    epochs: BTreeMap<ProducerId, i16>,
    /// Producer ids that an id has left.
    left: BTreeSet<ProducerId>,
    current: BTreeMap<&'static str, ProducerId>,
}

impl Client {
    fn new(number: usize) -> Self {
        Self {
            name: NAMES[number % NAMES.len()],
            protocol: if number.is_multiple_of(2) { Protocol::Classic } else { Protocol::Version2 },
            connection: 0,
            identity: None,
            next_sequence: BTreeMap::new(),
            added: BTreeSet::new(),
            offsets_added: false,
            written: Vec::new(),
            broken: true,
        }
    }

    fn transaction_over(&mut self) -> Vec<(u32, i64)> {
        self.added.clear();
        self.offsets_added = false;
        core::mem::take(&mut self.written)
    }

    fn identity_is(&mut self, identity: ProducerStamp) {
        if self.identity != Some(identity) {
            self.next_sequence.clear();
        }
        self.identity = Some(identity);
        self.broken = false;
    }
}

impl History {
    fn new() -> Self {
        Self {
            world: World::new(),
            clients: (0..CLIENTS).map(Client::new).collect(),
            next_connection: 1,
            late: Vec::new(),
            promised: Vec::new(),
            epochs: BTreeMap::new(),
            left: BTreeSet::new(),
            current: BTreeMap::new(),
        }
    }

    fn reconnect(&mut self, client: usize) {
        self.clients[client].connection = self.next_connection;
        self.next_connection += 1;
    }

    fn execute(&mut self, connection: u64, sent: &Sent) -> Answer {
        self.world.connection = connection;
        let before = self.world.state.clone();
        let answer = match sent {
            Sent::Command(command) => self.world.ask((**command).clone()),
            Sent::Write { name, stamp, partition, sequence, protocol } => {
                let written = self.world.write(name, *stamp, *partition, *sequence, *protocol);
                written.map(|_| Reply::Done)
            }
        };
        if answer.is_err() {
            assert!(before == self.world.state, "a refusal touched the state: {answer:?}");
        }
        self.observe();
        answer
    }

    /// Sends a request; the answer is the one that the client gets in the end.
    fn send(&mut self, client: usize, sent: &Sent, way: Way) -> Answer {
        let connection = self.clients[client].connection;
        match way {
            Way::Straight => {}
            Way::HeldUp => {
                self.late.push((connection, sent.clone()));
                self.reconnect(client);
            }
            Way::AnswerLost => {
                let _ = self.execute(connection, sent);
                self.reconnect(client);
            }
        }
        let answer = self.execute(self.clients[client].connection, sent);
        if matches!(answer, Err(Refusal::SupersededConnection { .. })) {
            // Its connection was closed; the client comes back on a new one.
            self.reconnect(client);
            return self.execute(self.clients[client].connection, sent);
        }
        answer
    }

    /// Epochs only rise; what was left stays left; an identity has one owner.
    fn observe(&mut self) {
        for name in NAMES {
            let Some(entry) = self.world.entry(name) else { continue };
            let (producer, epoch) = (entry.identity.id, entry.identity.epoch.get());
            let highest = self.epochs.entry(producer).or_insert(epoch);
            assert!(*highest <= epoch, "{name}: epoch {epoch} after {highest}");
            *highest = epoch;
            let before = self.current.insert(name, producer);
            self.left.extend(before.filter(|before| *before != producer));
            assert!(!self.left.contains(&producer), "{name} went back to {producer}");
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Init { client, with_pair, way } => self.init(client, with_pair, way),
            Op::Add { client, partition, way } => self.add(client, partition, way),
            Op::Write { client, partition, way } => self.write(client, partition, way),
            Op::Offsets { client, way } => self.offsets(client, way),
            Op::End { client, outcome, way } => self.end(client, outcome, way),
            Op::Late(index) => self.late(index),
            Op::Admin { name, partition } => self.admin(NAMES[name], partition),
            Op::Pass { ms } => {
                self.world.pass(ms);
                self.observe();
            }
            Op::Expire => self.expire(),
            Op::Restart { unclean } => self.restart(unclean),
        }
    }

    fn init(&mut self, client: usize, with_pair: bool, way: Way) {
        let name = self.clients[client].name;
        let carried = self.clients[client].identity.filter(|_| with_pair);
        if carried.is_none() {
            self.reconnect(client);
        }
        let command = self.world.init_command(Some(name), carried);
        let answer = self.send(client, &Sent::Command(Box::new(command)), way);
        let client = &mut self.clients[client];
        // What it had open is aborted, or was ended before without its knowing.
        client.transaction_over();
        match answer {
            Ok(Reply::Identity(identity)) => client.identity_is(identity),
            Err(Refusal::Fenced { .. }) if carried.is_some() => client.identity = None,
            other => panic!("InitProducerId: {other:?}"),
        }
    }

    /// A request of the owner; any refusal breaks the client.
    fn own(&mut self, client: usize, sent: &Sent, way: Way) -> bool {
        let answer = self.send(client, sent, way);
        self.clients[client].broken |= answer.is_err();
        answer.is_ok()
    }

    /// Who a client is; a broken one recovers first, as most applications make it.
    fn owner(&mut self, client: usize) -> Option<(&'static str, ProducerStamp, Protocol)> {
        if self.clients[client].broken {
            self.init(client, true, Way::Straight);
        }
        let client = &self.clients[client];
        let identity = client.identity.filter(|_| !client.broken)?;
        Some((client.name, identity, client.protocol))
    }

    fn add(&mut self, client: usize, partition: u32, way: Way) {
        let Some((name, stamp, Protocol::Classic)) = self.owner(client) else { return };
        let command = Command::AddPartitions {
            id: id(name),
            stamp,
            partitions: vec![handle(partition)],
            verify_only: false,
            protocol: Protocol::Classic,
        };
        if self.own(client, &Sent::Command(Box::new(command)), way) {
            self.clients[client].added.insert(partition);
        }
    }

    fn write(&mut self, client: usize, partition: u32, way: Way) {
        let Some((name, stamp, protocol)) = self.owner(client) else { return };
        if protocol == Protocol::Classic && !self.clients[client].added.contains(&partition) {
            self.add(client, partition, Way::Straight);
            if self.clients[client].broken {
                return;
            }
        }
        let sequence = self.clients[client].next_sequence.get(&partition).copied().unwrap_or(0);
        let logged = self.world.log.len();
        let write = Sent::Write { name, stamp, partition, sequence, protocol };
        if self.own(client, &write, way) {
            let offset = self.world.log[logged..].iter().find_map(|event| match event {
                Event::BatchAppended(batch) => Some(batch.base_offset.get()),
                _ => None,
            });
            let offset = offset.expect("an acknowledged record was appended once");
            self.clients[client].written.push((partition, offset));
            self.clients[client].next_sequence.insert(partition, sequence + 1);
        }
    }

    fn offsets(&mut self, client: usize, way: Way) {
        let Some((name, stamp, protocol)) = self.owner(client) else { return };
        let group = GroupId::from("g");
        if protocol == Protocol::Classic && !self.clients[client].offsets_added {
            let command = Command::AddOffsets { id: id(name), stamp, group: group.clone() };
            if !self.own(client, &Sent::Command(Box::new(command)), way) {
                return;
            }
            self.clients[client].offsets_added = true;
        }
        let offsets = vec![committed(0, 1)];
        let command = Command::TxnOffsetCommit { id: id(name), stamp, group, offsets, protocol };
        self.own(client, &Sent::Command(Box::new(command)), way);
    }

    fn end(&mut self, client: usize, outcome: Outcome, way: Way) {
        let Some((name, stamp, protocol)) = self.owner(client) else { return };
        if self.clients[client].written.is_empty() {
            return;
        }
        let app = author("app", "EndTxn");
        let command = Command::EndTxn { id: id(name), stamp, outcome, protocol, author: app };
        let answer = self.send(client, &Sent::Command(Box::new(command)), way);
        let written = self.clients[client].transaction_over();
        let promise = match answer {
            Ok(Reply::Ended(identity)) => {
                match protocol {
                    Protocol::Version2 => self.clients[client].identity_is(identity),
                    // No identity in a classic answer: a bump is only felt at the next request.
                    Protocol::Classic => {}
                }
                Some(outcome)
            }
            Err(Refusal::AbortedMeanwhile { .. }) => {
                self.clients[client].broken = true;
                Some(Outcome::Abort)
            }
            Err(
                Refusal::Fenced { .. }
                | Refusal::OtherProducer { .. }
                | Refusal::UnknownTransactionalId { .. },
            ) => {
                self.clients[client].broken = true;
                None
            }
            other => panic!("EndTxn: {other:?}"),
        };
        let promised = promise.into_iter().flat_map(|outcome| {
            written.iter().map(move |(partition, offset)| (*partition, *offset, outcome))
        });
        self.promised.extend(promised);
        self.assert_promises();
    }

    /// A copy that its client has given up arrives: nothing may come of it.
    fn late(&mut self, index: Index) {
        if self.late.is_empty() {
            return;
        }
        let (connection, sent) = self.late.swap_remove(index.index(self.late.len()));
        let before: State = self.world.state.clone();
        let answer = self.execute(connection, &sent);
        assert!(before == self.world.state, "a late copy was executed: {sent:?}, {answer:?}");
    }

    fn admin(&mut self, name: &'static str, partition: u32) {
        let Some(identity) = self.world.entry(name).map(|entry| entry.identity) else { return };
        assert_eq!(self.world.marker(identity, Outcome::Abort, &[partition]), Ok(Reply::Done));
        self.observe();
    }

    /// All ids are forgotten; connections do not live that long.
    fn expire(&mut self) {
        self.late.clear();
        self.world.pass(2 * TIMEOUT_MS);
        self.world.pass(self.world.settings.transactional_id_expiration.as_ms());
        assert!(self.world.state.transactions().is_empty());
        (0..CLIENTS).for_each(|client| self.reconnect(client));
    }

    /// Connections end with the process, and with them every late copy.
    fn restart(&mut self, unclean: bool) {
        self.late.clear();
        self.world.restart(unclean);
        (0..CLIENTS).for_each(|client| self.reconnect(client));
        self.observe();
    }

    fn assert_promises(&self) {
        for (partition, offset, outcome) in &self.promised {
            let found = self.world.outcome_at(*partition, *offset);
            assert_eq!(found, Some(*outcome), "record {offset} of partition {partition}");
        }
    }

    /// Every record of a transaction is decided as its transaction was, by a marker of its own transaction.
    fn assert_whole(&self) {
        let mut ends = BTreeMap::new();
        for event in &self.world.log {
            if let Event::TransactionEnded(end) = event
                && !end.markers.is_empty()
            {
                let known = ends.insert((end.identity_before.id, end.number), end.outcome);
                assert_eq!(known, None, "a transaction ended twice: {end:?}");
            }
        }
        for event in &self.world.log {
            if let Event::BatchAppended(batch) = event
                && let Some(producer) = &batch.producer
                && let Some(number) = producer.transaction
            {
                let whole = ends.get(&(producer.stamp.id, number)).copied();
                let read = self.world.outcome_at(batch.partition.get(), batch.base_offset.get());
                assert_eq!(read, whole, "{batch:?}");
            }
        }
    }
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![4 => Just(Way::Straight), 1 => Just(Way::HeldUp), 1 => Just(Way::AnswerLost)]
}

fn op() -> impl Strategy<Value = Op> {
    let client = || 0..CLIENTS;
    let partition = || 0..PARTITIONS;
    let outcome = prop_oneof![Just(Outcome::Commit), Just(Outcome::Abort)];
    prop_oneof![
        1 => (client(), any::<bool>(), way()).prop_map(|(client, with_pair, way)| Op::Init { client, with_pair, way }),
        4 => (client(), partition(), way()).prop_map(|(client, partition, way)| Op::Add { client, partition, way }),
        20 => (client(), partition(), way()).prop_map(|(client, partition, way)| Op::Write { client, partition, way }),
        3 => (client(), way()).prop_map(|(client, way)| Op::Offsets { client, way }),
        14 => (client(), outcome, way()).prop_map(|(client, outcome, way)| Op::End { client, outcome, way }),
        6 => any::<Index>().prop_map(Op::Late),
        1 => (0..NAMES.len(), partition()).prop_map(|(name, partition)| Op::Admin { name, partition }),
        1 => (1..2 * TIMEOUT_MS).prop_map(|ms| Op::Pass { ms }),
        1 => Just(Op::Expire),
        1 => any::<bool>().prop_map(|unclean| Op::Restart { unclean }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_clients_and_the_network_do_a_transaction_is_whole_and_an_answer_true(
        ops in prop::collection::vec(op(), 1..300)
    ) {
        let mut history = History::new();
        for client in 0..CLIENTS {
            history.reconnect(client);
            history.init(client, false, Way::Straight);
        }
        ops.iter().for_each(|op| history.step(op));
        history.assert_promises();
        history.assert_whole();
        history.world.assert_replays();
    }
}
