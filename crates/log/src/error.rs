//! Why a log cannot be opened or started: texts for the operator.

use std::{fmt, io, path::PathBuf};

use semel_events::DecodeError;
use semel_types::{LogSequence, PartitionHandle};

use crate::RestoreError;

/// Why a log cannot be opened. Nothing was changed on the disk.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the directory.
    InUse {
        /// Which directory.
        directory: PathBuf,
        /// Who has it, if known.
        holder: String,
    },
    /// The directory cannot be used.
    NotWritable {
        /// Which directory.
        directory: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A newer Semel wrote it.
    NewerFormat {
        /// Which file.
        name: String,
        /// The version found.
        found: u16,
        /// The newest version known here.
        known: u16,
    },
    /// Acknowledged data is damaged.
    Corrupt(Corruption),
    /// A snapshot or event has valid checksums but cannot be understood.
    Undecodable {
        /// Which file.
        name: String,
        /// Where in it.
        position: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The index of some partition does not fit its records.
    Index(RestoreError),
    /// The disk failed.
    Io(io::Error),
}

/// What recovery knows of damage to acknowledged data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The file's name.
    pub name: String,
    /// Where in it, in bytes.
    pub position: u64,
    /// First sequence that is missing.
    pub first_missing: LogSequence,
    /// Last sequence known to have been durable.
    pub last_durable: LogSequence,
    /// Partitions known to be affected: those of intact groups behind the damage.
    pub partitions: Vec<PartitionHandle>,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "acknowledged data is damaged: {} at byte {}", self.name, self.position)?;
        if self.first_missing <= self.last_durable {
            write!(f, ", log sequences {} to {}", self.first_missing, self.last_durable)?;
        }
        for (index, partition) in self.partitions.iter().enumerate() {
            write!(f, "{}{partition}", if index == 0 { ", at least partitions " } else { ", " })?;
        }
        f.write_str(
            "; nothing was changed; restore the file, or run `semel log salvage` to set the rest of the log aside \
             and start without it",
        )
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { directory, holder } => {
                write!(f, "{} is in use by {holder}", directory.display())
            }
            Self::NotWritable { directory, source } => {
                write!(f, "{} is not writable: {source}", directory.display())
            }
            Self::NewerFormat { name, found, known } => write!(
                f,
                "{name} has format version {found}, this Semel knows up to {known}: a newer Semel wrote it"
            ),
            Self::Corrupt(corruption) => corruption.fmt(f),
            Self::Undecodable { name, position, source } => {
                write!(f, "{name} at byte {position} cannot be understood: {source}")
            }
            Self::Index(source) => source.fmt(f),
            Self::Io(source) => write!(f, "the disk failed: {source}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

/// Why a log could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// It was started before, or shut down.
    AlreadyStarted,
    /// The disk failed.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyStarted => f.write_str("the log was started before"),
            Self::Io(source) => write!(f, "the log's first group could not be written: {source}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}
