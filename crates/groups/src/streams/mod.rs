//! The streams group protocol (KIP-1071, at Kafka 4.4's version): StreamsGroupHeartbeat, and what time does.
//!
//! Purpose: [`decide`] reads both sides of a group and says what happens. A [`Roster`] is what the log holds: the
//! topology, the members, their tasks; [`Live`] is what it does not. Invariants: GRP-10 the group's epoch only rises and
//! no member is ahead of it; GRP-11 a task is worked on by one member at a time: it is given only when nobody else has
//! it nor still has to give it up; GRP-07 what a member was told is an event, so that members carry on after a
//! restart. What it does not do: look topics up (the caller does, through [`Topics`]) or make them (the caller is told
//! by [`missing_topics`]), know versions of the wire, hand out warm-up tasks (Kafka 4.4 does not either).
//!
//! | step of a heartbeat | by |
//! |---|---|
//! | who is it, may it | `heartbeat` |
//! | what does its topology need | [`configure`] |
//! | who shall get what, when something changed | [`assign`] |
//! | what does it have now, one step on | [`step`] |

mod assign;
mod commit;
mod configure;
mod draft;
mod endpoints;
mod heartbeat;
mod leave;
mod live;
mod reconcile;
mod roster;
mod tasks;

use alloc::{boxed::Box, collections::BTreeMap, string::String, sync::Arc, vec::Vec};

use semel_events::{Event, StreamsEndpoint, StreamsPair, StreamsTopology};
use semel_types::{Context, DurationMs, GroupId};

pub use assign::{Candidate, assign};
pub(crate) use commit::check_commit;
pub use configure::{
    Configured, ConfiguredSubtopology, InvalidTopology, MissingTopic, Problem, Topics, check_topology,
    configure, known_topics,
};
pub use endpoints::{Served, TopicPartitions};
pub use heartbeat::missing_topics;
pub use live::{Live, Offsets};
pub use reconcile::{Goal, Others, Position, step};
pub use roster::{AWAY, Phase, Roster, Seat};
pub use tasks::{HeldTasks, TaskId, Tasks};

use self::draft::Draft;
use crate::{Change, MemberId, Refusal, State, Volatile};

#[cfg(test)]
mod tests;

/// Name of the one assignor.
pub const ASSIGNOR: &str = "sticky";

/// What the operator says, for one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `group.streams.session.timeout.ms`.
    pub session_timeout: DurationMs,
    /// `group.streams.heartbeat.interval.ms`.
    pub heartbeat_interval: DurationMs,
    /// `group.streams.task.offset.interval.ms`.
    pub task_offset_interval: DurationMs,
    /// `group.streams.acceptable.recovery.lag`, in records.
    pub recovery_lag: i64,
    /// `group.streams.num.standby.replicas`.
    pub standby_replicas: u32,
    /// `group.streams.rack.aware.assignment.tags`.
    pub tags: Vec<Arc<str>>,
    /// `group.streams.max.size`.
    pub size_max: usize,
    /// `group.streams.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: DurationMs,
    /// `group.streams.assignment.interval.ms`.
    pub assignment_interval: DurationMs,
}

/// What a member is to know of its group (upstream `StreamsGroupHeartbeatResponse.Status`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Its topology is older than the group's.
    StaleTopology,
    /// Source topics do not exist.
    MissingSourceTopics,
    /// Topics do not have the partitions that they need.
    IncorrectlyPartitionedTopics,
    /// Internal topics do not exist.
    MissingInternalTopics,
    /// A member asked all to shut down.
    ShutdownApplication,
    /// The target is not computed yet.
    AssignmentDelayed,
    /// The member lacks tags that the operator asks for.
    MissingClientTags,
}

/// A heartbeat; what is `None` is as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Who.
    pub member: MemberId,
    /// Its epoch; 0 to join.
    pub member_epoch: i32,
    /// The endpoint information that it has.
    pub endpoint_epoch: i32,
    /// The static member's name.
    pub instance: Option<Arc<str>>,
    /// The rack that it is in.
    pub rack: Option<Arc<str>>,
    /// `client.id`.
    pub client_id: Arc<str>,
    /// Address of the client.
    pub client_host: Arc<str>,
    /// How long it may take to give tasks up.
    pub rebalance_timeout: Option<DurationMs>,
    /// What the application looks like; there when joining, else not.
    pub topology: Option<StreamsTopology>,
    /// What it says it owns.
    pub owned: Option<Tasks>,
    /// Its instance.
    pub process: Option<Arc<str>>,
    /// Where its instance answers.
    pub endpoint: Option<StreamsEndpoint>,
    /// What it says about its place, sorted by name.
    pub tags: Option<Vec<StreamsPair>>,
    /// How far it has read changelogs.
    pub offsets: Option<BTreeMap<TaskId, i64>>,
    /// Where they end.
    pub end_offsets: Option<BTreeMap<TaskId, i64>>,
    /// All members shall shut down.
    pub shutdown: bool,
    /// The client knows [`Status::MissingClientTags`].
    pub knows_missing_tags: bool,
}

/// A wish to leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// Who.
    pub member: MemberId,
    /// The static member's name.
    pub instance: Option<Arc<str>>,
    /// It will be back: only a static member can say so.
    pub will_return: bool,
    /// All members shall shut down.
    pub shutdown: bool,
}

/// What is asked of a streams group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// StreamsGroupHeartbeat.
    Heartbeat(Box<Heartbeat>),
    /// The same, to leave.
    Leave(Leave),
    /// The group's time has come.
    Tick,
}

/// What a member is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The member.
    pub member: MemberId,
    /// Its epoch.
    pub member_epoch: i32,
    /// Its tasks, if they changed or it joins.
    pub tasks: Option<HeldTasks>,
    /// What it is to know, with a text for people.
    pub status: Vec<(Status, String)>,
    /// Which endpoint information is the newest.
    pub endpoint_epoch: i32,
    /// Who serves what, if the member does not have the newest.
    pub served: Option<Vec<Served>>,
}

/// A refusal, with more for people where there is more to say.
pub type Denied = (Refusal, Option<String>);

/// A command to one group.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The group.
    pub group: &'a GroupId,
    /// What is asked.
    pub command: &'a Command,
    /// For people: why internal topics that are missing could not be made.
    pub creation_errors: &'a str,
}

/// What happens.
#[derive(Clone, Debug)]
pub struct Decision {
    /// To be applied in order.
    pub events: Vec<Event>,
    /// Of the volatile side.
    pub changes: Vec<Change>,
    /// The answer; `None` to time.
    pub answer: Option<Result<Told, Denied>>,
}

/// Both sides of all groups.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// What the log holds.
    pub state: &'a State,
    /// What it does not.
    pub volatile: &'a Volatile,
    /// Which topics exist.
    pub topics: &'a dyn Topics,
}

/// Decides one command. Reads only.
#[must_use]
pub fn decide(sides: Sides<'_>, settings: &Settings, request: Request<'_>, context: &Context) -> Decision {
    let mut draft = Draft::new(sides, settings, request.group, context.now);
    let answer = match request.command {
        Command::Heartbeat(beat) => Some(draft.heartbeat(beat, request.creation_errors)),
        Command::Leave(leave) => Some(draft.leave(leave)),
        Command::Tick => {
            draft.tick();
            None
        }
    };
    match answer {
        Some(Err(denied)) => Decision { events: Vec::new(), changes: Vec::new(), answer: Some(Err(denied)) },
        answer => draft.finish(answer),
    }
}
