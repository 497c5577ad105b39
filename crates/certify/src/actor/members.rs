//! Members of classic groups: join, sync, heartbeat, leave, and positions committed as a member.

use bytes::Bytes;
use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, WireCode,
    api::{
        heartbeat::HeartbeatRequest,
        join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
        leave_group::{LeaveGroupRequest, LeavingMember},
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        sync_group::{SyncGroupRequest, SyncGroupRequestAssignment},
    },
};

use super::{Actor, Producer, said, transact::offset_commit_request};
use crate::{Answer, scenario::Kept, session::Place};

/// A member as it names itself in requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// The group.
    pub group: String,
    /// The generation; -1 for none.
    pub generation: i32,
    /// The member id that the broker gave; empty for none.
    pub id: String,
    /// The instance id of a static member (KIP-345).
    pub instance: Option<String>,
}

impl Member {
    /// Somebody who has not joined yet.
    #[must_use]
    pub fn new(group: &str) -> Self {
        Self { group: group.to_owned(), generation: -1, id: String::new(), instance: None }
    }

    /// The same with an instance id.
    #[must_use]
    pub fn named(self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self }
    }

    /// The same in another generation.
    #[must_use]
    pub fn in_generation(&self, generation: i32) -> Self {
        Self { generation, ..self.clone() }
    }

    /// The same under another member id.
    #[must_use]
    pub fn under(&self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self.clone() }
    }

    fn said(&self) -> String {
        let id = if self.id.is_empty() { "nobody" } else { &self.id };
        format!("{id} generation {}", self.generation)
    }
}

/// What JoinGroup gave.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The member as it is from here on.
    pub member: Member,
    /// The member ids of all; only the leader is told.
    pub all: Vec<String>,
    /// Whether this member leads.
    pub is_leader: bool,
}

/// JoinGroup as it goes over the wire: one protocol, a session of ten seconds.
#[must_use]
pub fn join_request(member: &Member) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: member.group.as_str().into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.id.as_str().into(),
        group_instance_id: member.instance.as_deref().map(Into::into),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::new() }],
        ..Default::default()
    }
}

/// The version of JoinGroup in which a member is given its id and let in at once.
const JOIN_VERSION: i16 = 3;
/// The version of JoinGroup that knows static members.
const JOIN_STATIC_VERSION: i16 = 5;

impl Actor {
    /// JoinGroup, once: the answer comes when every member has joined again.
    pub fn join(&mut self, member: &Member) -> Answer<Joined> {
        let version = Self::join_version(member);
        let came = self.session.client.call(&join_request(member), version);
        let came = came.map(|response| (response.error_code, joined(member, &response)));
        self.noted(format!("JoinGroup {} as {} v{version}", member.group, member.said()), came)
    }

