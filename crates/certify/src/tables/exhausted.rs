//! Tables 3.3 and 3.7 where a producer id has no epochs left: 32,766 is the last one that is used, 32,767 stands in
//! markers only.
//!
//! Each id gets there by recovering over and over (KIP-360), many requests under way at once. In a thorough run only: it
//! takes seconds and tens of thousands of requests for each id.

use std::thread;

use semel_wire::{ApiKey, api::init_producer_id::InitProducerIdRequest};

use crate::{
    Actor, Failure,
    Outcome::{Abort, Commit},
    Probe, Producer, Scenario,
    actor::transact::init_request,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&RECOVERY, &STRANGER, &TAKEOVER, &END_V2];

/// The last epoch that a producer uses.
const LAST: i16 = 32_766;

/// Requests that are under way at once.
const AT_ONCE: i16 = 500;

/// A producer of a fresh id in the last epoch.
fn spent(probe: &Probe, a: &mut Actor) -> Kept<Producer> {
    let me = a.init(&probe.id("x"))?;
    let mut at = me.epoch();
    while at < LAST {
        let until = LAST.min(at.saturating_add(AT_ONCE));
        for epoch in at..until {
            let request = init_request(me.id.as_deref(), 60_000, Some(me.at_epoch(epoch).stamp));
            a.session.client.send(&request, 4)?;
        }
        for epoch in at..until {
            let came = a.session.client.receive::<InitProducerIdRequest>(4)?;
            let seen = (came.error_code.get(), came.producer_epoch.0);
            probe.same(
                &format!("InitProducerId with epoch {epoch}: code and epoch"),
                seen,
                (0, epoch + 1),
            )?;
        }
        at = until;
    }
    Ok(me.at_epoch(LAST))
}

/// Several ids at once.
///
/// # Errors
/// [`Failure::NotRun`] if the run is not a thorough one.
fn several<const N: usize>(probe: &Probe) -> Kept<[Producer; N]> {
    if !probe.rounds(false, true) {
        return Err(Failure::NotRun("it takes tens of thousands of requests: --thorough tries it".into()));
    }
    let spend = || spent(probe, &mut probe.actor("A")?);
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..N).map(|_| scope.spawn(spend)).collect();
        threads.into_iter().map(|one| one.join().expect("nobody breaks off")).collect::<Kept<Vec<_>>>()
    })?;
    Ok(all.try_into().expect("as many as were asked for"))
}

const RECOVERY: Scenario = Scenario {
    id: "T3.3-exhausted",
    title: "a recovery in the last epoch",
    promise: "A producer that has recovered thirty thousand times goes on under another producer id, and only it.",
    source: "KIP-360; apache/kafka TransactionMetadata",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "InitProducerId 3 to 5",
    ..Scenario::kafka(Area::Init, recovery)
};

fn recovery(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    for (me, (version, fenced)) in several::<3>(probe)?.into_iter().zip([(3, 47), (4, 90), (5, 90)]) {
        a.using(|versions| versions.init_producer_id = version);
        a.transact(&t, &me, (0, "last"), Commit)?;
        let new = a.renew(&me).is(0)?;
        probe.holds(new.producer_id() != me.producer_id(), "the producer id", "another one")?;
        probe.same("the epoch", new.epoch(), 0)?;
        probe.same("what a repeated recovery gets", a.renew(&me).is(0)?, new.clone())?;
        a.renew(&me.at_epoch(LAST - 1)).is(fenced)?;
        let next = a.renew(&new).is(0)?;
        probe.same("the epoch after the next one", next.epoch(), 1)?;
        a.renew(&me).is(fenced)?;
        a.end(&me, Commit).is(49)?;
        a.transact(&t, &next, (0, "first"), Commit)?;
    }
    a.reads(&t, &["last", "first", "last", "first", "last", "first"])
}

