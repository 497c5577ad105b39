//! The node as a step function: requests in, events and answers out.
//!
//! Purpose: [`Node::step`] takes one [`Input`] and gives [`Outputs`]: a proposal for the log and the answers that rest
//! on it. Inside, a handler of `api/` decides against a state that already includes everything proposed before, and
//! [`Step::apply`] is the one way to change that state: the same [`State::apply`] that replay uses.
//! Invariants: nothing is decided without room; the events of one step are one proposal; a step that is refused
//! changes no state. What it does not do: sockets, files, clocks, randomness, waiting.

mod check;
mod retention;
mod step;

use std::sync::{Arc, Weak};

use semel_eos::{Volatile, txn};
use semel_groups::{Sessions, classic, consumer, streams};
use semel_log::{Proposal, Room, RoomClass, SnapshotSource};
use semel_types::{ConnectionNumber, Context, DurationMs, GroupId, LogSequence, Now, RequestToken};

pub(crate) use step::{Asker, Step};

use crate::{
    api::{self, Reply, ViewCall},
    call::{Answer, Input, Inspection, NodeReply, NodeRequest, Outputs},
    inquiry::StateCall,
    room::RoomKeeper,
    settings::{Limits, Settings, group::GroupLimits},
    state::State,
};

/// What a handler came to.
#[derive(Clone, Debug)]
pub(crate) enum Handled {
    /// Answer this.
    Reply(Reply),
    /// Answer this from the view.
    View(ViewCall),
    /// Answer this from its copy of the state.
    State(StateCall),
    /// Answer nothing.
    Nothing,
    /// The answer comes later, from another step.
    Parked,
    /// Close the connection unanswered.
    Close,
    /// Nothing was decided for want of room that may come: ask again. The call is as it was.
    Defer,
}

impl<T: Into<Reply>> From<T> for Handled {
    fn from(response: T) -> Self {
        Self::Reply(response.into())
    }
}

/// One shard's node.
///
/// [`Node::start`] comes first; then [`Node::step`] for each input, in order. After each the caller, in this order,
/// submits the proposal, stamps the answers with the log's last sequence, and sets its timer to `wake_at`.
pub struct Node {
    settings: Arc<Settings>,
    limits: Limits,
    eos_settings: semel_eos::Settings,
    group_settings: consumer::Settings,
    streams_settings: streams::Settings,
    state: State,
    volatile: Volatile,
    groups: semel_groups::Volatile,
    room: Box<dyn RoomKeeper>,
    last: LogSequence,
    /// Counts the topics made, deleted and grown since the start.
    topics_version: u64,
    /// The copy of the state that questions are answered from, while one of them is.
    copy: StateCopy,
    /// Looks for old offsets.
    walk: retention::Walk,
}

/// A copy of the state and the sequence up to which it goes.
#[derive(Default)]
struct StateCopy {
    at: LogSequence,
    state: Weak<State>,
}

/// Worst case of a Tick's events of transactions and producers, in bytes.
const TICK_BYTES: u64 = 4 << 20;

/// Worst case of its events of groups: they stop behind the one that passes half of it.
const GROUP_TICK_BYTES: u64 = 2 * classic::GENERATION_BYTES_MAX as u64;

/// Pause before time's work is tried again on a full disk.
const RETRY_WITHOUT_ROOM: DurationMs = DurationMs::from_ms(1_000);

impl Node {
    /// A node over a state that was restored and replayed up to `last`.
    #[must_use]
    pub fn new(settings: Arc<Settings>, state: State, last: LogSequence, room: Box<dyn RoomKeeper>) -> Self {
        let (eos_settings, group_settings) = (settings.eos(), settings.groups());
        let (limits, streams_settings) = (settings.limits(), settings.streams());
        let (volatile, groups) = (Volatile::new(), semel_groups::Volatile::default());
        let copy = StateCopy::default();
        let walk = retention::Walk::new(state.eos.last_now(), settings.offsets_retention_check_interval());
        let topics_version = 0;
        Self {
            settings,
            limits,
            eos_settings,
            group_settings,
            streams_settings,
            state,
            volatile,
            groups,
            room,
            last,
            topics_version,
            copy,
            walk,
        }
    }

    /// The first events of this incarnation: goes into the log's `Open` group before anything is served.
    ///
    /// `may_have_lost_writes`: the last stop was not clean and durability was `interval`. `software` names this build.
    pub fn start(&mut self, context: &Context, may_have_lost_writes: bool, software: &str) -> Outputs {
        self.groups = semel_groups::Volatile::start(&self.state.groups, |id| self.sessions(id), context.now);
        self.walk = retention::Walk::new(context.now, self.settings.offsets_retention_check_interval());
        let events = txn::start(&self.state.eos, context, may_have_lost_writes, software);
        let settings = Arc::clone(&self.settings);
        let mut step = Step::new(self, &settings, context, None);
        events.into_iter().for_each(|event| step.apply(event));
        let fences = step.take_fences();
        let mut proposal = step.finish().unwrap_or_default();
        proposal.sync_now = true;
        Outputs { fences, ..self.outputs(context, Some(proposal)) }
    }

    /// How long members of this group may be silent. Few groups have settings of their own: the others cost nothing.
    fn sessions(&self, group: &GroupId) -> Sessions {
        let given = self.state.group_settings.of(group);
        if given.is_empty() {
            let (consumer, streams) = (&self.group_settings, &self.streams_settings);
            return Sessions { consumer: consumer.session_timeout, streams: streams.session_timeout };
        }
        let limits = GroupLimits::of(given, &self.settings);
        Sessions { consumer: limits.consumer_session_timeout, streams: limits.streams_session_timeout }
    }

