//! Table 3.3: how InitProducerId is answered, by what is known of the id and what is supplied.

use semel_types::ProducerEpoch;
use semel_wire::{RawProducerEpoch, RawProducerId};

use super::State;
use crate::{
    Actor, Answer,
    Outcome::Commit,
    Probe, Producer, Scenario,
    actor::transact::init_request,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&EPOCHS, &PAIRS, &HALF, &NULL, &UNKNOWN];

const EPOCHS: Scenario = Scenario {
    id: "T3.3-epochs",
    title: "InitProducerId without a pair, by state and version",
    promise: "Each new instance has a higher epoch than the one before, in every state of the transaction.",
    source: "apache/kafka TransactionCoordinator.prepareInitProducerIdTransit; KIP-98",
    versions: "InitProducerId 0 to 5",
    ..Scenario::kafka(Area::Init, epochs)
};

fn epochs(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    for version in 0..=5 {
        for state in State::ALL {
            let mut a = probe.actor("A")?;
            let (me, _) = state.reach(probe, &mut a, &t)?;
            let id = me.id_or_empty().to_owned();
            let mut b = probe.actor("B")?;
            let new = b.using(|versions| versions.init_producer_id = version).init(&id)?;
            probe.same("the producer id", new.producer_id(), me.producer_id())?;
            let rises = new.epoch() > me.epoch();
            probe.holds(
                rises,
                &format!("epoch {} after {} in {state:?}", new.epoch(), me.epoch()),
                "a higher one",
            )?;
        }
    }
    Ok(())
}

const PAIRS: Scenario = Scenario {
    id: "T3.3-pairs",
    title: "InitProducerId with a pair (KIP-360)",
    promise: "A producer recovers by itself with what it last had; who was replaced cannot.",
    source: "KIP-360; apache/kafka TransactionMetadata",
    basis: &[Basis::Kip],
    versions: "InitProducerId 3 to 5",
    ..Scenario::kafka(Area::Init, pairs)
};

fn pairs(probe: &mut Probe) -> Kept {
    for version in 3..=5 {
        let fenced = if version < 4 { 47 } else { 90 };
        let mut a = probe.actor("A")?;
        a.using(|versions| versions.init_producer_id = version);
        let first = a.init(&probe.id("x"))?;
        let second = a.renew(&first).is(0)?;
        probe.same("the epoch after a recovery", second.epoch(), first.epoch() + 1)?;
        probe.same("what a repeated recovery gets", a.renew(&first).is(0)?, second.clone())?;
        let third = a.renew(&second).is(0)?;
        probe.same("the epoch after the next one", third.epoch(), second.epoch() + 1)?;
        a.renew(&first).is(fenced)?;
        a.renew(&third.at_epoch(third.epoch() + 1)).is(fenced)?;
        a.renew(&third.with_producer_id(third.producer_id() + 1_000_000)).is(fenced)?;
        probe.actor("B")?.init(third.id_or_empty())?;
        a.renew(&third).is(fenced)?;
    }
    Ok(())
}

const HALF: Scenario = Scenario {
    id: "T3.3-half",
    title: "InitProducerId with half a pair",
    promise: "A request that makes no sense is refused before it changes anything.",
    source: "apache/kafka KafkaApis.handleInitProducerIdRequest",
    versions: "InitProducerId 3 to 5",
    ..Scenario::kafka(Area::Init, half)
};

fn half(probe: &mut Probe) -> Kept {
    for version in 3..=5 {
        let mut a = probe.actor("A")?;
        let me = a.init(&probe.id("x"))?;
        let mut request = init_request(me.id.as_deref(), 60_000, None);
        request.producer_id = me.stamp.id.into();
        ask(&mut a, "InitProducerId with an id and no epoch", &request, version).is(42)?;
        request.producer_id = RawProducerId::NONE;
        request.producer_epoch = RawProducerEpoch::from(ProducerEpoch::ZERO);
        ask(&mut a, "InitProducerId with an epoch and no id", &request, version).is(42)?;
        probe.same("the epoch after it", a.renew(&me).is(0)?.epoch(), me.epoch() + 1)?;
    }
    Ok(())
}

fn ask(
    a: &mut Actor,
    said: &str,
    request: &semel_wire::api::init_producer_id::InitProducerIdRequest,
    version: i16,
) -> Answer<()> {
    a.ask(said, request, version, |response| response.error_code).map(|_| ())
}

const NULL: Scenario = Scenario {
    id: "T3.3-null",
    title: "InitProducerId without a transactional id, whatever is supplied",
    promise: "An idempotent producer that asks anew starts with a clean identity.",
    source: "apache/kafka TransactionCoordinator.handleInitProducerId; franz-go sends its old pair",
    versions: "InitProducerId 0 to 5",
    ..Scenario::kafka(Area::Init, null)
};

fn null(probe: &mut Probe) -> Kept {
    let mut a = probe.actor("A")?;
    let first = a.init_plain()?;
    for version in 0..=5 {
        let pair = (version >= 3).then_some(first.stamp);
        let new: Producer =
            a.using(|versions| versions.init_producer_id = version).try_init(None, 60_000, pair).is(0)?;
        probe.same("the epoch", new.epoch(), 0)?;
        probe.holds(new.producer_id() != first.producer_id(), "the producer id", "another one")?;
    }
    Ok(())
}

const UNKNOWN: Scenario = Scenario {
    id: "T3.3-unknown",
    title: "InitProducerId with a pair for an id that nobody has",
    promise: "A producer whose id the broker has forgotten gets a new one instead of an error for ever.",
    source: "apache/kafka TransactionCoordinatorTest; KIP-360",
    versions: "InitProducerId 4",
    ..Scenario::kafka(Area::Init, unknown)
};

fn unknown(probe: &mut Probe) -> Kept {
    let t = probe.topic()?;
    let mut a = probe.actor("A")?;
    let old = a.init(&probe.id("x"))?;
    let stranger = Producer { id: Some(probe.id("forgotten")), stamp: old.stamp };
    let new = a.renew(&stranger).is(0)?;
    probe.holds(new.producer_id() != old.producer_id(), "the producer id", "one of its own")?;
    a.transact(&t, &new, (0, "a"), Commit)?;
    a.reads(&t, &["a"])
}
