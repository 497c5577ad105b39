//! Tables of codes by state and version: every row that can be reached from outside is tried.
//!
//! The names are those of the tables: `T3.7` is how EndTxn is answered in each state. `docs/certify/tables.md` says of
//! each table what is tried, and what is not and why.
//!
//! States in which markers are being written cannot be held from outside, but met ([`held`]).

mod add;
mod end;
mod exhausted;
mod fetch;
mod held;
mod init;
mod markers;
mod offsets;
mod sequences;

use std::ops::RangeInclusive;

use semel_wire::ApiKey;

use crate::{
    Actor, Failure,
    Outcome::{self, Abort, Commit},
    Probe, Producer, Scenario,
    scenario::Kept,
    session::Place,
};

/// All of them, by file.
pub(crate) const ALL: [&[&Scenario]; 9] = [
    sequences::ALL,
    init::ALL,
    add::ALL,
    offsets::ALL,
    end::ALL,
    held::ALL,
    exhausted::ALL,
    markers::ALL,
    fetch::ALL,
];

/// Those of an API's versions that the broker offers.
///
/// # Errors
/// [`Failure::NotRun`] if it offers none of them.
fn offered(probe: &Probe, api: ApiKey, versions: RangeInclusive<i16>) -> Kept<Vec<i16>> {
    let offered: Vec<_> = versions.clone().filter(|version| probe.offers().has(api, *version)).collect();
    if offered.is_empty() {
        return Err(Failure::NotRun(format!("the broker offers no version of {api:?} in {versions:?}")));
    }
    Ok(offered)
}

/// The versions of Produce in which a batch may be part of a transaction: from 12 on only where `transaction.version` 2
/// goes with it.
fn transactional_versions(probe: &Probe) -> Kept<Vec<i16>> {
    let last = if probe.needs_version_2().is_ok() { 13 } else { 11 };
    offered(probe, ApiKey::Produce, 3..=last)
}

/// Somebody who speaks this version of Produce, and what goes with it.
fn speaking(probe: &Probe, produce: i16) -> Kept<Actor> {
    let actor = probe.actor("A")?;
    let mut actor = if produce >= 12 { actor.version_2() } else { actor };
    actor.using(|versions| versions.produce = produce);
    Ok(actor)
}

/// The code for a fenced producer: 90 from a version on, 47 before.
const fn fenced(version: i16, since: i16) -> i16 {
    if version < since { 47 } else { 90 }
}

/// The code for what is in no transaction: 120 from a version on, 48 before.
const fn outside(version: i16, since: i16) -> i16 {
    if version < since { 48 } else { 120 }
}

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Words of the document that look like ids of scenarios.
    fn named(document: &str) -> BTreeSet<&str> {
        let is_part_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let words = document.split(|c: char| !is_part_of_word(c)).map(|word| word.trim_end_matches('.'));
        let is_id = |word: &&str| {
            let mut letters = word.chars();
            letters.next().is_some_and(|first| "BDFGKMST".contains(first))
                && letters.next().is_some_and(|second| second.is_ascii_digit())
        };
        words.filter(is_id).collect()
    }

    #[test]
    fn the_list_of_rows_names_every_scenario_of_a_table_and_none_that_does_not_exist() {
        let named = named(include_str!("../../../../docs/certify/tables.md"));
        let known: BTreeSet<_> = crate::scenarios::all().into_iter().map(|scenario| scenario.id).collect();
        let strange: Vec<_> = named.difference(&known).collect();
        assert!(strange.is_empty(), "no scenarios: {strange:?}");
        let own: BTreeSet<_> = super::ALL.into_iter().flatten().map(|scenario| scenario.id).collect();
        let missing: Vec<_> = own.difference(&named).collect();
        assert!(missing.is_empty(), "not named: {missing:?}");
    }
}
