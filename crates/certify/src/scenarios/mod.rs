//! The scenarios, one file per area.
//!
//! # How to write one
//!
//! A scenario is a constant head and a function that reads like the notation of the bug log:
//!
//! ```text
//! const B01: Scenario = Scenario {
//!     id: "B01",                          never reused; a variant has a letter behind: B08a
//!     title: "what is tried, in a few words",
//!     promise: "What a user loses if it is broken, one sentence.",
//!     source: "KIP, founding rule or public report",
//!     basis: &[Basis::Reference],         [ref] [KIP] [thread] [proto] [beyond] of the log
//!     versions: "Produce 9",              only if not "classic"
//!     needs: Needs::Restart(&[]),         only if it needs more than a broker that listens
//!     ..Scenario::kafka(Area::Dedup, b01)      or Scenario::stricter(area, "what Kafka 4.4 answers", s01)
//! };
//!
//! fn b01(probe: &mut Probe) -> Kept {
//!     let t = probe.topic()?;
//!     let relay = probe.relay()?;
//!     let mut a = probe.actor_behind("A", &relay)?;
//!     let me = a.init_plain()?;
//!     relay.on(ApiKey::Produce, 1, Action::SwallowAnswer);
//!     a.produce(&t, &me, 0, &["a"]).is_cut()?;
//!     let mut a = probe.actor("A again")?;
//!     a.produce(&t, &me, 0, &["a"]).is_stored_at(0)?;
//!     a.stores(&t, &["a"])
//! }
//! ```
//!
//! and the head stands in the file's `ALL` (an unused head is a warning, so none is forgotten).
//!
//! - Words: [`crate::Actor`] (one connection), [`Probe`] (names, topics, relays, kill and restart), [`crate::Answer`]
//!   (`is`, `is_any`, `is_stored_at`, `is_refused`, `is_cut`: every answer has to be judged). A word that is missing
//!   is added there, not built by hand twice.
//! - Names come from the probe (`topic`, `id`, `group`): scenarios run side by side on one broker and are cleaned up.
//! - No sleep where an answer can be awaited: `reads`, `settles`, `comes_to`, `group_stands_at`, `Probe::eventually`
//!   look again; [`crate::Relay`] holds, swallows, duplicates and cuts exact frames.
//! - A busy broker (14, 15, 16, 51) is asked again by `init`, `add`, `end`, `commit_offset`; the `try_` words ask once.
//! - What a broker does not offer is [`crate::Failure::NotRun`] (`probe.needs(api, version)?`,
//!   `probe.needs_version_2()?`), never a silent pass.
//! - Before it lands it is run on Apache Kafka 4.4 (`bench/peers/kafka start PORT`): a `kafka` promise that Kafka breaks
//!   is wrong, so is a `stricter` one that Kafka keeps. `semel certify --bootstrap H:P --only ID --steps` shows the
//!   exchanges.
//! - At most about ten seconds by the clock, most of them far less: the whole suite takes half a minute. What its source
//!   wants more often or larger is `probe.rounds(short, whole)`: `whole` in a thorough run. What of the source's text is
//!   not tried at all stands in `left_out`, with the reason.

mod admin;
mod clients;
mod coordinator;
mod copying;
mod dedup;
mod disk;
mod fencing;
mod groups;
mod init;
mod load;
mod markers;
mod members;
mod mutated;
mod pipelines;
mod reading;
mod recovery;
mod security;
mod streams;
mod told;
mod upstream;

pub(crate) use fencing::commit_after_timeout;

use crate::{Scenario, stricter, tables};

/// Every scenario, in the order of reports.
#[must_use]
pub fn all() -> Vec<&'static Scenario> {
    let areas = [
        dedup::ALL,
        fencing::ALL,
        init::ALL,
        coordinator::ALL,
        pipelines::ALL,
        load::ALL,
        markers::ALL,
        reading::ALL,
        groups::ALL,
        members::ALL,
        streams::ALL,
        copying::ALL,
        recovery::ALL,
        disk::ALL,
        clients::ALL,
        admin::ALL,
        security::ALL,
        upstream::ALL,
        mutated::ALL,
    ];
    areas.into_iter().chain(tables::ALL).chain(stricter::ALL).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_head_is_whole_and_no_id_stands_twice() {
        let mut ids = BTreeSet::new();
        for scenario in all() {
            let Scenario { id, title, promise, source, versions, .. } = *scenario;
            assert!(ids.insert(id), "{id} stands twice");
            for field in [id, title, promise, source, versions] {
                assert!(!field.is_empty(), "{id}: something is missing");
            }
            assert!(!scenario.basis.is_empty(), "{id}: no basis");
            assert!(promise.ends_with('.') && !title.ends_with('.'), "{id}: a sentence is a sentence");
            assert_eq!(id.starts_with('S'), id.starts_with('S') && scenario.is_stricter(), "{id}");
        }
    }

    #[test]
    fn the_list_of_kafkas_tests_names_scenarios_that_exist() {
        let document = include_str!("../../../../docs/certify/kafka-tests.md");
        let ids: Vec<_> = all().into_iter().map(|scenario| scenario.id).collect();
        let mut named = 0;
        let is_part_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        for word in document.split(|c: char| !is_part_of_word(c)) {
            let word = word.trim_end_matches('.');
            let mut letters = word.chars();
            let is_id = letters.next().is_some_and(|first| "BDGKST".contains(first))
                && letters.next().is_some_and(|second| second.is_ascii_digit());
            if is_id {
                // A table may be named as a whole.
                assert!(ids.iter().any(|id| id.starts_with(word)), "{word} is no scenario");
                named += 1;
            }
        }
        assert!(named > 100, "{named} names");
    }
}
