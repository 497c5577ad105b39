//! Area `recovery`: the disk is full, and then it is not.
//!
//! What these do not do: fill a disk that anything else lives on. The broker is started on a small file system of its own.

use std::time::{Duration, Instant};

use crate::{
    Actor, Failure,
    Outcome::Commit,
    Probe, Producer, Scenario,
    scenario::{Area, Basis, Kept, Needs, SmallDisk},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B84, &B84K];

/// What a coordinator without room may say besides 0: 14, 15, 16, 51 and KAFKA_STORAGE_ERROR (56).
const DONE_OR_LATER: [i16; 6] = [0, 14, 15, 16, 51, 56];

const SIZE_MIB: u32 = 40;

/// A transactional id that nobody uses is forgotten soon, but not while the disk is being filled.
const DISK: SmallDisk =
    SmallDisk { size_mib: SIZE_MIB, settings: &[("transactional.id.expiration.ms", "8000")] };

/// Records that fill the disk, from the largest to the smallest, in bytes.
const SIZES_BYTES: [usize; 4] = [512 << 10, 64 << 10, 8 << 10, 1 << 10];

/// How often the coordinator is asked while the disk is full.
const ROUNDS: usize = 50;

/// How soon it has to serve again.
const SOON: Duration = Duration::from_secs(10);

const B84: Scenario = Scenario {
    id: "B84",
    title: "a full disk under the coordinator",
    promise: "A full disk costs no transaction and no identity: clients hear that they may try again, and once there is room they go on.",
    source: "apache/kafka#8239 (KAFKA-9666), #13499 (KAFKA-14880); datastax/starlight-for-kafka#40",
    basis: &[Basis::Thread, Basis::Beyond],
    needs: Needs::SmallDisk(DISK),
    ..Scenario::stricter(
        Area::Recovery,
        "56 a few times or nothing, then the broker ends, for its only log directory counts as failed",
        b84,
    )
};

fn b84(probe: &mut Probe) -> Kept {
    fill_and_ask(probe, false)
}

const B84K: Scenario = Scenario {
    id: "B84k",
    title: "a full disk under the coordinator, and a kill while it is full",
    promise: "A broker that dies on a full disk comes up on it with everything that it had acknowledged.",
    source: "apache/kafka#8239 (KAFKA-9666), #13499 (KAFKA-14880)",
    basis: &[Basis::Thread, Basis::Beyond],
    needs: Needs::SmallDisk(DISK),
    ..Scenario::stricter(
        Area::Recovery,
        "56 a few times or nothing, then the broker ends, for its only log directory counts as failed",
        b84k,
    )
};

fn b84k(probe: &mut Probe) -> Kept {
    fill_and_ask(probe, true)
}

fn fill_and_ask(probe: &mut Probe, is_killed: bool) -> Kept {
    let (t, ballast) = (probe.topic()?, probe.topic()?);
    let (x, opened, fresh) = (probe.id("x"), probe.id("open"), probe.id("fresh"));
    let mut a = probe.actor("A")?;
    let open = a.open(&t, &opened, "open")?;
    let mut me = a.init(&x)?;
    let mut filling = Filling { ballast: &ballast, left_bytes: (SIZE_MIB as usize) << 20 };
    for _ in 0..ROUNDS {
        // What became free meanwhile is taken again.
        filling.fill(&mut a)?;
        me = ask_while_full(&mut a, &t, me)?;
        a.try_init(Some(&fresh), 60_000, None).is_any(&DONE_OR_LATER)?;
    }
    if is_killed {
        probe.kill()?;
        probe.restart_full()?;
        a = probe.actor("A again")?;
        filling.fill(&mut a)?;
        me = ask_while_full(&mut a, &t, me)?;
    }
    a.try_end(&open, Commit).is_any(&DONE_OR_LATER)?;
    probe.delete_topic(&ballast.topic)?;
    let after = serves_again(probe, &mut a, &me)?;
    // Decided while the disk was full or now: once.
    a.end(&open, Commit).is(0)?;
    a.add(&after, &[&t])?;
    a.until_not(&[19, 51, 56], |actor| actor.produce(&t, &after, 0, &["after"])).is(0)?;
    a.end(&after, Commit).is(0)?;
    for id in [&opened, &x] {
        a.comes_to(id, &["CompleteCommit"])?;
    }
    a.reads(&t, &["open", "after"])?;
    // Whether the disk took it or not, nothing keeps an id that never had a transaction.
    probe.eventually("the id that never had a transaction is forgotten", || {
        Ok(a.listed_state(&fresh)?.is_none())
    })?;
    a.init(&fresh).map(|_| ())
}

/// There is room again: the producer has its identity within seconds, one or two epochs on.
fn serves_again(probe: &Probe, a: &mut Actor, me: &Producer) -> Kept<Producer> {
    let room = Instant::now();
    let after = a.init(me.id_or_empty())?;
    probe.holds(room.elapsed() < SOON, "InitProducerId after there was room", "0 within ten seconds")?;
    probe.same("the producer id afterwards", after.producer_id(), me.producer_id())?;
    let raised = after.epoch() - me.epoch();
    probe.holds((1..=2).contains(&raised), &format!("the epoch went up by {raised}"), "one or two")?;
    Ok(after)
}

/// What fills the disk. It never writes more than the disk's size: a broker that lives on another disk after all keeps
/// that one.
struct Filling<'a> {
    ballast: &'a Place,
    left_bytes: usize,
}

impl Filling<'_> {
    /// Writes records until there is no room for one more.
    fn fill(&mut self, a: &mut Actor) -> Kept {
        for bytes in SIZES_BYTES {
            let value = "b".repeat(bytes);
            while a.produce_plain(self.ballast, &[&value]).is_any(&[0, 56])?.0 == 0 {
                let left_bytes = self.left_bytes.checked_sub(bytes);
                let too_much = || {
                    Failure::NotRun("the broker has more room than the small disk: it is not on it".into())
                };
                self.left_bytes = left_bytes.ok_or_else(too_much)?;
            }
        }
        Ok(())
    }
}

/// InitProducerId, AddPartitionsToTxn, EndTxn, once each; gives who the producer is by what it was told.
fn ask_while_full(a: &mut Actor, t: &Place, me: Producer) -> Kept<Producer> {
    let id = me.id.clone();
    let me = match a.try_init(id.as_deref(), 60_000, None).is_any(&DONE_OR_LATER)? {
        (0, given) => given,
        _ => me,
    };
    let (added, ()) = a.try_add(&me, &[t]).is_any(&DONE_OR_LATER)?;
    let ended = a.try_end(&me, Commit);
    if added == 0 {
        ended.is_any(&DONE_OR_LATER)?;
    } else {
        // 48: nothing was added, so there is nothing to be ended.
        ended.is_any(&[&DONE_OR_LATER[..], &[48]].concat())?;
    }
    Ok(me)
}
