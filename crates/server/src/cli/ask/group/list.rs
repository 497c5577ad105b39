//! `semel group list`: groups with their type and state (Kafka's ListGroups).

use clap::Args;
use semel_wire::{
    Text,
    api::list_groups::{ListGroupsRequest, ListedGroup},
};
use serde_json::json;

use crate::cli::ask::{self, AskError, Bootstrap, Said, kafka::Kafka, table};

/// List groups with their type and state.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel group list                   every group
  semel group list --state Stable    those whose members have their parts
  semel group list --json

States are Kafka's: Empty, PreparingRebalance, CompletingRebalance, Stable, Assigning, Reconciling, NotReady, Dead.
It asks in Kafka's protocol (ListGroups), so it works with other brokers, too.

Exit status: 0 done, 1 failed, 2 wrong usage, 4 nobody answers at the address.")]
pub struct List {
    /// In this state alone; may be given often.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<String>,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version with types (KIP-848).
const VERSION: i16 = 5;

/// Kafka's names of the states, of groups of any type.
const STATES: [&str; 8] = [
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
];

fn state(text: &str) -> Result<String, String> {
    ask::state(text, &STATES)
}

/// Asks.
pub fn ask(list: &List) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&list.bootstrap.bootstrap)?;
    let states_filter = list.state.iter().map(|state| Text::from(state.as_str())).collect();
    let found = listed(&mut kafka, states_filter)?;
    let json: Vec<_> = found.iter().map(to_json).collect();
    let rows: Vec<_> = found.iter().map(row).collect();
    let none = || vec!["No groups.".to_owned()];
    let lines = if rows.is_empty() { none() } else { table(&["GROUP", "TYPE", "PROTOCOL", "STATE"], &rows) };
    Ok(Said::new(json!({ "groups": json }), lines))
}

/// Groups in one of these states, by name; all without any.
fn listed(kafka: &mut Kafka, states_filter: Vec<Text>) -> Result<Vec<ListedGroup>, AskError> {
    let mut found = kafka.call(&ListGroupsRequest { states_filter, ..Default::default() }, VERSION)?;
    if found.error_code.is_error() {
        return Err(AskError::code("ListGroups", found.error_code));
    }
    found.groups.sort_by(|one, other| one.group_id.as_str().cmp(other.group_id.as_str()));
    Ok(found.groups)
}

/// The state of one group; `None` if there is none of the name.
pub fn state_of(kafka: &mut Kafka, group: &str) -> Result<Option<String>, AskError> {
    let all = listed(kafka, Vec::new())?;
    let found = all.iter().find(|one| one.group_id.as_str() == group);
    Ok(found.map(|one| one.group_state.as_str().to_owned()))
}

fn row(one: &ListedGroup) -> Vec<String> {
    [&one.group_id, &one.group_type, &one.protocol_type, &one.group_state]
        .map(|text| text.as_str().to_owned())
        .to_vec()
}

fn to_json(one: &ListedGroup) -> serde_json::Value {
    json!({
        "group": one.group_id.as_str(),
        "type": one.group_type.as_str(),
        "protocol_type": one.protocol_type.as_str(),
        "state": one.group_state.as_str(),
    })
}
