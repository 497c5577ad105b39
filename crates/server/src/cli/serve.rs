//! `semel serve`: run the broker until told to stop.

use std::{fmt, path::PathBuf};

use clap::{Args, ValueEnum};

use crate::admin::DEFAULT_ADDRESS;

/// When an answer may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DurabilityArgument {
    /// After the write and a sync: survives power loss.
    Sync,
    /// After the write, synced every 100 ms: survives a crash of the process.
    Interval,
    /// Nothing on disk: for tests.
    Memory,
}

impl fmt::Display for DurabilityArgument {
    /// As it is given on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync",
            Self::Interval => "interval",
            Self::Memory => "memory",
        })
    }
}

/// Run the broker.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel serve
  semel serve --data-dir /var/lib/semel --listen 0.0.0.0:9092 --advertise broker.example:9092
  semel serve --durability memory --listen 127.0.0.1:0
  semel serve --config server.properties --set num.partitions=3

The broker stops cleanly on SIGTERM and on Ctrl-C. Exit status: 0 stopped cleanly, 1 failed, 2 wrong usage.")]
pub struct Serve {
    /// Where the log is kept; made if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "semel-data", env = "SEMEL_DATA_DIR")]
    pub data_dir: PathBuf,
    /// Address to listen on; may be given often. Port 0 takes a free one.
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9092",
        env = "SEMEL_LISTEN",
        value_delimiter = ','
    )]
    pub listen: Vec<String>,
    /// Address that clients are told; the one they connected to if not given.
    #[arg(long, value_name = "HOST:PORT", env = "SEMEL_ADVERTISE")]
    pub advertise: Option<String>,
    /// Loopback address of the admin endpoint, for `semel fences` and its like; `none` for none. Port 0 takes a free
    /// one.
    #[arg(long, value_name = "HOST:PORT|none", default_value = DEFAULT_ADDRESS, env = "SEMEL_ADMIN")]
    pub admin: String,
    /// When an answer may leave.
    #[arg(long, value_enum, default_value = "sync", env = "SEMEL_DURABILITY")]
    pub durability: DurabilityArgument,
    /// A TOML file or a server.properties.
    #[arg(long, value_name = "FILE", env = "SEMEL_CONFIG")]
    pub config: Option<PathBuf>,
    /// The transaction protocol that clients are told to use: 0 and 1 classic, 2 with an epoch for each transaction
    /// (KIP-890). For testing clients: the broker serves all of them at any time. Sets `semel.transaction.version`.
    #[arg(long, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub transaction_version: Option<u8>,
    /// A setting by Kafka's name; may be given often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// End at once when stdin closes: a server that was started by a test or a tool does not outlive it.
    #[arg(long, hide = true)]
    pub end_with_stdin: bool,
}

impl Serve {
    /// All settings given by flags, as `key=value`.
    pub fn settings(&self) -> Vec<String> {
        let version = self.transaction_version.map(|level| format!("semel.transaction.version={level}"));
        self.set.iter().cloned().chain(version).collect()
    }
}
