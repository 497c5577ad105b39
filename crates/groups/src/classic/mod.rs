//! The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what time does.
//!
//! Purpose: [`decide`] reads the state and the volatile side and says what happens: events, changes of the volatile
//! side, answers, those to requests parked earlier included. Invariants: GRP-04 the generation only rises; GRP-07 what
//! a member was told of a generation is an event, so that members carry on after a restart; GRP-08 a member that is
//! gone, or was replaced, is refused from the moment on at which that was decided.
//! What it does not do: look into what members say of themselves or get; know versions of the wire.
//!
//! | state | how it is known |
//! |---|---|
//! | Empty | no members, no rebalance |
//! | PreparingRebalance | a rebalance is under way (volatile) |
//! | CompletingRebalance | members without assignments |
//! | Stable | assignments |

mod alive;
mod draft;
mod join;
mod leave;
mod rebalance;
mod sync;
mod tick;

use alloc::{sync::Arc, vec, vec::Vec};

use semel_events::{Blob, Event, GroupAssignment, GroupProtocol};
use semel_types::{Context, DurationMs, GroupId};

pub use alive::check_commit;

use self::draft::Draft;
use crate::{Change, Live, MemberId, Membership, Refusal, State, Volatile, Waiter};

/// Bytes that the members of one generation, or their assignments, may take: both go into one event.
pub const GENERATION_BYTES_MAX: usize = 2 << 20;

/// What the operator says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: DurationMs,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: DurationMs,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: DurationMs,
    /// `group.max.size`.
    pub size_max: usize,
}

/// Where a group stands (upstream `ClassicGroupState`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// No members.
    Empty,
    /// Waits for its members.
    PreparingRebalance,
    /// Waits for the leader's assignments.
    CompletingRebalance,
    /// Everybody has its part.
    Stable,
    /// There is no such group.
    Dead,
}

impl Phase {
    /// Kafka's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    /// From both sides of a group that exists.
    #[must_use]
    pub fn of(membership: &Membership, live: Option<&Live>) -> Self {
        if live.is_some_and(Live::is_rebalancing) {
            Self::PreparingRebalance
        } else if membership.is_empty() {
            Self::Empty
        } else if membership.is_assigned() {
            Self::Stable
        } else {
            Self::CompletingRebalance
        }
    }
}

/// Who claims what in a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The member's id.
    pub member: MemberId,
    /// The static member's name, if it says so.
    pub instance: Option<Arc<str>>,
}

/// A wish to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Join {
    /// Who; an empty id for a new member.
    pub claim: Claim,
    /// `client.id`, for people and for the id of a new member.
    pub client_id: Arc<str>,
    /// Address of the client.
    pub client_host: Arc<str>,
    /// Silence after which the member is taken for dead.
    pub session_timeout: DurationMs,
    /// How long a rebalance waits for it.
    pub rebalance_timeout: DurationMs,
    /// The protocol's type.
    pub protocol_type: Arc<str>,
    /// What it can do, the best first.
    pub protocols: Vec<GroupProtocol>,
    /// A new dynamic member is sent away with an id, to come back with it (KIP-394).
    pub id_comes_first: bool,
    /// A leader may be told that there is nothing to assign (KIP-814).
    pub may_skip_assignment: bool,
}

/// What is asked of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// JoinGroup.
    Join(Join),
    /// SyncGroup.
    Sync {
        /// Who.
        claim: Claim,
        /// Its generation.
        generation: i32,
        /// Type and name of the protocol, where the version says them.
        protocol: (Option<Arc<str>>, Option<Arc<str>>),
        /// Who gets what, from the leader.
        assignments: Vec<GroupAssignment>,
    },
    /// Heartbeat.
    Heartbeat {
        /// Who.
        claim: Claim,
        /// Its generation.
        generation: i32,
    },
    /// LeaveGroup.
    Leave(Vec<Claim>),
    /// DeleteGroups, of one group.
    Delete,
    /// The group's time has come.
    Tick,
    /// A connection is gone that may have had requests waiting here.
    Disconnected,
}

