//! Tables 3.3 to 3.7 in the states in which markers are being written, PrepareCommit and PrepareAbort.
//!
//! Nobody can hold these states from outside, but they can be met: a transaction over many partitions is ended, and
//! requests are sent one after another until its coordinator says that it is complete. A row counts as met if the
//! coordinator still says Prepare after the answer; a row that came too late must have the code of one of the two states,
//! and is tried again with the next transaction, a few times. A broker that decides and completes at once is never in
//! between, and is held to the codes of the complete state.
//!
//! In Prepare Apache Kafka answers 51 to everything but a wrong identity at EndTxn 0 to 4: a step under way is looked at
//! before the table of EndTxn, so its 48 for the other outcome is all but never seen. PrepareEpochFence cannot be met: the request that
//! leads into it leads out of it.

use semel_wire::ApiKey;

use super::{fenced, offered, outside};
use crate::{
    Actor, Answer, Failure,
    Outcome::{self, Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::offset_commit_request,
    scenario::{Area, Basis, Kept},
    session::{Place, Versions},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&END, &END_V2, &NEXT];

/// Partitions of a transaction: their markers take a while.
const WIDTH: i32 = 100;

/// How often a row is tried that comes too late; twice as long as none was met.
const TRIES: u32 = 8;

/// A request to a coordinator that is writing markers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    /// EndTxn with the outcome that was decided.
    EndAgain,
    /// EndTxn with the other one.
    EndOtherwise,
    /// EndTxn under another producer id.
    EndOfStranger,
    /// EndTxn under an older epoch.
    EndOfOld,
    /// EndTxn with the identity that the first one gave.
    EndNext(Outcome),
    AddPartitions,
    AddOffsets,
    CommitOffsets,
    Produce,
    /// InitProducerId without a pair.
    Init,
    /// InitProducerId with the last pair.
    InitPair,
    /// InitProducerId under another producer id.
    InitOfStranger,
}

/// A request in a version.
#[derive(Clone, Copy, Debug)]
struct Row {
    ask: Ask,
    version: i16,
}

/// A transaction that has just been ended.
struct Ended<'a> {
    place: &'a Place,
    group: &'a str,
    outcome: Outcome,
    /// Its producer before the end.
    me: Producer,
    /// Its producer after it.
    after: Producer,
}

impl Row {
    fn send(self, a: &mut Actor, ended: &Ended<'_>) -> Answer<()> {
        let me = &ended.me;
        let stranger = me.with_producer_id(me.producer_id() + 1_000_000);
        let stamp = Some(me.stamp);
        self.speak(a);
        match self.ask {
            Ask::EndAgain => a.try_end(me, ended.outcome).map(|_| ()),
            Ask::EndOtherwise => a.try_end(me, ended.outcome.other()).map(|_| ()),
            Ask::EndOfStranger => a.try_end(&stranger, ended.outcome).map(|_| ()),
            Ask::EndOfOld => a.try_end(&me.at_epoch(me.epoch() - 1), ended.outcome).map(|_| ()),
            Ask::EndNext(outcome) => a.try_end(&ended.after, outcome).map(|_| ()),
            Ask::AddPartitions => a.try_add(me, &[ended.place]),
            Ask::AddOffsets => a.try_add_offsets(me, ended.group),
            Ask::CommitOffsets => {
                let request = offset_commit_request(me, ended.group, (ended.place, 1));
                a.send_offsets("TxnOffsetCommit", &request)
            }
            Ask::Produce => a.produce(ended.place, me, 0, &["too early"]).map(|_| ()),
            Ask::Init => a.try_init(me.id.as_deref(), 60_000, None).map(|_| ()),
            Ask::InitPair => a.try_init(me.id.as_deref(), 60_000, stamp).map(|_| ()),
            Ask::InitOfStranger => a.try_init(me.id.as_deref(), 60_000, Some(stranger.stamp)).map(|_| ()),
        }
    }

