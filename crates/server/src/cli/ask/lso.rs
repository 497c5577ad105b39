//! `semel lso`: what holds the last stable offset, and the command that ends it.

use clap::Args;
use semel_types::DurationMs;
use serde_json::{Value, json};

use super::{AdminAddress, AskError, Bootstrap, Said, Target, admin, finish, one_broker, shell_word};
use crate::units;

/// Show what holds the last stable offset of a topic's partitions: readers of committed records wait behind it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel lso orders        every partition of a topic
  semel lso orders:0      one partition
  semel lso orders --json

It asks the broker's admin endpoint; without a partition, Kafka's Metadata names them.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such topic or partition, 4 nobody answers at the address.")]
pub struct Lso {
    /// A topic, or one partition of it.
    #[arg(value_name = "TOPIC[:P]", value_parser = Target::parse)]
    target: Target,
    #[command(flatten)]
    bootstrap: Bootstrap,
    #[command(flatten)]
    admin: AdminAddress,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// Runs the command; the exit status.
pub fn run(lso: &Lso) -> u8 {
    finish(ask(lso), lso.json)
}

fn ask(lso: &Lso) -> Result<Said, AskError> {
    let partitions = match lso.target.partition {
        Some(partition) => vec![partition],
        None => one_broker(&lso.bootstrap, &lso.admin)?.partitions(&lso.target.topic)?,
    };
    let topic = admin::encode(&lso.target.topic);
    let mut found = Vec::with_capacity(partitions.len());
    for partition in partitions {
        found.push(admin::get(&lso.admin.admin, &format!("/v1/partitions/{topic}/{partition}/stability"))?);
    }
    let lines = found.iter().flat_map(lines).collect();
    Ok(Said::new(json!({ "partitions": found }), lines))
}

fn lines(partition: &Value) -> Vec<String> {
    let number = |name: &str| partition[name].as_u64().unwrap_or(0);
    let topic = partition["topic"].as_str().unwrap_or_default();
    let head = format!(
        "{topic}-{}: last stable offset {}, high watermark {}",
        number("partition"),
        number("last_stable_offset"),
        number("high_watermark")
    );
    let holders = partition["held_by"].as_array().map(Vec::as_slice).unwrap_or_default();
    if holders.is_empty() {
        return vec![format!("{head}; nothing holds it")];
    }
    let waiting = units::count(number("records_held"), "offset");
    let mut lines = vec![format!("{head}; readers of committed records wait before {waiting}")];
    lines.extend(holders.iter().flat_map(holder));
    let left_out = number("open_transactions").saturating_sub(holders.len() as u64);
    if left_out > 0 {
        lines.push(format!("  and {} more", units::count(left_out, "open transaction")));
    }
    lines
}

fn holder(holder: &Value) -> [String; 2] {
    let text = |name: &str| holder[name].as_str().unwrap_or("unknown");
    let client = &holder["client"];
    let named = |name: &str| client[name].as_str().filter(|text| !text.is_empty()).unwrap_or("unknown");
    let age = units::span(DurationMs::from_ms(holder["age_ms"].as_i64().unwrap_or(0)));
    let words = holder["command"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words: Vec<_> = words.iter().filter_map(Value::as_str).map(shell_word).collect();
    [
        format!(
            "  from offset {} held by {:?}, client {:?} ({}, {}), since {} ({age}); its timeout ends it at {}",
            holder["first_offset"],
            text("transactional_id"),
            named("client_id"),
            named("software"),
            named("address"),
            text("since"),
            text("ends_at"),
        ),
        format!("    to end it now: {}", words.join(" ")),
    ]
}
