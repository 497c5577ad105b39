//! Very many instances fight over few transactional ids: per id the epochs only rise, one instance wins at each
//! moment, and nothing that a loser left open is ever seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use semel_certify::{
    ClientError, Server, Session,
    session::{Identity, Isolation, Place, Versions, Write},
};
use semel_wire::{WireCode, api::describe_transactions::DescribeTransactionsRequest};

use crate::support::{counts, program, values};

const PRODUCERS: usize = 64;
const IDS: usize = 8;
const PARTITIONS: i32 = 2;
/// Transactions that must be committed between the fights.
const COMMITS: usize = 20;

/// How long they fight. A loser takes the id back at once; few reign long enough to commit, and those are enough.
fn span() -> Duration {
    Duration::from_secs(if std::env::var("CI").is_ok_and(|ci| ci == "true") { 30 } else { 5 })
}

/// What all of them saw.
#[derive(Default)]
struct Seen {
    /// Every identity that an answer gave, with the producer that got it.
    identities: BTreeMap<(String, Identity), usize>,
    /// Values of transactions whose commit was acknowledged.
    committed: BTreeSet<String>,
    /// Values of transactions that were refused, aborted or never ended.
    lost: BTreeSet<String>,
    refused: u64,
}

struct Producer<'a> {
    number: usize,
    id: String,
    session: Session,
    seen: &'a Mutex<Seen>,
    transactions: u32,
}

