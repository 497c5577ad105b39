//! How a run is told: as text for people, as JUnit for build servers.
//!
//! What it does not do: JSON, which the command line makes with a library.

pub mod junit;
pub mod text;

use crate::runner::{Finding, Verdict};

/// How many ended how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Kept promises.
    pub kept: usize,
    /// Broken ones.
    pub broken: usize,
    /// Those that could not be tried.
    pub not_run: usize,
}

impl Tally {
    /// Counts the findings that are chosen.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        findings.into_iter().fold(Self::default(), |mut tally, finding| {
            match finding.verdict {
                Verdict::Kept => tally.kept += 1,
                Verdict::Broken(_) => tally.broken += 1,
                Verdict::NotRun(_) => tally.not_run += 1,
            }
            tally
        })
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.kept + self.broken + self.not_run
    }
}

/// The findings of Kafka's promises, and those of the stricter ones.
#[must_use]
pub fn divide(findings: &[Finding]) -> (Vec<&Finding>, Vec<&Finding>) {
    findings.iter().partition(|finding| !finding.scenario.is_stricter())
}
