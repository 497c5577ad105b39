//! Area `security`: what a client may do is told it at once, and nothing is stored that it was refused.
//!
//! What these do not do: grant and take rights, which needs an authorizer and users of its own.

use semel_wire::{
    WireCode,
    api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse},
};

use crate::{
    Actor,
    Outcome::Commit,
    Probe, Scenario,
    scenario::{Area, Basis, Kept},
    session::Place,
};

/// This file's scenarios.
pub(super) const ALL: &[&Scenario] = &[&B98];

const B98: Scenario = Scenario {
    id: "B98",
    title: "the right to an identity and the right to write agree",
    promise: "A producer learns at its start whether it may write; a record that was refused is not stored.",
    source: "KIP-679; strimzi/strimzi-kafka-operator#9261; banzaicloud/koperator#365; redpanda-data/redpanda#8186",
    basis: &[Basis::Protocol],
    versions: "classic, Metadata 12",
    left_out: "users with and without rights, and a right that is taken away: brokers have no way in common to make them",
    ..Scenario::kafka(Area::Security, b98)
};

fn b98(probe: &mut Probe) -> Kept {
    let (t, id) = (probe.topic()?, probe.id("x"));
    let mut a = probe.actor("A")?;
    let may_write = may_write(&mut a, &t)?;
    let identity = a.until_free(|actor| actor.try_init(None, 60_000, None));
    // Where the broker says what this client may do, it answers by it. To write to any topic is enough (KIP-679).
    if may_write == Some(true) {
        probe.same("InitProducerId of one who may write", identity.code(), Some(0))?;
    }
    if identity.code() == Some(0) {
        probe.holds(
            may_write != Some(false),
            "Metadata: what the client may do",
            "to write, since it has an identity",
        )?;
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

/// WRITE among the operations of a topic, as ACLs number them.
const WRITE: i32 = 1 << 4;

/// May this client write to the topic, by the broker's own word? `None` if it says nothing of it.
fn may_write(a: &mut Actor, t: &Place) -> Kept<Option<bool>> {
    let topic = MetadataRequestTopic { name: Some(t.topic.as_str().into()), ..Default::default() };
    let request = MetadataRequest {
        topics: Some(vec![topic]),
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    let code =
        |response: &MetadataResponse| response.topics.first().map_or(WireCode(-1), |topic| topic.error_code);
    let answer = a.ask("Metadata with what the client may do", &request, 12, code).is(0)?;
    let operations = answer.topics.first().map(|topic| topic.topic_authorized_operations);
    Ok(operations.filter(|operations| *operations != i32::MIN).map(|operations| operations & WRITE != 0))
}
