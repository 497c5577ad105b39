//! The consumer group protocol (KIP-848): ConsumerGroupHeartbeat, what time does, and members that speak the classic
//! protocol in such a group.
//!
//! Purpose: [`decide`] reads the state and the volatile side and says what happens: events, changes of the volatile side,
//! answers. A [`Roster`] is what the log holds of such a group. Invariants: GRP-09 a partition has one owner at a time: it
//! is given to a member only when no other one has it or still has to give it up; GRP-10 the group's epoch only rises
//! and no member is ahead of it; what a member is told is an event, so that members carry on after a restart.
//! What it does not do: look topics up (the caller does, through [`Topics`]); know versions of the wire.
//!
//! | a member is | how it is known |
//! |---|---|
//! | in its group's epoch | its own is the same |
//! | behind | its own is lower: it gets on with its next heartbeat |
//! | revoking | it stays in its epoch until it says that it has given up what it had to |
//! | waiting | it is in the group's epoch and lacks partitions that others have to give up |
//! | away | a static member that left for a while (-2) |

mod assign;
mod classic;
mod commit;
mod convert;
mod draft;
mod heartbeat;
mod live;
mod reconcile;
mod roster;
mod topics;

use alloc::{sync::Arc, vec::Vec};

use semel_events::Event;
use semel_types::{Context, DurationMs, GroupId};

pub use assign::Assignor;
pub(crate) use commit::check_commit;
pub use heartbeat::{Heartbeat, Told};
pub use live::Live;
pub use reconcile::OwnedSet;
pub use roster::{AWAY, Owned, Phase, Roster, Seat};
pub use topics::{TopicView, Topics};

use self::{
    draft::Draft,
    heartbeat::{JOINING, LEAVING},
};
use crate::{
    Change, Kind, Refusal, State, Volatile, Waiter,
    classic::{Answer, Command as ClassicCommand, Settings as ClassicSettings},
};

/// Which way groups may change their protocol while they have members (`group.consumer.migration.policy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Migration {
    /// Not at all.
    Disabled,
    /// From the consumer protocol to the classic one.
    Downgrade,
    /// From the classic protocol to the consumer one.
    Upgrade,
    /// Both.
    Bidirectional,
}

impl Migration {
    const fn upgrades(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    const fn downgrades(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}

/// What the operator says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `group.consumer.session.timeout.ms`.
    pub session_timeout: DurationMs,
    /// `group.consumer.max.size`.
    pub size_max: usize,
    /// `group.consumer.assignors`, the default first.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.migration.policy`.
    pub migration: Migration,
    /// Those of classic groups.
    pub classic: ClassicSettings,
}

/// What is asked of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// ConsumerGroupHeartbeat.
    Heartbeat(Heartbeat),
    /// A request of the classic protocol, or time.
    Classic(ClassicCommand),
}

/// A command to one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Whom to answer.
    pub waiter: Waiter,
    /// The group.
    pub group: GroupId,
    /// What is asked.
    pub command: Command,
}

/// What happens.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// To be applied in order.
    pub events: Vec<Event>,
    /// Of the volatile side.
    pub changes: Vec<Change>,
    /// Answers to requests of the classic protocol, parked ones included.
    pub answers: Vec<(Waiter, Answer)>,
    /// The answer to a heartbeat.
    pub told: Option<Result<Told, Refusal>>,
}

/// Is a command of the classic protocol to this group decided here, and not by [`classic`](crate::classic)? An empty
/// consumer group becomes a classic one with the first member that joins so.
#[must_use]
pub fn serves(state: &State, group: &GroupId) -> bool {
    state.group(group).and_then(crate::Group::consumer).is_some_and(|roster| !roster.is_empty())
}

/// Decides one command. Reads only.
#[must_use]
pub fn decide(
    (state, volatile): (&State, &Volatile),
    settings: &Settings,
    topics: &dyn Topics,
    request: &Request,
    context: &Context,
) -> Decision {
    let kind = state.group(&request.group).map(crate::Group::kind);
    let live = volatile.consumer(&request.group).cloned().unwrap_or_default();
    let roster = match kind {
        Some(Kind::Consumer(roster)) => Roster::clone(roster),
        None | Some(Kind::Classic(_) | Kind::Streams(_)) => Roster::default(),
    };
    let mut draft = Draft::new(settings, topics, request, context, (roster, live));
    let told = match &request.command {
        Command::Classic(command) => {
            draft.classic(command);
            None
        }
        Command::Heartbeat(beat) => Some(draft.beat(beat, kind, volatile.group(&request.group))),
    };
    match told {
        // A refused request changes nothing.
        Some(Err(refusal)) => Decision { told: Some(Err(refusal)), ..Decision::default() },
        told => Decision { told, ..draft.finish() },
    }
}

impl Draft<'_> {
    fn beat(
        &mut self,
        beat: &Heartbeat,
        kind: Option<&Kind>,
        classic: Option<&Arc<crate::Live>>,
    ) -> Result<Told, Refusal> {
        beat.check()?;
        if self.id.as_str().is_empty() {
            return Err(Refusal::InvalidHeartbeat("GroupId can't be empty."));
        }
        let asks = beat.assignor.as_deref();
        let is_known = |name: &str| self.settings.assignors.iter().any(|one| one.name() == name);
        if asks.is_some_and(|name| !is_known(name)) {
            return Err(Refusal::UnsupportedAssignor);
        }
        let is_consumer = matches!(kind, Some(Kind::Consumer(_)));
        if !is_consumer {
            if beat.member_epoch != JOINING {
                return Err(Refusal::UnknownGroup);
            }
            self.upgrade(kind, classic)?;
        }
        match beat.member_epoch {
            LEAVING | AWAY => self.leave(beat),
            _ => self.heartbeat(beat),
        }
    }
}

#[cfg(test)]
mod tests;