    /// Sets the version of the request, whichever it is.
    fn speak(self, a: &mut Actor) {
        let version = self.version;
        a.using(|versions| match self.ask {
            Ask::EndAgain | Ask::EndOtherwise | Ask::EndOfStranger | Ask::EndOfOld | Ask::EndNext(_) => {
                versions.end_txn = version;
            }
            Ask::AddPartitions | Ask::AddOffsets => versions.add = version,
            Ask::CommitOffsets => versions.txn_offset_commit = version,
            Ask::Produce => versions.produce = version,
            Ask::Init | Ask::InitPair | Ask::InitOfStranger => versions.init_producer_id = version,
        });
    }

    /// The codes that are due while markers are being written.
    fn in_prepare(self) -> Vec<i16> {
        match self.ask {
            // 48 is the table's; 51 comes before it.
            Ask::EndOtherwise => vec![48, 51],
            Ask::EndAgain
            | Ask::EndNext(_)
            | Ask::AddPartitions
            | Ask::AddOffsets
            | Ask::CommitOffsets
            | Ask::Init
            | Ask::InitPair
            | Ask::InitOfStranger => vec![51],
            // What Produce says for 51 up to version 11.
            Ask::Produce => vec![19],
            Ask::EndOfStranger if self.version >= 5 => vec![51],
            Ask::EndOfStranger | Ask::EndOfOld => self.in_complete(),
        }
    }

    /// The codes that are due when all markers are written.
    fn in_complete(self) -> Vec<i16> {
        match self.ask {
            Ask::EndAgain
            | Ask::EndNext(Abort)
            | Ask::AddPartitions
            | Ask::AddOffsets
            | Ask::Init
            | Ask::InitPair => vec![0],
            Ask::EndOtherwise if self.version >= 5 => vec![48, 90],
            Ask::EndOtherwise | Ask::EndNext(Commit) => vec![48],
            Ask::EndOfStranger => vec![49],
            Ask::EndOfOld => vec![fenced(self.version, 2)],
            Ask::InitOfStranger => vec![fenced(self.version, 4)],
            // Verified together with others' requests, 120 may come for 48 and the other way round.
            Ask::CommitOffsets | Ask::Produce => {
                vec![outside(self.version, 0), outside(self.version, i16::MAX)]
            }
        }
    }
}

/// Tries every row with either outcome.
fn try_all(probe: &Probe, versions: Versions, rows: &[Row]) -> Kept {
    let t = probe.partitions(WIDTH)?;
    for outcome in [Commit, Abort] {
        let mut left: Vec<_> = rows.iter().map(|row| (*row, TRIES)).collect();
        let mut is_met = false;
        while !left.is_empty() {
            is_met |= try_some(probe, &t, (versions, outcome), &mut left)?;
            left.retain(|(_, tries)| *tries > if is_met { 0 } else { TRIES - 2 });
        }
    }
    Ok(())
}

/// Ends a transaction and tries rows until it is complete; those that were met are taken from the list. Was any met?
fn try_some(
    probe: &Probe,
    t: &[Place],
    (versions, outcome): (Versions, Outcome),
    left: &mut Vec<(Row, u32)>,
) -> Kept<bool> {
    let (id, group) = (probe.id("x"), probe.group("g"));
    let mut a = probe.actor("A")?.speaking(versions);
    // An epoch before this one, so that there is an older one to be refused.
    a.init(&id)?;
    let me = a.init(&id)?;
    a.add(&me, &t.iter().collect::<Vec<_>>())?;
    let after = a.end(&me, outcome).is(0)?;
    let ended = Ended { place: &t[0], group: &group, outcome, me, after };
    let before = left.len();
    while let Some((row, tries)) = left.pop() {
        let answer = row.send(&mut a, &ended);
        let state = a.describe(&id).is(0)?.transaction_state;
        if state.as_str() == if outcome == Commit { "PrepareCommit" } else { "PrepareAbort" } {
            answer.is_any(&row.in_prepare())?;
            continue;
        }
        let (code, ()) = answer.is_any(&[row.in_prepare(), row.in_complete()].concat())?;
        left.insert(0, (row, tries - 1));
        next_begins(&mut a, &ended, code)?;
        break;
    }
    Ok(left.len() < before)
}

