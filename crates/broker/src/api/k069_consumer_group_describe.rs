//! ConsumerGroupDescribe (key 69), versions 0 and 1.
//!
//! Behaviour: state, epochs and members of each consumer group (KIP-848), from a copy of the state: what each member
//! has and what it shall get. A group that does not exist or speaks another
//! protocol is 69. Authorized operations are all: there are no ACLs yet. Makes no event.
//! Version notes: 1 tells members that speak the classic protocol from the others.

use std::collections::BTreeSet;

use semel_groups::consumer::Seat;
use semel_types::{ErrorCode, GroupId, PartitionHandle};
use semel_wire::{
    Text,
    api::consumer_group_describe::{
        ConsumerAssignment, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse,
        ConsumerTopicPartitions, DescribedConsumer, DescribedConsumerGroup,
    },
};

use super::{Reply, k015_describe_groups::ALL_OPERATIONS};
use crate::{catalog::Catalog, inquiry::Cut};

pub(super) fn answer(cut: &Cut, request: &ConsumerGroupDescribeRequest) -> Reply {
    let groups = request.group_ids.iter().map(|id| {
        let mut group = describe(cut, id);
        if request.include_authorized_operations {
            group.authorized_operations = ALL_OPERATIONS;
        }
        group
    });
    ConsumerGroupDescribeResponse { groups: groups.collect(), ..Default::default() }.into()
}

fn describe(cut: &Cut, id: &Text) -> DescribedConsumerGroup {
    let Some(roster) = cut.state.groups.group(&GroupId::new(id)).and_then(|group| group.consumer()) else {
        return DescribedConsumerGroup {
            group_id: id.clone(),
            error_code: ErrorCode::GroupIdNotFound.into(),
            error_message: Some(Text::from("there is no such consumer group")),
            ..Default::default()
        };
    };
    DescribedConsumerGroup {
        group_id: id.clone(),
        group_state: Text::from(roster.phase().name()),
        group_epoch: roster.epoch(),
        assignment_epoch: roster.epoch(),
        assignor_name: Text::from(&**roster.assignor()),
        members: roster.seats().map(|(_, seat)| member(&cut.state.catalog, seat)).collect(),
        ..Default::default()
    }
}

fn member(catalog: &Catalog, seat: &Seat) -> DescribedConsumer {
    let member = &seat.member;
    let pattern = (!member.pattern.is_empty()).then(|| Text::from(&*member.pattern));
    DescribedConsumer {
        member_id: Text::from(&*member.id),
        instance_id: member.instance.as_deref().map(Text::from),
        rack_id: member.rack.as_deref().map(Text::from),
        member_epoch: seat.member_epoch,
        client_id: Text::from(&*member.client_id),
        client_host: Text::from(&*member.client_host),
        subscribed_topic_names: member.topics.iter().map(|name| Text::from(&**name)).collect(),
        subscribed_topic_regex: pattern,
        assignment: by_topic(catalog, seat.assigned.keys().copied()),
        target_assignment: by_topic(catalog, seat.target.iter().copied()),
        member_type: i8::from(member.classic.is_none()),
    }
}

fn by_topic(catalog: &Catalog, partitions: impl Iterator<Item = PartitionHandle>) -> ConsumerAssignment {
    let mut topics: Vec<ConsumerTopicPartitions> = Vec::new();
    for handle in partitions.collect::<BTreeSet<_>>() {
        let Some((topic, index)) = catalog.locate(handle) else { continue };
        match topics.last_mut().filter(|last| last.topic_id == topic.id()) {
            Some(last) => last.partitions.push(index),
            None => topics.push(ConsumerTopicPartitions {
                topic_id: topic.id(),
                topic_name: Text::from(topic.name().as_str()),
                partitions: vec![index],
            }),
        }
    }
    ConsumerAssignment { topic_partitions: topics }
}
