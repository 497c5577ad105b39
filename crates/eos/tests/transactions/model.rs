//! Every state of one transactional id that a handful of requests can reach, against a model of a few lines written
//! straight from the design's table: the same answer, the same state afterwards, for every request by every epoch.

use std::collections::{BTreeSet, VecDeque};

use semel_eos::{Command, Refusal, Reply, Request, Settings, State, Volatile, decide, txn::TransactionState};
use semel_events::{Outcome, Protocol};
use semel_types::{ConnectionNumber, Context, LogSequence, Now, ProducerStamp, RequestToken, WallTime};

use super::world::{TIMEOUT_MS, World, author, handle, id, stamp};

const ID: &str = "app";
/// Epochs are followed up to here.
const EPOCHS: i16 = 12;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stage {
    Empty,
    Open,
    Committed,
    Aborted,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum How {
    Recovery,
    Committed,
    Aborted,
    AbortedByOthers,
}

/// What the design's table speaks of, and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Model {
    epoch: i16,
    stage: Stage,
    /// The remembered pair's epoch, until a transaction starts.
    remembered: Option<(i16, How)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    Init,
    InitWith(i16),
    Add(i16),
    End(i16, Protocol, Outcome),
    Admin(i16, Outcome),
    Timeout,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Identity(i16),
    Ended(i16),
    Done,
    Fenced,
    WrongState,
    AbortedMeanwhile,
    CommitByMarker,
    Nothing,
}

impl Model {
    fn bumped(self, stage: Stage, remembered: Option<(i16, How)>) -> Self {
        Self { epoch: self.epoch + 1, stage, remembered }
    }

    fn remembers(self, epoch: i16) -> Option<How> {
        self.remembered.filter(|pair| pair.0 == epoch).map(|pair| pair.1)
    }

    fn ask(self, ask: Ask) -> (Self, Told) {
        let current = self.epoch;
        match ask {
            Ask::Init => (self.bumped(Stage::Empty, None), Told::Identity(current + 1)),
            Ask::InitWith(epoch) if epoch == current => {
                (self.bumped(Stage::Empty, Some((epoch, How::Recovery))), Told::Identity(current + 1))
            }
            Ask::InitWith(epoch) if self.remembers(epoch).is_some() => (self, Told::Identity(current)),
            Ask::Add(epoch) if epoch == current && self.stage == Stage::Open => (self, Told::Done),
            Ask::Add(epoch) if epoch == current => {
                (Self { stage: Stage::Open, remembered: None, ..self }, Told::Done)
            }
            Ask::End(epoch, Protocol::Classic, outcome) if epoch == current => self.classic_end(outcome),
            Ask::End(epoch, Protocol::Version2, outcome) if epoch == current => self.end_v2(outcome),
            Ask::End(epoch, _, outcome) => (self, self.end_again(epoch, outcome)),
            Ask::Admin(epoch, outcome) if epoch == current => match (self.stage, outcome) {
                (Stage::Open, Outcome::Commit) => (self, Told::CommitByMarker),
                (Stage::Open, Outcome::Abort) => {
                    (self.bumped(Stage::Aborted, Some((epoch, How::AbortedByOthers))), Told::Done)
                }
                _ => (self, Told::Done),
            },
            Ask::Timeout if self.stage == Stage::Open => {
                (self.bumped(Stage::Aborted, Some((current, How::AbortedByOthers))), Told::Nothing)
            }
            Ask::Timeout => (self, Told::Nothing),
            Ask::InitWith(_) | Ask::Add(_) | Ask::Admin(..) => (self, Told::Fenced),
        }
    }

    fn classic_end(self, outcome: Outcome) -> (Self, Told) {
        let after = if outcome == Outcome::Commit { Stage::Committed } else { Stage::Aborted };
        if self.stage == Stage::Open {
            (Self { stage: after, ..self }, Told::Ended(self.epoch))
        } else if self.stage == after {
            (self, Told::Ended(self.epoch))
        } else {
            (self, Told::WrongState)
        }
    }

    fn end_v2(self, outcome: Outcome) -> (Self, Told) {
        let ended = Told::Ended(self.epoch + 1);
        match (self.stage, outcome) {
            (Stage::Open, Outcome::Commit) => {
                (self.bumped(Stage::Committed, Some((self.epoch, How::Committed))), ended)
            }
            (_, Outcome::Abort) => (self.bumped(Stage::Aborted, Some((self.epoch, How::Aborted))), ended),
            (_, Outcome::Commit) => (self, Told::WrongState),
        }
    }

    fn end_again(self, epoch: i16, outcome: Outcome) -> Told {
        match (self.remembers(epoch), outcome) {
            (Some(How::Committed), Outcome::Commit)
            | (Some(How::Aborted | How::AbortedByOthers), Outcome::Abort) => Told::Ended(self.epoch),
            (Some(How::AbortedByOthers), Outcome::Commit) => Told::AbortedMeanwhile,
            _ => Told::Fenced,
        }
    }
}

