//! DescribeProducers (key 61), version 0.
//!
//! Behaviour: everybody who is known to have written to each partition, by producer id, with the epoch that may write
//! there, the last sequence of that epoch, the time of the last batch by the broker's clock, and the first offset of an
//! open transaction. An unknown partition is 3. A partition that is named twice is answered once.
//! Unlike Kafka: the time is the broker's, not the record's; the coordinator epoch of every producer that belongs to a
//! transactional id is the one that its next marker will carry (Kafka has none before the first marker).

use std::collections::{BTreeMap, BTreeSet};

use semel_eos::producer::Writer;
use semel_types::{
    ErrorCode, PartitionHandle, PartitionIndex,
    mutation::{Mutation, mutated},
};
use semel_wire::api::describe_producers::{
    DescribeProducersPartitionResponse, DescribeProducersRequest, DescribeProducersResponse,
    DescribeProducersTopic, DescribeProducersTopicResponse, ProducerDescription,
};

use super::Reply;
use crate::{common::find, inquiry::Cut};

type Found = BTreeMap<PartitionHandle, Vec<ProducerDescription>>;

pub(super) fn answer(cut: &Cut, request: &DescribeProducersRequest) -> Reply {
    let mut found = wanted(cut, request);
    let writers = cut.state.eos.producers().writers(|partition| found.contains_key(&partition));
    let described: Vec<_> = writers.map(|writer| (writer.partition, describe(cut, &writer))).collect();
    for (partition, producer) in described {
        found.entry(partition).or_default().push(producer);
    }
    let mut named = BTreeSet::new();
    let topics = request.topics.iter().map(|topic| DescribeProducersTopicResponse {
        name: topic.name.clone(),
        partitions: (topic.partition_indexes.iter())
            .filter(|index| named.insert((topic.name.as_str(), **index)))
            .map(|index| partition(cut, &mut found, topic, *index))
            .collect(),
    });
    DescribeProducersResponse { topics: topics.collect(), ..Default::default() }.into()
}

/// The partitions asked about that exist.
fn wanted(cut: &Cut, request: &DescribeProducersRequest) -> Found {
    let catalog = &cut.state.catalog;
    let named = request.topics.iter().flat_map(|topic| {
        topic.partition_indexes.iter().filter_map(|index| find(catalog, &topic.name, *index))
    });
    named.map(|partition| (partition, Vec::new())).collect()
}

fn partition(
    cut: &Cut,
    found: &mut Found,
    topic: &DescribeProducersTopic,
    partition_index: PartitionIndex,
) -> DescribeProducersPartitionResponse {
    let handle = find(&cut.state.catalog, &topic.name, partition_index);
    let known = handle.and_then(|handle| found.remove(&handle));
    let error_code = if known.is_some() { ErrorCode::None } else { ErrorCode::UnknownTopicOrPartition };
    DescribeProducersPartitionResponse {
        partition_index,
        error_code: error_code.into(),
        active_producers: known.unwrap_or_default(),
        ..Default::default()
    }
}

fn describe(cut: &Cut, writer: &Writer) -> ProducerDescription {
    let eos = &cut.state.eos;
    let open = eos.partition(writer.partition).and_then(|state| state.open_transaction(writer.stamp.id));
    ProducerDescription {
        producer_id: writer.stamp.id.into(),
        producer_epoch: writer.stamp.epoch.get().into(),
        last_sequence: writer.last.map_or(-1, |last| last.get()),
        last_timestamp: cut.wall_ms(writer.written),
        coordinator_epoch: if writer.owned {
            semel_types::CoordinatorEpoch::from(eos.shard_epoch()).get()
        } else {
            -1
        },
        current_txn_start_offset: open.filter(|_| !mutated(Mutation::OpenNotTold)).into(),
    }
}