const STRANGER: Scenario = Scenario {
    id: "T3.3-exhausted-other",
    title: "somebody else's recovery in the last epoch",
    promise: "Who was replaced is told so, also when the id has no epochs left.",
    source: "apache/kafka TransactionMetadata",
    versions: "InitProducerId 4",
    ..Scenario::stricter(Area::Init, "-1", stranger)
};

fn stranger(probe: &mut Probe) -> Kept {
    let [me] = several::<1>(probe)?;
    let mut a = probe.actor("A")?;
    for epoch in [0, LAST - 2] {
        a.renew(&me.at_epoch(epoch)).is(90)?;
    }
    Ok(())
}

const TAKEOVER: Scenario = Scenario {
    id: "T3.3-exhausted-takeover",
    title: "a takeover in the last epoch, of an id that rests and of one with an open transaction",
    promise: "An application restarts as often as it likes, and each time whoever was there before is shut out.",
    source: "apache/kafka TransactionMetadata; KIP-890",
    versions: "InitProducerId 4",
    ..Scenario::kafka(Area::Init, takeover)
};

fn takeover(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let [resting, open] = several::<2>(probe)?;
    let (mut a, mut b) = (probe.actor("A")?, probe.actor("B")?);
    for (me, is_open) in [(&resting, false), (&open, true)] {
        if is_open {
            a.add(me, &[&t])?;
            a.produce(&t, me, 0, &["aborted"]).is(0)?;
        }
        let new = b.init(me.id_or_empty())?;
        probe.holds(new.producer_id() != me.producer_id(), "the producer id", "another one")?;
        // The abort of what was open may take the new producer id, and the takeover then its next epoch.
        probe.holds(new.epoch() <= i16::from(is_open), "the epoch", "0, or 1 after an abort")?;
        a.produce(&t, me, 1, &["late"]).is_any(&[47, 49])?;
        a.end(me, Commit).is(49)?;
        b.transact(&t, &new, (0, "next"), Commit)?;
    }
    b.reads(&t, &["next", "next"])?;
    let dump = b.dump(&t)?;
    let own = dump.iter().filter(|batch| batch.raw_producer_id().get() == open.producer_id());
    let marker =
        own.filter(|batch| batch.attributes().is_control()).map(|marker| marker.raw_producer_epoch().0);
    probe.same("epochs of the markers that shut the open one out", marker.collect::<Vec<_>>(), vec![LAST + 1])
}

const END_V2: Scenario = Scenario {
    id: "T3.7-exhausted",
    title: "the end of a transaction in the last epoch, version 5",
    promise: "A producer of thirty thousand transactions goes on under another producer id, whatever answer was lost.",
    source: "KIP-890; apache/kafka PR #18660",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "transaction.version 2",
    ..Scenario::kafka(Area::Coordinator, end_v2)
};

fn end_v2(probe: &mut Probe) -> Kept {
    probe.needs_version_2()?;
    probe.needs(ApiKey::InitProducerId, 4)?;
    let t = probe.topic()?;
    let mut a = probe.actor("A")?.version_2();
    let ids = several::<3>(probe)?;
    for (me, (outcome, is_written)) in ids.iter().zip([(Commit, true), (Abort, true), (Abort, false)]) {
        if is_written {
            a.produce_when_free(&t, me, 0, &["last"]).is(0)?;
        }
        let after = a.end(me, outcome).is(0)?;
        probe.holds(after.producer_id() != me.producer_id(), "the producer id", "another one")?;
        probe.same("the epoch", after.epoch(), 0)?;
        probe.same("what a repeated end gets", a.end(me, outcome).is(0)?, after.clone())?;
        // By the state, or by the producer id, which is not the id's any more.
        a.end(me, outcome.other()).is_any(&[48, 49, 90])?;
        a.produce_when_free(&t, me, 1, &["late"]).is_any(&[47, 49])?;
        a.transact(&t, &after, (0, "next"), Commit)?;
        a.end(me, outcome).is_any(&[49, 90])?;
    }
    a.reads(&t, &["last", "next", "next", "next"])
}
