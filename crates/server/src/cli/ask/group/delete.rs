//! `semel group delete`: groups without members, and their offsets (Kafka's DeleteGroups).

use std::collections::BTreeSet;

use clap::Args;
use semel_types::ErrorCode;
use semel_wire::{Text, WireCode, api::delete_groups::DeleteGroupsRequest};
use serde_json::json;

use super::list::state_of;
use crate::cli::ask::{AskError, Bootstrap, Said, kafka::Kafka};

/// Delete groups without members, and their offsets.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel group delete orders
  semel group delete orders shipping --json

A group with members, or with offsets in an undecided transaction, is not deleted; of several the others are.
What is deleted is told first, then what is not; the exit status is that of the first which is not.
It asks in Kafka's protocol (DeleteGroups), so it works with other brokers, too.

Exit status: 0 deleted, 1 failed, 2 wrong usage, 3 no such group, 4 nobody answers at the address.")]
pub struct Delete {
    /// The groups.
    #[arg(value_name = "GROUP", required = true, value_parser = super::name)]
    groups: Vec<String>,
    #[command(flatten)]
    bootstrap: Bootstrap,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Version of DeleteGroups.
const VERSION: i16 = 2;

/// Asks.
pub fn ask(delete: &Delete) -> Result<Said, AskError> {
    let mut kafka = Kafka::connect(&delete.bootstrap.bootstrap)?;
    let mut seen = BTreeSet::new();
    let named = delete.groups.iter().map(String::as_str).filter(|group| seen.insert(*group));
    let groups_names = named.map(Text::from).collect();
    let answer = kafka.call(&DeleteGroupsRequest { groups_names }, VERSION)?;
    let (mut deleted, mut failed, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for result in &answer.results {
        let group = result.group_id.as_str();
        if result.error_code.is_error() {
            let error = refusal(&mut kafka, group, result.error_code)?;
            failed.push(json!({ "group": group, "reason": error.to_string() }));
            errors.push(error);
        } else {
            deleted.push(group);
        }
    }
    let lines = deleted.iter().map(|group| format!("Deleted group {group:?}.")).collect();
    Ok(Said { errors, ..Said::new(json!({ "deleted": deleted, "failed": failed }), lines) })
}

/// Why a group was not deleted.
fn refusal(kafka: &mut Kafka, group: &str, code: WireCode) -> Result<AskError, AskError> {
    match code.known() {
        Some(ErrorCode::GroupIdNotFound) => Ok(AskError::NotFound(format!("there is no group {group:?}"))),
        Some(ErrorCode::NonEmptyGroup) => {
            let is_empty = state_of(kafka, group)?.is_some_and(|state| state == "Empty");
            Ok(AskError::Refused(if is_empty { undecided(group) } else { has_members(group) }))
        }
        Some(_) | None => Ok(AskError::code(&format!("DeleteGroups of {group:?}"), code)),
    }
}

fn has_members(group: &str) -> String {
    format!("group {group:?} has members: stop them first")
}

fn undecided(group: &str) -> String {
    format!(
        "group {group:?} has offsets in an undecided transaction: wait for its end, or find it with \
         \"semel txn list --state Ongoing\" and end it with \"semel txn abort ID\""
    )
}
