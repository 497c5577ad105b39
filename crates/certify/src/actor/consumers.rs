//! Members of consumer groups (KIP-848): ConsumerGroupHeartbeat, and positions committed under a member epoch.

use semel_types::{PartitionIndex, TopicId};
use semel_wire::{
    RawOffset, Text, WireCode,
    api::{
        consumer_group_heartbeat::{
            ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatTopicPartitions,
        },
        offset_commit::{OffsetCommitPartition, OffsetCommitRequest, OffsetCommitTopic},
        offset_fetch::{OffsetFetchGroup, OffsetFetchGroupTopic, OffsetFetchRequest},
    },
};

use super::{Actor, said};
use crate::{Answer, session::Place};

/// A member of a consumer group as it names itself in requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumer {
    /// The group.
    pub group: String,
    /// The member id, of the client's own choice since version 1.
    pub id: String,
    /// Its epoch; 0 to join.
    pub epoch: i32,
    /// The instance id of a static member.
    pub instance: Option<String>,
    /// The topics that it reads.
    pub topics: Vec<String>,
}

impl Consumer {
    /// Somebody who wants to join and read a topic.
    #[must_use]
    pub fn new(group: &str, id: &str, topic: &Place) -> Self {
        let (group, id) = (group.to_owned(), id.to_owned());
        Self { group, id, epoch: 0, instance: None, topics: vec![topic.topic.clone()] }
    }

    /// The same with an instance id.
    #[must_use]
    pub fn named(self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self }
    }

    /// The same in another epoch.
    #[must_use]
    pub fn at(&self, epoch: i32) -> Self {
        Self { epoch, ..self.clone() }
    }

    /// The same under another member id.
    #[must_use]
    pub fn under(&self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self.clone() }
    }

    /// The heartbeat that says everything, as a joining member's has to.
    #[must_use]
    pub fn whole_beat(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            rebalance_timeout_ms: 10_000,
            subscribed_topic_names: Some(self.topics.iter().map(|topic| topic.as_str().into()).collect()),
            topic_partitions: Some(Vec::new()),
            ..self.short_beat()
        }
    }

    /// The heartbeat that says nothing new.
    #[must_use]
    pub fn short_beat(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.group.as_str().into(),
            member_id: self.id.as_str().into(),
            member_epoch: self.epoch,
            instance_id: self.instance.as_deref().map(Text::from),
            ..Default::default()
        }
    }
}

/// What a heartbeat gave.
#[derive(Clone, Debug)]
pub struct Beaten {
    /// The member's epoch from here on.
    pub epoch: i32,
    /// All that it has from here on; `None` if that has not changed.
    pub assigned: Option<Vec<(TopicId, i32)>>,
}

impl Actor {
    /// ConsumerGroupHeartbeat, asked again while the coordinator is busy.
    pub fn beat_as(&mut self, said: &str, request: &ConsumerGroupHeartbeatRequest) -> Answer<Beaten> {
        let said = format!("ConsumerGroupHeartbeat: {said}, epoch {}", request.member_epoch);
        self.until_free(|actor| actor.ask(&said, request, 1, |response| response.error_code).map(beaten))
    }

    /// Joins a consumer group, or says that nothing is new.
    pub fn beat_consumer(&mut self, consumer: &Consumer) -> Answer<Beaten> {
        let request = if consumer.epoch == 0 { consumer.whole_beat() } else { consumer.short_beat() };
        self.beat_as(&consumer.id, &request)
    }

    /// A heartbeat that says which partitions of a topic the member has.
    pub fn beat_with(&mut self, consumer: &Consumer, has: &[(TopicId, i32)]) -> Answer<Beaten> {
        let topic_partitions = has.iter().map(|(topic_id, index)| HeartbeatTopicPartitions {
            topic_id: *topic_id,
            partitions: vec![PartitionIndex::new(*index)],
        });
        let request = ConsumerGroupHeartbeatRequest {
            topic_partitions: Some(topic_partitions.collect()),
            ..consumer.whole_beat()
        };
        self.beat_as(&format!("{} has {} partitions", consumer.id, has.len()), &request)
    }

    /// OffsetCommit 9 of one partition under a member epoch.
    pub fn commit_in_epoch(&mut self, consumer: &Consumer, (place, offset): (&Place, i64)) -> Answer<()> {
        let partition = OffsetCommitPartition {
            partition_index: PartitionIndex::new(place.index),
            committed_offset: RawOffset(offset),
            ..Default::default()
        };
        let name = place.topic.as_str().into();
        let request = OffsetCommitRequest {
            group_id: consumer.group.as_str().into(),
            generation_id_or_member_epoch: consumer.epoch,
            member_id: consumer.id.as_str().into(),
            topics: vec![OffsetCommitTopic { name, partitions: vec![partition], ..Default::default() }],
            ..Default::default()
        };
        let said = format!("OffsetCommit {} as {} epoch {}", said(&[place]), consumer.id, consumer.epoch);
        let answer = self.ask(&said, &request, 9, |response| {
            let mut partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
            partitions.next().map_or(WireCode(-1), |partition| partition.error_code)
        });
        answer.map(|_| ())
    }

    /// OffsetFetch 9 of one partition under a member epoch; gives the offset.
    pub fn fetch_in_epoch(&mut self, consumer: &Consumer, place: &Place) -> Answer<i64> {
        let partition_indexes = vec![PartitionIndex::new(place.index)];
        let topic = OffsetFetchGroupTopic {
            name: place.topic.as_str().into(),
            partition_indexes,
            ..Default::default()
        };
        let group = OffsetFetchGroup {
            group_id: consumer.group.as_str().into(),
            member_id: Some(consumer.id.as_str().into()),
            member_epoch: consumer.epoch,
            topics: Some(vec![topic]),
        };
        let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
        let said = format!("OffsetFetch {} as {} epoch {}", said(&[place]), consumer.id, consumer.epoch);
        let answer = self.ask(&said, &request, 9, |response| {
            response.groups.first().map_or(WireCode(-1), |group| group.error_code)
        });
        answer.map(|response| {
            let topics = response.groups.into_iter().flat_map(|group| group.topics);
            let mut partitions = topics.flat_map(|topic| topic.partitions);
            partitions.next().map_or(-1, |partition| partition.committed_offset.get())
        })
    }
}

fn beaten(response: ConsumerGroupHeartbeatResponse) -> Beaten {
    let assigned = response.assignment.map(|assignment| {
        let topics = assignment.topic_partitions.into_iter();
        topics
            .flat_map(|topic| {
                let id = topic.topic_id;
                topic.partitions.into_iter().map(move |partition| (id, partition.get()))
            })
            .collect()
    });
    Beaten { epoch: response.member_epoch, assigned }
}
