//! Table 3.3: how InitProducerId is answered, by what is known of the id and what is supplied.

use semel_types::ProducerEpoch;
use semel_wire::{ApiKey, RawProducerEpoch, RawProducerId};

use super::{State, fenced, offered};
use crate::{
    Actor, Answer,
    Outcome::Commit,
    Probe, Producer, Scenario,
    actor::transact::init_request,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&EPOCHS, &PAIRS, &OPEN, &HALF, &REFUSED, &NULL, &UNKNOWN];

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
    for version in offered(probe, ApiKey::InitProducerId, 0..=5)? {
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
    let t = probe.topic()?;
    for version in offered(probe, ApiKey::InitProducerId, 3..=5)? {
        for state in [State::Empty, State::CompleteCommit, State::CompleteAbort] {
            let mut a = probe.actor("A")?;
            let (first, _) = state.reach(probe, &mut a, &t)?;
            recovers(probe, a.using(|versions| versions.init_producer_id = version), &first)?;
        }
    }
    Ok(())
}

/// Every row of a pair: the last one, one that was answered already, one that was replaced, one of nobody.
fn recovers(probe: &Probe, a: &mut Actor, first: &Producer) -> Kept {
    let due = fenced(a.session.versions.init_producer_id, 4);
    let second = a.renew(first).is(0)?;
    probe.same("the producer id after a recovery", second.producer_id(), first.producer_id())?;
    probe.same("the epoch after a recovery", second.epoch(), first.epoch() + 1)?;
    probe.same("what a repeated recovery gets", a.renew(first).is(0)?, second.clone())?;
    let third = a.renew(&second).is(0)?;
    probe.same("the epoch after the next one", third.epoch(), second.epoch() + 1)?;
    a.renew(first).is(due)?;
    a.renew(&third.at_epoch(third.epoch() + 1)).is(due)?;
    a.renew(&third.with_producer_id(third.producer_id() + 1_000_000)).is(due)?;
    let next = probe.actor("B")?.init(third.id_or_empty())?;
    probe.same("the epoch of the next instance", next.epoch(), third.epoch() + 1)?;
    a.renew(&third).is(due).map(|_| ())
}

const OPEN: Scenario = Scenario {
    id: "T3.3-open",
    title: "InitProducerId with the pair of an open transaction, by version",
    promise: "A recovery amid a transaction ends it: what was written so far is not mixed up with what comes.",
    source: "KIP-360; apache/kafka TransactionCoordinator.prepareInitProducerIdTransit",
    basis: &[Basis::Reference, Basis::Kip],
    versions: "InitProducerId 3 to 5",
    ..Scenario::kafka(Area::Init, open)
};

fn open(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::InitProducerId, 3..=5)? {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        let (me, _) = State::Ongoing.reach(probe, &mut a, &t)?;
        a.using(|versions| versions.init_producer_id = version);
        let new = a.renew(&me).is(0)?;
        let seen = (new.producer_id(), new.epoch());
        probe.same("producer id and epoch after it", seen, (me.producer_id(), me.epoch() + 1))?;
        a.end(&me, Commit).is(90)?;
        a.produce(&t, &me, 1, &["late"]).is(47)?;
        a.transact(&t, &new, (0, "next"), Commit)?;
        a.reads(&t, &["next"])?;
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
    for version in offered(probe, ApiKey::InitProducerId, 3..=5)? {
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

const REFUSED: Scenario = Scenario {
    id: "T3.3-refused",
    title: "InitProducerId with an empty id or a timeout out of range, by version",
    promise: "What no broker can keep is refused to clients of every age, and nothing is left of the attempt.",
    source: "apache/kafka TransactionCoordinator.handleInitProducerId",
    versions: "InitProducerId 0 to 5",
    ..Scenario::kafka(Area::Init, refused)
};

fn refused(probe: &mut Probe) -> Kept {
    let id = probe.id("x");
    let mut a = probe.actor("A")?;
    for version in offered(probe, ApiKey::InitProducerId, 0..=5)? {
        a.using(|versions| versions.init_producer_id = version);
        a.try_init(Some(""), 60_000, None).is(42)?;
        for timeout_ms in [0, -1, i32::MAX] {
            a.until_free(|a| a.try_init(Some(&id), timeout_ms, None)).is(50)?;
        }
    }
    a.describe(&id).is(105).map(|_| ())
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
    for version in offered(probe, ApiKey::InitProducerId, 0..=5)? {
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
    versions: "InitProducerId 3 to 5",
    ..Scenario::kafka(Area::Init, unknown)
};

fn unknown(probe: &mut Probe) -> Kept {
    for version in offered(probe, ApiKey::InitProducerId, 3..=5)? {
        let t = probe.topic()?;
        let mut a = probe.actor("A")?;
        a.using(|versions| versions.init_producer_id = version);
        let old = a.init(&probe.id("x"))?;
        let stranger = Producer { id: Some(probe.id("forgotten")), stamp: old.stamp };
        let new = a.renew(&stranger).is(0)?;
        probe.holds(new.producer_id() != old.producer_id(), "the producer id", "one of its own")?;
        probe.same("the epoch", new.epoch(), 0)?;
        a.transact(&t, &new, (0, "a"), Commit)?;
        a.reads(&t, &["a"])?;
    }
    Ok(())
}
