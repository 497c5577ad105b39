//! Members of consumer groups (KIP-848) in a few words.

use std::collections::BTreeSet;

use semel_types::PartitionIndex;
use semel_wire::{
    RawOffset, Text,
    api::{
        consumer_group_describe::{
            ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedConsumerGroup,
        },
        consumer_group_heartbeat::{
            ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatTopicPartitions,
        },
        offset_commit::{
            OffsetCommitPartition, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitTopic,
        },
    },
};

use super::{Broker, Place};

/// A partition by its topic's name and its index.
pub type Owned = (String, i32);

/// A consumer as clients are: what it was told last is what it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumer {
    pub group: &'static str,
    pub id: String,
    pub instance: Option<&'static str>,
    pub epoch: i32,
    pub topics: Vec<&'static str>,
    pub pattern: Option<&'static str>,
    pub assignor: Option<&'static str>,
    /// What it has, once it has given up the rest.
    pub owned: BTreeSet<Owned>,
    /// It has not said yet what it has.
    pub unsaid: bool,
}

impl Consumer {
    /// Not in the group yet; reads topic `t`.
    pub fn new(group: &'static str, id: &str) -> Self {
        Self {
            group,
            id: id.to_owned(),
            instance: None,
            epoch: 0,
            topics: vec!["t"],
            pattern: None,
            assignor: None,
            owned: BTreeSet::new(),
            unsaid: false,
        }
    }

    /// A static member.
    pub fn named(group: &'static str, id: &str, instance: &'static str) -> Self {
        Self { instance: Some(instance), ..Self::new(group, id) }
    }

    /// Indexes of what it has of topic `t`.
    pub fn indexes(&self) -> Vec<i32> {
        self.owned.iter().filter(|(topic, _)| topic == "t").map(|(_, index)| *index).collect()
    }

    /// All that it says when it joins.
    pub fn join_request(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: Text::from(self.group),
            member_id: Text::from(self.id.as_str()),
            member_epoch: 0,
            instance_id: self.instance.map(Text::from),
            rebalance_timeout_ms: super::REBALANCE_MS,
            subscribed_topic_names: Some(self.topics.iter().map(|topic| Text::from(*topic)).collect()),
            subscribed_topic_regex: self.pattern.map(Text::from),
            server_assignor: self.assignor.map(Text::from),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        }
    }

    /// What it says while nothing is new.
    pub fn idle_request(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: Text::from(self.group),
            member_id: Text::from(self.id.as_str()),
            member_epoch: self.epoch,
            instance_id: self.instance.map(Text::from),
            ..Default::default()
        }
    }
}

impl Broker {
    /// ConsumerGroupHeartbeat version 1, whole.
    pub fn heartbeat_raw(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        let on = self.connect();
        self.ask(on, 1, request).answer()
    }

    /// One heartbeat as a client sends it; takes in what it is told. The code.
    pub fn beat(&mut self, who: &mut Consumer) -> i16 {
        let request = if who.epoch == 0 {
            who.join_request()
        } else {
            let owned = who.unsaid.then(|| self.wire_owned(&who.owned));
            ConsumerGroupHeartbeatRequest { topic_partitions: owned, ..who.idle_request() }
        };
        let answer = self.heartbeat_raw(&request);
        match answer.error_code.get() {
            0 => {}
            110 | 25 => {
                who.epoch = 0;
                who.owned.clear();
                return answer.error_code.get();
            }
            other => return other,
        }
        who.unsaid = false;
        who.id = answer.member_id.unwrap().as_str().to_owned();
        who.epoch = answer.member_epoch;
        if let Some(assignment) = answer.assignment {
            let before = std::mem::take(&mut who.owned);
            for topic in &assignment.topic_partitions {
                let name =
                    self.state().catalog.topic_by_id(topic.topic_id).unwrap().name().as_str().to_owned();
                who.owned.extend(topic.partitions.iter().map(|index| (name.clone(), index.get())));
            }
            who.unsaid = who.owned != before;
        }
        0
    }

    fn wire_owned(&self, owned: &BTreeSet<Owned>) -> Vec<HeartbeatTopicPartitions> {
        let mut topics: Vec<HeartbeatTopicPartitions> = Vec::new();
        for (name, index) in owned {
            let Some(topic) = self.state().catalog.topic(name) else { continue };
            let index = PartitionIndex::new(*index);
            match topics.last_mut().filter(|last| last.topic_id == topic.id()) {
                Some(last) => last.partitions.push(index),
                None => {
                    topics.push(HeartbeatTopicPartitions { topic_id: topic.id(), partitions: vec![index] });
                }
            }
        }
        topics
    }

    /// It leaves: for good, or with -2 for a while. The code.
    pub fn leave_consumer(&mut self, who: &Consumer, epoch: i32) -> i16 {
        let request = ConsumerGroupHeartbeatRequest { member_epoch: epoch, ..who.idle_request() };
        self.heartbeat_raw(&request).error_code.get()
    }

    /// All of them send heartbeats until nothing changes any more.
    #[track_caller]
    pub fn settle_consumers(&mut self, members: &mut [&mut Consumer]) {
        for _ in 0..20 {
            let before: Vec<Consumer> = members.iter().map(|member| (**member).clone()).collect();
            for member in members.iter_mut() {
                assert_eq!(self.beat(member), 0, "{member:?}");
            }
            if members.iter().zip(&before).all(|(now, before)| **now == *before) {
                return;
            }
        }
        panic!("the group does not settle: {members:?}");
    }

    /// ConsumerGroupDescribe version 1 of one group.
    pub fn describe_consumers(&mut self, group: &str) -> DescribedConsumerGroup {
        let on = self.connect();
        let group_ids = vec![Text::from(group)];
        let request = ConsumerGroupDescribeRequest { group_ids, include_authorized_operations: false };
        let answer: ConsumerGroupDescribeResponse = self.ask(on, 1, &request).answer();
        answer.groups.into_iter().next().unwrap()
    }

    /// OffsetCommit in a version, of a consumer.
    pub fn commit_of(&mut self, version: i16, who: &Consumer, place: Place<'_>, offset: i64) -> i16 {
        let request = OffsetCommitRequest {
            group_id: Text::from(who.group),
            generation_id_or_member_epoch: who.epoch,
            member_id: Text::from(who.id.as_str()),
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
        let response: OffsetCommitResponse = self.ask(on, version, &request).answer();
        response.topics[0].partitions[0].error_code.get()
    }
}
