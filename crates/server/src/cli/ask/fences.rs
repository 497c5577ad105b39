//! `semel fences`: who fenced whom, as it was and as it happens.

use clap::Args;
use semel_types::DurationMs;
use serde_json::Value;

use super::{AdminAddress, AskError, Said, admin, finish, visible};
use crate::{cli::EXIT_OK, clock, say, units};

/// Show who fenced whom: takeovers, timeouts, aborts by an administrator.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel fences                      the fences kept, the oldest first
  semel fences --id orders          of one transactional id
  semel fences --since 10m --json   of the last ten minutes, as JSON
  semel fences --follow             as they happen, until Ctrl-C

It asks the broker's admin endpoint. With --follow, --json prints one object a line. A fence is shown once it is durable.

Exit status: 0 done, 1 failed, 2 wrong usage, 4 nobody answers at the address.")]
pub struct Fences {
    /// Of this transactional id alone.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Not older than this.
    #[arg(long, value_name = "TIME", value_parser = units::parse_span)]
    since: Option<DurationMs>,
    /// At most so many, the newest.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Go on and show each fence as it happens.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    admin: AdminAddress,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// How long one request of a follower waits.
const WAIT_MS: u32 = 30_000;

/// Runs the command; the exit status.
pub fn run(fences: &Fences) -> u8 {
    let since = fences.since.map(|since| clock::wall().as_ms().saturating_sub(since.as_ms()));
    let mut path = format!("/v1/fences?limit={}", fences.limit);
    if let Some(since_ms) = since {
        path = format!("{path}&since_ms={since_ms}");
    }
    if let Some(id) = &fences.id {
        path = format!("{path}&id={}", admin::encode(id));
    }
    if fences.follow {
        return follow(fences, &path);
    }
    finish(admin::get(&fences.admin.admin, &path).map(show), fences.json)
}

fn show(answer: Value) -> Said {
    let lines: Vec<_> = listed(&answer).iter().map(line).collect();
    let lines = if lines.is_empty() { vec!["No fences.".to_owned()] } else { lines };
    Said::new(answer, lines)
}

fn listed(answer: &Value) -> &[Value] {
    answer["fences"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn line(fence: &Value) -> String {
    let text = |name: &str| fence[name].as_str().unwrap_or_default();
    format!("{}  {}  {}  {}", text("at"), text("transactional_id"), text("cause"), text("text"))
}

/// Shows what is there, then what comes, until nobody reads or answers any more.
fn follow(fences: &Fences, path: &str) -> u8 {
    let (mut after, mut wait_ms) = (0, 0);
    loop {
        let answer = match admin::get(&fences.admin.admin, &format!("{path}&after={after}&wait_ms={wait_ms}"))
        {
            Ok(answer) => answer,
            Err(error) => return finish(Err::<Said, AskError>(error), fences.json),
        };
        for fence in listed(&answer) {
            let text = if fences.json { fence.to_string() } else { visible(&line(fence)) };
            if !say::try_line(&text) {
                return EXIT_OK;
            }
        }
        (after, wait_ms) = (answer["newest"].as_u64().unwrap_or(0), WAIT_MS);
    }
}
