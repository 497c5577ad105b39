//! What a topology needs of the topics: how many tasks, how many partitions of each internal topic, what is missing.
//!
//! Purpose: [`configure`] decides it from the topology and from those of its topics that exist (upstream
//! `InternalTopicManager`). Invariants: the same input gives the same result, whatever the order of the parts; a
//! topology that cannot be is refused, never guessed at. What it does not do: make topics.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};

use semel_events::{
    StreamsHandleRun, StreamsInternalTopic, StreamsKnownTopic, StreamsSubtopology, StreamsTopology,
};
use semel_types::PartitionHandle;

use super::Status;

/// The topics that exist.
pub trait Topics {
    /// Handles of its partitions in order, if there is such a topic.
    fn topic(&self, name: &str) -> Option<&[PartitionHandle]>;
}

/// A topology that cannot be, and why (STREAMS_INVALID_TOPOLOGY).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidTopology(pub String);

/// Something that keeps a topology from being worked on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What.
    pub status: Status,
    /// What, for people.
    pub detail: String,
}

/// An internal topic that is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingTopic {
    /// What the application says of it.
    pub topic: StreamsInternalTopic,
    /// Its partitions.
    pub partitions: u32,
}

/// A part of a topology with its numbers decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfiguredSubtopology {
    /// How many tasks it has; at least one.
    pub tasks: u32,
    /// It has stores with changelogs.
    pub is_stateful: bool,
    /// All topics that it reads, with their partitions.
    pub sources: BTreeMap<Arc<str>, u32>,
}

/// A topology with its numbers decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Configured {
    /// Its parts; none while sources are missing or partitioned wrongly.
    pub subtopologies: BTreeMap<Arc<str>, ConfiguredSubtopology>,
    /// Partitions of each internal topic.
    pub internal: BTreeMap<Arc<str>, u32>,
    /// Internal topics that do not exist yet.
    pub missing: Vec<MissingTopic>,
    /// What keeps it from being worked on.
    pub problem: Option<Problem>,
}

impl Configured {
    /// Tasks can be given out.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.problem.is_none()
    }

    fn not(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// Those topics of a topology that exist, sorted by name.
pub fn known_topics(topology: &StreamsTopology, topics: &dyn Topics) -> Vec<StreamsKnownTopic> {
    let mut names: BTreeSet<&Arc<str>> = BTreeSet::new();
    for part in &topology.subtopologies {
        names.extend(part.sources.iter().chain(internal(part).map(|topic| &topic.name)));
    }
    let known = |name: &Arc<str>| {
        let runs = runs(topics.topic(name)?);
        Some(StreamsKnownTopic { name: Arc::clone(name), runs })
    };
    names.into_iter().filter_map(known).collect()
}

fn runs(handles: &[PartitionHandle]) -> Vec<StreamsHandleRun> {
    let mut runs: Vec<StreamsHandleRun> = Vec::new();
    for handle in handles {
        match runs.last_mut() {
            Some(run) if run.first.get().checked_add(run.count) == Some(handle.get()) => run.count += 1,
            Some(_) | None => runs.push(StreamsHandleRun { first: *handle, count: 1 }),
        }
    }
    runs
}

/// How many partitions a topic has.
fn partitions(topic: &StreamsKnownTopic) -> u32 {
    topic.runs.iter().map(|run| run.count).sum()
}

fn internal(part: &StreamsSubtopology) -> impl Iterator<Item = &StreamsInternalTopic> {
    part.repartition_sources.iter().chain(&part.changelogs)
}

/// Is it a topology at all? What depends on no topic: names that are there twice, indices that lead nowhere, parts
/// that read nothing.
///
/// # Errors
/// [`InvalidTopology`].
pub fn check_topology(topology: &StreamsTopology) -> Result<(), InvalidTopology> {
    let refuse = |detail| Err(InvalidTopology(detail));
    if topology.epoch < 0 {
        return refuse(format!("The topology's epoch {} is negative.", topology.epoch));
    }
    for (at, part) in topology.subtopologies.iter().enumerate() {
        if topology.subtopologies[..at].iter().any(|other| other.id == part.id) {
            return refuse(format!("Subtopology {} is there twice.", part.id));
        }
        if part.sources.is_empty() && part.repartition_sources.is_empty() {
            return refuse(format!("No source topics found for subtopology {}", part.id));
        }
        if let Some(topic) = part.repartition_sources.iter().find(|topic| topic.partitions < 0) {
            return refuse(format!("Repartition topic {} has {} partitions.", topic.name, topic.partitions));
        }
        let leads = |index: &i16, list: usize| usize::try_from(*index).is_ok_and(|index| index < list);
        for group in &part.copartitions {
            let sources = group.sources.iter().all(|index| leads(index, part.sources.len()));
            let inner = part.repartition_sources.len();
            if !sources || !group.repartition_sources.iter().all(|index| leads(index, inner)) {
                return refuse(format!("A copartition group of subtopology {} names no source.", part.id));
            }
        }
    }
    Ok(())
}

/// Decides the numbers.
///
/// # Errors
/// [`InvalidTopology`] if they cannot be decided whatever topics there are.
pub fn configure(
    topology: &StreamsTopology,
    known: &[StreamsKnownTopic],
) -> Result<Configured, InvalidTopology> {
    let existing: BTreeMap<_, _> = known.iter().map(|topic| (&*topic.name, partitions(topic))).collect();
    let missing = missing_sources(topology, &existing);
    if !missing.is_empty() {
        let detail = format!("Source topics {} are missing.", summary(&missing));
        return Ok(Configured::not(Problem { status: Status::MissingSourceTopics, detail }));
    }
    let mut counts = Counts { existing, decided: BTreeMap::new() };
    match counts.decide(topology) {
        Ok(()) => {}
        Err(Trouble::Invalid(invalid)) => return Err(invalid),
        Err(Trouble::Topics(problem)) => return Ok(Configured::not(problem)),
    }
    let parts = topology.subtopologies.iter();
    let subtopologies = parts.map(|part| (Arc::clone(&part.id), counts.part(part))).collect();
    let missing = match counts.missing(topology) {
        Ok(missing) => missing,
        Err(problem) => return Ok(Configured::not(problem)),
    };
    let names: Vec<_> = missing.iter().map(|missing| &missing.topic.name).collect();
    let detail = || format!("Internal topics are missing: {}", summary(&names));
    let problem =
        (!missing.is_empty()).then(|| Problem { status: Status::MissingInternalTopics, detail: detail() });
    let internal = counts.decided.iter().map(|(name, count)| (Arc::clone(name), *count)).collect();
    Ok(Configured { subtopologies, internal, missing, problem })
}

/// Sources that neither exist nor are made by the application itself.
fn missing_sources<'a>(topology: &'a StreamsTopology, existing: &BTreeMap<&str, u32>) -> Vec<&'a Arc<str>> {
    let sources = topology.subtopologies.iter().flat_map(|part| &part.sources);
    let missing: BTreeSet<_> = sources.filter(|name| !existing.contains_key(&***name)).collect();
    missing.into_iter().collect()
}

