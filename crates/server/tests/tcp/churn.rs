//! A hundred members over a hundred connections join, leave and die at random, in both protocols of consumers: no
//! partition is owned twice in one generation, nobody is stuck, and the group settles within one rebalance timeout.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use semel_certify::{Actor, Consumer, Member, Server, Session, Trace, session::Place};
use semel_types::TopicId;

use crate::support::program;

const MEMBERS: usize = 100;
const PARTITIONS: i32 = 200;
/// Of members of both protocols; they name it themselves.
const REBALANCE: Duration = Duration::from_secs(10);
const CLASSIC_SESSION: Duration = Duration::from_secs(10);
const CONSUMER_SESSION: Duration = Duration::from_secs(5);
const OPTIONS: &[&str] = &[
    "--set",
    "group.initial.rebalance.delay.ms=0",
    "--set",
    "group.consumer.session.timeout.ms=5000",
    "--set",
    "group.consumer.heartbeat.interval.ms=1000",
];

/// How long members come and go.
fn span() -> Duration {
    Duration::from_secs(if std::env::var("CI").is_ok_and(|ci| ci == "true") { 30 } else { 5 })
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % bound
    }
}

/// What is known of a member that lives.
#[derive(Default)]
struct Belief {
    /// Its generation or epoch.
    generation: i32,
    owned: usize,
}

/// Who has a partition, and when it was last told that it is a member.
struct Owner {
    id: String,
    confirmed: Instant,
}

#[derive(Default)]
struct Ledger {
    /// Classic: what each generation gave to whom.
    given: BTreeMap<(i32, i32), String>,
    /// KIP-848: who has what.
    owners: BTreeMap<i32, Owner>,
    alive: BTreeMap<String, Belief>,
    /// Members that came, left and died.
    came: usize,
    left: usize,
    last_death: Option<Instant>,
}

impl Ledger {
    fn believes(&mut self, id: &str, generation: i32, owned: usize) {
        self.alive.insert(id.to_owned(), Belief { generation, owned });
    }

    /// A generation gives each partition once.
    fn is_given(&mut self, id: &str, generation: i32, partitions: &[i32]) {
        for index in partitions {
            let holder = self.given.entry((generation, *index)).or_insert_with(|| id.to_owned());
            assert_eq!(holder, id, "partition {index} twice in generation {generation}");
        }
        self.believes(id, generation, partitions.len());
    }

    /// Nobody else has what a member is given, unless that one was silent for a whole session.
    fn takes(&mut self, id: &str, partitions: &[i32]) {
        for index in partitions {
            let owner = Owner { id: id.to_owned(), confirmed: Instant::now() };
            if let Some(before) = self.owners.insert(*index, owner) {
                let is_dead = before.confirmed.elapsed() > CONSUMER_SESSION;
                assert!(before.id == id || is_dead, "partition {index}: {id} while {} has it", before.id);
            }
        }
    }

    fn gives_up(&mut self, id: &str, kept: &[i32]) {
        self.owners.retain(|index, owner| owner.id != id || kept.contains(index));
    }

    fn is_gone(&mut self, id: &str, is_dead: bool) {
        self.alive.remove(id);
        self.gives_up(id, &[]);
        if is_dead {
            self.last_death = Some(Instant::now());
        } else {
            self.left += 1;
        }
    }

    /// Everybody lives in one generation, everybody has something, and everything is had.
    fn is_settled(&self) -> bool {
        let generation = self.alive.values().next().map(|belief| belief.generation);
        let owned: usize = self.alive.values().map(|belief| belief.owned).sum();
        self.alive.len() == MEMBERS
            && owned == usize::try_from(PARTITIONS).expect("a count")
            && self.alive.values().all(|one| Some(one.generation) == generation && one.owned > 0)
    }

    fn told(&self) -> String {
        let told = self.alive.iter().map(|(id, one)| format!("{id} in {} has {}", one.generation, one.owned));
        told.collect::<Vec<_>>().join(", ")
    }
}

/// What all members share.
struct Group {
    address: String,
    topic: TopicId,
    ledger: Mutex<Ledger>,
    is_quiet: AtomicBool,
    is_over: AtomicBool,
}

impl Group {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no member failed")
    }

    fn connect(&self) -> Actor {
        let actor = Actor::connect("member", &self.address, &Trace::default()).expect("the server is up");
        actor.session.client.set_patience(REBALANCE * 3).expect("the socket is there");
        actor
    }

    /// Lives of one member, one after another, until the group is quiet; the last one ends with the test.
    fn populate(&self, number: usize, life: impl Fn(&Self, &str, &mut dyn FnMut() -> Option<End>) -> End) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        for round in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.ledger().came += 1;
            let until = Instant::now() + Duration::from_millis(500 + dice.below(6_000));
            let end = if dice.below(60) == 0 { End::Dies } else { End::Leaves };
            life(self, &format!("{number}-{round}"), &mut || {
                thread::sleep(Duration::from_millis(50 + dice.below(100)));
                let is_old = Instant::now() > until && !self.is_quiet.load(Ordering::Relaxed);
                if self.is_over.load(Ordering::Relaxed) { Some(End::Leaves) } else { is_old.then_some(end) }
            });
            thread::sleep(Duration::from_millis(dice.below(500)));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It says so.
    Leaves,
    /// Its connection is gone, and nobody is told.
    Dies,
}

/// Waits between two requests; how the member's life ends, once it does.
type Pause<'a> = &'a mut dyn FnMut() -> Option<End>;

