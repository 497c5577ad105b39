//! The binary `semel`.
//!
//! Purpose: parse the command line and run one command. Everything async of the project lives in this crate.
//! It decides nothing: requests are decided by `semel-broker`, rules of exactly-once stand in `semel-eos`.

mod admin;
mod cli;
mod clock;
mod config;
mod limits;
#[cfg(feature = "mutations")]
mod mutations;
mod net;
mod node_thread;
mod rate_limit;
mod say;
mod serve;
mod units;

use std::{io::IsTerminal, process::ExitCode, time::Instant};

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::cli::{
    Arguments, Command,
    salvage::{LogAction, LogCommand},
};

fn main() -> ExitCode {
    let started = Instant::now();
    let arguments = Arguments::parse();
    start_logging();
    #[cfg(feature = "mutations")]
    if let Err(message) = mutations::break_named() {
        say::note(&message);
        return ExitCode::from(cli::EXIT_USAGE);
    }
    ExitCode::from(match &arguments.command {
        Command::Serve(serve) => serve::run(serve, started),
        Command::Demo(demo) => cli::demo::run(demo),
        Command::Certify(certify) => cli::certify::run(certify),
        Command::Txn(txn) => cli::ask::txn::run(txn),
        Command::Group(group) => cli::ask::group::run(group),
        Command::Producers(producers) => cli::ask::producers::run(producers),
        Command::Fences(fences) => cli::ask::fences::run(fences),
        Command::Lso(lso) => cli::ask::lso::run(lso),
        Command::Config(show) => cli::config::run(show),
        Command::Log(LogCommand { action: LogAction::Salvage(salvage) }) => cli::salvage::run(salvage),
    })
}

/// Log lines go to standard error; `SEMEL_LOG` sets the level (`info`, `debug`, `semel=debug`).
fn start_logging() {
    let filter = EnvFilter::try_from_env("SEMEL_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(terminal).init();
}
