//! The events' effect on the coordinator: the only writer of it, the same live and on replay. Cannot fail.

use semel_events::{
    EndCause, Event, InitCause, Outcome, TransactionEnded, TransactionExtended, TransactionalIdExpired,
    TransactionalIdInitialized,
};
use semel_types::{ProducerStamp, TransactionNumber, TransactionalId, WallTime};

use super::{
    Coordinator, Fence, FenceCause, MadeBy, Members, OpenTransaction, Phase, Remembered, TransactionalIdEntry,
};
use crate::{
    dropped::{Rule, keeps},
    fence,
    producer::Table,
};

impl Coordinator {
    /// Applies what concerns transactions: events 20 to 23. Slots of the producer table change through its methods.
    /// A deleted topic's partitions stay in open transactions, whose ends skip them: handles are never reused.
    pub(crate) fn apply(&mut self, event: &Event, producers: &mut Table) {
        match event {
            Event::TransactionalIdInitialized(event) => self.apply_initialized(event, producers),
            Event::TransactionExtended(event) => self.apply_extended(event, producers),
            Event::TransactionEnded(event) => self.apply_ended(event, producers),
            Event::TransactionalIdExpired(event) => self.apply_expired(event, producers),
            Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TopicCreated(_)
            | Event::TopicDeleted(_)
            | Event::BatchAppended(_)
            | Event::ProducersShrunk(_)
            | Event::StubsDropped(_)
            | Event::OffsetsCommitted(_)
            | Event::PendingOffsetsAdded(_) => {}
        }
    }

    fn apply_initialized(&mut self, event: &TransactionalIdInitialized, producers: &mut Table) {
        let before = self.get(&event.id).cloned();
        let last_number = before.as_ref().map(|entry| entry.last_number).unwrap_or_default();
        let kept =
            before.as_ref().and_then(|entry| entry.remembered).filter(|_| !keeps(Rule::TakeoverClearsPair));
        if let Some(before) = before {
            self.fences.extend(initialized_fence(event, &before));
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

    fn apply_ended(&mut self, event: &TransactionEnded, producers: &mut Table) {
        let Some(mut entry) = self.take(&event.id) else { return };
        let was_open = entry.open().is_some();
        producers.set_open(event.identity_before.id, None);
        if !fence::is_same(event.identity_before, event.identity_after) {
            replace(producers, &event.id, event.identity_before, event.identity_after);
        }
        self.fences.extend(ended_fence(event, was_open));
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
        self.remove(&event.id);
        self.fences.push(Fence {
            id: event.id.clone(),
            cause: FenceCause::Expiry,
            victim: event.identity,
            successor: None,
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

/// A new identity in place of a known one is a fence. What was open was ended just before, in the same decision,
/// and the phase still says by what.
fn initialized_fence(event: &TransactionalIdInitialized, before: &TransactionalIdEntry) -> Option<Fence> {
    let (cause, ended_by) = match event.cause {
        InitCause::New => return None,
        InitCause::Takeover => (FenceCause::Takeover, EndCause::Takeover),
        InitCause::Recovery => (FenceCause::Recovery, EndCause::Recovery),
    };
    let ended = Phase::Complete { outcome: Outcome::Abort, cause: ended_by };
    Some(Fence {
        id: event.id.clone(),
        cause,
        victim: before.identity,
        successor: Some(event.identity),
        author: Some(event.author.clone()),
        aborted: (before.phase == ended).then_some(before.last_number),
        wall: event.wall,
    })
}

/// An end that the producer did not ask for is a fence, and so is one that used up the last epoch. The bump of an
/// ordinary end is not.
fn ended_fence(event: &TransactionEnded, was_open: bool) -> Option<Fence> {
    let rotated = !fence::is_producer(event.identity_before, event.identity_after.id);
    let cause = match event.cause {
        EndCause::Timeout => FenceCause::Timeout,
        EndCause::Admin => FenceCause::Admin,
        EndCause::UncleanStart => FenceCause::UncleanStart,
        EndCause::EndTxn if rotated => FenceCause::Rotation,
        EndCause::EndTxn | EndCause::Takeover | EndCause::Recovery => return None,
    };
    Some(Fence {
        id: event.id.clone(),
        cause,
        victim: event.identity_before,
        successor: Some(event.identity_after),
        author: event.author.clone(),
        aborted: aborted(event, was_open),
        wall: event.wall,
    })
}

fn aborted(event: &TransactionEnded, was_open: bool) -> Option<TransactionNumber> {
    match event.outcome {
        Outcome::Abort if was_open => Some(event.number),
        Outcome::Abort | Outcome::Commit => None,
    }
}