impl Producer<'_> {
    /// Takes the id on a new connection, then transactions until another producer has taken it. Where the other one
    /// came first on a newer connection, this one's request is not executed and its connection closed: try again.
    fn reign(&mut self, address: &str, stop: &AtomicBool) -> Result<(), ClientError> {
        self.session = Session::connect(address)?.speaking(Versions::VERSION_2);
        let Ok(mut identity) = self.session.init(Some(&self.id)) else { return Ok(()) };
        self.is_given(identity);
        while !stop.load(Ordering::Relaxed) {
            match self.transact(identity)? {
                Some(next) => identity = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// An identity is given to one producer only.
    fn is_given(&self, identity: Identity) {
        let mut seen = self.seen.lock().expect("nobody failed");
        let holder = *seen.identities.entry((self.id.clone(), identity)).or_insert(self.number);
        assert_eq!(holder, self.number, "{identity} of {} was given to two", self.id);
    }

    /// One transaction over all partitions; the identity from here on, or `None` once it is fenced.
    fn transact(&mut self, identity: Identity) -> Result<Option<Identity>, ClientError> {
        self.transactions += 1;
        let (producer_id, epoch) = (identity.id.get(), identity.epoch.get());
        let value = format!("{}:{producer_id}:{epoch}:{}:{}", self.id, self.number, self.transactions);
        let commit = self.transactions % 4 != 3;
        for index in 0..PARTITIONS {
            let write = Write {
                identity: Some(identity),
                sequence: 0,
                values: &[value.as_bytes()],
                transactional_id: Some(&self.id),
            };
            let produced = self.session.produce(&Place::of("fights", index), write)?;
            if produced.code != WireCode::NONE {
                return Ok(self.is_refused(value, produced.code));
            }
        }
        let ended = self.session.end(&self.id, identity, commit)?;
        if ended.code != WireCode::NONE {
            return Ok(self.is_refused(value, ended.code));
        }
        let mut seen = self.seen.lock().expect("nobody failed");
        if commit {
            seen.committed.insert(value)
        } else {
            seen.lost.insert(value)
        };
        drop(seen);
        let next = ended.identity.expect("version 2 tells it");
        self.is_given(next);
        Ok(Some(next))
    }

    /// 47 or 90, and nothing else: somebody else has the id.
    fn is_refused(&self, value: String, code: WireCode) -> Option<Identity> {
        assert!([47, 90].contains(&code.get()), "{}: {code}", self.id);
        let mut seen = self.seen.lock().expect("nobody failed");
        seen.lost.insert(value);
        seen.refused += 1;
        None
    }
}

/// Looks at all ids again and again: the epochs of each only rise, and so does the producer id once they are used up. Gives the number of changes seen.
fn watch(session: &mut Session, stop: &AtomicBool) -> usize {
    let transactional_ids = (0..IDS).map(|id| format!("fight-{id}").as_str().into()).collect();
    let request = DescribeTransactionsRequest { transactional_ids };
    let (mut last, mut changes) = (BTreeMap::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        let described = session.client.call(&request, 0).expect("the server is up");
        for state in described.transaction_states.into_iter().filter(|state| state.error_code.get() == 0) {
            let seen = (state.producer_id.0, state.producer_epoch.0);
            let before = last.insert(state.transactional_id.to_string(), seen);
            let rises = before.is_none_or(|before: (i64, i16)| before <= seen);
            assert!(rises, "{}: {seen:?} after {before:?}", state.transactional_id);
            changes += usize::from(before != Some(seen));
        }
        thread::sleep(Duration::from_millis(5));
    }
    changes
}

fn assert_rising(identities: &BTreeMap<(String, Identity), usize>) {
    let mut of_id: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for (id, identity) in identities.keys() {
        of_id.entry(id).or_default().insert(identity.id.get());
    }
    assert_eq!(of_id.len(), IDS);
    let producer_ids: BTreeSet<i64> = of_id.values().flatten().copied().collect();
    let each: usize = of_id.values().map(BTreeSet::len).sum();
    assert_eq!(producer_ids.len(), each, "two ids never share a producer id");
}

/// What was written, committed or not, in the order of the log: once a winner has written, nothing of an earlier one
/// follows, and an epoch has one winner.
fn assert_one_winner_at_each_moment(written: &[String]) {
    let mut last: BTreeMap<&str, ((i64, i16), &str)> = BTreeMap::new();
    for value in written {
        let parts: Vec<&str> = value.split(':').collect();
        let [id, producer_id, epoch, producer, _] = parts[..] else { panic!("{value}") };
        let identity = (producer_id.parse().expect("an id"), epoch.parse().expect("an epoch"));
        let before = last.insert(id, (identity, producer));
        let follows = before.is_none_or(|before| before.0 < identity || before == (identity, producer));
        assert!(follows, "{value} after {before:?}");
    }
    assert_eq!(last.len(), IDS);
}

#[test]
fn sixty_four_producers_on_eight_ids_have_one_winner_at_each_moment() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(program(), directory.path(), &[]).expect("the server starts");
    let address = server.address();
    let mut session = Session::connect(address).expect("the server is up");
    session.create_topic("fights", PARTITIONS).expect("the server is up");
    let (seen, stop) = (Mutex::new(Seen::default()), AtomicBool::new(false));
    thread::scope(|threads| {
        for number in 0..PRODUCERS {
            let (seen, stop) = (&seen, &stop);
            threads.spawn(move || {
                let session = Session::connect(address).expect("the server is up");
                let session = session.speaking(Versions::VERSION_2);
                let id = format!("fight-{}", number % IDS);
                let mut producer = Producer { number, id, session, seen, transactions: 0 };
                let mut highest = None;
                while !stop.load(Ordering::Relaxed) {
                    producer.reign(address, stop).expect("no connection in use is lost");
                    let seen = seen.lock().expect("nobody failed");
                    let own = seen.identities.iter().filter(|(_, holder)| **holder == number);
                    let last = own.map(|((_, identity), _)| *identity).max();
                    assert!(last >= highest, "{last:?} after {highest:?}");
                    highest = last;
                    drop(seen);
                }
            });
        }
        let watcher = threads.spawn(|| watch(&mut session, &stop));
        thread::sleep(span());
        // A busy machine gets longer.
        let is_enough = || seen.lock().expect("nobody failed").committed.len() > COMMITS;
        for _ in 0..600 {
            if is_enough() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(watcher.join().expect("epochs rise") > 20);
    });
    let seen = seen.into_inner().expect("nobody failed");
    assert_rising(&seen.identities);
    assert!(seen.refused > 20 && seen.committed.len() > COMMITS, "{} refused", seen.refused);
    let mut session = Session::connect(address).expect("the server is up");
    for id in 0..IDS {
        session.init(Some(&format!("fight-{id}"))).expect("what is open is aborted");
    }
    for index in 0..PARTITIONS {
        let place = Place::of("fights", index);
        assert_one_winner_at_each_moment(&values(&mut session, &place, Isolation::Uncommitted));
        let read = values(&mut session, &place, Isolation::Committed);
        let counted = counts(&read);
        assert!(counted.values().all(|count| *count == 1), "a record came twice");
        let found: BTreeSet<&str> = counted.keys().copied().collect();
        let expected: BTreeSet<&str> = seen.committed.iter().map(String::as_str).collect();
        assert_eq!(found, expected, "partition {index}: what winners committed, nothing of losers");
        assert!(seen.lost.iter().all(|lost| !found.contains(lost.as_str())));
    }
    println!(
        "{} identities, {} commits, {} refused",
        seen.identities.len(),
        seen.committed.len(),
        seen.refused
    );
}
