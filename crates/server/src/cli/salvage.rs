//! `semel log salvage`: go on without a damaged rest of the log.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use semel_log::{Options, Salvaged};
use serde_json::json;

use crate::{
    cli::{EXIT_FAILED, EXIT_OK},
    say,
};

/// Look after the log of a server that does not run.
#[derive(Args, Debug)]
pub struct LogCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: LogAction,
}

/// What can be done to a log.
#[derive(Subcommand, Debug)]
pub enum LogAction {
    /// Set a damaged rest of the log aside, so that the server starts with what stands before it.
    Salvage(Salvage),
}

/// Set a damaged rest of the log aside.
#[derive(Args, Debug)]
#[command(
    after_help = "A server that finds acknowledged data damaged does not start, because what follows the damage \
would be lost silently. Try to restore the file from a copy first. What is set aside is not deleted.

Exit status: 0 set aside, or nothing was damaged; 1 failed; 2 wrong usage."
)]
pub struct Salvage {
    /// Where the log is kept.
    #[arg(long, value_name = "DIR", default_value = "semel-data", env = "SEMEL_DATA_DIR")]
    data_dir: PathBuf,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// Runs the command; the exit status.
pub fn run(salvage: &Salvage) -> u8 {
    match semel_log::salvage(&Options::files(&salvage.data_dir)) {
        Ok(salvaged) => {
            report(salvaged.as_ref(), salvage);
            EXIT_OK
        }
        Err(error) => {
            say::error(&error);
            EXIT_FAILED
        }
    }
}

fn report(salvaged: Option<&Salvaged>, salvage: &Salvage) {
    if salvage.json {
        return say::line(&in_json(salvaged).to_string());
    }
    let directory = salvage.data_dir.display();
    let Some(Salvaged { corruption, set_aside }) = salvaged else {
        return say::line(&format!("Nothing in {directory} is damaged; nothing was changed."));
    };
    say::line(&format!("{} was damaged at byte {}.", corruption.name, corruption.position));
    say::line(&format!(
        "Log sequences {} to {} are gone from the log; they were set aside in {directory} as:",
        corruption.first_missing, corruption.last_durable
    ));
    set_aside.iter().for_each(|name| say::line(&format!("  {name}")));
    say::line("The server can be started again. Everything before the damage is there.");
}

fn in_json(salvaged: Option<&Salvaged>) -> serde_json::Value {
    let Some(Salvaged { corruption, set_aside }) = salvaged else { return json!({ "damaged": false }) };
    let partitions: Vec<_> = corruption.partitions.iter().map(|partition| partition.get()).collect();
    json!({
        "damaged": true,
        "file": corruption.name,
        "position": corruption.position,
        "first_missing_sequence": corruption.first_missing.get(),
        "last_durable_sequence": corruption.last_durable.get(),
        "partitions": partitions,
        "set_aside": set_aside,
    })
}
