//! The command line: one file per command.

pub mod ask;
pub mod certify;
pub mod config;
pub mod demo;
pub mod salvage;
pub mod serve;

use clap::{Parser, Subcommand};

/// Exit status of a command that did what was asked.
pub const EXIT_OK: u8 = 0;
/// Exit status of a command that failed.
pub const EXIT_FAILED: u8 = 1;
/// Exit status of a command that was asked for something impossible.
pub const EXIT_USAGE: u8 = 2;

/// A broker that speaks Kafka's protocol and counts every record once.
#[derive(Parser, Debug)]
#[command(name = "semel", version, about, long_about = None, after_help = AFTER_HELP)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "Examples:
  semel serve                          a broker on 127.0.0.1:9092, data in ./semel-data
  semel serve --durability memory      nothing on disk, for tests
  semel demo                           see exactly-once kept, step by step
  semel certify --bootstrap host:9092  which promises any Kafka-protocol broker keeps
  semel txn explain orders             who used a transactional id, who was fenced and why
  semel group explain orders           why a group rebalanced
  semel fences --follow                each fence as it happens
  semel lso orders:0                   what readers of committed records wait for
  semel config --set num.partitions=3  each setting, its value and where it came from

Exit status: 0 done, 1 failed, 2 wrong usage; commands that ask a broker: 3 no such thing, 4 nobody answers,
5 something found that should not be there.";

/// Semel's commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the broker.
    Serve(serve::Serve),
    /// See exactly-once kept, step by step, on a broker of its own in a temporary directory.
    Demo(demo::Demo),
    /// Judge any broker that speaks Kafka's protocol: which promises of exactly-once does it keep?
    Certify(certify::Certify),
    /// Look at transactions and end them.
    Txn(ask::txn::TxnCommand),
    /// Look at groups and their offsets, and change them.
    Group(ask::group::GroupCommand),
    /// Show who writes to a topic's partitions, and where their open transactions start.
    Producers(ask::producers::Producers),
    /// Show who fenced whom: takeovers, timeouts, aborts by an administrator.
    Fences(ask::fences::Fences),
    /// Show what holds the last stable offset of a topic's partitions.
    Lso(ask::lso::Lso),
    /// Show each setting, its value and where it came from.
    Config(config::Show),
    /// Look after the log of a server that does not run.
    Log(salvage::LogCommand),
}
