//! Streams groups: a world of topics, members and time in which they are asked.

mod assignor;
mod commits;
mod decisions;
mod histories;
mod reconciling;
mod topologies;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::{String, ToString},
    sync::Arc,
    vec,
    vec::Vec,
};

use semel_events::{
    Event, Reader, StreamsEndpoint, StreamsInternalTopic, StreamsSubtopology, StreamsTopology,
};
use semel_types::{
    Context, DurationMs, GroupId, LogSequence, Now, PartitionHandle, PartitionIndex, WallTime,
};

use super::*;
use crate::{Group, Sessions, State, Volatile};

pub(super) fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

pub(super) fn task(subtopology: &str, partition: i32) -> TaskId {
    TaskId { subtopology: name(subtopology), partition: PartitionIndex::new(partition) }
}

pub(super) fn internal(topic: &str, partitions: i32) -> StreamsInternalTopic {
    StreamsInternalTopic { name: name(topic), partitions, copies: 0, settings: vec![] }
}

/// A part that reads these topics.
pub(super) fn part(id: &str, sources: &[&str]) -> StreamsSubtopology {
    StreamsSubtopology {
        id: name(id),
        sources: sources.iter().map(|topic| name(topic)).collect(),
        repartition_sources: vec![],
        repartition_sinks: vec![],
        changelogs: vec![],
        copartitions: vec![],
    }
}

/// A count per key: reads `in`, writes `app-repartition`, which a part with the store `app-changelog` reads.
pub(super) fn counting() -> StreamsTopology {
    let first = StreamsSubtopology { repartition_sinks: vec![name("app-repartition")], ..part("0", &["in"]) };
    let second = StreamsSubtopology {
        repartition_sources: vec![internal("app-repartition", 0)],
        changelogs: vec![internal("app-changelog", 0)],
        ..part("1", &[])
    };
    StreamsTopology { epoch: 0, subtopologies: vec![first, second] }
}

#[derive(Default)]
pub(super) struct Catalog {
    topics: BTreeMap<String, Vec<PartitionHandle>>,
    next: u32,
}

impl Catalog {
    pub(super) fn make(&mut self, topic: &str, partitions: u32) {
        let handles = (self.next..self.next + partitions).map(PartitionHandle::new).collect();
        self.next += partitions;
        self.topics.insert(topic.to_string(), handles);
    }
}

impl Topics for Catalog {
    fn topic(&self, name: &str) -> Option<&[PartitionHandle]> {
        self.topics.get(name).map(Vec::as_slice)
    }
}

pub(super) struct World {
    pub(super) state: State,
    pub(super) volatile: Volatile,
    pub(super) catalog: Catalog,
    pub(super) settings: Settings,
    pub(super) now: Now,
    sequence: LogSequence,
    /// Events of the last command.
    pub(super) events: Vec<Event>,
}

impl World {
    /// With the topic `in` of four partitions and no delays.
    pub(super) fn new() -> Self {
        let mut catalog = Catalog::default();
        catalog.make("in", 4);
        let settings = Settings {
            session_timeout: DurationMs::from_ms(45_000),
            heartbeat_interval: DurationMs::from_ms(5_000),
            task_offset_interval: DurationMs::from_ms(60_000),
            recovery_lag: 10_000,
            standby_replicas: 0,
            tags: vec![],
            size_max: 100,
            initial_rebalance_delay: DurationMs::from_ms(0),
            assignment_interval: DurationMs::from_ms(0),
        };
        Self {
            state: State::new(),
            volatile: Volatile::default(),
            catalog,
            settings,
            now: Now::from_ms(1_000_000),
            sequence: LogSequence::default(),
            events: vec![],
        }
    }

    pub(super) fn group() -> GroupId {
        GroupId::from("app")
    }

    pub(super) fn roster(&self) -> &Roster {
        self.state.group(&Self::group()).and_then(Group::streams).expect("there is a streams group")
    }

    pub(super) fn apply(&mut self, event: &Event) {
        self.sequence = self.sequence.next();
        self.state.apply(self.sequence, event);
        assert_eq!(self.state.check(self.sequence), Ok(()));
    }

    pub(super) fn ask(&mut self, command: &Command) -> Option<Result<Told, Denied>> {
        self.ask_with(command, true)
    }

    /// `creates`: internal topics are made as the broker does.
    pub(super) fn ask_with(&mut self, command: &Command, creates: bool) -> Option<Result<Told, Denied>> {
        let group = Self::group();
        let wall = WallTime::from_ms(0);
        let context = Context { now: self.now, wall, entropy: [0; 32] };
        if let (Command::Heartbeat(beat), true) = (command, creates) {
            let sides = Sides { state: &self.state, volatile: &self.volatile, topics: &self.catalog };
            for missing in missing_topics(sides, &self.settings, (&group, beat), &context) {
                self.catalog.make(&missing.topic.name, missing.partitions);
            }
        }
        let sides = Sides { state: &self.state, volatile: &self.volatile, topics: &self.catalog };
        let creation_errors = if creates { "" } else { "app-repartition (no room)" };
        let request = Request { group: &group, command, creation_errors };
        let decision = decide(sides, &self.settings, request, &context);
        decision.events.iter().for_each(|event| self.apply(event));
        self.volatile.apply_changes(decision.changes);
        self.events = decision.events;
        decision.answer
    }

