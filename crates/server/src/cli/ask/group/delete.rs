//! `semel group delete`: groups without members, and their offsets (Kafka's DeleteGroups).

use clap::Args;
use semel_types::ErrorCode;
use semel_wire::{Text, api::delete_groups::DeleteGroupsRequest};
use serde_json::json;

use crate::cli::ask::{AskError, Bootstrap, Said, kafka::Kafka};

/// Delete groups without members, and their offsets.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel group delete orders
  semel group delete orders shipping --json

A group with members, or with offsets in an undecided transaction, is not deleted; of several the others are.
It asks in Kafka's protocol (DeleteGroups), so it works with other brokers, too.

Exit status: 0 deleted, 1 failed, 2 wrong usage, 3 no such group, 4 nobody answers at the address.")]
pub struct Delete {
    /// The groups.
    #[arg(value_name = "GROUP", required = true)]
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
    let groups_names = delete.groups.iter().map(|group| Text::from(group.as_str())).collect();
    let answer = kafka.call(&DeleteGroupsRequest { groups_names }, VERSION)?;
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for result in &answer.results {
        let group = result.group_id.as_str();
        match result.error_code.known() {
            Some(ErrorCode::None) => deleted.push(group),
            Some(ErrorCode::GroupIdNotFound) => {
                failed.push(AskError::NotFound(format!("there is no group {group:?}")));
            }
            Some(ErrorCode::NonEmptyGroup) => failed.push(AskError::Refused(format!(
                "group {group:?} has members, or offsets in an undecided transaction"
            ))),
            _ => failed.push(AskError::code(&format!("DeleteGroups of {group:?}"), result.error_code)),
        }
    }
    let lines = deleted.iter().map(|group| format!("Deleted group {group:?}.")).collect();
    match failed.into_iter().next() {
        None => Ok(Said::new(json!({ "deleted": deleted }), lines)),
        Some(error) => Err(error),
    }
}
