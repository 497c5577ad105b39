//! The decision table of design section 4: each API, in each state, by each identity. The expectations are written
//! down here as words, independent of how the coordinator decides.
//!
//! Words: `new` a fresh identity; `bump` the next epoch; `again` the current identity, nothing touched; `start` a
//! transaction starts; `grow` it grows; `noop` done, nothing touched; `end` ends, the identity stays; `end+` ends,
//! the next epoch (also of nothing); `repeat` as ended before, nothing touched; `abort` an administrator aborts,
//! next epoch; numbers are refusals: `90` Fenced, `49` another producer, `49?` unknown id, `48` wrong state, `48c`
//! commit by marker, `120` aborted meanwhile, `out` not in the transaction. `-` cannot occur.

use semel_eos::{Command, Refusal, Reply, State, txn::TransactionState};
use semel_events::{Event, Outcome, Protocol};
use semel_types::{GroupId, ProducerStamp};

use super::world::{World, author, handle, id, shifted, stamp};

const ID: &str = "orders";

/// The states that an id can be in. All but the first are reached from an owner at epoch 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Situation {
    Unknown,
    Expired,
    Empty,
    Recovered,
    Open,
    OpenAfterRecovery,
    OpenAfterTimeout,
    Committed,
    Aborted,
    CommittedV2,
    AbortedV2,
    TimedOut,
    AdminAborted,
    UncleanStart,
    TakenOver,
}

use Situation::{
    Aborted, AbortedV2, AdminAborted, Committed, CommittedV2, Empty, Expired, Open, OpenAfterRecovery,
    OpenAfterTimeout, Recovered, TakenOver, TimedOut, UncleanStart, Unknown,
};

const ALL: [Situation; 15] = [
    Unknown,
    Expired,
    Empty,
    Recovered,
    Open,
    OpenAfterRecovery,
    OpenAfterTimeout,
    Committed,
    Aborted,
    CommittedV2,
    AbortedV2,
    TimedOut,
    AdminAborted,
    UncleanStart,
    TakenOver,
];

/// The requests, partition 1 and group "h" being new to any transaction, partition 0 and group "g" being in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    InitPlain,
    InitPair,
    AddNew,
    AddHeld,
    VerifyNew,
    VerifyHeld,
    AddOffsetsNew,
    AddOffsetsHeld,
    OffsetsNew(Protocol),
    OffsetsHeld(Protocol),
    End(Protocol, Outcome),
    Marker(Outcome),
    MarkerElsewhere,
    /// Names no partition, only the group.
    MarkerOfGroup,
}

const CLASSIC: Protocol = Protocol::Classic;
const V2: Protocol = Protocol::Version2;
const COMMIT: Outcome = Outcome::Commit;
const ABORT: Outcome = Outcome::Abort;