    /// One step. Never blocks; a request's work is bounded by its own size.
    pub fn step(&mut self, context: &Context, input: Input) -> Outputs {
        match input {
            Input::Request(request) => self.request(context, request),
            Input::ConnectionClosed(connection) => {
                self.volatile.connection_closed(connection);
                self.disconnect(context, connection);
                self.outputs(context, None)
            }
            Input::Wake => self.wake(context),
        }
    }

    /// Requests of the connection that wait in groups are forgotten; that makes no event.
    fn disconnect(&mut self, context: &Context, connection: ConnectionNumber) {
        let settings = Arc::clone(&self.settings);
        for group in self.groups.take_connection(connection) {
            let mut step = Step::new(self, &settings, context, None);
            step.disconnected(group, connection);
            assert!(step.finish().is_none(), "a connection that goes changes nothing durable");
        }
    }

    fn request(&mut self, context: &Context, mut request: NodeRequest) -> Outputs {
        let (connection, token, client) = (request.connection, request.token, Arc::clone(&request.client));
        let settings = Arc::clone(&self.settings);
        let mut step =
            Step::new(self, &settings, context, Some(Asker { connection, token, client: &client }));
        let handled = api::run(&mut step, &mut request.call);
        let (notes, answers, fences) = (step.take_notes(), step.take_answers(), step.take_fences());
        let proposal = step.finish();
        let mut outputs = Outputs { notes, answers, fences, ..self.outputs(context, proposal) };
        match handled {
            Handled::Reply(reply) => answer(&mut outputs, connection, token, NodeReply::Reply(reply)),
            Handled::View(call) => answer(&mut outputs, connection, token, NodeReply::View(call)),
            Handled::State(call) => answer(&mut outputs, connection, token, NodeReply::State(call)),
            Handled::Nothing => answer(&mut outputs, connection, token, NodeReply::Nothing),
            Handled::Parked => {}
            Handled::Close => outputs.close.push(connection),
            Handled::Defer => outputs.deferred = Some(Input::Request(request)),
        }
        outputs
    }

    fn wake(&mut self, context: &Context) -> Outputs {
        if self.wake_at(context.now).is_none_or(|at| at > context.now) {
            return self.outputs(context, None);
        }
        let groups = self.groups.due(context.now).map_or(0, |_| GROUP_TICK_BYTES);
        let offsets = if self.walk.due() <= context.now { retention::STEP_BYTES } else { 0 };
        match self.room.ask(TICK_BYTES + groups + offsets, RoomClass::Reserve) {
            Room::Enough => {}
            Room::Wait => return Outputs { deferred: Some(Input::Wake), ..self.outputs(context, None) },
            // Nothing can be written now; time passes on, and the retry finds the same work.
            Room::Full => {
                let wake_at = Some(context.now.plus(RETRY_WITHOUT_ROOM));
                return Outputs { wake_at, ..Outputs::default() };
            }
        }
        let settings = Arc::clone(&self.settings);
        let mut step = Step::new(self, &settings, context, None);
        step.tick();
        let (answers, fences) = (step.take_answers(), step.take_fences());
        let proposal = step.finish();
        Outputs { answers, fences, ..self.outputs(context, proposal) }
    }

    /// When time has something to do: at once, if it is due already.
    fn wake_at(&self, now: Now) -> Option<Now> {
        let transactions = txn::next_wake(&self.state.eos, &self.eos_settings);
        let producers = self.state.eos.producers_due(&self.eos_settings, now).wake_at;
        let groups = self.groups.next_wake();
        let offsets = (!self.state.groups.is_empty()).then(|| self.walk.due());
        transactions.into_iter().chain(producers).chain(groups).chain(offsets).min()
    }

    fn outputs(&self, context: &Context, proposal: Option<Proposal>) -> Outputs {
        Outputs { proposal, wake_at: self.wake_at(context.now), ..Outputs::default() }
    }

    /// The state as it is after everything proposed, shared by all questions until the next event. A clone costs
    /// nothing by itself; what is changed while it lives is copied once.
    fn copy(&mut self) -> Arc<State> {
        let same = self.copy.state.upgrade().filter(|_| self.copy.at == self.last);
        let state = same.unwrap_or_else(|| Arc::new(self.state.clone()));
        self.copy = StateCopy { at: self.last, state: Arc::downgrade(&state) };
        state
    }

    /// The state as it is after everything proposed, for the log to write as a snapshot.
    #[must_use]
    pub fn snapshot_source(&self) -> Box<dyn SnapshotSource> {
        Box::new(self.state.clone())
    }

    /// What an administrator may ask about. Costs nothing: maps are shared.
    #[must_use]
    pub fn inspect(&self) -> Inspection {
        Inspection {
            state: self.state.clone(),
            refused: self.volatile.refused_by_id().clone(),
            groups: self.groups.snapshot(),
        }
    }

    /// The state: for tests, descriptions and the administrator's view.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Last sequence proposed.
    #[must_use]
    pub const fn last_sequence(&self) -> LogSequence {
        self.last
    }

    /// The settings that this node runs with.
    #[must_use]
    pub const fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}

fn answer(outputs: &mut Outputs, connection: ConnectionNumber, token: RequestToken, reply: NodeReply) {
    outputs.answers.push(Answer { connection, token, reply });
}
