//! `semel txn hanging`: transactions that are open in a partition and that no coordinator knows.
//!
//! In Semel a transaction ends in all its partitions at once, so none can hang; other brokers have them
//! (KIP-664, KAFKA-9144), and this finds them there.

use std::collections::BTreeMap;

use clap::Args;
use semel_types::{DurationMs, WallTime};
use semel_wire::{
    RawProducerId,
    api::{describe_producers::ProducerDescription, list_transactions::ListTransactionsRequest},
};
use serde_json::{Value, json};

use super::{
    describe::{described, partitions},
    list::listed,
};
use crate::{
    cli::ask::{
        AskError, Bootstrap, EXIT_FOUND, Said,
        kafka::Kafka,
        producers::{describe, open_since},
        table,
    },
    clock, units,
};

/// Find transactions that are open in a partition and that no coordinator knows.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel txn hanging
  semel txn hanging --older-than 1m
  semel txn hanging --bootstrap broker.example:9092 --json

It asks in Kafka's protocol (Metadata, DescribeProducers, ListTransactions, DescribeTransactions).

Exit status: 0 none, 1 failed, 2 wrong usage, 4 nobody answers at the address, 5 some were found.")]
pub struct Hanging {
    /// Look only at producers that wrote last longer ago than this; Kafka's longest timeout is 15m.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = units::parse_span)]
    older_than: DurationMs,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// An open transaction in one partition.
struct Candidate {
    topic: String,
    partition: i32,
    first_offset: i64,
    producer: ProducerDescription,
}

/// Asks.
pub fn ask(hanging: &Hanging) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&hanging.bootstrap.bootstrap)?;
    let candidates = candidates(&mut kafka, hanging.older_than)?;
    let owners = owners(&mut kafka, &candidates)?;
    let mut found = Vec::new();
    for candidate in candidates {
        if !is_known(&mut kafka, &candidate, &owners)? {
            found.push(candidate);
        }
    }
    let json: Vec<_> = found.iter().map(to_json).collect();
    let rows: Vec<_> = found.iter().map(row).collect();
    let lines =
        if rows.is_empty() { vec!["No hanging transactions.".to_owned()] } else { table(&HEAD, &rows) };
    let exit = if found.is_empty() { crate::cli::EXIT_OK } else { EXIT_FOUND };
    Ok(Said { exit, ..Said::new(json!({ "hanging": json }), lines) })
}

fn candidates(kafka: &mut Kafka, older_than: DurationMs) -> Result<Vec<Candidate>, AskError> {
    let latest_ms = clock::wall().as_ms().saturating_sub(older_than.as_ms());
    let mut candidates = Vec::new();
    for (topic, partitions) in kafka.all_partitions()? {
        for described in describe(kafka, &topic, &partitions)? {
            let partition = described.partition_index.get();
            let old = described.active_producers.into_iter().filter(|one| one.last_timestamp <= latest_ms);
            candidates.extend(old.filter_map(|producer| {
                let first_offset = open_since(&producer)?;
                Some(Candidate { topic: topic.clone(), partition, first_offset, producer })
            }));
        }
    }
    Ok(candidates)
}

/// The transactional ids of these producers, as far as their coordinator knows them.
fn owners(kafka: &mut Kafka, candidates: &[Candidate]) -> Result<BTreeMap<i64, String>, AskError> {
    let mut producers: Vec<_> = candidates.iter().map(|one| one.producer.producer_id.get()).collect();
    producers.sort_unstable();
    producers.dedup();
    if producers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let producer_id_filters = producers.into_iter().map(RawProducerId).collect();
    let found = listed(kafka, &ListTransactionsRequest { producer_id_filters, ..Default::default() })?;
    let owners = found.transaction_states.iter();
    Ok(owners.map(|one| (one.producer_id.get(), one.transactional_id.as_str().to_owned())).collect())
}

/// Does the coordinator hold this partition in an open transaction of this producer?
fn is_known(
    kafka: &mut Kafka,
    candidate: &Candidate,
    owners: &BTreeMap<i64, String>,
) -> Result<bool, AskError> {
    let Some(owner) = owners.get(&candidate.producer.producer_id.get()) else { return Ok(false) };
    let found = match described(kafka, owner) {
        Ok(found) => found,
        Err(AskError::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    let holds = partitions(&found).any(|held| held == (candidate.topic.as_str(), candidate.partition));
    Ok(holds && matches!(found.transaction_state.as_str(), "Ongoing" | "PrepareCommit" | "PrepareAbort"))
}

const HEAD: [&str; 5] = ["PARTITION", "PRODUCER ID", "EPOCH", "OPEN SINCE OFFSET", "LAST WRITE"];

fn row(one: &Candidate) -> Vec<String> {
    vec![
        format!("{}-{}", one.topic, one.partition),
        one.producer.producer_id.get().to_string(),
        one.producer.producer_epoch.to_string(),
        one.first_offset.to_string(),
        WallTime::from_ms(one.producer.last_timestamp).to_string(),
    ]
}

fn to_json(one: &Candidate) -> Value {
    json!({
        "topic": one.topic,
        "partition": one.partition,
        "producer_id": one.producer.producer_id.get(),
        "epoch": one.producer.producer_epoch,
        "open_since_offset": one.first_offset,
        "last_write": WallTime::from_ms(one.producer.last_timestamp).to_string(),
    })
}
