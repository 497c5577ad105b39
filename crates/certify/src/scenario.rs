//! What a scenario is: a short program with a head that says what it holds a broker to, and on whose word.
//!
//! Invariant: a head states the promise as a user would feel it; the program states what is sent and what is due.
//! What it does not do: run anything (see [`crate::runner`]).

use std::fmt;

use crate::{Failure, Probe};

/// How a scenario ended well, or why it did not.
pub type Kept<T = ()> = Result<T, Failure>;

/// Settings that a broker has to be started with, by Kafka's names.
pub type Settings = &'static [(&'static str, &'static str)];

/// What part of a broker a promise is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// A record is stored once.
    Dedup,
    /// An older producer is shut out.
    Fencing,
    /// Identities of producers.
    Init,
    /// The transaction coordinator.
    Coordinator,
    /// Markers and the last stable offset.
    Markers,
    /// What readers of committed records see.
    Reading,
    /// Consumer groups and their offsets.
    Groups,
    /// Kills and restarts.
    Recovery,
    /// What client libraries rely on.
    Clients,
    /// What operators ask.
    Admin,
    /// Who may do what.
    Security,
}

impl Area {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Dedup,
        Self::Fencing,
        Self::Init,
        Self::Coordinator,
        Self::Markers,
        Self::Reading,
        Self::Groups,
        Self::Recovery,
        Self::Clients,
        Self::Admin,
        Self::Security,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dedup => "dedup",
            Self::Fencing => "fencing",
            Self::Init => "init",
            Self::Coordinator => "coordinator",
            Self::Markers => "markers",
            Self::Reading => "reading",
            Self::Groups => "groups",
            Self::Recovery => "recovery",
            Self::Clients => "clients",
            Self::Admin => "admin",
            Self::Security => "security",
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an expectation rests on, besides the run against Apache Kafka 4.4 that every one of them has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Read in Apache Kafka's broker source.
    Reference,
    /// A Kafka improvement proposal.
    Kip,
    /// A maintainer's word or a merged fix in the thread that the source names.
    Thread,
    /// The protocol as clients rely on it.
    Protocol,
    /// Stricter than Apache Kafka: a decision of Semel.
    Beyond,
}

impl Basis {
    /// Its tag in reports.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Reference => "ref",
            Self::Kip => "KIP",
            Self::Thread => "thread",
            Self::Protocol => "proto",
            Self::Beyond => "beyond",
        }
    }
}

/// Who keeps the promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// Apache Kafka 4.4 keeps it, so every broker has to.
    Kafka,
    /// Semel promises more.
    Stricter {
        /// What Apache Kafka 4.4 answers instead.
        kafka: &'static str,
        /// Does it do so in every run? A race goes well now and then.
        in_every_run: bool,
    },
}

/// What a scenario needs besides a broker that listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it runs beside others.
    Nothing,
    /// A broker with these settings; it runs beside others that need the same.
    Settings(Settings),
    /// A broker of its own with these settings, to be killed and restarted ([`Probe::kill`], [`Probe::restart`]).
    Restart(Settings),
    /// A broker of its own whose data lives on a small file system and nothing else: to be filled. It may be killed
    /// where the file system outlives it, which that of a broker that is started by command does not.
    SmallDisk(SmallDisk),
}

/// A file system that a scenario fills, and how the broker on it is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmallDisk {
    /// Its size in MiB (1,048,576 bytes); at least what the broker needs to start.
    pub size_mib: u32,
    /// Settings of the broker.
    pub settings: Settings,
}

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Short, unique, never given to another one: B01, S1, T1.5-gap.
    pub id: &'static str,
    /// What is tried, in a few words.
    pub title: &'static str,
    /// What a user loses if the promise is broken, in one sentence.
    pub promise: &'static str,
    /// Where it belongs.
    pub area: Area,
    /// A KIP, a founding rule, a report.
    pub source: &'static str,
    /// What the expectation rests on.
    pub basis: &'static [Basis],
    /// Versions of the requests it sends, as a reader would say it.
    pub versions: &'static str,
    /// Who keeps the promise.
    pub expectation: Expectation,
    /// What it needs.
    pub needs: Needs,
    /// What of its source's text is not tried, not even in a thorough run, and why; empty if it is whole.
    pub left_out: &'static str,
    /// The program.
    pub run: fn(&mut Probe) -> Kept,
}

impl Scenario {
    /// A promise that Apache Kafka keeps, to be completed with `..Scenario::kafka(area, run)`.
    #[must_use]
    pub const fn kafka(area: Area, run: fn(&mut Probe) -> Kept) -> Self {
        Self {
            id: "",
            title: "",
            promise: "",
            area,
            source: "",
            basis: &[Basis::Reference],
            versions: "classic",
            expectation: Expectation::Kafka,
            needs: Needs::Nothing,
            left_out: "",
            run,
        }
    }

    /// A promise that only Semel makes; `kafka` says what Apache Kafka 4.4 answers.
    #[must_use]
    pub const fn stricter(area: Area, kafka: &'static str, run: fn(&mut Probe) -> Kept) -> Self {
        let expectation = Expectation::Stricter { kafka, in_every_run: true };
        Self { expectation, basis: &[Basis::Beyond], ..Self::kafka(area, run) }
    }

    /// A promise that only Semel makes and that Apache Kafka 4.4 breaks in some runs.
    #[must_use]
    pub const fn stricter_at_times(area: Area, kafka: &'static str, run: fn(&mut Probe) -> Kept) -> Self {
        let expectation = Expectation::Stricter { kafka, in_every_run: false };
        Self { expectation, basis: &[Basis::Beyond], ..Self::kafka(area, run) }
    }

    /// Is it one that Apache Kafka breaks in every run, so that a run in which it keeps it shows a mistake?
    #[must_use]
    pub const fn is_surely_broken_by_kafka(&self) -> bool {
        matches!(self.expectation, Expectation::Stricter { in_every_run: true, .. })
    }

    /// Is it one that Apache Kafka does not keep?
    #[must_use]
    pub const fn is_stricter(&self) -> bool {
        matches!(self.expectation, Expectation::Stricter { .. })
    }

    /// Does a pattern name it? `*` stands for any characters; the id or the area is compared, case aside.
    #[must_use]
    pub fn is_named(&self, pattern: &str) -> bool {
        let pattern = pattern.to_lowercase();
        glob(pattern.as_bytes(), self.id.to_lowercase().as_bytes())
            || glob(pattern.as_bytes(), self.area.name().as_bytes())
    }
}

/// Whether a text is what a pattern with `*` stands for.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => glob(rest, text) || (!text.is_empty() && glob(pattern, &text[1..])),
        ([first, pattern @ ..], [same, text @ ..]) if first == same => glob(pattern, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_ids_and_areas() {
        let scenario = Scenario { id: "B01", ..Scenario::kafka(Area::Dedup, |_| Ok(())) };
        for pattern in ["B01", "b0*", "*1", "dedup", "ded*", "*"] {
            assert!(scenario.is_named(pattern), "{pattern}");
        }
        for pattern in ["B0", "B011", "fencing", "", "S*"] {
            assert!(!scenario.is_named(pattern), "{pattern}");
        }
    }
}
