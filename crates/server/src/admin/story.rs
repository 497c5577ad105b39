//! The story of one transactional id in sentences, newest last: who, when, what it had written, what became of it.
//!
//! It is told from the fence log, the current state and the refused requests kept in memory, so it has no sentence
//! for an ordinary commit but the last, and none for what was refused before the last start.

use semel_broker::State;
use semel_eos::{
    Refused, RefusedRequest,
    txn::{Aborted, Fence, FenceCause, OpenTransaction, Phase, TransactionalIdEntry},
};
use semel_events::{EndCause, Outcome};
use semel_types::{PartitionHandle, ProducerStamp, TransactionalId, WallTime};

use super::describe::{first_offset, place};
use crate::{node_thread::Inspected, units};

/// Partitions that a sentence names.
const NAMED_MAX: usize = 8;

/// One sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sentence {
    /// When it happened.
    pub at: WallTime,
    /// What.
    pub text: String,
}

/// The story, newest last.
pub fn tell(seen: &Inspected, id: &TransactionalId) -> Vec<Sentence> {
    let state = &seen.inspection.state;
    let transactions = state.eos.transactions();
    let fences: Vec<_> = transactions.fences().of(id).collect();
    let mut story: Vec<_> =
        fences.iter().map(|fence| Sentence { at: fence.wall, text: fenced(state, fence) }).collect();
    if let Some(entry) = transactions.get(id) {
        let told = fences.iter().any(|fence| fence.wall == entry.owned_since && is_by_init(fence.cause));
        story.extend((!told).then(|| began(entry)));
        // What is open or ended normally came after every fence, whatever a millisecond of rounding says.
        let latest = fences.last().map_or(entry.owned_since, |fence| fence.wall.max(entry.owned_since));
        story.extend(last(seen, entry).map(|told| Sentence { at: told.at.max(latest), ..told }));
    }
    story.extend(seen.inspection.refused.get(id).into_iter().flat_map(|refused| refusals(seen, refused)));
    story.sort_by_key(|sentence| sentence.at);
    story
}

/// A fence whose own sentence names the client that took the id into use.
const fn is_by_init(cause: FenceCause) -> bool {
    match cause {
        FenceCause::Takeover | FenceCause::Recovery => true,
        FenceCause::Rotation
        | FenceCause::Timeout
        | FenceCause::Admin
        | FenceCause::UncleanStart
        | FenceCause::Expiry => false,
    }
}

fn began(entry: &TransactionalIdEntry) -> Sentence {
    let (owner, timeout) = (&entry.owner, units::span(entry.timeout));
    let text = format!(
        "{owner} took the id into use with {}: producer {}, transactions time out after {timeout}.",
        owner.api, entry.identity.id
    );
    Sentence { at: entry.owned_since, text }
}

fn fenced(state: &State, fence: &Fence) -> String {
    let author = fence.author.as_ref();
    let who = author.map_or_else(|| "somebody".to_owned(), |author| format!("{author} with {}", author.api));
    let change = change(fence.victim, fence.successor);
    let owner = &fence.owner;
    let aborted = fence.aborted.as_ref();
    let told = match fence.cause {
        FenceCause::Takeover => format!("Taken over by {who}: {change}, so {owner} is fenced."),
        FenceCause::Recovery => format!("The producer recovered, {who}: {change}."),
        FenceCause::Rotation => {
            format!(
                "The epochs of producer {} are used up, its last transaction ended normally: {change}.",
                fence.victim.id
            )
        }
        FenceCause::Timeout => {
            format!(
                "The transaction of {owner} was open for longer than its timeout: {change}, so its producer is fenced."
            )
        }
        FenceCause::Admin => format!("Aborted by an administrator, {who}: {change}, so {owner} is fenced."),
        FenceCause::UncleanStart => {
            format!("The broker started after an unclean stop, writes may be missing: {change}.")
        }
        FenceCause::Expiry => {
            format!(
                "Idle for too long, the id was forgotten: {} of {owner} is closed for good.",
                fence.victim
            )
        }
    };
    match aborted {
        Some(aborted) => format!("{told} {}", what_was_aborted(state, aborted)),
        None => told,
    }
}

/// What became of an identity. A new producer id follows when the epochs of the old one are used up.
fn change(victim: ProducerStamp, successor: Option<ProducerStamp>) -> String {
    match successor {
        Some(next) if next.id == victim.id => {
            format!("epoch {} was replaced by {} (producer {})", victim.epoch, next.epoch, next.id)
        }
        Some(next) => {
            format!("{victim} was replaced by {next}, a new producer id because its epochs are used up")
        }
        None => format!("{victim} was closed"),
    }
}

