//! Area `coordinator`: requests of transactions sent without waiting, which are all answered, in their order.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::Duration,
};

use semel_wire::api::{
    add_partitions_to_txn::AddPartitionsToTxnRequest, end_txn::EndTxnRequest, produce::ProduceRequest,
};

use crate::{
    Actor, ClientError, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario, Trace,
    actor::transact::{add_request, end_request},
    scenario::{Area, Basis, Kept, Needs},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B48, &B48R];

const B48: Scenario = Scenario {
    id: "B48",
    title: "every request of two interleaved producers is answered",
    promise: "No request of a transaction stays unanswered, whatever it meets.",
    source: "redpanda-data/redpanda#24468 and #24445",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Coordinator, b48)
};

fn b48(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let pipeline = |name: &str| -> Kept {
        let (mut a, id) = (probe.actor(name)?, probe.id(name));
        // A machine that is busy with other scenarios is not the broker's silence.
        a.session.client.set_patience(Duration::from_secs(probe.rounds(10, 5)))?;
        for round in 0..probe.rounds(60, 2000) {
            let me = a.init(&id)?;
            definite(&exchange(&mut a, &t, &me, round)?)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| pipeline("B"));
        pipeline("A")?;
        other.join().expect("nobody breaks off")
    })?;
    t.iter().try_for_each(|place| probe.actor("reader")?.settles(place).map(|_| ()))
}

/// Two transactions without waiting for any answer, a gap of up to three milliseconds before each end; then all codes,
/// whose answers have to come in the order of the requests.
fn exchange(a: &mut Actor, t: &[Place], me: &Producer, round: u64) -> Result<Vec<i16>, ClientError> {
    for (place, outcome) in t.iter().zip([Commit, Abort]) {
        a.session.client.send(&add_request(me, &[place]), 3)?;
        a.send_produce(place, me, 0, &["one"])?;
        thread::sleep(Duration::from_millis(round % 4));
        a.session.client.send(&end_request(me, outcome), 3)?;
    }
    let mut codes = Vec::new();
    for _ in t {
        // Receiving checks the number of the request.
        let added = a.session.client.receive::<AddPartitionsToTxnRequest>(3)?;
        let added = added.results_by_topic.iter().flat_map(|topic| &topic.results_by_partition);
        codes.extend(added.map(|one| one.partition_error_code.get()));
        let written = a.session.client.receive::<ProduceRequest>(9)?;
        let written = written.responses.iter().flat_map(|topic| &topic.partitions);
        codes.extend(written.map(|one| one.error_code.get()));
        codes.push(a.session.client.receive::<EndTxnRequest>(3)?.error_code.get());
    }
    Ok(codes)
}

/// -1 is never an answer.
fn definite(codes: &[i16]) -> Kept {
    if codes.contains(&-1) {
        Err(Failure::broken("requests of two transactions", format!("{codes:?}"), "definite codes"))
    } else {
        Ok(())
    }
}

const B48R: Scenario = Scenario {
    id: "B48r",
    title: "every request of two interleaved producers is answered, through kills of the broker",
    promise: "No request of a transaction stays unanswered by a broker that has just come up, whatever it meets.",
    source: "redpanda-data/redpanda#24468 and #24445",
    basis: &[Basis::Protocol],
    needs: Needs::Restart(&[]),
    ..Scenario::kafka(Area::Coordinator, b48r)
};

fn b48r(probe: &mut Probe) -> Kept {
    let t = probe.partitions(2)?;
    let (ids, address) = ([probe.id("A"), probe.id("B")], probe.address().to_owned());
    let kills = probe.rounds(1, 9);
    let (rounds, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| -> Kept {
        let pipelines = ids.iter().map(|id| {
            let (address, t, rounds, is_over) = (&address, &t, &rounds, &is_over);
            scope.spawn(move || go_on_through_kills(address, id, t, rounds, is_over))
        });
        let pipelines: Vec<_> = pipelines.collect();
        let killed = kill_now_and_then(probe, &rounds, kills);
        is_over.store(true, Ordering::Relaxed);
        for pipeline in pipelines {
            let broken = pipeline.join().expect("a pipeline does not break off")?;
            let said = format!("{broken} working connections broke, the broker was killed {kills} times");
            probe.holds(broken <= kills, &said, "not more than kills")?;
        }
        killed
    })?;
    let mut reader = probe.actor("reader")?;
    ids.iter().try_for_each(|id| reader.init(id).map(|_| ()))?;
    t.iter().try_for_each(|place| reader.settles(place).map(|_| ()))
}

/// Kills the broker each time the pipelines have done their share since the last time, and sees them go on after it.
fn kill_now_and_then(probe: &mut Probe, rounds: &AtomicU32, kills: u32) -> Kept {
    let share = probe.rounds(60, 400);
    for kill in 0..=kills {
        let due = rounds.load(Ordering::Relaxed) + share;
        probe.eventually_within(Duration::from_secs(120), "the pipelines go on", || {
            Ok(rounds.load(Ordering::Relaxed) >= due)
        })?;
        if kill < kills {
            probe.kill()?;
            probe.restart()?;
        }
    }
    Ok(())
}

/// Two transactions at a time over one connection after the other; how many of them broke in the midst of it. One on
/// which nothing was answered yet may have been taken by a broker that was being killed.
fn go_on_through_kills(
    address: &str,
    id: &str,
    t: &[Place],
    rounds: &AtomicU32,
    is_over: &AtomicBool,
) -> Kept<u32> {
    let mut broken = 0;
    while !is_over.load(Ordering::Relaxed) {
        // Nobody listens yet.
        let Ok(mut a) = Actor::connect(id, address, &Trace::default()) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let mut is_working = false;
        while !is_over.load(Ordering::Relaxed) {
            let Some(codes) = init_and_exchange(&mut a, id, t, rounds.load(Ordering::Relaxed).into())? else {
                broken += u32::from(is_working);
                break;
            };
            definite(&codes)?;
            is_working = true;
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(broken)
}

/// The codes of two transactions of a new owner; `None` once the connection is closed. Silence is a failure.
fn init_and_exchange(a: &mut Actor, id: &str, t: &[Place], round: u64) -> Kept<Option<Vec<i16>>> {
    let given = a.until_free(|actor| actor.try_init(Some(id), 60_000, None));
    if given.code().is_none() {
        return given.is_cut().map(|()| None);
    }
    match exchange(a, t, &given.is(0)?, round) {
        Ok(codes) => Ok(Some(codes)),
        Err(error) if error.is_closed() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
