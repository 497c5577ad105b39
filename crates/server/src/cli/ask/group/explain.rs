//! `semel group explain`: why a group rebalanced.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::ask::{AdminAddress, AskError, Said, admin};

/// Tell why a group rebalanced, the newest last.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel group explain orders
  semel group explain orders --json

It asks the broker's admin endpoint. The last 16 rebalances of a group since the broker started are known, each with its
first 8 causes.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such group, 4 nobody answers at the address.")]
pub struct Explain {
    /// The group.
    #[arg(value_name = "GROUP", value_parser = super::name)]
    group: String,
    #[command(flatten)]
    admin: AdminAddress,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Asks.
pub fn ask(explain: &Explain) -> Result<Said, AskError> {
    let path = format!("/v1/groups/{}", admin::encode(&explain.group));
    let answer = admin::get(&explain.admin.admin, &path)?;
    let rebalances = answer["rebalances"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![format!("Group {:?}: {}", explain.group, super::describe::stands(&answer))];
    lines.extend(rebalances.iter().map(|one| format!("  {}  {}", text(&one["ended"]), text(&one["text"]))));
    if rebalances.is_empty() {
        lines.push("  It has not rebalanced since the broker started.".to_owned());
    }
    let fields = ["group", "type", "state", "epoch", "rebalances"];
    let json = fields.iter().map(|field| ((*field).to_owned(), answer[*field].clone())).collect();
    Ok(Said::new(json!(serde_json::Map::from_iter::<Vec<_>>(json)), lines))
}
