//! Why a scenario did not come to its good end.

use std::{fmt, io};

use crate::{ClientError, ServerError};

/// Why a scenario did not come to its good end.
#[derive(Debug)]
pub enum Failure {
    /// The promise is broken.
    Broken {
        /// What was sent.
        sent: String,
        /// What came.
        came: String,
        /// What was due.
        due: String,
    },
    /// It cannot be tried here; the text says why.
    NotRun(String),
    /// The exchange itself failed where an answer was due, or the broker could not be started.
    Failed(String),
}

impl Failure {
    /// A broken promise.
    #[must_use]
    pub fn broken(sent: impl fmt::Display, came: impl fmt::Display, due: impl fmt::Display) -> Self {
        Self::Broken { sent: sent.to_string(), came: came.to_string(), due: due.to_string() }
    }

    /// The same without a text that stands in it again and again.
    #[must_use]
    pub fn without(self, text: &str) -> Self {
        let plain = |told: String| told.replace(text, "");
        match self {
            Self::Broken { sent, came, due } => {
                Self::Broken { sent: plain(sent), came: plain(came), due: plain(due) }
            }
            Self::NotRun(reason) => Self::NotRun(plain(reason)),
            Self::Failed(reason) => Self::Failed(plain(reason)),
        }
    }
}

impl Failure {
    /// What it says, without what kind of failure it is.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NotRun(reason) | Self::Failed(reason) => reason.clone(),
            Self::Broken { .. } => self.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { sent, came, due } => write!(f, "sent {sent}; came {came}; due {due}"),
            Self::NotRun(reason) => write!(f, "not run: {reason}"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<semel_wire::EncodeError> for Failure {
    fn from(error: semel_wire::EncodeError) -> Self {
        Self::Failed(error.to_string())
    }
}
