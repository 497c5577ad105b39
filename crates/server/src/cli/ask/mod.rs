//! Commands that ask a running broker: transactions, groups, producers, fences, what holds the last stable offset.
//!
//! They speak Kafka's protocol where it has the request, and the admin endpoint where it has not; each command's help
//! says which. Every one has `--json`, whose fields `docs/commands.md` names, and these exit statuses: 0 done, 1
//! failed, 2 wrong usage, 3 there is no such thing, 4 nobody answers at the address, 5 something was found that
//! should not be there (`semel txn hanging`).

pub mod admin;
pub mod fences;
pub mod group;
pub mod kafka;
pub mod lso;
pub mod producers;
pub mod txn;

use std::fmt::Display;

use clap::Args;
use kafka::Kafka;
use semel_certify::ClientError;
use serde_json::Value;

use crate::{
    admin::DEFAULT_ADDRESS,
    cli::{EXIT_FAILED, EXIT_OK, EXIT_USAGE},
    net::endpoint::Endpoint,
    say,
};

/// Exit status: there is no such id, topic or partition.
pub const EXIT_NOT_FOUND: u8 = 3;
/// Exit status: nobody answers at the address.
pub const EXIT_UNREACHABLE: u8 = 4;
/// Exit status: something was found that should not be there.
pub const EXIT_FOUND: u8 = 5;

/// Where the broker takes Kafka's protocol.
#[derive(Args, Debug)]
pub struct Bootstrap {
    /// Address of the broker.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092", env = "SEMEL_BOOTSTRAP", value_parser = address)]
    pub bootstrap: String,
}

/// Where the broker's admin endpoint is.
#[derive(Args, Debug)]
pub struct AdminAddress {
    /// Address of the broker's admin endpoint.
    #[arg(long, value_name = "HOST:PORT", default_value = DEFAULT_ADDRESS, env = "SEMEL_ADMIN", value_parser = address)]
    pub admin: String,
}

/// Connects to the broker of both addresses: what two different ones say must not be put together.
fn one_broker(bootstrap: &Bootstrap, admin: &AdminAddress) -> Result<Kafka, AskError> {
    let (bootstrap, admin) = (&bootstrap.bootstrap, &admin.admin);
    let mut kafka = Kafka::connect(bootstrap)?;
    let health = admin::get(admin, "/v1/health")?;
    let (here, there) = (kafka.cluster_id()?.unwrap_or_default(), health["cluster_id"].as_str());
    match there.filter(|there| *there != here) {
        None => Ok(kafka),
        Some(there) => Err(AskError::Usage(format!(
            "--bootstrap {bootstrap} (cluster {here}) and --admin {admin} (cluster {there}, whose clients connect to {}) \
             are two brokers: name both addresses of one",
            health["bootstrap"].as_str().unwrap_or("another address"),
        ))),
    }
}

/// Takes an address that can be connected to.
///
/// # Errors
/// What was expected.
pub fn address(text: &str) -> Result<String, String> {
    Endpoint::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Takes one of Kafka's names of a state, in any case.
fn state(text: &str, states: &[&str]) -> Result<String, String> {
    let found = states.iter().find(|state| state.eq_ignore_ascii_case(text));
    found.map(|state| (*state).to_owned()).ok_or_else(|| format!("there are {}", states.join(", ")))
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers.
    #[error(
        "cannot reach {what} at {address}: {reason}; is it running (semel serve)? {flag} names another address"
    )]
    Unreachable {
        /// A broker, or its admin endpoint.
        what: &'static str,
        /// Where it was looked for.
        address: String,
        /// What the system says.
        reason: String,
        /// The flag that names another address.
        flag: &'static str,
    },
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// The broker refused.
    #[error("{0}")]
    Refused(String),
    /// What was asked makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The exchange failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl AskError {
    const fn exit(&self) -> u8 {
        match self {
            Self::Unreachable { .. } => EXIT_UNREACHABLE,
            Self::NotFound(_) => EXIT_NOT_FOUND,
            Self::Usage(_) => EXIT_USAGE,
            Self::Refused(_) | Self::Client(_) => EXIT_FAILED,
        }
    }

    /// A code that Kafka's protocol gave where none was expected.
    fn code(what: &str, code: impl Display) -> Self {
        Self::Refused(format!("{what}: the broker answers {code}"))
    }
}

/// What a command has to say.
pub struct Said {
    /// As JSON.
    pub json: Value,
    /// For people, line by line.
    pub lines: Vec<String>,
    /// What could not be done beside what was.
    pub errors: Vec<AskError>,
    /// The exit status.
    pub exit: u8,
}

impl Said {
    fn new(json: Value, lines: Vec<String>) -> Self {
        Self { json, lines, errors: Vec::new(), exit: EXIT_OK }
    }
}

/// Prints what a command has to say; the exit status: that of the first error, if there is one.
pub fn finish(said: Result<Said, AskError>, json: bool) -> u8 {
    let said = match said {
        Ok(said) => said,
        Err(error) => {
            say::error(&error);
            return error.exit();
        }
    };
    if json {
        say::line(&said.json.to_string());
    } else {
        said.lines.iter().for_each(|line| say::line(&visible(line)));
    }
    said.errors.iter().for_each(|error| say::error(error));
    said.errors.first().map_or(said.exit, AskError::exit)
}

/// Text with its control characters as escapes. Clients choose names freely: a line break in one must not begin a line,
/// nor may one move the terminal's cursor, or turn the direction of writing.
fn visible(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Rows with a head, in columns.
fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    [line(head.to_vec())].into_iter().chain(rows).collect()
}

/// A topic, or one partition of it, as `TOPIC` or `TOPIC:P`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The topic.
    pub topic: String,
    /// The partition; all if `None`.
    pub partition: Option<i32>,
}

impl Target {
    /// Reads it. A topic's name has no colon.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no TOPIC or TOPIC:PARTITION (examples: orders, orders:0)");
        let (topic, partition) = match text.split_once(':') {
            Some((topic, number)) => {
                let number = number.parse::<u16>().map_err(|_| wrong())?;
                (topic, Some(i32::from(number)))
            }
            None => (text, None),
        };
        if topic.is_empty() { Err(wrong()) } else { Ok(Self { topic: topic.to_owned(), partition }) }
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_topic_or_one_partition_of_it() {
        let target = |topic: &str, partition| Ok(Target { topic: topic.to_owned(), partition });
        assert_eq!(Target::parse("orders"), target("orders", None));
        assert_eq!(Target::parse("orders:12"), target("orders", Some(12)));
        for text in ["", ":1", "orders:", "orders:x", "orders:-1"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(shell_word("orders-1"), "orders-1");
        assert_eq!(shell_word("it's $1"), r"'it'\''s $1'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn control_characters_of_names_reach_no_terminal_and_break_no_table() {
        let rows = vec![vec!["a\nb".to_owned(), "\u{1b}[2J\u{9b}\u{202e}".to_owned()]];
        let shown = table(&["ID", "N"], &rows);
        assert_eq!(shown, ["ID    N", r"a\nb  \u{1b}[2J\u{9b}\u{202e}"]);
        assert_eq!(visible("é \\n '\"\u{7f}"), "é \\n '\"\\u{7f}", "and nothing else is changed");
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(address("[::1]:9092"), Ok("[::1]:9092".to_owned()));
        assert!(address("foo").is_err_and(|error| error.contains("HOST:PORT")));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["ID", "N"], &rows), ["ID    N", "a     1", "long  2"]);
    }
}
