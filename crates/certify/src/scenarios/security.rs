//! Area `security`: what a client may do is told it at once, and nothing is stored that it was refused.
//!
//! What these do not do: grant and take rights, which needs an authorizer and users of its own.

use crate::{
    Outcome::Commit,
    Probe, Scenario,
    scenario::{Area, Basis, Kept},
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B98];

const B98: Scenario = Scenario {
    id: "B98",
    title: "the right to an identity and the right to write agree",
    promise: "A producer learns at its start whether it may write; a record that was refused is not stored.",
    source: "KIP-679; strimzi/strimzi-kafka-operator#9261; banzaicloud/koperator#365; redpanda-data/redpanda#8186",
    basis: &[Basis::Protocol],
    ..Scenario::kafka(Area::Security, b98)
};

fn b98(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let identity = a.until_free(|actor| actor.try_init(None, 60_000, None));
    if identity.code() == Some(0) {
        let me = identity.is(0)?;
        a.produce(&t, &me, 0, &["plain"]).is_stored_at(0)?;
        let me = a.init(&id)?;
        a.transact(&t, &me, (0, "in a transaction"), Commit)?;
        return a.reads(&t, &["plain", "in a transaction"]);
    }
    identity.is(31)?;
    a.try_init(Some(&id), 60_000, None).is(53)?;
    a.produce_plain(&t, &["refused"]).is(29)?;
    a.stores(&t, &[])
}