    /// Sends JoinGroup and does not wait: [`Actor::next_joined`] takes the answer.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_join(&mut self, member: &Member) -> Kept {
        Ok(self.session.client.send(&join_request(member), Self::join_version(member))?)
    }

    /// The answer to the last [`Actor::send_join`].
    pub fn next_joined(&mut self, member: &Member) -> Answer<Joined> {
        let came = self.session.client.receive::<JoinGroupRequest>(Self::join_version(member));
        let came = came.map(|response| (response.error_code, joined(member, &response)));
        self.noted(format!("answer to JoinGroup {}", member.group), came)
    }

    const fn join_version(member: &Member) -> i16 {
        if member.instance.is_some() { JOIN_STATIC_VERSION } else { JOIN_VERSION }
    }

    /// SyncGroup, once; a leader hands out what each member is to have. Gives what this one has.
    pub fn sync(&mut self, member: &Member, handed_out: &[(String, Bytes)]) -> Answer<Bytes> {
        let assignments = handed_out.iter().map(|(id, assignment)| SyncGroupRequestAssignment {
            member_id: id.as_str().into(),
            assignment: assignment.clone(),
        });
        let request = SyncGroupRequest {
            group_id: member.group.as_str().into(),
            generation_id: member.generation,
            member_id: member.id.as_str().into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
            assignments: assignments.collect(),
            ..Default::default()
        };
        let said = format!("SyncGroup {} as {}", member.group, member.said());
        self.ask(&said, &request, 3, |response| response.error_code).map(|response| response.assignment)
    }

    /// Heartbeat, once.
    pub fn beat(&mut self, member: &Member) -> Answer<()> {
        let request = HeartbeatRequest {
            group_id: member.group.as_str().into(),
            generation_id: member.generation,
            member_id: member.id.as_str().into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
        };
        let said = format!("Heartbeat {} as {}", member.group, member.said());
        self.ask(&said, &request, 3, |response| response.error_code).map(|_| ())
    }

    /// LeaveGroup of one member; its code.
    pub fn leave(&mut self, member: &Member) -> Answer<()> {
        let leaving = LeavingMember {
            member_id: member.id.as_str().into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: member.group.as_str().into(),
            members: vec![leaving],
            ..Default::default()
        };
        let answer =
            self.ask(&format!("LeaveGroup {} as {}", member.group, member.said()), &request, 3, |response| {
                let own = response.members.first().map_or(WireCode(0), |member| member.error_code);
                if response.error_code.is_error() { response.error_code } else { own }
            });
        answer.map(|_| ())
    }

    /// Joins a group alone and takes its assignment: the first generation is its own.
    ///
    /// # Errors
    /// It was refused.
    pub fn join_alone(&mut self, member: &Member) -> Kept<Member> {
        let joined = self.until_free(|actor| actor.join(member)).is(0)?;
        self.sync(&joined.member, &[(joined.member.id.clone(), Bytes::from_static(b"all"))]).is(0)?;
        Ok(joined.member)
    }

    /// OffsetCommit of one partition by a member, once.
    pub fn commit_as(&mut self, member: &Member, (place, offset): (&Place, i64)) -> Answer<()> {
        let partition = OffsetCommitPartition {
            partition_index: PartitionIndex::new(place.index),
            committed_offset: RawOffset(offset),
            ..Default::default()
        };
        let name = place.topic.as_str().into();
        let request = OffsetCommitRequest {
            group_id: member.group.as_str().into(),
            generation_id_or_member_epoch: member.generation,
            member_id: member.id.as_str().into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
            topics: vec![OffsetCommitTopic { name, partitions: vec![partition], ..Default::default() }],
            ..Default::default()
        };
        let said =
            format!("OffsetCommit {} -> {offset} in {} as {}", said(&[place]), member.group, member.said());
        let answer = self.ask(&said, &request, 7, |response| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
        });
        answer.map(|_| ())
    }

    /// TxnOffsetCommit of one partition by a member, asked again while the broker is busy.
    pub fn commit_offset_as(
        &mut self,
        producer: &Producer,
        member: &Member,
        (place, offset): (&Place, i64),
    ) -> Answer<()> {
        let request = semel_wire::api::txn_offset_commit::TxnOffsetCommitRequest {
            generation_id_or_member_epoch: member.generation,
            member_id: member.id.as_str().into(),
            group_instance_id: member.instance.as_deref().map(Into::into),
            ..offset_commit_request(producer, &member.group, (place, offset))
        };
        let said = format!(
            "TxnOffsetCommit {} -> {offset} in {} as {}",
            said(&[place]),
            member.group,
            member.said()
        );
        self.until_free(|actor| actor.send_offsets(&said, &request))
    }
}

fn joined(member: &Member, response: &JoinGroupResponse) -> Joined {
    let id = response.member_id.as_str().to_owned();
    Joined {
        is_leader: !id.is_empty() && response.leader.as_str() == id,
        all: response.members.iter().map(|member| member.member_id.as_str().to_owned()).collect(),
        member: Member { generation: response.generation_id, id, ..member.clone() },
    }
}