/// A member as the leader is told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// Its id.
    pub member: MemberId,
    /// The static member's name.
    pub instance: Option<Arc<str>>,
    /// What it said of itself for the chosen protocol.
    pub metadata: Blob,
}

/// The generation that a member belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinedGeneration {
    /// Its number.
    pub generation: i32,
    /// The protocol's type.
    pub protocol_type: Arc<str>,
    /// The protocol that was chosen.
    pub protocol: Arc<str>,
    /// The leader.
    pub leader: MemberId,
    /// The member that is told.
    pub member: MemberId,
    /// All members, for the leader alone.
    pub members: Vec<Told>,
    /// Nothing has to be assigned.
    pub skip_assignment: bool,
}

/// What a member got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assigned {
    /// The protocol's type.
    pub protocol_type: Arc<str>,
    /// The protocol that was chosen.
    pub protocol: Arc<str>,
    /// Its part.
    pub assignment: Blob,
}

/// An answer to one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Of JoinGroup; a refusal with the member id to tell.
    Join(Result<JoinedGeneration, (Refusal, MemberId)>),
    /// Of SyncGroup.
    Sync(Result<Assigned, Refusal>),
    /// Of Heartbeat.
    Heartbeat(Result<(), Refusal>),
    /// Of LeaveGroup, for each that wants to leave, in order.
    Leave(Vec<Result<(), Refusal>>),
    /// Of DeleteGroups.
    Delete(Result<(), Refusal>),
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
    /// Answers; a request without one is parked.
    pub answers: Vec<(Waiter, Answer)>,
}

/// Decides one command. Reads only.
#[must_use]
pub fn decide(
    state: &State,
    volatile: &Volatile,
    settings: &Settings,
    request: &Request,
    context: &Context,
) -> Decision {
    let other = state.group(&request.group).filter(|group| group.classic().is_none());
    if let Some(answer) = other.and_then(|group| foreign(request, group.is_empty())) {
        return Decision { answers: vec![(request.waiter, answer)], ..Decision::default() };
    }
    if let Command::Heartbeat { claim, generation } = &request.command {
        return alive::heartbeat(state, volatile, request, (claim, *generation), context.now);
    }
    let mut draft = Draft::new(state, volatile, settings, request, context);
    match &request.command {
        Command::Join(join) => {
            if let Some(group) = other {
                draft.make_classic(group.kind().epoch());
            }
            draft.join(join);
        }
        Command::Sync { claim, generation, protocol, assignments } => {
            let answer = draft.sync(claim, *generation, protocol, assignments);
            if let Some(answer) = answer {
                draft.answer(Answer::Sync(answer));
            }
        }
        Command::Heartbeat { .. } => {}
        Command::Leave(claims) => draft.leave(claims),
        Command::Delete => draft.delete(),
        Command::Tick => draft.tick(),
        Command::Disconnected => draft.disconnected(),
    }
    draft.finish()
}

/// What a group that speaks another protocol answers. `None`: an empty one, which becomes classic with its first member.
fn foreign(request: &Request, is_empty: bool) -> Option<Answer> {
    Some(match &request.command {
        Command::Join(_) | Command::Delete if is_empty => return None,
        Command::Join(join) => {
            Answer::Join(Err((Refusal::InconsistentProtocol, Arc::clone(&join.claim.member))))
        }
        Command::Sync { .. } => Answer::Sync(Err(Refusal::UnknownMember)),
        Command::Heartbeat { .. } => Answer::Heartbeat(Err(Refusal::UnknownMember)),
        Command::Leave(claims) => Answer::Leave(claims.iter().map(|_| Err(Refusal::UnknownMember)).collect()),
        Command::Delete => Answer::Delete(Err(Refusal::NonEmpty)),
        Command::Tick | Command::Disconnected => return None,
    })
}