fn what_was_aborted(state: &State, aborted: &Aborted) -> String {
    let written = &aborted.written;
    let mut text = format!(
        "Its transaction {}, open for {}, was aborted: {written}",
        aborted.number,
        units::span(aborted.age)
    );
    if !written.partitions.is_empty() {
        let places = written.partitions.iter().map(|handle| place(&state.catalog, *handle));
        text = format!("{text} ({})", named(places.collect(), written.partition_count as usize));
    }
    text + "."
}

/// Names, and how many more there are.
fn named(names: Vec<String>, count: usize) -> String {
    match count.saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What the id's last or open transaction is about.
fn last(seen: &Inspected, entry: &TransactionalIdEntry) -> Option<Sentence> {
    match &entry.phase {
        Phase::Empty => None,
        Phase::Ongoing(open) => Some(is_open(seen, entry, open)),
        Phase::Complete { outcome, cause: EndCause::EndTxn } => Some(ended(seen, entry, *outcome)),
        // The fence's own sentence tells it.
        Phase::Complete {
            cause:
                EndCause::Takeover
                | EndCause::Recovery
                | EndCause::Timeout
                | EndCause::Admin
                | EndCause::UncleanStart,
            ..
        } => None,
    }
}

fn is_open(seen: &Inspected, entry: &TransactionalIdEntry, open: &OpenTransaction) -> Sentence {
    let state = &seen.inspection.state;
    let handles = open.partitions.as_slice();
    let places: Vec<_> =
        handles.iter().take(NAMED_MAX).map(|handle| open_place(state, *handle, entry.identity)).collect();
    let mut holds = Vec::new();
    if !places.is_empty() {
        holds.push(named(places, handles.len()));
    }
    let groups = open.groups.as_slice();
    if !groups.is_empty() {
        let names = groups.iter().take(NAMED_MAX).map(|group| format!("{group:?}")).collect();
        holds.push(format!("offsets of group {}", named(names, groups.len())));
    }
    let text = format!(
        "Transaction {} of {} ({}) was started and is open for {}: {}; without an end by its producer it is aborted at {}.",
        open.number,
        entry.identity,
        entry.owner,
        units::span(seen.now.since(open.started)),
        holds.join("; "),
        seen.wall(open.started.plus(entry.timeout))
    );
    Sentence { at: seen.wall(open.started), text }
}

fn open_place(state: &State, handle: PartitionHandle, identity: ProducerStamp) -> String {
    let place = place(&state.catalog, handle);
    match first_offset(state, handle, identity.id) {
        Some(first) => format!("wrote to {place} from offset {first} on"),
        None => format!("nothing written to {place} yet"),
    }
}

fn ended(seen: &Inspected, entry: &TransactionalIdEntry, outcome: Outcome) -> Sentence {
    let state = &seen.inspection.state;
    let what = match outcome {
        Outcome::Commit => "committed",
        Outcome::Abort => "aborted",
    };
    let (held, _) = state.eos.producers().held(entry.identity.id);
    let of_last = held.iter().filter_map(|written| {
        let (number, _) = written.transaction()?;
        let newest = written.batches().next().filter(|_| number == entry.last_number)?;
        let last = newest.base_offset.get() + i64::from(newest.count) - 1;
        Some(format!("{} up to offset {last}", place(&state.catalog, written.partition())))
    });
    let mut places: Vec<_> = of_last.collect();
    let count = places.len();
    places.truncate(NAMED_MAX);
    let wrote =
        if count == 0 { String::new() } else { format!("; it had written to {}", named(places, count)) };
    let text =
        format!("Transaction {} was {what} by its producer, {}{wrote}.", entry.last_number, entry.owner);
    Sentence { at: seen.wall(entry.updated), text }
}

fn refusals<'a>(seen: &'a Inspected, refused: &'a Refused) -> impl Iterator<Item = Sentence> + 'a {
    let left_out = refused.count.saturating_sub(refused.last.len() as u64);
    let first = refused.last.front().filter(|_| left_out > 0).map(|oldest| Sentence {
        at: seen.wall(oldest.now),
        text: format!("Before this, {} had been refused since the start.", units::count(left_out, "request")),
    });
    first.into_iter().chain(refused.last.iter().map(|request| refusal(seen, request)))
}

fn refusal(seen: &Inspected, request: &RefusedRequest) -> Sentence {
    let by = match &request.by {
        Some(by) => format!("{} of {by}", by.api),
        None => "A request".to_owned(),
    };
    // A refusal comes after the fence that it rests on, whatever a millisecond of rounding says.
    let at = seen.wall(request.now).max(request.refusal.fence().map(|fence| fence.wall).unwrap_or_default());
    Sentence { at, text: format!("{by} was refused: {}.", request.refusal) }
}
