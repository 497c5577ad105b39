//! One group as JSON: members and what they have, offsets and what lies before them, and why it rebalanced.
//!
//! All of it is one cut of the state. Field names and units are those of `docs/admin-api.yaml`.

use semel_broker::State;
use semel_events::GroupMember;
use semel_groups::{
    Group, Kind, Live, Membership, Phase, StoredOffset, Who,
    consumer::Roster,
    history::{Cause, Reason, Round},
    streams,
};
use semel_types::{GroupId, PartitionHandle, PartitionIndex};
use serde_json::{Value, json};

use super::{describe::place_json, reply::Failure};
use crate::{node_thread::Inspected, units};

/// Describes a group that exists, or whose first members are on their way, as ListGroups has it.
///
/// # Errors
/// There is none of the name.
pub fn group(seen: &Inspected, id: &GroupId) -> Result<Value, Failure> {
    let state = &seen.inspection.state;
    let live = seen.inspection.groups.group(id).map(|live| &**live);
    let nobody = Group::default();
    let on_their_way = || live.is_some_and(Live::is_rebalancing).then_some(&nobody);
    let group = state.groups.group(id).or_else(on_their_way);
    let group = group.ok_or_else(|| Failure::not_found(format!("there is no group {:?}", id.as_str())))?;
    let rounds: Vec<_> =
        seen.inspection.groups.history().of(id).map(|round| self::round(seen, round)).collect();
    let offsets: Vec<_> = state.groups.offsets(id).map(|stored| offset(seen, group, stored)).collect();
    let phase = match group.kind() {
        Kind::Classic(membership) => Phase::of(membership, live).name(),
        Kind::Consumer(roster) => roster.phase().name(),
        Kind::Streams(roster) => roster.phase().name(),
    };
    let (protocol_type, protocol, members) = match group.kind() {
        Kind::Classic(membership) => {
            let (of_type, protocol) = (membership.protocol_type(), membership.protocol());
            (&**of_type, &**protocol, classic_members(membership))
        }
        Kind::Consumer(roster) => ("consumer", &**roster.assignor(), consumer_members(state, roster)),
        Kind::Streams(roster) => ("streams", streams::ASSIGNOR, streams_members(roster)),
    };
    Ok(json!({
        "group": id.as_str(),
        "type": group.kind().name(),
        "state": phase,
        "protocol_type": protocol_type,
        "protocol": protocol,
        "epoch": group.kind().epoch(),
        "members": members,
        "offsets": offsets,
        "rebalances": rounds,
    }))
}

/// The address that a member comes from: Kafka's protocol has it behind a slash, as Java prints one without a name.
fn host(host: &str) -> &str {
    host.strip_prefix('/').unwrap_or(host)
}

fn member(who: Who<'_>, leads: bool, partitions: Vec<Value>) -> Value {
    json!({
        "member_id": &**who.id,
        "instance_id": who.instance.as_deref(),
        "client_id": &**who.client_id,
        "client_host": host(who.client_host),
        "leader": leads,
        "partitions": partitions,
    })
}

fn classic_members(membership: &Membership) -> Vec<Value> {
    let consumes = &**membership.protocol_type() == "consumer";
    let member = |member: &GroupMember, assignment: &[u8]| {
        let parts = if consumes { assigned(assignment) } else { None };
        let parts = parts.unwrap_or_default().into_iter();
        let parts = parts.map(|(topic, partition)| json!({ "topic": topic, "partition": partition }));
        self::member(member.into(), member.id == *membership.leader(), parts.collect())
    };
    membership.seats().map(|(_, seat)| member(&seat.member, &seat.assignment)).collect()
}

fn consumer_members(state: &State, roster: &Roster) -> Vec<Value> {
    let seats = roster.seats().map(|(_, seat)| {
        let owned = seat.assigned.keys().chain(seat.revoking.keys());
        let parts = owned.map(|handle| place_json(&state.catalog, *handle)).collect();
        member((&seat.member).into(), false, parts)
    });
    seats.collect()
}

/// Members with the partitions that their active tasks read.
fn streams_members(roster: &streams::Roster) -> Vec<Value> {
    let seats = roster.seats().map(|(_, seat)| {
        let sources = roster.sources_of(seat).into_iter().flat_map(|(topic, partitions)| {
            let part = move |index: PartitionIndex| json!({ "topic": &*topic, "partition": index.get() });
            partitions.into_iter().map(part)
        });
        member((&seat.member).into(), false, sources.collect())
    });
    seats.collect()
}

