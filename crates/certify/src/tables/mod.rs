//! Tables of codes by state and version: every row that can be reached from outside is tried.
//!
//! The names are those of the tables: `T3.7` is how EndTxn is answered in each state. States in which markers are being
//! written cannot be held from outside; they are tried by races among the scenarios.

mod add;
mod end;
mod fetch;
mod init;
mod markers;
mod sequences;

use crate::{
    Actor,
    Outcome::{self, Abort, Commit},
    Probe, Producer, Scenario,
    scenario::Kept,
    session::Place,
};

/// All of them, by file.
pub(crate) const ALL: [&[&Scenario]; 6] =
    [sequences::ALL, init::ALL, add::ALL, end::ALL, markers::ALL, fetch::ALL];

/// A state of a transactional id that stays until somebody acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Empty,
    Ongoing,
    CompleteCommit,
    CompleteAbort,
}

impl State {
    const ALL: [Self; 4] = [Self::Empty, Self::Ongoing, Self::CompleteCommit, Self::CompleteAbort];

    /// Brings a fresh id there; gives the id's producer and what EndTxn gave, if it was sent.
    fn reach(self, probe: &Probe, a: &mut Actor, t: &Place) -> Kept<(Producer, Producer)> {
        let id = probe.id("x");
        let first = if self == Self::Empty { a.init(&id)? } else { a.open(t, &id, "a")? };
        let end = |a: &mut Actor, outcome: Outcome, state: &str| {
            let now = a.end(&first, outcome).is(0)?;
            a.comes_to(&id, &[state])?;
            Ok((first.clone(), now))
        };
        match self {
            Self::Empty | Self::Ongoing => Ok((first.clone(), first)),
            Self::CompleteCommit => end(a, Commit, "CompleteCommit"),
            Self::CompleteAbort => end(a, Abort, "CompleteAbort"),
        }
    }
}
