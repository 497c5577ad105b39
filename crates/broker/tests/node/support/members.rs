//! Members of groups in a few words.

use semel_types::{ConnectionNumber, PartitionIndex};
use semel_wire::{
    RawOffset, Text,
    api::{
        heartbeat::{HeartbeatRequest, HeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
        leave_group::{LeaveGroupRequest, LeaveGroupResponse, LeavingMember},
        offset_commit::{
            OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic,
        },
        sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse},
    },
};

use super::{Broker, Outcome, Place, Ticket};

/// Session timeout of every member here.
pub const SESSION_MS: i32 = 10_000;
/// Rebalance timeout of every member here.
pub const REBALANCE_MS: i32 = 60_000;

/// Whoever talks to a group: a member, or what it once was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Someone {
    pub group: &'static str,
    pub id: String,
    pub instance: Option<&'static str>,
    pub generation: i32,
}

impl Someone {
    /// Not in any group yet.
    pub fn new(group: &'static str) -> Self {
        Self { group, id: String::new(), instance: None, generation: -1 }
    }

    /// A static member.
    pub fn named(group: &'static str, instance: &'static str) -> Self {
        Self { instance: Some(instance), ..Self::new(group) }
    }

    fn instance(&self) -> Option<Text> {
        self.instance.map(Text::from)
    }
}

/// What a consumer of these topics says of itself.
pub fn subscription(topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0, 1];
    bytes.extend(i32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        bytes.extend(i16::try_from(topic.len()).unwrap().to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff; 4]);
    bytes
}

/// JoinGroup with these protocols.
pub fn join_request(who: &Someone, protocols: &[(&str, &[u8])]) -> JoinGroupRequest {
    let protocols = protocols.iter().map(|(name, metadata)| JoinGroupRequestProtocol {
        name: Text::from(*name),
        metadata: metadata.to_vec().into(),
    });
    JoinGroupRequest {
        group_id: Text::from(who.group),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: Text::from(who.id.as_str()),
        group_instance_id: who.instance(),
        protocol_type: Text::from("consumer"),
        protocols: protocols.collect(),
        ..Default::default()
    }
}

impl Broker {
    /// JoinGroup version 5, as a consumer of topic `t`.
    pub fn join(&mut self, on: ConnectionNumber, who: &Someone) -> Ticket {
        self.join_in(on, 5, who)
    }

    /// The same in a version.
    pub fn join_in(&mut self, on: ConnectionNumber, version: i16, who: &Someone) -> Ticket {
        let mut request = join_request(who, &[("range", &subscription(&["t"]))]);
        if version < 5 {
            request.group_instance_id = None;
        }
        self.park(on, version, &request)
    }

    /// The round trip for an id (KIP-394), and the join that waits.
    #[track_caller]
    pub fn enter(&mut self, on: ConnectionNumber, who: &mut Someone) -> Ticket {
        let first = self.join(on, who);
        if who.instance.is_some() {
            return first;
        }
        let given: JoinGroupResponse = self.late(first).expect("a new member is sent for its id at once");
        assert_eq!(given.error_code.get(), 79);
        who.id = given.member_id.as_str().to_owned();
        self.join(on, who)
    }

    /// The answer to a join, taken in by the member.
    #[track_caller]
    pub fn joined(&mut self, ticket: Ticket, who: &mut Someone) -> JoinGroupResponse {
        let answer: JoinGroupResponse = self.late(ticket).expect("the join is answered");
        assert_eq!(answer.error_code.get(), 0, "{answer:?}");
        who.id = answer.member_id.as_str().to_owned();
        who.generation = answer.generation_id;
        answer
    }

    /// SyncGroup version 3.
    pub fn sync(&mut self, on: ConnectionNumber, who: &Someone, parts: &[(&str, &str)]) -> Ticket {
        let assignments = parts.iter().map(|(member, part)| SyncGroupRequestAssignment {
            member_id: Text::from(*member),
            assignment: part.as_bytes().to_vec().into(),
        });
        let request = SyncGroupRequest {
            group_id: Text::from(who.group),
            generation_id: who.generation,
            member_id: Text::from(who.id.as_str()),
            group_instance_id: who.instance(),
            assignments: assignments.collect(),
            ..Default::default()
        };
        self.park(on, 3, &request)
    }

