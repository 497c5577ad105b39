//! `semel txn describe`: where the transaction of an id stands (Kafka's DescribeTransactions).

use clap::Args;
use semel_types::{DurationMs, WallTime};
use semel_wire::api::describe_transactions::{DescribeTransactionsRequest, TransactionDescription};
use serde_json::json;

use crate::{
    cli::ask::{AskError, Bootstrap, Said, kafka::Kafka},
    clock, units,
};

/// Show where the transaction of an id stands and which partitions it holds.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel txn describe orders
  semel txn describe orders --json

It asks in Kafka's protocol (DescribeTransactions), so it works with other brokers, too. `semel txn explain` tells why
it stands there.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such id, 4 nobody answers at the address.")]
pub struct Describe {
    /// The transactional id.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version of DescribeTransactions.
const VERSION: i16 = 0;

/// Kafka's code for an id that nobody knows (TRANSACTIONAL_ID_NOT_FOUND, KIP-664).
const NOT_FOUND: i16 = 105;

/// Asks.
pub fn ask(describe: &Describe) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&describe.bootstrap.bootstrap)?;
    let found = described(&mut kafka, &describe.id)?;
    let started = started(&found);
    let age = started.map(|at| DurationMs::from_ms((clock::wall().as_ms() - at.as_ms()).max(0)));
    let partitions: Vec<_> = partitions(&found).collect();
    let json = json!({
        "transactional_id": describe.id,
        "state": found.transaction_state.as_str(),
        "producer_id": found.producer_id.get(),
        "epoch": found.producer_epoch.get(),
        "timeout_ms": found.transaction_timeout_ms,
        "started": started.map(|at| at.to_string()),
        "age_ms": age.map(DurationMs::as_ms),
        "partitions": partitions.iter().map(|(topic, partition)| json!({ "topic": topic, "partition": partition }))
            .collect::<Vec<_>>(),
    });
    let timeout = units::span(DurationMs::from_ms(found.transaction_timeout_ms.into()));
    let mut lines = vec![
        format!("transactional id  {}", describe.id),
        format!("state             {}", found.transaction_state.as_str()),
        format!("producer          {} epoch {}", found.producer_id.get(), found.producer_epoch.get()),
        format!("timeout           {timeout}"),
    ];
    if let (Some(at), Some(age)) = (started, age) {
        lines.push(format!("open since        {at} ({})", units::span(age)));
    }
    lines
        .extend(partitions.iter().map(|(topic, partition)| format!("holds             {topic}-{partition}")));
    Ok(Said::new(json, lines))
}

/// Asks about one id.
///
/// # Errors
/// Nobody knows it, or the exchange failed.
pub fn described(kafka: &mut Kafka, id: &str) -> Result<TransactionDescription, AskError> {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.into()] };
    let mut answer = kafka.call(&request, VERSION)?;
    let found = answer.transaction_states.pop();
    let found = found.ok_or_else(|| AskError::Refused("DescribeTransactions: an empty answer".to_owned()))?;
    match found.error_code {
        code if !code.is_error() => Ok(found),
        code if code.get() == NOT_FOUND => Err(AskError::NotFound(format!(
            "transactional id {id:?} is unknown: never initialized, or forgotten"
        ))),
        code => Err(AskError::code("DescribeTransactions", code)),
    }
}

fn started(found: &TransactionDescription) -> Option<WallTime> {
    (found.transaction_start_time_ms > 0).then(|| WallTime::from_ms(found.transaction_start_time_ms))
}

/// The partitions that a transaction holds.
pub fn partitions(found: &TransactionDescription) -> impl Iterator<Item = (&str, i32)> {
    found
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.topic.as_str(), partition.get())))
}
