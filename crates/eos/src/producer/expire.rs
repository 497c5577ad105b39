//! When idle entries shrink, and which stubs go first (`producer.id.expiration.ms`, KIP-854;
//! `semel.producer.stubs.max`).
//!
//! Purpose: finds the next bounded piece of work, without walking the table. Invariants: EOS-15 (nothing shrinks
//! while its producer has an open transaction; no event shrinks more than about 1,024 entries of small producers).
//! What it does not do: change state, ask for the time.

use alloc::vec::Vec;

use semel_events::{Event, ProducersShrunk, StubsDropped};
use semel_types::{DurationMs, Now, PartitionHandle, ProducerId};

use super::{
    Stub, Table,
    page::{Hints, PER_PAGE, Page},
    table::{first_of, place},
};
use crate::{settings::Settings, state::State};

/// Entries and stubs in one event's range, about.
const BUDGET: usize = 1024;

/// Entries shrink in rounds, so that those of one page go together: at most this much later than they may (Kafka's
/// `producer.id.expiration.check.interval.ms`) ...
const ROUND_MS: i64 = 600_000;

/// ... or, where entries expire fast, by this part of the expiration.
const ROUNDS_PER_EXPIRATION: i64 = 100;

/// Stubs that are as good as equally old, in seconds.
const EQUALLY_OLD_S: u32 = 3600;

/// What is due.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// The next bounded piece of work; ask again once it is applied.
    pub event: Option<Event>,
    /// If there is none now: when to ask again.
    pub wake_at: Option<Now>,
}

impl State {
    /// The next bounded piece of work on idle producers at `now`, and when to ask again.
    #[must_use]
    pub fn producers_due(&self, settings: &Settings, now: Now) -> Due {
        let event = self.producers.due(settings, now);
        match event {
            Some(event) => Due { event: Some(event), wake_at: Some(now) },
            None => Due { event: None, wake_at: self.producers.next_due(settings) },
        }
    }
}

impl Table {
    fn due(&self, settings: &Settings, now: Now) -> Option<Event> {
        let idle_since = idle_since(settings, now);
        let reaping = self.reap.map(|reap| self.range_from(reap.next, |_| true));
        let range = reaping.or_else(|| self.idle_range(idle_since));
        if let Some((first, end)) = range {
            return Some(ProducersShrunk { first, end, idle_since }.into());
        }
        let too_many = self.stubs > settings.producer_stubs_max as u64;
        too_many.then(|| self.oldest_stubs()).flatten().map(Event::from)
    }

    /// The first round in which something is idle for too long.
    fn next_due(&self, settings: &Settings) -> Option<Now> {
        let (idle, round) = (self.next_idle()?.as_ms(), round_ms(settings));
        let first_idle_since = (idle.div_euclid(round) + 1).saturating_mul(round);
        Some(
            Now::from_ms(first_idle_since)
                .plus(DurationMs::from_ms(settings.producer_id_expiration.as_ms() - 1)),
        )
    }

    /// The first pages that hold something idle.
    fn idle_range(&self, idle_since: Now) -> Option<(ProducerId, ProducerId)> {
        let is_due = |hints: &Hints| hints.idle < idle_since;
        if !is_due(&self.hints) {
            return None;
        }
        let mut due = self.pages.directories().filter(|(_, directory)| is_due(&directory.summary));
        let (first, directory) = due.next()?;
        let (page, _) = directory.pages().find(|(_, page)| is_due(&page.hints))?;
        Some(self.range_from(first_of(first + page), |page| is_due(&page.hints)))
    }

    /// Ids from `first` on, to the end of as many pages as one event may take.
    fn range_from(&self, first: ProducerId, is_due: impl Fn(&Page) -> bool) -> (ProducerId, ProducerId) {
        let (mut end, mut work) = (first, 0);
        for number in self.pages.numbers(place(first).0, u64::MAX) {
            let Some(page) = self.pages.get(number).filter(|page| is_due(page)) else { break };
            end = first_of(number + 1);
            work +=
                (0..PER_PAGE).map(|at| page.counts(at)).map(|(held, stubs)| 1 + held + stubs).sum::<usize>();
            if work >= BUDGET {
                break;
            }
        }
        (first, end.max(first.next()))
    }

    /// The stubs of the page with the oldest one that are as good as equally old.
    fn oldest_stubs(&self) -> Option<StubsDropped> {
        let oldest = self.hints.oldest_stub_s;
        let mut directories = self.pages.directories();
        let (first, directory) = directories.find(|(_, found)| found.summary.oldest_stub_s == oldest)?;
        let (page, found) = directory.pages().find(|(_, page)| page.hints.oldest_stub_s == oldest)?;
        let (mut producers, mut partitions) = (Vec::new(), Vec::new());
        for (at, id) in (0..PER_PAGE).zip(first_of(first + page).get()..) {
            let (_, stubs) = found.held(at);
            if stubs.iter().any(|stub| stub.last_written_s() <= oldest.saturating_add(EQUALLY_OLD_S)) {
                producers.push(ProducerId::new(id));
                partitions.extend(stubs.iter().map(Stub::partition));
            }
            if partitions.len() >= BUDGET {
                break;
            }
        }
        partitions.sort_unstable();
        partitions.dedup_by_key(|partition: &mut PartitionHandle| *partition);
        Some(StubsDropped { producers, partitions })
    }
}

/// Entries last written before this moment have been idle for `producer.id.expiration.ms`, by whole rounds.
fn idle_since(settings: &Settings, now: Now) -> Now {
    let exact = now.as_ms().saturating_sub(settings.producer_id_expiration.as_ms()).saturating_add(1);
    Now::from_ms(exact - exact.rem_euclid(round_ms(settings)))
}

fn round_ms(settings: &Settings) -> i64 {
    (settings.producer_id_expiration.as_ms() / ROUNDS_PER_EXPIRATION).clamp(1, ROUND_MS)
}
