//! `semel config`: each setting, its value and where it came from.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::{
    cli::{EXIT_OK, EXIT_USAGE},
    config::{Config, environment_name},
    say,
};

/// Show each setting, its value and where it came from.
#[derive(Args, Debug)]
pub struct Show {
    /// A TOML file or a server.properties.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting, as for `semel serve`; may be given often.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Name every setting with its meaning, range and environment variable.
    #[arg(long)]
    list: bool,
    /// Machine-readable output.
    #[arg(long)]
    json: bool,
}

/// Runs the command; the exit status.
pub fn run(show: &Show) -> u8 {
    match Config::gather(show.config.as_deref(), &show.set) {
        Ok(config) => {
            config.unused().iter().for_each(|note| say::note(note));
            print(&config, show);
            EXIT_OK
        }
        Err(error) => {
            say::error(&error);
            EXIT_USAGE
        }
    }
}

fn print(config: &Config, show: &Show) {
    let rows = config.entries();
    if show.json {
        let rows: Vec<_> = rows
            .map(|(known, value, source)| {
                json!({
                    "name": known.name, "value": value, "source": source, "doc": known.doc, "values": known.expected(),
                    "environment": environment_name(known.name),
                })
            })
            .collect();
        say::line(&serde_json::Value::from(rows).to_string());
        return;
    }
    for (known, value, source) in rows {
        say::line(&format!("{} = {value}    ({source})", known.name));
        if show.list {
            let (doc, values) = (known.doc, known.expected());
            say::line(&format!("    {doc} Takes {values}; {}.", environment_name(known.name)));
        }
    }
}