    /// Time goes on, and what is due happens.
    pub(super) fn pass(&mut self, ms: i64) {
        self.now = self.now.plus(DurationMs::from_ms(ms));
        while self.volatile.due(self.now).is_some() {
            self.ask(&Command::Tick);
        }
    }

    /// The broker stops and starts: what the log does not hold is gone.
    pub(super) fn restart(&mut self) {
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        let back = State::decode(&mut Reader::new(&bytes)).expect("own bytes are readable");
        let kind = |state: &State| state.group(&Self::group()).map(|group| group.kind().clone());
        assert_eq!(kind(&back), kind(&self.state), "a snapshot holds the whole group");
        self.state = back;
        let session = self.settings.session_timeout;
        let sessions = Sessions { consumer: session, streams: session };
        self.volatile = Volatile::start(&self.state, |_| sessions, self.now);
    }

    pub(super) fn phase(&self) -> Phase {
        self.roster().phase()
    }
}

/// A member as the client library runs it: it has what it was told last.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) id: MemberId,
    pub(super) process: Arc<str>,
    pub(super) instance: Option<Arc<str>>,
    pub(super) member_epoch: i32,
    pub(super) owned: Tasks,
    pub(super) endpoint: Option<StreamsEndpoint>,
    pub(super) endpoint_epoch: i32,
    pub(super) topology: StreamsTopology,
    pub(super) offsets: Option<BTreeMap<TaskId, i64>>,
}

impl Client {
    pub(super) fn new(id: &str, process: &str) -> Self {
        Self {
            id: name(id),
            process: name(process),
            instance: None,
            member_epoch: 0,
            owned: Tasks::default(),
            endpoint: None,
            endpoint_epoch: -1,
            topology: counting(),
            offsets: None,
        }
    }

    pub(super) fn fixed(id: &str, process: &str, instance: &str) -> Self {
        Self { instance: Some(name(instance)), ..Self::new(id, process) }
    }

    pub(super) fn heartbeat(&self) -> Heartbeat {
        let joins = self.member_epoch == 0;
        Heartbeat {
            member: Arc::clone(&self.id),
            member_epoch: self.member_epoch,
            endpoint_epoch: self.endpoint_epoch,
            instance: self.instance.clone(),
            rack: None,
            client_id: name("client"),
            client_host: name("/127.0.0.1"),
            rebalance_timeout: joins.then_some(DurationMs::from_ms(10_000)),
            topology: joins.then(|| self.topology.clone()),
            owned: Some(self.owned.clone()),
            process: joins.then(|| Arc::clone(&self.process)),
            endpoint: self.endpoint.clone().filter(|_| joins),
            tags: joins.then(Vec::new),
            offsets: self.offsets.clone(),
            end_offsets: None,
            shutdown: false,
            knows_missing_tags: true,
        }
    }

    /// One heartbeat; what it brings is taken at once. A member that is refused gives everything up.
    pub(super) fn beat(&mut self, world: &mut World) -> Result<Told, Denied> {
        let command = Command::Heartbeat(Box::new(self.heartbeat()));
        let answer = world.ask(&command).expect("a heartbeat is answered");
        match &answer {
            Ok(told) => self.take(told),
            Err(_) => {
                self.member_epoch = 0;
                self.owned = Tasks::default();
            }
        }
        answer
    }

    pub(super) fn take(&mut self, told: &Told) {
        self.member_epoch = told.member_epoch;
        self.endpoint_epoch = told.endpoint_epoch;
        if let Some(tasks) = &told.tasks {
            self.owned = Tasks {
                active: tasks.active.keys().cloned().collect(),
                standby: tasks.standby.clone(),
                warmup: tasks.warmup.clone(),
            };
        }
    }

    pub(super) fn leave(&mut self, world: &mut World, will_return: bool) -> Result<Told, Denied> {
        let (member, instance) = (Arc::clone(&self.id), self.instance.clone());
        let leave = Leave { member, instance, will_return, shutdown: false };
        self.member_epoch = 0;
        self.owned = Tasks::default();
        world.ask(&Command::Leave(leave)).expect("leaving is answered")
    }
}

/// Everybody beats until nothing happens any more.
pub(super) fn settle(world: &mut World, clients: &mut [Client]) {
    for _ in 0..20 {
        let mut happened = false;
        for client in clients.iter_mut() {
            let _ = client.beat(world);
            happened |= !world.events.is_empty();
        }
        world.pass(1_000);
        if !happened && world.phase() == Phase::Stable {
            return;
        }
    }
    panic!("the group does not settle: {:?}", world.phase());
}

/// All active tasks of these members; each stands there once.
pub(super) fn active(clients: &[Client]) -> BTreeSet<TaskId> {
    let mut all = BTreeSet::new();
    for task in clients.iter().flat_map(|client| &client.owned.active) {
        assert!(all.insert(task.clone()), "{task:?} is worked on by two");
    }
    all
}
