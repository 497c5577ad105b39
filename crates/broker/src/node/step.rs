//! One step in progress: what a handler may read, and the one way to change the state.

use std::{fmt, sync::Arc};

use semel_eos::{
    BatchStamp, Change, Judgement, ProduceScope, Refusal,
    txn::{self, Command, Fence, Reply, Request},
};
use semel_events::{Event, TransactionEnded, membership_event};
use semel_groups::{Change as GroupChange, Waiter, classic, consumer, streams};
use semel_log::{Payload, Proposal, Room, RoomClass};
use semel_types::{
    ConnectionNumber, Context, CoordinatorEpoch, GroupId, LeaderEpoch, PartitionHandle, RequestToken,
    TopicId, TransactionalId,
    mutation::{Mutation, mutated},
};
use semel_wire::{
    ApiKey,
    batch::{Marker, MarkerKind},
};

use super::Node;
use crate::{
    call::{Answer, ClientInfo, NodeReply},
    groups::reply as group_reply,
    settings::{Limits, Settings, group::GroupLimits},
    state::State,
    topics_now::TopicsNow,
};

/// The answer to a heartbeat of a consumer group.
type ToldOrRefused = Result<consumer::Told, semel_groups::Refusal>;

/// Notes of one step, at most.
const NOTES_MAX: usize = 4;

/// Groups that one Tick looks at, at most.
const GROUPS_PER_TICK: usize = 256;

/// The request that a step is for.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The connection it came on.
    pub(crate) connection: ConnectionNumber,
    /// Names it in the answer.
    pub(crate) token: RequestToken,
    /// Who asks.
    pub(crate) client: &'a ClientInfo,
}

/// A step in progress.
pub(crate) struct Step<'a> {
    node: &'a mut Node,
    /// The broker's settings.
    pub(crate) settings: &'a Settings,
    /// The settings that Produce needs, looked up once.
    pub(crate) limits: Limits,
    /// What this step may know of the world.
    pub(crate) context: &'a Context,
    asker: Option<Asker<'a>>,
    proposal: Proposal,
    notes: Vec<String>,
    /// The newest fence when the step began.
    fences_before: u64,
    answers: Vec<Answer>,
    topic_ids: u64,
}

impl<'a> Step<'a> {
    pub(super) fn new(
        node: &'a mut Node,
        settings: &'a Settings,
        context: &'a Context,
        asker: Option<Asker<'a>>,
    ) -> Self {
        let limits = node.limits;
        let fences_before = node.state.eos.transactions().fences().newest();
        Self {
            node,
            settings,
            limits,
            context,
            asker,
            proposal: Proposal::default(),
            notes: Vec::new(),
            fences_before,
            answers: Vec::new(),
            topic_ids: 0,
        }
    }

    /// Everything proposed so far, this step's own events included.
    pub(crate) fn state(&self) -> &State {
        &self.node.state
    }

    /// The same as a copy that outlives the step.
    pub(crate) fn copy(&mut self) -> Arc<State> {
        self.node.copy()
    }

    /// The connection that asks.
    pub(crate) fn connection(&self) -> ConnectionNumber {
        self.asker.map(|asker| asker.connection).unwrap_or_default()
    }

    /// Who asks.
    pub(crate) fn client(&self) -> &ClientInfo {
        self.asker.expect("only a request has a client").client
    }

    /// Is there room, before anything is decided?
    pub(crate) fn room(&self, bytes: u64, class: RoomClass) -> Room {
        self.node.room.ask(bytes, class)
    }