fn command(world: &World, producer: i64, ask: Ask) -> Command {
    let claim = |epoch: i16| stamp(producer, epoch);
    match ask {
        Ask::Init => world.init_command(Some(ID), None),
        Ask::InitWith(epoch) => world.init_command(Some(ID), Some(claim(epoch))),
        Ask::Add(epoch) => Command::AddPartitions {
            id: id(ID),
            stamp: claim(epoch),
            partitions: vec![handle(0)],
            verify_only: false,
            protocol: Protocol::Classic,
        },
        Ask::End(epoch, protocol, outcome) => {
            let author = author("app", "EndTxn");
            Command::EndTxn { id: id(ID), stamp: claim(epoch), outcome, protocol, author }
        }
        Ask::Admin(epoch, outcome) => {
            let author = author("admin", "WriteTxnMarkers");
            Command::WriteMarker {
                stamp: claim(epoch),
                outcome,
                partitions: vec![handle(0)],
                groups: Vec::new(),
                author,
            }
        }
        Ask::Timeout => Command::Tick,
    }
}

/// Decides and applies; a restart between any two requests must make no difference, so nothing volatile is kept.
fn run(state: &mut State, now_ms: i64, command: Command) -> Told {
    let context = Context { now: Now::from_ms(now_ms), wall: WallTime::from_ms(now_ms), entropy: [7; 32] };
    let request = Request { token: RequestToken::new(1), connection: ConnectionNumber::new(1), command };
    let decision = decide(state, &Volatile::new(), &Settings::default(), &request, &context);
    for event in decision.events {
        state.apply(LogSequence::new(1), &event, &mut Vec::new());
    }
    let epoch = |identity: ProducerStamp| identity.epoch.get();
    match decision.answers.into_iter().next().map(|(_, answer)| answer) {
        None => Told::Nothing,
        Some(Ok(Reply::Identity(identity))) => Told::Identity(epoch(identity)),
        Some(Ok(Reply::Ended(identity))) => Told::Ended(epoch(identity)),
        Some(Ok(Reply::Done)) => Told::Done,
        Some(Err(Refusal::Fenced { .. })) => Told::Fenced,
        Some(Err(Refusal::WrongState { .. })) => Told::WrongState,
        Some(Err(Refusal::AbortedMeanwhile { .. })) => Told::AbortedMeanwhile,
        Some(Err(Refusal::CommitByMarker { .. })) => Told::CommitByMarker,
        Some(Err(other)) => panic!("{other:?}"),
    }
}

fn asks(epoch: i16) -> Vec<Ask> {
    let mut asks = vec![Ask::Init, Ask::Timeout];
    for claim in 0..=epoch + 1 {
        asks.extend([Ask::InitWith(claim), Ask::Add(claim)]);
        for outcome in [Outcome::Commit, Outcome::Abort] {
            asks.push(Ask::Admin(claim, outcome));
            for protocol in [Protocol::Classic, Protocol::Version2] {
                asks.push(Ask::End(claim, protocol, outcome));
            }
        }
    }
    asks
}

fn stage(state: &State) -> (i16, Stage) {
    let entry = state.transactions().get(&id(ID)).expect("known");
    let stage = match entry.state() {
        TransactionState::Empty => Stage::Empty,
        TransactionState::Ongoing => Stage::Open,
        TransactionState::CompleteCommit => Stage::Committed,
        TransactionState::CompleteAbort => Stage::Aborted,
        other => panic!("{other} is never stored"),
    };
    (entry.identity.epoch.get(), stage)
}

#[test]
fn in_every_reachable_state_every_request_does_what_the_model_says() {
    let mut world = World::new();
    let producer = world.init(ID, None).id.get();
    let first = Model { epoch: 0, stage: Stage::Empty, remembered: None };
    let mut seen = BTreeSet::from([first]);
    let mut queue = VecDeque::from([(first, world.state.clone(), world.now_ms)]);
    let mut tried = 0;
    while let Some((model, state, now_ms)) = queue.pop_front() {
        for ask in asks(model.epoch) {
            let (want, told) = model.ask(ask);
            let mut next = state.clone();
            let now_ms = if ask == Ask::Timeout { now_ms + TIMEOUT_MS } else { now_ms };
            assert_eq!(run(&mut next, now_ms, command(&world, producer, ask)), told, "{ask:?} in {model:?}");
            assert_eq!(stage(&next), (want.epoch, want.stage), "{ask:?} in {model:?}");
            assert_eq!(next.check(), Ok(()), "{ask:?} in {model:?}");
            tried += 1;
            if want.epoch <= EPOCHS && seen.insert(want) {
                queue.push_back((want, next, now_ms));
            }
        }
    }
    assert!(seen.len() >= 100 && tried > 5000, "{} states, {tried} requests", seen.len());
}