/// The partitions in a consumer's assignment (upstream `ConsumerProtocolAssignment`): version, then topics with
/// partitions. `None` if it cannot be read.
fn assigned(bytes: &[u8]) -> Option<Vec<(String, i32)>> {
    let mut rest = bytes.get(2..)?;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut parts = Vec::new();
    for _ in 0..i32::from_be_bytes(take(4)?.try_into().ok()?) {
        let length = usize::from(u16::from_be_bytes(take(2)?.try_into().ok()?));
        let topic = String::from_utf8(take(length)?.to_vec()).ok()?;
        for _ in 0..i32::from_be_bytes(take(4)?.try_into().ok()?) {
            parts.push((topic.clone(), i32::from_be_bytes(take(4)?.try_into().ok()?)));
        }
    }
    Some(parts)
}

/// A committed offset beside the partition's positions.
fn offset(seen: &Inspected, group: &Group, stored: &StoredOffset) -> Value {
    let state = &seen.inspection.state;
    let handle: PartitionHandle = stored.committed.partition;
    let place = place_json(&state.catalog, handle);
    let numbers = state.eos.partition(handle);
    json!({
        "topic": place["topic"],
        "partition": place["partition"],
        "committed_offset": stored.committed.offset.get(),
        "metadata": &*stored.committed.metadata,
        "committed_at": seen.wall(stored.now).to_string(),
        "pending": group.is_unstable(handle),
        "log_start_offset": numbers.map(|numbers| numbers.log_start().get()),
        "last_stable_offset": numbers.map(|numbers| numbers.last_stable_offset().get()),
        "high_watermark": numbers.map(|numbers| numbers.next_offset().get()),
    })
}

fn round(seen: &Inspected, round: &Round) -> Value {
    let causes: Vec<_> = round.causes.iter().map(|cause| self::cause(seen, cause)).collect();
    json!({
        "epoch": round.generation,
        "members": round.members,
        "began": seen.wall(round.began).to_string(),
        "ended": seen.wall(round.ended).to_string(),
        "took_ms": round.ended.since(round.began).as_ms(),
        "causes": causes,
        "more_causes": round.more_causes,
        "text": told(round),
    })
}

fn cause(seen: &Inspected, cause: &Cause) -> Value {
    json!({
        "reason": cause.reason.name(),
        "member_id": &*cause.member,
        "instance_id": cause.instance.as_deref(),
        "client_id": &*cause.client_id,
        "client_host": host(&cause.client_host),
        "at": seen.wall(cause.at).to_string(),
        "text": why(cause),
    })
}

/// A rebalance in one sentence.
fn told(round: &Round) -> String {
    let span = units::span(round.ended.since(round.began));
    let members = units::count(round.members as u64, "member");
    let mut causes: Vec<_> = round.causes.iter().map(why).collect();
    if causes.is_empty() {
        causes.push("its cause is not known".to_owned());
    }
    if round.more_causes > 0 {
        causes.push(format!("and {} more", round.more_causes));
    }
    format!("Epoch {} with {members} after {span}: {}.", round.generation, causes.join("; "))
}

/// A cause in words.
fn why(cause: &Cause) -> String {
    let static_name = cause.instance.as_deref().map(|name| format!(", static {name:?}")).unwrap_or_default();
    let who = format!(
        "{} (client {:?} at {}{static_name})",
        cause.member,
        &*cause.client_id,
        host(&cause.client_host)
    );
    match cause.reason {
        Reason::Joined => format!("{who} joined"),
        Reason::Left => format!("{who} left"),
        Reason::SessionExpired => format!("{who} was silent for longer than its session timeout"),
        Reason::NotSynced => format!("{who} did not ask for its part in time"),
        Reason::DidNotRejoin => format!("{who} did not come back in time and was removed"),
        Reason::DidNotRevoke => format!("{who} did not give up in time what it had to and was removed"),
        Reason::StaticReplaced => format!("{who} took the place of the static member before it"),
        Reason::SubscriptionChanged => format!("{who} wants other topics"),
        Reason::LeaderRejoined => format!("{who}, the leader, joined again to assign anew"),
        Reason::Rejoined => format!("{who} joined again, as one that gave partitions up"),
        Reason::TopicsChanged => "a topic that is read came, went or grew".to_owned(),
        Reason::Restarted => "members had gone before the broker started".to_owned(),
        Reason::ProtocolChanged => "the group goes on in another protocol".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_and_a_damaged_one_is_none() {
        let bytes = b"\0\x01\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\x05\0\0\0\x07\xff\xff\xff\xff";
        assert_eq!(assigned(bytes), Some(vec![("t".to_owned(), 5), ("t".to_owned(), 7)]));
        assert_eq!(assigned(&bytes[..12]), None);
        assert_eq!(assigned(b""), None);
    }
}