    /// Code and part of the answer to a SyncGroup.
    #[track_caller]
    pub fn synced_part(&mut self, ticket: Ticket) -> (i16, String) {
        let answer: SyncGroupResponse = self.late(ticket).expect("the sync is answered");
        (answer.error_code.get(), String::from_utf8(answer.assignment.to_vec()).unwrap())
    }

    /// Heartbeat version 3.
    pub fn heartbeat(&mut self, who: &Someone) -> i16 {
        let on = self.connect();
        let request = HeartbeatRequest {
            group_id: Text::from(who.group),
            generation_id: who.generation,
            member_id: Text::from(who.id.as_str()),
            group_instance_id: who.instance(),
        };
        self.ask::<_, HeartbeatResponse>(on, 3, &request).answer().error_code.get()
    }

    /// LeaveGroup version 4: the code of each.
    pub fn leave(&mut self, group: &str, who: &[&Someone]) -> Vec<i16> {
        let members = who.iter().map(|who| LeavingMember {
            member_id: Text::from(who.id.as_str()),
            group_instance_id: who.instance(),
            ..Default::default()
        });
        let request = LeaveGroupRequest {
            group_id: Text::from(group),
            members: members.collect(),
            ..Default::default()
        };
        let on = self.connect();
        let answer: LeaveGroupResponse = self.ask(on, 4, &request).answer();
        assert_eq!(answer.error_code.get(), 0);
        answer.members.iter().map(|member| member.error_code.get()).collect()
    }

    /// OffsetCommit version 8 of a member.
    pub fn commit_as(&mut self, who: &Someone, place: Place<'_>, offset: i64) -> i16 {
        let request = OffsetCommitRequest {
            group_id: Text::from(who.group),
            generation_id_or_member_epoch: who.generation,
            member_id: Text::from(who.id.as_str()),
            group_instance_id: who.instance(),
            topics: vec![OffsetCommitTopic {
                name: Text::from(place.0),
                partitions: vec![OffsetCommitPartition {
                    partition_index: PartitionIndex::new(place.1),
                    committed_offset: RawOffset(offset),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let on = self.connect();
        let response: OffsetCommitResponse = self.ask(on, 8, &request).answer();
        response.topics[0].partitions[0].error_code.get()
    }

    /// A stable group of so many dynamic members; the first leads, each has its own part `p0`, `p1`.
    #[track_caller]
    pub fn stable_group(&mut self, group: &'static str, size: usize) -> Vec<(ConnectionNumber, Someone)> {
        let mut members: Vec<_> = (0..size).map(|_| (self.connect(), Someone::new(group))).collect();
        self.settle_group(&mut members);
        members
    }

    /// All of them join and sync.
    #[track_caller]
    pub fn settle_group(&mut self, members: &mut [(ConnectionNumber, Someone)]) {
        let mut joins = Vec::new();
        for (on, who) in members.iter_mut() {
            let ticket = if who.id.is_empty() { self.enter(*on, who) } else { self.join(*on, who) };
            joins.push(ticket);
        }
        self.pass(6000);
        let mut leader = 0;
        for (at, (ticket, (_, who))) in joins.into_iter().zip(members.iter_mut()).enumerate() {
            let answer = self.joined(ticket, who);
            if answer.leader == answer.member_id {
                leader = at;
            }
        }
        let parts: Vec<_> =
            members.iter().enumerate().map(|(at, (_, who))| (who.id.clone(), format!("p{at}"))).collect();
        let parts: Vec<_> = parts.iter().map(|(id, part)| (id.as_str(), part.as_str())).collect();
        let mut syncs = Vec::new();
        for (at, (on, who)) in members.iter().enumerate() {
            syncs.push(self.sync(*on, who, if at == leader { &parts } else { &[] }));
        }
        for (at, ticket) in syncs.into_iter().enumerate() {
            assert_eq!(self.synced_part(ticket), (0, format!("p{at}")));
        }
    }
}

/// The outcome's answer, for requests whose answer is a list of codes.
pub fn only(outcome: Outcome<Vec<i16>>) -> i16 {
    outcome.answer()[0]
}