/// Per request and set of states: what the current, the remembered, an older, a higher epoch and another producer
/// id get.
const TABLE: &[(Ask, &[Situation], [&str; 5])] = &[
    (Ask::InitPlain, &[Unknown, Expired], ["new", "-", "-", "-", "-"]),
    (
        Ask::InitPlain,
        &[
            Empty,
            Recovered,
            TakenOver,
            Open,
            OpenAfterRecovery,
            OpenAfterTimeout,
            Committed,
            Aborted,
            CommittedV2,
            AbortedV2,
            TimedOut,
            AdminAborted,
            UncleanStart,
        ],
        ["bump", "-", "-", "-", "-"],
    ),
    (Ask::InitPair, &[Unknown, Expired], ["new", "-", "new", "new", "new"]),
    (Ask::InitPair, &[Empty, Open, Committed, Aborted], ["bump", "-", "90", "90", "90"]),
    (
        Ask::InitPair,
        &[Recovered, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["bump", "again", "90", "90", "90"],
    ),
    (Ask::InitPair, &[TakenOver], ["bump", "90", "90", "90", "90"]),
    (Ask::InitPair, &[OpenAfterRecovery, OpenAfterTimeout], ["bump", "90", "90", "90", "90"]),
    //
    (Ask::AddNew, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::AddNew, &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::AddNew,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::AddNew, &[Open], ["grow", "-", "90", "90", "49"]),
    (Ask::AddNew, &[OpenAfterRecovery, OpenAfterTimeout], ["grow", "90", "90", "90", "49"]),
    (Ask::AddHeld, &[Open], ["noop", "-", "90", "90", "49"]),
    (Ask::AddHeld, &[OpenAfterRecovery, OpenAfterTimeout], ["noop", "90", "90", "90", "49"]),
    (Ask::AddHeld, &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::AddHeld,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::AddHeld, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    //
    (Ask::VerifyNew, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::VerifyNew, &[Empty, Open, Committed, Aborted], ["out", "-", "90", "90", "49"]),
    (
        Ask::VerifyNew,
        &[
            Recovered,
            TakenOver,
            CommittedV2,
            AbortedV2,
            TimedOut,
            AdminAborted,
            UncleanStart,
            OpenAfterRecovery,
            OpenAfterTimeout,
        ],
        ["out", "90", "90", "90", "49"],
    ),
    (Ask::VerifyHeld, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::VerifyHeld, &[Empty, Committed, Aborted], ["out", "-", "90", "90", "49"]),
    (
        Ask::VerifyHeld,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["out", "90", "90", "90", "49"],
    ),
    (Ask::VerifyHeld, &[Open], ["noop", "-", "90", "90", "49"]),
    (Ask::VerifyHeld, &[OpenAfterRecovery, OpenAfterTimeout], ["noop", "90", "90", "90", "49"]),
    //
    (Ask::AddOffsetsNew, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::AddOffsetsNew, &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::AddOffsetsNew,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::AddOffsetsNew, &[Open], ["grow", "-", "90", "90", "49"]),
    (Ask::AddOffsetsNew, &[OpenAfterRecovery, OpenAfterTimeout], ["grow", "90", "90", "90", "49"]),
    (Ask::AddOffsetsHeld, &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::AddOffsetsHeld, &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::AddOffsetsHeld,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::AddOffsetsHeld, &[Open], ["noop", "-", "90", "90", "49"]),
    (Ask::AddOffsetsHeld, &[OpenAfterRecovery, OpenAfterTimeout], ["noop", "90", "90", "90", "49"]),
    //
    (Ask::OffsetsNew(CLASSIC), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::OffsetsNew(CLASSIC), &[Empty, Open, Committed, Aborted], ["out", "-", "90", "90", "49"]),
    (
        Ask::OffsetsNew(CLASSIC),
        &[
            Recovered,
            TakenOver,
            CommittedV2,
            AbortedV2,
            TimedOut,
            AdminAborted,
            UncleanStart,
            OpenAfterRecovery,
            OpenAfterTimeout,
        ],
        ["out", "90", "90", "90", "49"],
    ),
    (Ask::OffsetsHeld(CLASSIC), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::OffsetsHeld(CLASSIC), &[Empty, Committed, Aborted], ["out", "-", "90", "90", "49"]),
    (
        Ask::OffsetsHeld(CLASSIC),
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["out", "90", "90", "90", "49"],
    ),
    (Ask::OffsetsHeld(CLASSIC), &[Open], ["grow", "-", "90", "90", "49"]),
    (Ask::OffsetsHeld(CLASSIC), &[OpenAfterRecovery, OpenAfterTimeout], ["grow", "90", "90", "90", "49"]),
    (Ask::OffsetsNew(V2), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::OffsetsNew(V2), &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::OffsetsNew(V2),
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::OffsetsNew(V2), &[Open], ["grow", "-", "90", "90", "49"]),
    (Ask::OffsetsNew(V2), &[OpenAfterRecovery, OpenAfterTimeout], ["grow", "90", "90", "90", "49"]),
    (Ask::OffsetsHeld(V2), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::OffsetsHeld(V2), &[Empty, Committed, Aborted], ["start", "-", "90", "90", "49"]),
    (
        Ask::OffsetsHeld(V2),
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["start", "90", "90", "90", "49"],
    ),
    (Ask::OffsetsHeld(V2), &[Open], ["grow", "-", "90", "90", "49"]),
    (Ask::OffsetsHeld(V2), &[OpenAfterRecovery, OpenAfterTimeout], ["grow", "90", "90", "90", "49"]),
    //
    (Ask::End(CLASSIC, COMMIT), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::End(CLASSIC, COMMIT), &[Empty], ["48", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[Recovered, TakenOver], ["48", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[Open], ["end", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[OpenAfterRecovery, OpenAfterTimeout], ["end", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[Committed], ["repeat", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[Aborted], ["48", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[CommittedV2], ["repeat", "repeat", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[AbortedV2], ["48", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, COMMIT), &[TimedOut, AdminAborted, UncleanStart], ["48", "120", "90", "90", "49"]),
    //
    (Ask::End(CLASSIC, ABORT), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::End(CLASSIC, ABORT), &[Empty], ["48", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[Recovered, TakenOver], ["48", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[Open], ["end", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[OpenAfterRecovery, OpenAfterTimeout], ["end", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[Committed], ["48", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[Aborted], ["repeat", "-", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[CommittedV2], ["48", "90", "90", "90", "49"]),
    (Ask::End(CLASSIC, ABORT), &[AbortedV2], ["repeat", "repeat", "90", "90", "49"]),
    (
        Ask::End(CLASSIC, ABORT),
        &[TimedOut, AdminAborted, UncleanStart],
        ["repeat", "repeat", "90", "90", "49"],
    ),
    //
    (Ask::End(V2, COMMIT), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::End(V2, COMMIT), &[Empty, Committed, Aborted], ["48", "-", "90", "90", "49"]),
    (Ask::End(V2, COMMIT), &[Recovered, TakenOver, AbortedV2], ["48", "90", "90", "90", "49"]),
    (Ask::End(V2, COMMIT), &[Open], ["end+", "-", "90", "90", "49"]),
    (Ask::End(V2, COMMIT), &[OpenAfterRecovery, OpenAfterTimeout], ["end+", "90", "90", "90", "49"]),
    (Ask::End(V2, COMMIT), &[CommittedV2], ["48", "repeat", "90", "90", "49"]),
    (Ask::End(V2, COMMIT), &[TimedOut, AdminAborted, UncleanStart], ["48", "120", "90", "90", "49"]),
    //
    (Ask::End(V2, ABORT), &[Unknown, Expired], ["49?", "-", "49?", "49?", "49?"]),
    (Ask::End(V2, ABORT), &[Empty, Open, Committed, Aborted], ["end+", "-", "90", "90", "49"]),
    (
        Ask::End(V2, ABORT),
        &[Recovered, TakenOver, CommittedV2, OpenAfterRecovery, OpenAfterTimeout],
        ["end+", "90", "90", "90", "49"],
    ),
    (
        Ask::End(V2, ABORT),
        &[AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["end+", "repeat", "90", "90", "49"],
    ),
    //
    (Ask::Marker(ABORT), &[Unknown], ["noop", "-", "noop", "noop", "noop"]),
    (Ask::Marker(ABORT), &[Expired], ["90", "-", "90", "90", "noop"]),
    (Ask::Marker(ABORT), &[Empty, Committed, Aborted], ["noop", "-", "90", "90", "noop"]),
    (
        Ask::Marker(ABORT),
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["noop", "90", "90", "90", "noop"],
    ),
    (Ask::Marker(ABORT), &[Open], ["abort", "-", "90", "90", "noop"]),
    (Ask::Marker(ABORT), &[OpenAfterRecovery, OpenAfterTimeout], ["abort", "90", "90", "90", "noop"]),
    (Ask::MarkerOfGroup, &[Unknown], ["noop", "-", "noop", "noop", "noop"]),
    (Ask::MarkerOfGroup, &[Expired], ["90", "-", "90", "90", "noop"]),
    (Ask::MarkerOfGroup, &[Empty, Committed, Aborted], ["noop", "-", "90", "90", "noop"]),
    (
        Ask::MarkerOfGroup,
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["noop", "90", "90", "90", "noop"],
    ),
    (Ask::MarkerOfGroup, &[Open], ["abort", "-", "90", "90", "noop"]),
    (Ask::MarkerOfGroup, &[OpenAfterRecovery, OpenAfterTimeout], ["abort", "90", "90", "90", "noop"]),
    (Ask::Marker(COMMIT), &[Unknown], ["noop", "-", "noop", "noop", "noop"]),
    (Ask::Marker(COMMIT), &[Expired], ["90", "-", "90", "90", "noop"]),
    (Ask::Marker(COMMIT), &[Empty, Committed, Aborted], ["noop", "-", "90", "90", "noop"]),
    (
        Ask::Marker(COMMIT),
        &[Recovered, TakenOver, CommittedV2, AbortedV2, TimedOut, AdminAborted, UncleanStart],
        ["noop", "90", "90", "90", "noop"],
    ),
    (Ask::Marker(COMMIT), &[Open], ["48c", "-", "90", "90", "noop"]),
    (Ask::Marker(COMMIT), &[OpenAfterRecovery, OpenAfterTimeout], ["48c", "90", "90", "90", "noop"]),
    (Ask::MarkerElsewhere, &[Unknown], ["noop", "-", "noop", "noop", "noop"]),
    (Ask::MarkerElsewhere, &[Expired], ["90", "-", "90", "90", "noop"]),
    (Ask::MarkerElsewhere, &[Empty, Committed, Aborted, Open], ["noop", "-", "90", "90", "noop"]),
    (
        Ask::MarkerElsewhere,
        &[
            Recovered,
            TakenOver,
            CommittedV2,
            AbortedV2,
            TimedOut,
            AdminAborted,
            UncleanStart,
            OpenAfterRecovery,
            OpenAfterTimeout,
        ],
        ["noop", "90", "90", "90", "noop"],
    ),
];

/// A world in which the id is in a situation, with the pairs that a request may carry there.
struct Scene {
    world: World,
    current: ProducerStamp,
    remembered: Option<ProducerStamp>,
}

fn open(world: &mut World, identity: ProducerStamp) {
    assert_eq!(world.add(ID, identity, &[0]), Ok(Reply::Done));
    assert_eq!(world.add_offsets(ID, identity, "g"), Ok(Reply::Done));
}

fn scene(situation: Situation) -> Scene {
    let mut world = World::new();
    if situation == Unknown {
        return Scene { world, current: stamp(5, 3), remembered: None };
    }
    let owner = (0..4).map(|_| world.init(ID, None)).last().expect("an identity");
    assert_eq!(owner.epoch.get(), 3);
    let mut remembered = None;
    match situation {
        Unknown | Empty => {}
        Expired => world.pass(world.settings.transactional_id_expiration.as_ms() + 1),
        Recovered => {
            world.init(ID, Some(owner));
            remembered = Some(owner);
        }
        Open => open(&mut world, owner),
        OpenAfterRecovery => {
            let recovered = world.init(ID, Some(owner));
            open(&mut world, recovered);
            remembered = Some(owner);
        }
        OpenAfterTimeout => {
            open(&mut world, owner);
            world.pass(super::world::TIMEOUT_MS);
            let bumped = world.identity(ID);
            open(&mut world, bumped);
            remembered = Some(owner);
        }
        TakenOver => {
            open(&mut world, owner);
            let next = shifted(owner, 1);
            assert_eq!(world.end_v2(ID, owner, COMMIT), Ok(Reply::Ended(next)));
            open(&mut world, next);
            assert_eq!(world.end_v2(ID, next, COMMIT), Ok(Reply::Ended(shifted(owner, 2))));
            world.init(ID, None);
            remembered = Some(next);
        }
        Committed | Aborted => {
            open(&mut world, owner);
            let outcome = if situation == Committed { COMMIT } else { ABORT };
            assert_eq!(world.classic_end(ID, owner, outcome), Ok(Reply::Ended(owner)));
        }
        CommittedV2 | AbortedV2 => {
            open(&mut world, owner);
            let outcome = if situation == CommittedV2 { COMMIT } else { ABORT };
            assert_eq!(world.end_v2(ID, owner, outcome), Ok(Reply::Ended(shifted(owner, 1))));
            remembered = Some(owner);
        }
        TimedOut => {
            open(&mut world, owner);
            world.pass(super::world::TIMEOUT_MS);
            remembered = Some(owner);
        }
        AdminAborted => {
            open(&mut world, owner);
            assert_eq!(world.marker(owner, ABORT, &[0]), Ok(Reply::Done));
            remembered = Some(owner);
        }
        UncleanStart => {
            open(&mut world, owner);
            world.restart(true);
            remembered = Some(owner);
        }
    }
    let current = world.entry(ID).map_or(owner, |entry| entry.identity);
    let epoch = match remembered {
        None => 3,
        Some(_) if situation == TakenOver => 6,
        Some(_) => 4,
    };
    assert_eq!(current.epoch.get(), epoch, "{situation:?}");
    Scene { world, current, remembered }
}

fn command(ask: Ask, stamp: ProducerStamp, world: &World) -> Command {
    let (id, app) = (id(ID), author("app", "test"));
    let group = |name: &str| GroupId::from(name);
    let add = |partition: u32, verify_only: bool| Command::AddPartitions {
        id: id.clone(),
        stamp,
        partitions: vec![handle(partition)],
        verify_only,
        protocol: CLASSIC,
    };
    let offsets = |name: &str, protocol: Protocol| Command::TxnOffsetCommit {
        id: id.clone(),
        stamp,
        group: group(name),
        offsets: vec![super::world::committed(0, 7)],
        protocol,
    };
    let marker = |outcome: Outcome, partitions: &[u32], groups: &[&str]| Command::WriteMarker {
        stamp,
        outcome,
        partitions: partitions.iter().copied().map(handle).collect(),
        groups: groups.iter().copied().map(group).collect(),
        author: author("admin", "WriteTxnMarkers"),
    };
    match ask {
        Ask::InitPlain => world.init_command(Some(ID), None),
        Ask::InitPair => world.init_command(Some(ID), Some(stamp)),
        Ask::AddNew => add(1, false),
        Ask::AddHeld => add(0, false),
        Ask::VerifyNew => add(1, true),
        Ask::VerifyHeld => add(0, true),
        Ask::AddOffsetsNew => Command::AddOffsets { id, stamp, group: group("h") },
        Ask::AddOffsetsHeld => Command::AddOffsets { id, stamp, group: group("g") },
        Ask::OffsetsNew(protocol) => offsets("h", protocol),
        Ask::OffsetsHeld(protocol) => offsets("g", protocol),
        Ask::End(protocol, outcome) => Command::EndTxn { id, stamp, outcome, protocol, author: app },
        Ask::Marker(outcome) => marker(outcome, &[0], &[]),
        Ask::MarkerElsewhere => marker(ABORT, &[1], &["h"]),
        Ask::MarkerOfGroup => marker(ABORT, &[], &["g"]),
    }
}

/// What happened, as a word of the table; panics if answer and effect do not fit each other.
fn observe(before: &State, world: &World, events: &[Event], answer: Result<Reply, Refusal>) -> String {
    let entry_before = before.transactions().get(&id(ID));
    let before_identity = entry_before.map(|entry| entry.identity);
    let untouched = *before == world.state && events.is_empty();
    let next_epoch = |identity: ProducerStamp| Some(identity) == before_identity.map(|old| shifted(old, 1));
    let stage = world.stage(ID);
    let word = match answer {
        Err(refusal) => {
            assert!(untouched, "{refusal:?} touched the state");
            match refusal {
                Refusal::Fenced { .. } => "90",
                Refusal::OtherProducer { .. } => "49",
                Refusal::UnknownTransactionalId { .. } => "49?",
                Refusal::WrongState { .. } => "48",
                Refusal::CommitByMarker { .. } => "48c",
                Refusal::AbortedMeanwhile { .. } => "120",
                Refusal::NotInTransaction { .. } | Refusal::GroupNotInTransaction { .. } => "out",
                other => panic!("unexpected refusal {other:?}"),
            }
        }
        Ok(Reply::Identity(identity)) if untouched => {
            assert_eq!(Some(identity), before_identity);
            "again"
        }
        Ok(Reply::Identity(identity)) => {
            assert_eq!(stage, Some(TransactionState::Empty), "always Empty afterwards");
            assert_eq!(Some(identity), world.entry(ID).map(|entry| entry.identity));
            let was_open = entry_before.is_some_and(|entry| entry.open().is_some());
            let ends = events.iter().filter(|event| matches!(event, Event::TransactionEnded(_))).count();
            assert_eq!(ends, usize::from(was_open), "what was open was aborted first");
            match entry_before {
                None => {
                    assert_eq!(identity.epoch.get(), 0);
                    "new"
                }
                Some(_) => {
                    assert!(next_epoch(identity), "one bump: {before_identity:?} -> {identity:?}");
                    "bump"
                }
            }
        }
        Ok(Reply::Done) if untouched => "noop",
        Ok(Reply::Done) => match (entry_before.and_then(|entry| entry.open()), stage) {
            (Some(_), Some(TransactionState::Ongoing)) => "grow",
            (None, Some(TransactionState::Ongoing)) => "start",
            (Some(_), Some(TransactionState::CompleteAbort)) => {
                assert!(next_epoch(world.identity(ID)));
                "abort"
            }
            other => panic!("done, but {other:?}"),
        },
        Ok(Reply::Ended(identity)) => {
            assert_eq!(identity, world.identity(ID));
            match (untouched, next_epoch(identity)) {
                (true, false) => "repeat",
                (false, true) => "end+",
                (false, false) => {
                    assert_eq!(Some(identity), before_identity);
                    "end"
                }
                (true, true) => panic!("a bump without an event"),
            }
        }
    };
    word.to_string()
}

fn expected(ask: Ask, situation: Situation) -> [&'static str; 5] {
    let rows: Vec<_> = TABLE.iter().filter(|row| row.0 == ask && row.1.contains(&situation)).collect();
    assert_eq!(rows.len(), 1, "exactly one row for {ask:?} in {situation:?}");
    rows[0].2
}

fn asks() -> Vec<Ask> {
    let mut asks = vec![
        Ask::InitPlain,
        Ask::InitPair,
        Ask::AddNew,
        Ask::AddHeld,
        Ask::VerifyNew,
        Ask::VerifyHeld,
        Ask::AddOffsetsNew,
        Ask::AddOffsetsHeld,
        Ask::Marker(ABORT),
        Ask::Marker(COMMIT),
        Ask::MarkerElsewhere,
        Ask::MarkerOfGroup,
    ];
    for protocol in [CLASSIC, V2] {
        asks.extend([Ask::OffsetsNew(protocol), Ask::OffsetsHeld(protocol)]);
        asks.extend([Ask::End(protocol, COMMIT), Ask::End(protocol, ABORT)]);
    }
    asks
}

#[test]
fn every_request_in_every_state_by_every_identity_does_what_the_table_says() {
    let (mut cells, mut wrong) = (0, Vec::new());
    for ask in asks() {
        for situation in ALL {
            for (column, want) in expected(ask, situation).into_iter().enumerate() {
                let mut scene = scene(situation);
                let claims = [
                    Some(scene.current),
                    scene.remembered,
                    Some(stamp(scene.current.id.get(), 1)),
                    Some(shifted(scene.current, 1)),
                    Some(stamp(scene.current.id.get() + 1_000_000, 3)),
                ];
                let Some(claim) = claims[column].filter(|_| want != "-") else {
                    assert!(want == "-", "{ask:?} {situation:?}: column {column} must be `-`");
                    continue;
                };
                let before = scene.world.state.clone();
                let logged = scene.world.log.len();
                let answer = scene.world.ask(command(ask, claim, &scene.world));
                let found = observe(&before, &scene.world, &scene.world.log[logged..], answer);
                cells += 1;
                if found != want {
                    wrong.push(format!("{ask:?} in {situation:?}, column {column}: {found}, not {want}"));
                }
                scene.world.assert_replays();
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cells > 1000, "only {cells} cells were tried");
}

#[test]
fn an_idempotent_producer_gets_a_fresh_id_whatever_it_sends() {
    let mut world = World::new();
    let first = super::world::identity_of(world.ask(world.init_command(None, None)));
    let second = super::world::identity_of(world.ask(world.init_command(None, Some(first))));
    assert_eq!((second.id.get(), second.epoch.get()), (first.id.get() + 1, 0));
    assert!(world.state.transactions().is_empty());
    world.assert_replays();
}

#[test]
fn malformed_requests_are_refused_with_their_reason() {
    use semel_types::{DurationMs, ProducerEpoch, ProducerId};
    let mut world = World::new();
    let init = |name: &str, timeout_ms: i64| Command::InitProducerId {
        transactional_id: Some(id(name)),
        timeout: DurationMs::from_ms(timeout_ms),
        carried: None,
        author: author("app", "InitProducerId"),
    };
    assert_eq!(world.ask(init("", 1000)), Err(Refusal::EmptyTransactionalId));
    let max = world.settings.transaction_max_timeout;
    for timeout_ms in [0, -1, max.as_ms() + 1] {
        let timeout = DurationMs::from_ms(timeout_ms);
        assert_eq!(world.ask(init("x", timeout_ms)), Err(Refusal::InvalidTimeout { timeout, max }));
    }
    assert!(world.state.transactions().is_empty());
    assert!(world.ask(init("x", max.as_ms())).is_ok());
    assert!(world.ask(init("x", 1)).is_ok());
    let half = semel_eos::txn::carried_pair(Some(ProducerId::new(1)), None);
    assert_eq!(half, Err(Refusal::HalfAPair));
    assert_eq!(semel_eos::txn::carried_pair(None, Some(ProducerEpoch::ZERO)), Err(Refusal::HalfAPair));
    assert_eq!(semel_eos::txn::carried_pair(None, None), Ok(None));
}

#[test]
fn the_timeout_of_a_refused_or_repeated_request_is_not_taken() {
    use semel_types::DurationMs;
    let mut world = World::new();
    let owner = world.init(ID, None);
    let current = world.init(ID, Some(owner));
    for pair in [owner, shifted(current, 1)] {
        let command = Command::InitProducerId {
            transactional_id: Some(id(ID)),
            timeout: DurationMs::from_ms(1),
            carried: Some(pair),
            author: author("app", "InitProducerId"),
        };
        let _ = world.ask(command);
        assert_eq!(world.entry(ID).map(|entry| entry.timeout.as_ms()), Some(super::world::TIMEOUT_MS));
    }
}

#[test]
fn eos_33_the_partition_past_the_bound_is_refused_when_it_is_added() {
    let mut world = World::new();
    let owner = world.init(ID, None);
    let add = |partitions: std::ops::Range<u32>| Command::AddPartitions {
        id: id(ID),
        stamp: owner,
        partitions: partitions.map(handle).collect(),
        verify_only: false,
        protocol: CLASSIC,
    };
    assert_eq!(world.ask(add(0..9_999)), Ok(Reply::Done));
    assert_eq!(world.add_offsets(ID, owner, "g"), Ok(Reply::Done));
    let full = Err(Refusal::TooManyPartitions { id: id(ID), limit: 10_000 });
    assert_eq!(world.ask(add(20_000..20_001)), full);
    assert_eq!(world.add_offsets(ID, owner, "h"), full);
    assert_eq!(world.ask(add(5..50)), Ok(Reply::Done), "what it holds is no addition");
    assert_eq!(world.classic_end(ID, owner, COMMIT), Ok(Reply::Ended(owner)));
    assert_eq!(world.last_end().markers.len() as u32, super::world::PARTITIONS, "only what exists is marked");
}