/// The transaction is complete, and the next one begins.
fn next_begins(a: &mut Actor, ended: &Ended<'_>, code: i16) -> Kept {
    let me = a.using(|versions| *versions = Versions::CLASSIC).init(ended.me.id_or_empty())?;
    if me.epoch() <= ended.me.epoch() {
        let sent = format!("InitProducerId after {code}");
        return Err(Failure::broken(sent, format!("{me:?}"), format!("an epoch above {:?}", ended.me)));
    }
    a.add(&me, &[ended.place])?;
    a.end(&me, Abort).is(0).map(|_| ())
}

/// A request in each of these versions that the broker offers.
fn rows(probe: &Probe, ask: Ask, api: ApiKey, versions: std::ops::RangeInclusive<i16>) -> Kept<Vec<Row>> {
    let versions = offered(probe, api, versions)?;
    Ok(versions.into_iter().map(|version| Row { ask, version }).collect())
}

const END: Scenario = Scenario {
    id: "T3.7-prepare",
    title: "EndTxn while markers are being written, versions 0 to 4",
    promise: "A client that asks again while its outcome is written out is never told the opposite.",
    source: "apache/kafka TransactionCoordinator.endTransaction",
    versions: "EndTxn 0 to 4",
    ..Scenario::kafka(Area::Coordinator, end)
};

fn end(probe: &mut Probe) -> Kept {
    let mut all = Vec::new();
    for ask in [Ask::EndAgain, Ask::EndOtherwise, Ask::EndOfStranger, Ask::EndOfOld] {
        all.extend(rows(probe, ask, ApiKey::EndTxn, 0..=4)?);
    }
    try_all(probe, Versions::CLASSIC, &all)
}

const END_V2: Scenario = Scenario {
    id: "T3.7-prepare-v2",
    title: "EndTxn while markers are being written, version 5",
    promise: "A client that asks again while its outcome is written out gets its next identity in the end.",
    source: "KIP-890; apache/kafka PR #18467 (KAFKA-18464)",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "EndTxn 5",
    ..Scenario::kafka(Area::Coordinator, end_v2)
};

fn end_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let asks =
        [Ask::EndAgain, Ask::EndOtherwise, Ask::EndOfStranger, Ask::EndNext(Commit), Ask::EndNext(Abort)];
    let all: Vec<_> = asks.into_iter().map(|ask| Row { ask, version: 5 }).collect();
    try_all(probe, Versions::VERSION_2, &all)
}

const NEXT: Scenario = Scenario {
    id: "T3.4-prepare",
    title: "the next transaction while markers of the last one are being written",
    promise: "The next transaction waits for the last one to be written out; it is never mixed up with it, nor lost.",
    source: "apache/kafka TransactionCoordinator, AddPartitionsToTxnManager",
    versions: "InitProducerId 0 to 5, AddPartitionsToTxn 0 to 3, AddOffsetsToTxn 0 to 4, TxnOffsetCommit 0 to 4, Produce 3 to 11",
    ..Scenario::kafka(Area::Coordinator, next)
};

fn next(probe: &mut Probe) -> Kept {
    let all = [
        rows(probe, Ask::Init, ApiKey::InitProducerId, 0..=5)?,
        rows(probe, Ask::InitPair, ApiKey::InitProducerId, 3..=5)?,
        rows(probe, Ask::InitOfStranger, ApiKey::InitProducerId, 3..=5)?,
        rows(probe, Ask::AddPartitions, ApiKey::AddPartitionsToTxn, 0..=3)?,
        rows(probe, Ask::AddOffsets, ApiKey::AddOffsetsToTxn, 0..=4)?,
        rows(probe, Ask::CommitOffsets, ApiKey::TxnOffsetCommit, 0..=4)?,
        rows(probe, Ask::Produce, ApiKey::Produce, 3..=11)?,
    ];
    try_all(probe, Versions::CLASSIC, &all.concat())
}
