//! Members of streams groups (KIP-1071): StreamsGroupHeartbeat, and what StreamsGroupDescribe tells of them.

use std::collections::BTreeSet;

use semel_types::PartitionIndex;
use semel_wire::{
    Text, WireCode,
    api::{
        streams_group_describe::{
            DescribedStreamsGroup, DescribedStreamsMember, StreamsGroupDescribeRequest,
        },
        streams_group_heartbeat::{
            StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, StreamsSubtopology, StreamsTaskIds,
            StreamsTopicInfo, StreamsTopology,
        },
    },
};

use super::{Actor, Consumer, Member};
use crate::{Answer, session::Place};

/// The one part of the topologies here: one task for each partition of what it reads.
pub const SUBTOPOLOGY: &str = "part";

/// Tasks by partition.
pub type TaskSet = BTreeSet<i32>;

/// A member of a streams group as it names itself in requests. It is an instance of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamsMember {
    /// The group.
    pub group: String,
    /// The member id, of the client's own choice.
    pub id: String,
    /// Its epoch; 0 to join.
    pub epoch: i32,
    /// The instance id of a static member.
    pub instance: Option<String>,
    /// The topic that the application reads.
    pub source: String,
    /// The changelog of its store, if it has one.
    pub changelog: Option<String>,
}

impl StreamsMember {
    /// Somebody who wants to join and process a topic.
    #[must_use]
    pub fn new(group: &str, id: &str, source: &Place) -> Self {
        Self {
            group: group.to_owned(),
            id: id.to_owned(),
            epoch: 0,
            instance: None,
            source: source.topic.clone(),
            changelog: None,
        }
    }

    /// The same with an instance id.
    #[must_use]
    pub fn named(self, instance: &str) -> Self {
        Self { instance: Some(instance.to_owned()), ..self }
    }

    /// The same with a store.
    #[must_use]
    pub fn with_store(self, changelog: &str) -> Self {
        Self { changelog: Some(changelog.to_owned()), ..self }
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

    /// As it commits positions outside of transactions.
    #[must_use]
    pub fn as_consumer(&self) -> Consumer {
        Consumer {
            group: self.group.clone(),
            id: self.id.clone(),
            epoch: self.epoch,
            instance: None,
            topics: vec![self.source.clone()],
        }
    }

    /// As it commits positions in transactions.
    #[must_use]
    pub fn as_member(&self) -> Member {
        Member { generation: self.epoch, ..Member::new(&self.group).under(&self.id) }
    }

    fn topology(&self) -> StreamsTopology {
        let changelog = |name: &String| StreamsTopicInfo { name: name.as_str().into(), ..Default::default() };
        let part = StreamsSubtopology {
            subtopology_id: SUBTOPOLOGY.into(),
            source_topics: vec![self.source.as_str().into()],
            state_changelog_topics: self.changelog.iter().map(changelog).collect(),
            ..Default::default()
        };
        StreamsTopology { epoch: 0, subtopologies: vec![part] }
    }

    /// The heartbeat that says everything, as a joining member's has to.
    #[must_use]
    pub fn whole_beat(&self) -> StreamsGroupHeartbeatRequest {
        StreamsGroupHeartbeatRequest {
            rebalance_timeout_ms: 10_000,
            topology: Some(self.topology()),
            process_id: Some(format!("process of {}", self.id).as_str().into()),
            client_tags: Some(Vec::new()),
            ..self.beat_that_has(&TaskSet::new())
        }
    }

    /// The heartbeat that says nothing new.
    #[must_use]
    pub fn short_beat(&self) -> StreamsGroupHeartbeatRequest {
        StreamsGroupHeartbeatRequest {
            group_id: self.group.as_str().into(),
            member_id: self.id.as_str().into(),
            member_epoch: self.epoch,
            instance_id: self.instance.as_deref().map(Text::from),
            ..Default::default()
        }
    }

    fn beat_that_has(&self, tasks: &TaskSet) -> StreamsGroupHeartbeatRequest {
        let partitions: Vec<_> = tasks.iter().copied().map(PartitionIndex::new).collect();
        let ids = StreamsTaskIds { subtopology_id: SUBTOPOLOGY.into(), partitions };
        StreamsGroupHeartbeatRequest {
            active_tasks: Some(if tasks.is_empty() { Vec::new() } else { vec![ids] }),
            standby_tasks: Some(Vec::new()),
            warmup_tasks: Some(Vec::new()),
            ..self.short_beat()
        }
    }
}

/// What a heartbeat gave.
#[derive(Clone, Debug)]
pub struct StreamsBeaten {
    /// The member's epoch from here on.
    pub epoch: i32,
    /// All tasks that it works on from here on; `None` if that has not changed.
    pub active: Option<TaskSet>,
    /// What it is to know of its group, as numbers.
    pub status: Vec<i8>,
}

impl Actor {
    /// StreamsGroupHeartbeat, asked again while the coordinator is busy.
    pub fn beat_streams_as(
        &mut self,
        said: &str,
        request: &StreamsGroupHeartbeatRequest,
    ) -> Answer<StreamsBeaten> {
        let said = format!("StreamsGroupHeartbeat: {said}, epoch {}", request.member_epoch);
        self.until_free(|actor| actor.ask(&said, request, 0, |response| response.error_code).map(beaten))
    }

    /// Joins a streams group, leaves it, or says that nothing is new.
    pub fn beat_streams(&mut self, member: &StreamsMember) -> Answer<StreamsBeaten> {
        let request = if member.epoch == 0 { member.whole_beat() } else { member.short_beat() };
        self.beat_streams_as(&member.id, &request)
    }

    /// A heartbeat that says which tasks the member works on.
    pub fn work_on(&mut self, member: &StreamsMember, tasks: &TaskSet) -> Answer<StreamsBeaten> {
        let request = member.beat_that_has(tasks);
        self.beat_streams_as(&format!("{} works on {tasks:?}", member.id), &request)
    }

    /// StreamsGroupDescribe of one group, asked again while the coordinator is busy.
    pub fn describe_streams(&mut self, group: &str) -> Answer<DescribedStreamsGroup> {
        let request = StreamsGroupDescribeRequest { group_ids: vec![group.into()], ..Default::default() };
        let said = format!("StreamsGroupDescribe {group}");
        let answer = self.until_free(|actor| {
            actor.ask(&said, &request, 0, |response| {
                response.groups.first().map_or(WireCode(-1), |group| group.error_code)
            })
        });
        answer.map(|response| response.groups.into_iter().next().unwrap_or_default())
    }
}

/// The tasks that a described member works on.
#[must_use]
pub fn works_on(member: &DescribedStreamsMember) -> TaskSet {
    task_set(&member.assignment.active_tasks)
}

fn task_set(tasks: &[StreamsTaskIds]) -> TaskSet {
    tasks.iter().flat_map(|ids| &ids.partitions).map(|partition| partition.get()).collect()
}

fn beaten(response: StreamsGroupHeartbeatResponse) -> StreamsBeaten {
    let status = response.status.unwrap_or_default();
    StreamsBeaten {
        epoch: response.member_epoch,
        active: response.active_tasks.as_deref().map(task_set),
        status: status.iter().map(|status| status.status_code).collect(),
    }
}