/// A member of the classic protocol: joins, syncs, beats, and joins again when it is told to.
fn classic_life(group: &Group, _: &str, pause: Pause<'_>) -> End {
    let mut actor = group.connect();
    let mut member = Member::new("classic");
    let mut is_in = false;
    let end = loop {
        if is_in {
            is_in = actor.beat(&member).is_any(&[0, 22, 25, 27]).expect("an answer").0 == 0;
        } else if let Some(next) = classic_join(group, &mut actor, &member) {
            (member, is_in) = next;
        } else {
            // It is no member any more, and asks as a new one.
            group.ledger().alive.remove(&member.id);
            member = Member::new("classic");
        }
        if let Some(end) = pause() {
            break end;
        }
    };
    group.ledger().is_gone(&member.id, end == End::Dies);
    if end == End::Leaves && !member.id.is_empty() {
        actor.leave(&member).is_any(&[0, 25]).expect("an answer");
    }
    end
}

/// One JoinGroup and SyncGroup: the member as it is now and whether it is in; `None` if the group does not know it.
fn classic_join(group: &Group, actor: &mut Actor, member: &Member) -> Option<(Member, bool)> {
    let joined = actor.join(member);
    if joined.code() != Some(0) {
        joined.is(25).expect("an answer");
        return None;
    }
    let joined = joined.is(0).expect("an answer");
    let handed_out = if joined.is_leader { hand_out(&joined.all) } else { Vec::new() };
    let synced = actor.sync(&joined.member, &handed_out);
    if synced.code() != Some(0) {
        let (code, _) = synced.is_any(&[22, 25, 27]).expect("an answer");
        return (code != 25).then_some((joined.member, false));
    }
    let mut assignment = synced.is(0).expect("an answer");
    let partitions: Vec<i32> = (0..assignment.len() / 4).map(|_| assignment.get_i32()).collect();
    group.ledger().is_given(&joined.member.id, joined.member.generation, &partitions);
    Some((joined.member, true))
}

/// The partitions in turn, as four bytes each.
fn hand_out(members: &[String]) -> Vec<(String, Bytes)> {
    let mut handed_out = vec![BytesMut::new(); members.len()];
    (0..PARTITIONS).zip((0..members.len()).cycle()).for_each(|(index, to)| handed_out[to].put_i32(index));
    members.iter().cloned().zip(handed_out.into_iter().map(BytesMut::freeze)).collect()
}

/// A member of KIP-848: says what it has, takes what it is given, gives up what it is to give up.
fn consumer_life(group: &Group, name: &str, pause: Pause<'_>) -> End {
    let mut actor = group.connect();
    let mut me = Consumer::new("modern", name, &Place::of("t", 0));
    let mut owned: Vec<i32> = Vec::new();
    let end = loop {
        let has: Vec<_> = owned.iter().map(|index| (group.topic, *index)).collect();
        let beaten = actor.beat_with(&me, &has);
        if beaten.code() == Some(0) {
            let beaten = beaten.is(0).expect("an answer");
            me.epoch = beaten.epoch;
            if let Some(assigned) = beaten.assigned {
                owned = assigned.into_iter().map(|(_, index)| index).collect();
            }
            let mut ledger = group.ledger();
            ledger.gives_up(&me.id, &owned);
            ledger.takes(&me.id, &owned);
            ledger.believes(&me.id, me.epoch, owned.len());
        } else {
            // A busy machine may keep it silent for a whole session.
            beaten.is_any(&[25, 110]).expect("an answer");
            group.ledger().gives_up(&me.id, &[]);
            (me.epoch, owned) = (0, Vec::new());
        }
        if let Some(end) = pause() {
            break end;
        }
    };
    group.ledger().is_gone(&me.id, end == End::Dies);
    if end == End::Leaves {
        actor.beat_as(name, &me.at(-1).short_beat()).is_any(&[0, 25]).expect("an answer");
    }
    end
}

/// Runs the members of a group; what came of it, for people.
fn churn(
    session: Duration,
    life: impl Fn(&Group, &str, &mut dyn FnMut() -> Option<End>) -> End + Copy + Send,
) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(program(), directory.path(), OPTIONS).expect("the server starts");
    let address = server.address().to_owned();
    let topic = topic_id(&address);
    let group = Group {
        address,
        topic,
        ledger: Mutex::default(),
        is_quiet: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|threads| {
        for number in 0..MEMBERS {
            let group = &group;
            threads.spawn(move || group.populate(number, life));
        }
        thread::sleep(span());
        group.is_quiet.store(true, Ordering::Relaxed);
        let quiet = Instant::now();
        let last_death = group.ledger().last_death.map_or(quiet, |death| (death + session).max(quiet));
        let deadline = last_death + REBALANCE;
        while !group.ledger().is_settled() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        let ledger = group.ledger();
        group.is_over.store(true, Ordering::Relaxed);
        assert!(ledger.is_settled(), "not settled: {}", ledger.told());
        assert!(ledger.came > MEMBERS && ledger.left > 0, "nobody came or went");
        let generation = ledger.alive.values().map(|one| one.generation).max().unwrap_or_default();
        format!(
            "{} came, {} left, generation {generation} settled in {:?}",
            ledger.came,
            ledger.left,
            quiet.elapsed()
        )
    })
}

fn topic_id(address: &str) -> TopicId {
    let mut session = Session::connect(address).expect("the server is up");
    session.create_topic("t", PARTITIONS).expect("the server is up");
    session.topic_id("t").expect("the server is up")
}

#[test]
fn a_hundred_members_of_the_classic_protocol_come_and_go() {
    println!("{}", churn(CLASSIC_SESSION, classic_life));
}

#[test]
fn a_hundred_members_of_kip_848_come_and_go() {
    println!("{}", churn(CONSUMER_SESSION, consumer_life));
}
