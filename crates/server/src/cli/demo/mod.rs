//! `semel demo`: exactly-once shown step by step, on a real server process, over TCP.
//!
//! Each step says what was asked, what was answered and what was read back; each promise is a line of the table at
//! the end. Nothing is shown that was not sent or read: a broken promise is seen here first.

mod appends;
mod crash;
mod lost_answer;
mod report;
mod takeover;

use std::{env, io, path::PathBuf};

use clap::Args;
use semel_certify::{ClientError, Server, ServerError};

use crate::{
    cli::{EXIT_FAILED, EXIT_OK},
    say,
};
use report::Report;

/// See exactly-once kept, step by step.
#[derive(Args, Debug)]
pub struct Demo {
    /// Machine-readable output: one object with every step and promise.
    #[arg(long)]
    json: bool,
}

/// Why the demo could not be shown to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The server process.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A connection to it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A running server and where the story is told.
pub struct Stage {
    /// The server.
    pub server: Server,
    /// The story so far.
    pub report: Report,
}

/// Runs the command; the exit status.
pub fn run(demo: &Demo) -> u8 {
    match show(demo.json) {
        Ok(report) => {
            report.finish();
            if report.is_kept() { EXIT_OK } else { EXIT_FAILED }
        }
        Err(error) => {
            say::error(&error);
            EXIT_FAILED
        }
    }
}

fn show(json: bool) -> Result<Report, DemoError> {
    let directory = tempfile::tempdir()?;
    let program: PathBuf = env::current_exe()?;
    let mut report = Report::new(json);
    let server = Server::start(&program, directory.path(), &[])?;
    report.tell(&format!(
        "A broker of its own listens on {}, its log is in a temporary directory.",
        server.address()
    ));
    let mut stage = Stage { server, report };
    appends::play(&mut stage)?;
    lost_answer::play(&mut stage)?;
    takeover::play(&mut stage)?;
    crash::play(&mut stage)?;
    Ok(stage.report)
}
