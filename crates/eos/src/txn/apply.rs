//! The events' effect on the coordinator: the only writer of it, the same live and on replay. Cannot fail.

use alloc::sync::Arc;

use semel_events::{
    EndCause, Event, InitCause, Outcome, TransactionEnded, TransactionExtended, TransactionalIdExpired,
    TransactionalIdInitialized, membership_event,
};
use semel_types::{ProducerStamp, TransactionalId, WallTime};

use super::{
    Aborted, Coordinator, Fence, FenceCause, MadeBy, Members, OpenTransaction, PARTITIONS_PER_FENCE, Phase,
    Remembered, TransactionalIdEntry, Written,
};
use crate::{
    dropped::{Rule, keeps},
    fence,
    partition::Partitions,
    producer::Table,
};

impl Coordinator {
    /// Applies what concerns transactions: events 20, 21 and 23; 22 needs more, see [`Coordinator::apply_ended`].
    /// Slots of the producer table change through its methods.
    /// A deleted topic's partitions stay in open transactions, whose ends skip them: handles are never reused.
    pub(crate) fn apply(&mut self, event: &Event, producers: &mut Table) {
        match event {
            Event::TransactionalIdInitialized(event) => self.apply_initialized(event, producers),
            Event::TransactionExtended(event) => self.apply_extended(event, producers),
            Event::TransactionalIdExpired(event) => self.apply_expired(event, producers),
            Event::TransactionEnded(_)
            | Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TopicCreated(_)
            | Event::TopicDeleted(_)
            | Event::BatchAppended(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::OffsetsCommitted(_)
            | Event::PendingOffsetsAdded(_)
            | Event::GroupDeleted(_)
            | Event::RecordsDeleted(_)
            | Event::TopicSettingsChanged(_)
            | Event::PartitionsAdded(_)
            | Event::GroupSettingsChanged(_)
            | Event::OffsetsDeleted(_)
            | membership_event!() => {}
        }
    }

    fn apply_initialized(&mut self, event: &TransactionalIdInitialized, producers: &mut Table) {
        let before = self.get(&event.id).cloned();
        let last_number = before.as_ref().map(|entry| entry.last_number).unwrap_or_default();
        let kept =
            before.as_ref().and_then(|entry| entry.remembered).filter(|_| !keeps(Rule::TakeoverClearsPair));
        if let Some(before) = before {
            let aborted = self.aborted_for_successor.take();
            self.fences.extend(initialized_fence(event, &before, aborted));
            replace(producers, &event.id, before.identity, event.identity);
        } else {
            producers.set_identity(event.identity, &event.id);
        }
        let remembered = event
            .carried
            .map(|stamp| Remembered { stamp, number: last_number, made_by: MadeBy::Recovery })
            .or(kept);
        let entry = TransactionalIdEntry {
            identity: event.identity,
            timeout: event.timeout,
            phase: Phase::Empty,
            last_number,
            remembered,
            updated: event.now,
            owner: Arc::new(event.author.clone()),
            owned_since: event.wall,
        };
        self.put(event.id.clone(), entry);
    }

    fn apply_extended(&mut self, event: &TransactionExtended, producers: &mut Table) {
        let Some(mut entry) = self.take(&event.id) else { return };
        let mut open = match entry.phase {
            Phase::Ongoing(open) => open,
            Phase::Empty | Phase::Complete { .. } => OpenTransaction::started(event),
        };
        debug_assert_eq!(open.number, event.number, "EOS-33: one open transaction per id");
        open.partitions.extend(&event.partitions);
        open.groups.extend(&event.groups);
        open.protocol = event.protocol;
        producers.set_open(entry.identity.id, Some(event.number));
        entry.last_number = event.number;
        entry.updated = event.now;
        entry.phase = Phase::Ongoing(open);
        self.put(event.id.clone(), entry);
    }

    /// Applies event 22. `written` is what its transaction had written, by the partitions as they were before its
    /// markers, see [`written`].
    pub(crate) fn apply_ended(&mut self, event: &TransactionEnded, written: Written, producers: &mut Table) {
        let Some(mut entry) = self.take(&event.id) else { return };
        let aborted = aborted(event, &entry, written);
        producers.set_open(event.identity_before.id, None);
        if !fence::is_same(event.identity_before, event.identity_after) {
            replace(producers, &event.id, event.identity_before, event.identity_after);
        }
        match ended_by(event) {
            EndedBy::Itself => {}
            EndedBy::Fence(cause) => self.fences.push(ended_fence(event, cause, &entry, aborted)),
            EndedBy::Successor => self.aborted_for_successor = aborted,
        }
        if let Some(made_by) = made_by(event) {
            let (stamp, number) = (event.identity_before, event.number);
            entry.remembered = Some(Remembered { stamp, number, made_by });
        }
        entry.identity = event.identity_after;
        entry.phase = Phase::Complete { outcome: event.outcome, cause: event.cause };
        entry.updated = event.now;
        self.put(event.id.clone(), entry);
    }

    fn apply_expired(&mut self, event: &TransactionalIdExpired, producers: &mut Table) {
        producers.close(event.identity.id);
        let Some(entry) = self.take(&event.id) else { return };
        self.fences.push(Fence {
            id: event.id.clone(),
            cause: FenceCause::Expiry,
            victim: event.identity,
            successor: None,
            owner: entry.owner,
            author: None,
            aborted: None,
            wall: WallTime::from_ms(event.now.as_ms()),
        });
    }
}

impl OpenTransaction {
    fn started(event: &TransactionExtended) -> Self {
        Self {
            number: event.number,
            started: event.now,
            protocol: event.protocol,
            partitions: Members::default(),
            groups: Members::default(),
        }
    }
}

/// Moves an owner from one identity to the next; a producer id that is left is closed for good.
fn replace(producers: &mut Table, owner: &TransactionalId, before: ProducerStamp, after: ProducerStamp) {
    if !fence::is_producer(before, after.id) {
        producers.close(before.id);
    }
    producers.set_identity(after, owner);
}

/// What an end makes of the pair before it. A classic end changes no identity, and what InitProducerId ends is
/// followed by its own event.
const fn made_by(event: &TransactionEnded) -> Option<MadeBy> {
    match event.cause {
        EndCause::EndTxn if event.version2 => Some(MadeBy::EndTxn(event.outcome)),
        EndCause::EndTxn | EndCause::Takeover | EndCause::Recovery => None,
        EndCause::Timeout | EndCause::Admin | EndCause::UncleanStart => Some(MadeBy::Abort),
    }
}

/// A new identity in place of a known one is a fence. What was open was ended just before, in the same decision.
fn initialized_fence(
    event: &TransactionalIdInitialized,
    before: &TransactionalIdEntry,
    aborted: Option<Aborted>,
) -> Option<Fence> {
    let cause = match event.cause {
        InitCause::New => return None,
        InitCause::Takeover => FenceCause::Takeover,
        InitCause::Recovery => FenceCause::Recovery,
    };
    Some(Fence {
        id: event.id.clone(),
        cause,
        victim: before.identity,
        successor: Some(event.identity),
        owner: Arc::clone(&before.owner),
        author: Some(event.author.clone()),
        aborted,
        wall: event.wall,
    })
}

/// What an end is to the identity that it ends under.
enum EndedBy {
    /// The producer's own: the bump of an ordinary end is no fence.
    Itself,
    /// A fence: the producer did not ask for it, or it used up the last epoch.
    Fence(FenceCause),
    /// The identity that follows in the same decision, which makes the fence.
    Successor,
}

fn ended_by(event: &TransactionEnded) -> EndedBy {
    let rotated = !fence::is_producer(event.identity_before, event.identity_after.id);
    match event.cause {
        EndCause::Timeout => EndedBy::Fence(FenceCause::Timeout),
        EndCause::Admin => EndedBy::Fence(FenceCause::Admin),
        EndCause::UncleanStart => EndedBy::Fence(FenceCause::UncleanStart),
        EndCause::EndTxn if rotated => EndedBy::Fence(FenceCause::Rotation),
        EndCause::EndTxn => EndedBy::Itself,
        EndCause::Takeover | EndCause::Recovery => EndedBy::Successor,
    }
}

fn ended_fence(
    event: &TransactionEnded,
    cause: FenceCause,
    entry: &TransactionalIdEntry,
    aborted: Option<Aborted>,
) -> Fence {
    Fence {
        id: event.id.clone(),
        cause,
        victim: event.identity_before,
        successor: Some(event.identity_after),
        owner: Arc::clone(&entry.owner),
        author: event.author.clone(),
        aborted,
        wall: event.wall,
    }
}

/// The open transaction that an event aborts.
fn aborted(event: &TransactionEnded, entry: &TransactionalIdEntry, written: Written) -> Option<Aborted> {
    let open = entry.open()?;
    match event.outcome {
        Outcome::Abort => Some(Aborted { number: open.number, age: event.now.since(open.started), written }),
        Outcome::Commit => None,
    }
}

/// What the transaction that an event ends had written, for the fence log: asked before the markers are applied, and
/// answered only where the end is a fence, because a commit of thousands of partitions must not pay for it.
pub(crate) fn written(event: &TransactionEnded, partitions: &Partitions) -> Written {
    let producer = event.identity_before.id;
    match ended_by(event) {
        EndedBy::Itself => return Written::default(),
        EndedBy::Fence(_) | EndedBy::Successor => {}
    }
    let mut written = Written { group_count: count(event.groups.len()), ..Written::default() };
    let holds =
        |partition| partitions.get(partition).is_some_and(|known| known.open_transaction(producer).is_some());
    for marker in event.markers.iter().filter(|marker| holds(marker.partition)) {
        written.partition_count += 1;
        if written.partitions.len() < PARTITIONS_PER_FENCE {
            written.partitions.push(marker.partition);
        }
    }
    written
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