    /// Says something for the server's log, with the client that gave rise to it; a request of many faults is told by
    /// its first.
    pub(crate) fn note(&mut self, note: impl fmt::Display) {
        if self.notes.len() < NOTES_MAX {
            let ClientInfo { client_id, address, .. } = self.client();
            self.notes.push(format!("client {client_id:?} at {address}: {note}"));
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The fences that this step made.
    pub(super) fn take_fences(&mut self) -> Vec<Arc<Fence>> {
        let fences = self.state().eos.transactions().fences();
        if fences.newest() == self.fences_before {
            return Vec::new();
        }
        fences.after(self.fences_before).map(|(_, fence)| Arc::clone(fence)).collect()
    }

    /// Answers to requests that were parked before.
    pub(super) fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Applies one event: the only way in which this step changes the state.
    pub(crate) fn apply(&mut self, event: Event) {
        self.proposal.sync_now |= self.must_be_synced(&event);
        self.node.last = self.node.last.next();
        self.node.state.apply(self.node.last, &event, &mut self.proposal.visible);
        self.node.topics_version += u64::from(changes_topics(&event));
        if let Event::TransactionEnded(ended) = &event {
            self.add_markers(ended);
        }
        if let Event::GroupDeleted(deleted) = &event {
            self.node.groups.deleted(&deleted.group);
        }
        self.proposal.events.push(event);
    }

    /// Applies the event of a batch and takes its bytes along.
    pub(crate) fn apply_batch(&mut self, event: Event, payload: Payload) {
        self.proposal.payloads.push(payload);
        self.apply(event);
    }

    /// Events that change an identity, start or end a transaction or reserve ids are synced before their answer in
    /// durability `interval` too (design section 4), and so are those of a group's members: a generation that was lost
    /// would be given out twice.
    fn must_be_synced(&self, event: &Event) -> bool {
        match event {
            Event::ShardStarted(_)
            | Event::ProducerIdsReserved(_)
            | Event::TransactionalIdInitialized(_)
            | Event::TransactionEnded(_)
            | Event::TransactionalIdExpired(_)
            | membership_event!() => true,
            Event::TransactionExtended(extended) => self.state().starts_transaction(extended),
            Event::TopicCreated(_)
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
            | Event::OffsetsDeleted(_) => false,
        }
    }

    /// The control batches of an ended transaction; their places stand in the event.
    fn add_markers(&mut self, ended: &TransactionEnded) {
        let epoch = self.state().eos.shard_epoch();
        let marker = Marker {
            kind: match ended.outcome {
                semel_events::Outcome::Abort if !mutated(Mutation::MarkerKindFlipped) => MarkerKind::Abort,
                semel_events::Outcome::Commit if mutated(Mutation::MarkerKindFlipped) => MarkerKind::Abort,
                semel_events::Outcome::Abort | semel_events::Outcome::Commit => MarkerKind::Commit,
            },
            stamp: ended.marker_stamp,
            coordinator_epoch: CoordinatorEpoch::from(epoch),
            timestamp: ended.wall,
        };
        self.proposal.payloads.extend(ended.markers.iter().map(|place| Payload {
            partition: place.partition,
            base_offset: place.offset,
            count: 1,
            max_timestamp: ended.wall.as_ms(),
            bytes: marker.to_batch(place.offset, LeaderEpoch::from(epoch)).into_bytes(),
        }));
    }

    /// Asks the coordinator, applies what it decided, and gives its answer.
    pub(crate) fn decide(&mut self, command: Command) -> Result<Reply, Refusal> {
        self.decide_if_group(command, |_, _| Ok::<(), Refusal>(()))
    }

    /// The same, but if the coordinator agrees and `objection` then does not, nothing of it is applied to the state.
    pub(crate) fn decide_if_group<E: From<Refusal>>(
        &mut self,
        command: Command,
        objection: impl FnOnce(&State, &semel_groups::Volatile) -> Result<(), E>,
    ) -> Result<Reply, E> {
        let token = self.asker.map(|asker| asker.token).unwrap_or_default();
        let api = api_of(&command);
        let decision = self.ask(token, command);
        let mut answer = None;
        for (answered, result) in decision.answers {
            assert_eq!(answered, token, "with one shard no request is parked");
            answer = Some(result);
        }
        let answer = answer.expect("a request is answered by the decision on it");
        let (agreed, holds) = match answer {
            Err(refusal) => (Err(E::from(refusal)), true),
            Ok(reply) => match objection(self.state(), self.groups()) {
                Ok(()) => (Ok(reply), true),
                Err(objection) => (Err(objection), false),
            },
        };
        if holds {
            decision.events.into_iter().for_each(|event| self.apply(event));
        }
        let refused = decision.changes.iter().find_map(|change| match change {
            Change::Refused(id, _) => Some(id.clone()),
            Change::Connection { .. }
            | Change::IdentityChanged(_)
            | Change::Forgotten(_)
            | Change::IdBlock(_) => None,
        });
        self.node.volatile.apply_changes(decision.changes);
        if let (Some(id), Some(api)) = (refused, api) {
            self.name_refused(&id, api);
        }
        agreed
    }

    pub(super) fn walk(&mut self) -> &mut super::retention::Walk {
        &mut self.node.walk
    }

    /// What is known of groups beside the state.
    pub(crate) fn groups(&self) -> &semel_groups::Volatile {
        &self.node.groups
    }

    /// A member of a group was heard of.
    pub(crate) fn note_alive(&mut self, change: Option<GroupChange>) {
        self.node.groups.apply_changes(change.into_iter().collect());
    }

    /// Asks a group and applies what it decided. `None`: the request is parked. Answers to others leave with this
    /// step.
    pub(crate) fn decide_group(
        &mut self,
        group: GroupId,
        command: classic::Command,
    ) -> Option<classic::Answer> {
        let asker = self.asker.expect("a request asks");
        let waiter = Waiter { connection: asker.connection, token: asker.token };
        self.run_group(classic::Request { waiter, group, command })
    }

    /// A connection is gone that may have had requests waiting in this group.
    pub(super) fn disconnected(&mut self, group: GroupId, connection: ConnectionNumber) {
        let waiter = Waiter { connection, token: RequestToken::default() };
        let command = classic::Command::Disconnected;
        self.run_group(classic::Request { waiter, group, command });
    }

    fn run_group(&mut self, request: classic::Request) -> Option<classic::Answer> {
        let Node { state, groups, group_settings, .. } = &*self.node;
        if consumer::serves(&state.groups, &request.group) {
            let classic::Request { waiter, group, command } = request;
            let command = consumer::Command::Classic(command);
            return self.run_consumer(consumer::Request { waiter, group, command }).0;
        }
        let settings = &group_settings.classic;
        let decision = classic::decide(&state.groups, groups, settings, &request, self.context);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.node.groups.apply_changes(decision.changes);
        self.hand_out(request.waiter, decision.answers)
    }

    /// Tells a consumer group what a member says, and the member what the group answers.
    pub(crate) fn decide_consumer(
        &mut self,
        group: GroupId,
        beat: consumer::Heartbeat,
    ) -> Result<consumer::Told, semel_groups::Refusal> {
        let asker = self.asker.expect("a request asks");
        let waiter = Waiter { connection: asker.connection, token: asker.token };
        let command = consumer::Command::Heartbeat(beat);
        let (_, told) = self.run_consumer(consumer::Request { waiter, group, command });
        told.expect("a heartbeat is answered at once")
    }

    fn run_consumer(
        &mut self,
        request: consumer::Request,
    ) -> (Option<classic::Answer>, Option<ToldOrRefused>) {
        let Node { state, groups, group_settings, topics_version, .. } = &*self.node;
        let topics = TopicsNow { catalog: &state.catalog, version: *topics_version };
        let sides = (&state.groups, groups);
        // Most groups have no settings of their own: nothing is copied for them.
        let own = (!state.group_settings.of(&request.group).is_empty()).then(|| consumer::Settings {
            session_timeout: self.group_limits(&request.group).consumer_session_timeout,
            ..group_settings.clone()
        });
        let settings = own.as_ref().unwrap_or(group_settings);
        let decision = consumer::decide(sides, settings, &topics, &request, self.context);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.node.groups.apply_changes(decision.changes);
        (self.hand_out(request.waiter, decision.answers), decision.told)
    }

    /// The settings that hold for one group: its own, else the broker's.
    pub(crate) fn group_limits(&self, group: &GroupId) -> GroupLimits {
        GroupLimits::of(self.state().group_settings.of(group), self.settings)
    }

    /// Have topics changed since this group was last asked?
    pub(crate) fn topics_are_new_to(&self, group: &GroupId) -> bool {
        self.node.groups.consumer(group).is_none_or(|live| !live.has_seen(self.node.topics_version))
    }

    /// Answers to others leave with this step; the asker's own is returned.
    fn hand_out(
        &mut self,
        asker: Waiter,
        answers: Vec<(Waiter, classic::Answer)>,
    ) -> Option<classic::Answer> {
        let mut own = None;
        for (waiter, answer) in answers {
            if waiter == asker {
                own = Some(answer);
            } else {
                let Waiter { connection, token } = waiter;
                let reply = NodeReply::Reply(group_reply(answer));
                self.answers.push(Answer { connection, token, reply });
            }
        }
        own
    }

    /// What holds for one streams group.
    pub(crate) fn streams_settings(&self, group: &GroupId) -> streams::Settings {
        let settings = self.node.streams_settings.clone();
        let given = self.state().group_settings.of(group);
        if given.is_empty() {
            return settings;
        }
        let limits = GroupLimits::of(given, self.settings);
        streams::Settings {
            session_timeout: limits.streams_session_timeout,
            heartbeat_interval: limits.streams_heartbeat_interval,
            task_offset_interval: limits.streams_task_offset_interval,
            recovery_lag: limits.streams_recovery_lag,
            standby_replicas: limits.streams_standby_replicas.unsigned_abs(),
            initial_rebalance_delay: limits.streams_initial_rebalance_delay,
            assignment_interval: limits.streams_assignment_interval,
            ..settings
        }
    }

    /// Both sides of streams groups, with the topics.
    fn streams_sides(&self) -> streams::Sides<'_> {
        let Node { state, groups, .. } = &*self.node;
        streams::Sides { state: &state.groups, volatile: groups, topics: &state.catalog }
    }

    /// Internal topics that a heartbeat needs and that do not exist.
    pub(crate) fn missing_streams_topics(
        &self,
        group: &GroupId,
        beat: &streams::Heartbeat,
    ) -> Vec<streams::MissingTopic> {
        let settings = self.streams_settings(group);
        streams::missing_topics(self.streams_sides(), &settings, (group, beat), self.context)
    }

    /// Asks a streams group and applies what it decided. `None`: nobody asked.
    pub(crate) fn decide_streams(
        &mut self,
        request: streams::Request<'_>,
    ) -> Option<Result<streams::Told, streams::Denied>> {
        let settings = self.streams_settings(request.group);
        let decision = streams::decide(self.streams_sides(), &settings, request, self.context);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.node.groups.apply_changes(decision.changes);
        decision.answer
    }

    fn tick_group(&mut self, group: GroupId) {
        if self.node.groups.streams(&group).is_some() {
            let command = &streams::Command::Tick;
            self.decide_streams(streams::Request { group: &group, command, creation_errors: "" });
        } else {
            let (waiter, command) = (Waiter::default(), classic::Command::Tick);
            self.run_group(classic::Request { waiter, group, command });
        }
    }

    /// The groups whose time has come, until their events take as much as one generation may.
    fn tick_groups(&mut self) {
        let mut bytes = 0;
        let mut looked = 0;
        while let Some(group) = self.node.groups.due(self.context.now).cloned() {
            if bytes >= classic::GENERATION_BYTES_MAX || looked >= GROUPS_PER_TICK {
                return;
            }
            looked += 1;
            let before = self.proposal.events.len();
            self.tick_group(group);
            bytes += self.proposal.events[before..].iter().map(encoded_bytes).sum::<usize>();
        }
    }

    /// Does what time asks for: a bounded part of it. The rest is due at once.
    pub(super) fn tick(&mut self) {
        let decision = self.ask(RequestToken::default(), Command::Tick);
        decision.events.into_iter().for_each(|event| self.apply(event));
        self.node.volatile.apply_changes(decision.changes);
        let due = self.state().eos.producers_due(&self.node.eos_settings, self.context.now);
        if let Some(event) = due.event {
            self.apply(event);
        }
        self.tick_groups();
        self.forget_old_offsets();
    }

    fn ask(&self, token: RequestToken, command: Command) -> txn::Decision {
        let request = Request { token, connection: self.connection(), command };
        txn::decide(&self.state().eos, &self.node.volatile, &self.node.eos_settings, &request, self.context)
    }

    /// Judges a batch and notes the judgement.
    pub(crate) fn judge(
        &mut self,
        scope: &ProduceScope<'_>,
        partition: PartitionHandle,
        stamp: &BatchStamp,
    ) -> Judgement {
        let judgement = self.state().eos.judge(&self.node.volatile, scope, partition, stamp);
        self.node.volatile.note_produce(scope, stamp, partition, &judgement);
        judgement
    }

    /// Says whose the request was that was refused last.
    fn name_refused(&mut self, id: &TransactionalId, api: ApiKey) {
        let by = self.client().author(api.spec().name);
        self.node.volatile.name_refused(id, by);
    }

    /// Counts a refused batch, once.
    pub(crate) fn note_refused(&mut self, scope: &ProduceScope<'_>, refusal: &Refusal) {
        let Node { volatile, state, .. } = &mut *self.node;
        volatile.note_refused_batch(&state.eos, scope, self.context.now, refusal);
        if let Some(id) = scope.transactional_id {
            self.name_refused(id, ApiKey::Produce);
        }
    }

    /// Notes that a batch was refused for want of room.
    pub(crate) fn refused_for_room(&mut self, partition: PartitionHandle, stamp: &BatchStamp) {
        self.node.volatile.refused_for_room(partition, stamp);
    }

    /// A fresh topic id, from this step's entropy: one step may make many.
    pub(crate) fn new_topic_id(&mut self) -> TopicId {
        self.topic_ids += 1;
        let id = topic_id(&self.context.entropy, self.topic_ids);
        assert!(self.state().catalog.topic_by_id(id).is_none(), "topic ids are random and unique");
        id
    }

    /// The next producer id that nobody has.
    pub(crate) fn next_unissued_id(&self) -> semel_types::ProducerId {
        self.state().eos.next_unissued_id(&self.node.volatile)
    }

    /// The proposal, if this step changed anything.
    pub(super) fn finish(self) -> Option<Proposal> {
        let changed = !self.proposal.events.is_empty();
        if changed {
            super::check::after_step(&self.node.state, self.node.last);
        }
        changed.then_some(self.proposal)
    }
}

/// The API that a command comes from; `None` for time.
const fn api_of(command: &Command) -> Option<ApiKey> {
    match command {
        Command::InitProducerId { .. } => Some(ApiKey::InitProducerId),
        Command::AddPartitions { .. } => Some(ApiKey::AddPartitionsToTxn),
        Command::AddOffsets { .. } => Some(ApiKey::AddOffsetsToTxn),
        Command::TxnOffsetCommit { .. } => Some(ApiKey::TxnOffsetCommit),
        Command::EndTxn { .. } => Some(ApiKey::EndTxn),
        Command::WriteMarker { .. } => Some(ApiKey::WriteTxnMarkers),
        Command::Tick => None,
    }
}

const fn changes_topics(event: &Event) -> bool {
    matches!(event, Event::TopicCreated(_) | Event::TopicDeleted(_) | Event::PartitionsAdded(_))
}

fn encoded_bytes(event: &Event) -> usize {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    bytes.len()
}

/// A random (version 4) UUID: the entropy's halves, each mixed with a count.
fn topic_id(entropy: &[u8; 32], count: u64) -> TopicId {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&entropy[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mixed = |first: u64, second: u64| {
        let mut x = first.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) ^ second
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&mixed(word(8), word(0)).to_be_bytes());
    id[8..].copy_from_slice(&mixed(word(16), word(24)).to_be_bytes());
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    TopicId::new(id)
}
