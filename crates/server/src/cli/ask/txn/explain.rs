//! `semel txn explain`: the story of one transactional id.

use clap::Args;
use serde_json::Value;

use crate::cli::ask::{AdminAddress, AskError, Said, admin};

/// Tell the story of an id, newest last: who used it, what was written, who was fenced and why.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel txn explain orders
  semel txn explain orders --json

It asks the broker's admin endpoint. The story is made from the fence log (the last 32 fences of the id), the current
state, and the last 16 refused requests since the broker started.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such id, 4 nobody answers at the address.")]
pub struct Explain {
    /// The transactional id.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    admin: AdminAddress,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Asks.
pub fn ask(explain: &Explain) -> Result<Said, AskError> {
    let path = format!("/v1/transactions/{}", admin::encode(&explain.id));
    let answer = admin::get(&explain.admin.admin, &path)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![format!("Transactional id {:?}: {}", explain.id, stands(&answer))];
    let story = answer["story"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.extend(story.iter().map(|one| format!("  {}  {}", text(&one["at"]), text(&one["text"]))));
    Ok(Said::new(answer, lines))
}

/// Where it stands, in one line.
fn stands(answer: &Value) -> String {
    let state = answer["state"].as_str().unwrap_or_default();
    let identity = &answer["identity"];
    match (identity["producer_id"].as_i64(), identity["epoch"].as_i64()) {
        (Some(producer), Some(epoch)) => format!("{state}, producer {producer} epoch {epoch}"),
        (_, _) => state.to_owned(),
    }
}
