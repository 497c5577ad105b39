//! `semel txn list`: transactional ids and where their transactions stand (Kafka's ListTransactions).

use clap::Args;
use semel_types::DurationMs;
use semel_wire::{
    Text,
    api::list_transactions::{ListTransactionsRequest, ListTransactionsResponse, ListedTransaction},
};
use serde_json::json;

use crate::{
    cli::ask::{self, AskError, Bootstrap, Said, kafka::Kafka, table},
    units,
};

/// List transactional ids and where their transactions stand.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel txn list                          every id
  semel txn list --state Ongoing          those with an open transaction
  semel txn list --longer-than 1m         open for longer than a minute
  semel txn list --json

States are Kafka's: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence, Dead.
It asks in Kafka's protocol (ListTransactions), so it works with other brokers, too.

Exit status: 0 done, 1 failed, 2 wrong usage, 4 nobody answers at the address.")]
pub struct List {
    /// In this state alone; may be given often.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<String>,
    /// With a transaction that is open for longer than this.
    #[arg(long, value_name = "TIME", value_parser = units::parse_span)]
    longer_than: Option<DurationMs>,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version with the filter of ages (KIP-994).
const VERSION: i16 = 1;

/// Kafka's names of the states.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
];

fn state(text: &str) -> Result<String, String> {
    ask::state(text, &STATES)
}

/// Asks.
pub fn ask(list: &List) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&list.bootstrap.bootstrap)?;
    let request = ListTransactionsRequest {
        state_filters: list.state.iter().map(|state| Text::from(state.as_str())).collect(),
        duration_filter: list.longer_than.map_or(-1, DurationMs::as_ms),
        ..Default::default()
    };
    let found = listed(&mut kafka, &request)?;
    if let Some(unknown) = found.unknown_state_filters.first() {
        return Err(AskError::Refused(format!("no state is called {:?}; see --help", unknown.as_str())));
    }
    let json: Vec<_> = found.transaction_states.iter().map(to_json).collect();
    let rows: Vec<_> = found.transaction_states.iter().map(row).collect();
    let none = || vec!["No transactional ids.".to_owned()];
    let lines =
        if rows.is_empty() { none() } else { table(&["TRANSACTIONAL ID", "PRODUCER ID", "STATE"], &rows) };
    Ok(Said::new(json!({ "transactions": json }), lines))
}

/// Asks what a broker coordinates.
pub fn listed(
    kafka: &mut Kafka,
    request: &ListTransactionsRequest,
) -> Result<ListTransactionsResponse, AskError> {
    let mut found = kafka.call(request, VERSION)?;
    if found.error_code.is_error() {
        return Err(AskError::code("ListTransactions", found.error_code));
    }
    found
        .transaction_states
        .sort_by(|one, other| one.transactional_id.as_str().cmp(other.transactional_id.as_str()));
    Ok(found)
}

fn row(one: &ListedTransaction) -> Vec<String> {
    vec![
        one.transactional_id.as_str().to_owned(),
        one.producer_id.get().to_string(),
        one.transaction_state.as_str().to_owned(),
    ]
}

fn to_json(one: &ListedTransaction) -> serde_json::Value {
    json!({
        "transactional_id": one.transactional_id.as_str(),
        "producer_id": one.producer_id.get(),
        "state": one.transaction_state.as_str(),
    })
}
