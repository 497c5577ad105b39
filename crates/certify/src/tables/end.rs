//! Table 3.7: how EndTxn is answered, by state, outcome and version.

use semel_wire::ApiKey;

use super::{State, fenced, offered};
use crate::{
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    scenario::{Area, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&CLASSIC, &VERSION_2, &RETRY_2, &IDENTITY];

const CLASSIC: Scenario = Scenario {
    id: "T3.7-classic",
    title: "EndTxn by state, versions 0 to 4",
    promise: "A client that ends a transaction twice, or none, is told what became of it and never the opposite.",
    source: "apache/kafka TransactionCoordinator.endTransaction; KIP-98",
    versions: "EndTxn 0 to 4",
    ..Scenario::kafka(Area::Coordinator, classic)
};

fn classic(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    for version in offered(probe, ApiKey::EndTxn, 0..=4)? {
        for state in State::ALL {
            let (commit, abort) = match state {
                State::Empty => (48, 48),
                State::Ongoing => (0, 0),
                State::CompleteCommit => (0, 48),
                State::CompleteAbort => (48, 0),
            };
            for (outcome, due) in [(Commit, commit), (Abort, abort)] {
                let (me, _) = state.reach(probe, a.using(|versions| versions.end_txn = 3), &t)?;
                a.using(|versions| versions.end_txn = version).end(&me, outcome).is(due)?;
            }
        }
    }
    Ok(())
}

const VERSION_2: Scenario = Scenario {
    id: "T3.7-v2",
    title: "EndTxn by state, version 5",
    promise: "A client of version 2 may end what it is not sure to have begun, and has a new identity afterwards.",
    source: "KIP-890; apache/kafka PR #18448 (KAFKA-18401), #18467 (KAFKA-18464)",
    versions: "EndTxn 5",
    ..Scenario::kafka(Area::Coordinator, version_2)
};

fn version_2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    for state in State::ALL {
        let commit = if state == State::Ongoing { 0 } else { 48 };
        for (outcome, due) in [(Commit, commit), (Abort, 0)] {
            let (_, me) = state.reach(probe, &mut a, &t)?;
            let after = a.end(&me, outcome).is(due)?;
            if due == 0 {
                probe.same(
                    &format!("the epoch after {outcome:?} in {state:?}"),
                    after.epoch(),
                    me.epoch() + 1,
                )?;
            }
        }
    }
    Ok(())
}

const RETRY_2: Scenario = Scenario {
    id: "T3.7-v2-retry",
    title: "a repeated EndTxn, version 5",
    promise: "A client that got no answer to its commit asks again and is given the identity to go on with.",
    source: "KIP-890; apache/kafka PR #18660",
    versions: "EndTxn 5",
    ..Scenario::kafka(Area::Coordinator, retry_2)
};

fn retry_2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    for (state, outcome) in [(State::CompleteCommit, Commit), (State::CompleteAbort, Abort)] {
        let (before, after) = state.reach(probe, &mut a, &t)?;
        let again = a.end(&before, outcome).is(0)?;
        probe.same(&format!("the identity that a repeated {outcome:?} gets"), again, after.clone())?;
        // A commit after an abort is 90 since KAFKA-20785: the coordinator may have aborted by itself.
        a.end(&before, outcome.other()).is_any(&[48, 90])?;
        // Once more ended, the first one is no retry any more.
        a.transact(&t, &after, (0, "b"), outcome)?;
        for outcome in [Commit, Abort] {
            a.end(&before, outcome).is(90)?;
        }
    }
    // Retries of nothing: the epoch was raised by a takeover, not by an end.
    for is_open in [false, true] {
        let id = probe.id("x");
        let first = a.init(&id)?;
        let second = if is_open { a.open(&t, &id, "c")? } else { a.init(&id)? };
        for other in [first, second.at_epoch(second.epoch() + 1)] {
            for outcome in [Commit, Abort] {
                a.end(&other, outcome).is(90)?;
            }
        }
    }
    Ok(())
}

const IDENTITY: Scenario = Scenario {
    id: "T3.7-identity",
    title: "EndTxn of somebody else",
    promise: "Nobody but its owner ends a transaction, and each client is told by the code its library knows.",
    source: "apache/kafka TransactionCoordinator.endTransaction; KIP-588",
    versions: "EndTxn 0 to 5",
    ..Scenario::kafka(Area::Coordinator, identity)
};

fn identity(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let id = probe.id("x");
    a.init(&id)?;
    let me = a.open(&t, &id, "a")?;
    let unknown = Producer { id: Some(probe.id("unknown")), stamp: me.stamp };
    let nameless = Producer { id: Some(String::new()), stamp: me.stamp };
    let last = if probe.needs_version_2().is_ok() { 5 } else { 4 };
    for version in offered(probe, ApiKey::EndTxn, 0..=last)? {
        a.using(|versions| versions.end_txn = version);
        for outcome in [Commit, Abort] {
            a.end(&me.with_producer_id(me.producer_id() + 1_000_000), outcome).is(49)?;
            a.end(&unknown, outcome).is(49)?;
            a.end(&nameless, outcome).is(42)?;
            for epoch in [me.epoch() - 1, me.epoch() + 5] {
                a.end(&me.at_epoch(epoch), outcome).is(fenced(version, 2))?;
            }
        }
    }
    a.using(|versions| versions.end_txn = 3).end(&me, Commit).is(0)?;
    a.reads(&t, &["a"])
}
