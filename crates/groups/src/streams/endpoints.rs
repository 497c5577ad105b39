//! Who serves which partitions, for interactive queries (upstream `EndpointToPartitionsManager`).

use alloc::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    vec::Vec,
};

use semel_events::StreamsEndpoint;
use semel_types::PartitionIndex;

use super::{Configured, Roster, Seat, TaskId, draft::Draft};

/// Partitions by topic.
pub type TopicPartitions = BTreeMap<Arc<str>, BTreeSet<PartitionIndex>>;

/// What one member serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// Where it answers.
    pub endpoint: StreamsEndpoint,
    /// Source partitions of the tasks that it works on.
    pub active: TopicPartitions,
    /// Source partitions of the tasks whose stores it has copies of.
    pub standby: TopicPartitions,
}

impl Draft<'_> {
    /// Of every member that says where it answers.
    pub(super) fn served(&self) -> Vec<Served> {
        let none = Configured::default();
        let configured = self.roster.configured().map_or(&none, |configured| &**configured);
        self.roster.seats().filter_map(|(_, seat)| served(configured, seat)).collect()
    }
}

impl Roster {
    /// Source partitions of the tasks that a member works on.
    #[must_use]
    pub fn sources_of(&self, seat: &Seat) -> TopicPartitions {
        let configured = self.configured();
        configured
            .map(|configured| sources(configured, seat.position.assigned.active.keys()))
            .unwrap_or_default()
    }
}

fn served(configured: &Configured, seat: &Seat) -> Option<Served> {
    let endpoint = seat.member.endpoint.clone()?;
    let has = &seat.position.assigned;
    let active = sources(configured, has.active.keys());
    let standby = sources(configured, has.standby.iter().chain(&has.warmup));
    Some(Served { endpoint, active, standby })
}

/// The source partitions of these tasks: of each topic those that it has.
fn sources<'a>(configured: &Configured, tasks: impl Iterator<Item = &'a TaskId>) -> TopicPartitions {
    let mut found = TopicPartitions::new();
    for task in tasks {
        let Some(part) = configured.subtopologies.get(&task.subtopology) else { continue };
        let has = |count: &u32| u32::try_from(task.partition.get()).is_ok_and(|index| index < *count);
        for (topic, _) in part.sources.iter().filter(|(_, count)| has(count)) {
            found.entry(Arc::clone(topic)).or_default().insert(task.partition);
        }
    }
    found
}
