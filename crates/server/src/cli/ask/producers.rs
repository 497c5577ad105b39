//! `semel producers`: who writes to a topic's partitions (Kafka's DescribeProducers).

use clap::Args;
use semel_types::{ErrorCode, PartitionIndex, WallTime};
use semel_wire::api::describe_producers::{
    DescribeProducersPartitionResponse, DescribeProducersRequest, DescribeProducersTopic, ProducerDescription,
};
use serde_json::{Value, json};

use super::{AskError, Bootstrap, Said, Target, finish, kafka::Kafka, table};

/// Show who writes to a topic's partitions, and where their open transactions start.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel producers orders        every partition of a topic
  semel producers orders:0      one partition
  semel producers orders --json

It asks in Kafka's protocol (Metadata, DescribeProducers), so it works with other brokers, too.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such topic or partition, 4 nobody answers at the address.")]
pub struct Producers {
    /// A topic, or one partition of it.
    #[arg(value_name = "TOPIC[:P]", value_parser = Target::parse)]
    target: Target,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// Version of DescribeProducers.
const VERSION: i16 = 0;

/// Runs the command; the exit status.
pub fn run(producers: &Producers) -> u8 {
    finish(ask(producers), producers.json)
}

fn ask(producers: &Producers) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&producers.bootstrap.bootstrap)?;
    let topic = &producers.target.topic;
    let partitions = match producers.target.partition {
        Some(partition) => vec![partition],
        None => kafka.partitions(topic)?,
    };
    let found = describe(&mut kafka, topic, &partitions)?;
    let json: Vec<_> = found.iter().map(|partition| partition_json(topic, partition)).collect();
    let rows: Vec<_> = found.iter().flat_map(|partition| rows(topic, partition)).collect();
    let lines = if rows.is_empty() { vec!["No producers.".to_owned()] } else { table(&HEAD, &rows) };
    Ok(Said::new(json!({ "partitions": json }), lines))
}

/// Asks about partitions of one topic.
///
/// # Errors
/// One of them does not exist, or the exchange failed.
pub fn describe(
    kafka: &mut Kafka,
    topic: &str,
    partitions: &[i32],
) -> Result<Vec<DescribeProducersPartitionResponse>, AskError> {
    let partition_indexes = partitions.iter().copied().map(PartitionIndex::new).collect();
    let topics = vec![DescribeProducersTopic { name: topic.into(), partition_indexes }];
    let answer = kafka.call(&DescribeProducersRequest { topics }, VERSION)?;
    let found: Vec<_> = answer.topics.into_iter().flat_map(|topic| topic.partitions).collect();
    for partition in &found {
        match partition.error_code.known() {
            Some(ErrorCode::None) => {}
            Some(ErrorCode::UnknownTopicOrPartition) => {
                let index = partition.partition_index;
                return Err(AskError::NotFound(format!(
                    "there is no partition {index} of a topic {topic:?}"
                )));
            }
            Some(_) | None => return Err(AskError::code("DescribeProducers", partition.error_code)),
        }
    }
    Ok(found)
}

const HEAD: [&str; 6] =
    ["PARTITION", "PRODUCER ID", "EPOCH", "LAST SEQUENCE", "LAST WRITE", "OPEN SINCE OFFSET"];

fn rows(topic: &str, partition: &DescribeProducersPartitionResponse) -> Vec<Vec<String>> {
    let index = partition.partition_index;
    let row = |one: &ProducerDescription| {
        let open = open_since(one).map_or_else(|| "-".to_owned(), |offset| offset.to_string());
        vec![
            format!("{topic}-{index}"),
            one.producer_id.get().to_string(),
            one.producer_epoch.to_string(),
            one.last_sequence.to_string(),
            last_write(one).map_or_else(|| "-".to_owned(), |at| at.to_string()),
            open,
        ]
    };
    partition.active_producers.iter().map(row).collect()
}

/// First offset of a producer's open transaction.
pub fn open_since(producer: &ProducerDescription) -> Option<i64> {
    Some(producer.current_txn_start_offset.get()).filter(|offset| *offset >= 0)
}

fn last_write(producer: &ProducerDescription) -> Option<WallTime> {
    (producer.last_timestamp >= 0).then(|| WallTime::from_ms(producer.last_timestamp))
}

fn partition_json(topic: &str, partition: &DescribeProducersPartitionResponse) -> Value {
    let producer = |one: &ProducerDescription| {
        json!({
            "producer_id": one.producer_id.get(),
            "epoch": one.producer_epoch,
            "last_sequence": one.last_sequence,
            "last_write": last_write(one).map(|at| at.to_string()),
            "open_since_offset": open_since(one),
        })
    };
    let producers: Vec<_> = partition.active_producers.iter().map(producer).collect();
    json!({ "topic": topic, "partition": partition.partition_index.get(), "producers": producers })
}
