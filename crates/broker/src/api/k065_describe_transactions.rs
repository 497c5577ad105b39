//! DescribeTransactions (key 65), version 0.
//!
//! Behaviour: state, identity and timeout of each transactional id, and what its open transaction holds since when. An
//! empty id is 42, an unknown or expired one 105. A group's part is named `__consumer_offsets`, with the partition that
//! Kafka would keep the group in, though there is no such topic. An id that is named twice is answered once.
//! Unlike Kafka: the start is told only of an open transaction, not of the last one.

use std::collections::{BTreeMap, BTreeSet};

use semel_eos::txn::{OpenTransaction, TransactionalIdEntry};
use semel_types::{
    ErrorCode, PartitionIndex,
    mutation::{Mutation, mutated},
};
use semel_wire::{
    Text,
    api::describe_transactions::{
        DescribeTransactionsRequest, DescribeTransactionsResponse, TransactionDescription, TransactionTopic,
    },
};

use super::Reply;
use crate::{
    inquiry::Cut,
    offsets_topic::{self, partition_of},
};

pub(super) fn answer(cut: &Cut, request: &DescribeTransactionsRequest) -> Reply {
    let mut named = BTreeSet::new();
    let states = request
        .transactional_ids
        .iter()
        .filter(|id| named.insert(id.as_str()))
        .map(|id| find(cut, id).map_or_else(|code| refused(id, code), |entry| describe(cut, id, entry)));
    DescribeTransactionsResponse { transaction_states: states.collect(), ..Default::default() }.into()
}

fn find<'a>(cut: &'a Cut, id: &Text) -> Result<&'a TransactionalIdEntry, ErrorCode> {
    if id.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    let known = cut.state.eos.transactions().get(&id.as_str().into());
    known.ok_or(ErrorCode::TransactionalIdNotFound)
}

fn refused(id: &Text, code: ErrorCode) -> TransactionDescription {
    TransactionDescription { error_code: code.into(), transactional_id: id.clone(), ..Default::default() }
}

fn describe(cut: &Cut, id: &Text, entry: &TransactionalIdEntry) -> TransactionDescription {
    let open = entry.open().filter(|_| !mutated(Mutation::OtherStateTold));
    TransactionDescription {
        transactional_id: id.clone(),
        transaction_state: Text::from(entry.state().name()),
        transaction_timeout_ms: i32::try_from(entry.timeout.as_ms()).unwrap_or(i32::MAX),
        transaction_start_time_ms: open.map_or(-1, |open| cut.wall_ms(open.started)),
        producer_id: entry.identity.id.into(),
        producer_epoch: entry.identity.epoch.into(),
        topics: open.map_or_else(Vec::new, |open| topics(cut, open)),
        ..Default::default()
    }
}

/// What an open transaction holds; partitions whose topic was deleted are left out.
fn topics(cut: &Cut, open: &OpenTransaction) -> Vec<TransactionTopic> {
    let mut topics: BTreeMap<&str, BTreeSet<PartitionIndex>> = BTreeMap::new();
    for partition in open.partitions.as_slice() {
        if let Some((topic, index)) = cut.state.catalog.locate(*partition) {
            topics.entry(topic.name().as_str()).or_default().insert(index);
        }
    }
    for group in open.groups.as_slice() {
        topics.entry(offsets_topic::NAME).or_default().insert(partition_of(group));
    }
    let named = topics.into_iter().map(|(topic, partitions)| TransactionTopic {
        topic: Text::from(topic),
        partitions: partitions.into_iter().collect(),
    });
    named.collect()
}