/// The first three of them.
fn summary(names: &[&Arc<str>]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|name| &***name).collect();
    let shown = shown.join(", ");
    match names.len() - names.len().min(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} additional topics"),
    }
}

enum Trouble {
    Invalid(InvalidTopology),
    Topics(Problem),
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        Self::Topics(problem)
    }
}

fn wrong<T>(detail: String) -> Result<T, Trouble> {
    Err(Trouble::Topics(Problem { status: Status::IncorrectlyPartitionedTopics, detail }))
}

fn invalid<T>(detail: &str) -> Result<T, Trouble> {
    Err(Trouble::Invalid(InvalidTopology(detail.into())))
}

/// Partitions of topics: those that exist, and those that were decided.
struct Counts<'a> {
    existing: BTreeMap<&'a str, u32>,
    decided: BTreeMap<Arc<str>, u32>,
}

impl Counts<'_> {
    fn get(&self, name: &str) -> Option<u32> {
        self.existing.get(name).or_else(|| self.decided.get(name)).copied()
    }

    fn decide(&mut self, topology: &StreamsTopology) -> Result<(), Trouble> {
        self.decide_repartition(topology)?;
        for part in &topology.subtopologies {
            for group in &part.copartitions {
                let sources = group.sources.iter().map(|index| &part.sources[*index as usize]);
                let inner = group.repartition_sources.iter();
                let inner = inner.map(|index| &part.repartition_sources[*index as usize].name);
                self.copartition(topology, sources.chain(inner).collect())?;
            }
        }
        for part in &topology.subtopologies {
            let count = self.tasks(part);
            for changelog in &part.changelogs {
                self.decided.insert(Arc::clone(&changelog.name), count);
            }
        }
        Ok(())
    }

    /// Repartition topics without a count get the largest of what is read by those that write them; in rounds, since
    /// what is read may be a repartition topic itself.
    fn decide_repartition(&mut self, topology: &StreamsTopology) -> Result<(), Trouble> {
        for topic in topology.subtopologies.iter().flat_map(|part| &part.repartition_sources) {
            if topic.partitions > 0 {
                self.decided.insert(Arc::clone(&topic.name), topic.partitions.unsigned_abs());
            }
        }
        loop {
            let before = self.decided.len();
            let mut is_open = false;
            for part in &topology.subtopologies {
                let open: Vec<_> =
                    part.repartition_sinks.iter().filter(|sink| !self.decided.contains_key(*sink)).collect();
                match self.largest(part) {
                    Some(count) => {
                        open.iter().for_each(|sink| {
                            self.decided.insert(Arc::clone(sink), count);
                        });
                    }
                    None => is_open |= !open.is_empty(),
                }
            }
            if !is_open {
                break;
            }
            if self.decided.len() == before {
                return invalid(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the \
                     topology that cannot be resolved.",
                );
            }
        }
        let mut read = topology.subtopologies.iter().flat_map(|part| &part.repartition_sources);
        if read.any(|topic| !self.decided.contains_key(&topic.name)) {
            return invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition source \
                 topic is never used as a sink topic.",
            );
        }
        Ok(())
    }

    /// The largest of what a part reads, as far as it is decided.
    fn largest(&self, part: &StreamsSubtopology) -> Option<u32> {
        let inner =
            part.repartition_sources.iter().filter_map(|topic| self.decided.get(&topic.name).copied());
        inner.chain(part.sources.iter().filter_map(|name| self.get(name))).max()
    }

    /// Sources that are read together have the same number of partitions; those repartition topics that have no
    /// count of their own follow the others. Unlike Kafka 4.4, which looks at the fixed counts of the whole topology,
    /// only the topics of the group count.
    fn copartition(&mut self, topology: &StreamsTopology, group: BTreeSet<&Arc<str>>) -> Result<(), Trouble> {
        let mut inner = BTreeMap::new();
        let mut fixed = BTreeMap::new();
        for topic in topology.subtopologies.iter().flat_map(|part| &part.repartition_sources) {
            if group.contains(&topic.name) {
                let count = self.get(&topic.name).expect("repartition topics are decided");
                inner.insert(&topic.name, count);
                if topic.partitions > 0 {
                    fixed.insert(&topic.name, count);
                }
            }
        }
        let outer: BTreeMap<_, _> = (group.iter().filter(|name| !inner.contains_key(*name)))
            .map(|name| (*name, self.get(name).expect("sources exist")))
            .collect();
        let count = match (outer.is_empty(), fixed.is_empty()) {
            (false, _) => same(&outer)?,
            (true, false) => same(&fixed)?,
            (true, true) => inner.values().copied().max().unwrap_or_default(),
        };
        if let Some((name, found)) = fixed.iter().find(|(_, found)| **found != count) {
            return wrong(format!(
                "Number of partitions [{found}] of repartition topic [{name}] doesn't match number of partitions \
                 [{count}] of the source topic."
            ));
        }
        for name in inner.into_keys() {
            self.decided.insert(Arc::clone(name), count);
        }
        Ok(())
    }

    fn tasks(&self, part: &StreamsSubtopology) -> u32 {
        let inner = part.repartition_sources.iter().map(|topic| &topic.name);
        let counts = part.sources.iter().chain(inner).map(|name| self.get(name));
        counts
            .map(|count| count.expect("sources exist or are decided"))
            .max()
            .expect("a part reads something")
    }

    fn part(&self, part: &StreamsSubtopology) -> ConfiguredSubtopology {
        let inner = part.repartition_sources.iter().map(|topic| &topic.name);
        let sources = part.sources.iter().chain(inner);
        let sources = sources.map(|name| (Arc::clone(name), self.get(name).expect("decided")));
        ConfiguredSubtopology {
            tasks: self.tasks(part),
            is_stateful: !part.changelogs.is_empty(),
            sources: sources.collect(),
        }
    }

    /// Internal topics that do not exist; those that do have the number of partitions that was decided.
    fn missing(&self, topology: &StreamsTopology) -> Result<Vec<MissingTopic>, Problem> {
        let mut missing = BTreeMap::new();
        for topic in topology.subtopologies.iter().flat_map(internal) {
            let partitions = self.decided[&topic.name];
            match self.existing.get(&*topic.name) {
                Some(found) if *found != partitions => {
                    let detail = format!(
                        "Existing topic {} has different number of partitions: expected {partitions}, found {found}",
                        topic.name
                    );
                    return Err(Problem { status: Status::IncorrectlyPartitionedTopics, detail });
                }
                Some(_) => {}
                None => {
                    missing.insert(&topic.name, MissingTopic { topic: topic.clone(), partitions });
                }
            }
        }
        Ok(missing.into_values().collect())
    }
}

/// The one number that all of them have.
fn same(counts: &BTreeMap<&Arc<str>, u32>) -> Result<u32, Trouble> {
    let first = *counts.values().next().expect("not empty");
    if counts.values().all(|count| *count == first) {
        return Ok(first);
    }
    let list: Vec<_> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
    wrong(format!("Following topics do not have the same number of partitions: [{{{}}}]", list.join(", ")))
}
