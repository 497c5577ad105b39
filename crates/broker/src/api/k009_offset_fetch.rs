//! OffsetFetch (key 9), versions 1 to 10.
//!
//! Behaviour: committed offsets of groups. A partition without one is answered with offset -1 and no error, also one
//! of an unknown topic (by id: 100). With `require_stable` (KIP-447) a partition for which an undecided transaction
//! carries an offset is 88 and -1; without it, the offset committed before is told. An unknown group has no offsets.
//! It is answered by the node, because groups are not in the published view; it makes no event.
//! A member of a consumer group that is none is 25, one that names another epoch than its own 113, for the whole group.
//! Version notes: 2 asks for all topics with null; 7 has `require_stable`; 8 asks for several groups; 9 names the
//! member and its epoch (KIP-848), looked at in consumer groups alone; 10 names topics by id.

use semel_groups::Kind;
use semel_types::{ErrorCode, GroupId, PartitionHandle, PartitionIndex};
use semel_wire::{
    Text,
    api::offset_fetch::{
        OffsetFetchGroup, OffsetFetchGroupResponse, OffsetFetchGroupTopicResponse,
        OffsetFetchPartitionResponse, OffsetFetchRequest, OffsetFetchResponse, OffsetFetchTopicResponse,
    },
};

use super::answer::group_code;
use crate::{
    call::Asked,
    catalog::Topic,
    node::{Handled, Step},
    state::State,
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<OffsetFetchRequest>) -> Handled {
    let request = &asked.body;
    let lookup = |group: &Text| Lookup {
        state: step.state(),
        group: GroupId::new(group),
        stable: request.require_stable,
    };
    if asked.version >= 8 {
        let groups = request.groups.iter().map(|group| lookup(&group.group_id).group(group, asked.version));
        return OffsetFetchResponse { groups: groups.collect(), ..Default::default() }.into();
    }
    let lookup = lookup(&request.group_id);
    let topics = match &request.topics {
        None => lookup.all(),
        Some(topics) => topics
            .iter()
            .map(|topic| {
                let found = lookup.state.catalog.topic(&topic.name);
                let partitions = lookup.partitions(found.map(|found| &**found), &topic.partition_indexes);
                OffsetFetchTopicResponse { name: topic.name.clone(), partitions }
            })
            .collect(),
    };
    OffsetFetchResponse { topics, ..Default::default() }.into()
}

/// One group's offsets.
struct Lookup<'a> {
    state: &'a State,
    group: GroupId,
    stable: bool,
}

impl Lookup<'_> {
    /// May this member ask?
    fn refused(&self, asked: &OffsetFetchGroup) -> Option<ErrorCode> {
        let (member, member_epoch) = (asked.member_id.as_deref(), asked.member_epoch);
        let checked = match self.state.groups.group(&self.group)?.kind() {
            Kind::Classic(_) => return None,
            Kind::Consumer(roster) => roster.check_read(member, member_epoch),
            Kind::Streams(roster) => roster.check_read(member, member_epoch),
        };
        checked.err().map(group_code)
    }

    fn group(&self, asked: &OffsetFetchGroup, version: i16) -> OffsetFetchGroupResponse {
        if let Some(code) = self.refused(asked) {
            let group_id = asked.group_id.clone();
            return OffsetFetchGroupResponse { group_id, error_code: code.into(), ..Default::default() };
        }
        let topics = match &asked.topics {
            None => self.all_with_ids(),
            Some(topics) => {
                let topics = topics.iter().map(|topic| {
                    let catalog = &self.state.catalog;
                    let by_id = version >= 10;
                    let found =
                        if by_id { catalog.topic_by_id(topic.topic_id) } else { catalog.topic(&topic.name) };
                    let mut partitions =
                        self.partitions(found.map(|found| &**found), &topic.partition_indexes);
                    if by_id && found.is_none() {
                        let unknown = ErrorCode::UnknownTopicId;
                        partitions.iter_mut().for_each(|partition| partition.error_code = unknown.into());
                    }
                    let (name, topic_id) = (topic.name.clone(), topic.topic_id);
                    OffsetFetchGroupTopicResponse { name, topic_id, partitions }
                });
                topics.collect()
            }
        };
        OffsetFetchGroupResponse { group_id: asked.group_id.clone(), topics, ..Default::default() }
    }

    fn partitions(
        &self,
        topic: Option<&Topic>,
        indexes: &[PartitionIndex],
    ) -> Vec<OffsetFetchPartitionResponse> {
        let handle = |index| topic.and_then(|topic| topic.partition(index));
        indexes.iter().map(|index| self.partition(*index, handle(*index))).collect()
    }

    fn partition(
        &self,
        partition_index: PartitionIndex,
        handle: Option<PartitionHandle>,
    ) -> OffsetFetchPartitionResponse {
        let nothing = OffsetFetchPartitionResponse { partition_index, ..Default::default() };
        let Some(handle) = handle else { return nothing };
        if self.stable && self.state.groups.is_unstable(&self.group, handle) {
            let error_code = ErrorCode::UnstableOffsetCommit.into();
            return OffsetFetchPartitionResponse { error_code, ..nothing };
        }
        match self.state.groups.offset(&self.group, handle) {
            None => nothing,
            Some(stored) => OffsetFetchPartitionResponse {
                committed_offset: stored.committed.offset.into(),
                committed_leader_epoch: stored.committed.leader_epoch.into(),
                metadata: Some(Text::from(&*stored.committed.metadata)),
                ..nothing
            },
        }
    }

    /// Every partition with a committed offset, by topic.
    fn all_with_ids(&self) -> Vec<OffsetFetchGroupTopicResponse> {
        let mut topics: Vec<OffsetFetchGroupTopicResponse> = Vec::new();
        for stored in self.state.groups.offsets(&self.group) {
            let handle = stored.committed.partition;
            let Some((topic, index)) = self.state.catalog.locate(handle) else { continue };
            let partition = self.partition(index, Some(handle));
            match topics.last_mut().filter(|last| last.topic_id == topic.id()) {
                Some(last) => last.partitions.push(partition),
                None => topics.push(OffsetFetchGroupTopicResponse {
                    name: Text::from(topic.name().as_str()),
                    topic_id: topic.id(),
                    partitions: vec![partition],
                }),
            }
        }
        topics
    }

    fn all(&self) -> Vec<OffsetFetchTopicResponse> {
        let with_ids = self.all_with_ids().into_iter();
        with_ids
            .map(|topic| OffsetFetchTopicResponse { name: topic.name, partitions: topic.partitions })
            .collect()
    }
}
