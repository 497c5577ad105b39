//! The topics as a consumer group asks for them.
//!
//! Purpose: [`Topics`] over the catalogue, and the patterns of subscriptions. Invariant: a pattern is what
//! [`pattern`] takes for one. What it does not do: keep compiled patterns (they are asked for when topics or
//! subscriptions change).

use std::sync::Arc;

use semel_groups::consumer::{TopicView, Topics};
use semel_types::{PartitionHandle, PartitionIndex};

use crate::{catalog::Catalog, pattern};

/// The topics at the moment of a decision.
pub(crate) struct TopicsNow<'a> {
    pub(crate) catalog: &'a Catalog,
    /// Counts the changes of the catalogue since the start.
    pub(crate) version: u64,
}

impl Topics for TopicsNow<'_> {
    fn version(&self) -> u64 {
        self.version
    }

    fn topic(&self, name: &str) -> Option<TopicView<'_>> {
        let topic = self.catalog.topic(name)?;
        Some(TopicView { id: topic.id(), partitions: topic.partitions() })
    }

    fn locate(&self, partition: PartitionHandle) -> Option<(&str, PartitionIndex)> {
        self.catalog.locate(partition).map(|(topic, index)| (topic.name().as_str(), index))
    }

    fn is_pattern(&self, pattern: &str) -> bool {
        pattern::whole(pattern).is_ok()
    }

    fn matching(&self, pattern: &str) -> Vec<Arc<str>> {
        let Ok(pattern) = pattern::whole(pattern) else { return Vec::new() };
        let names = self.catalog.topics().map(|topic| topic.name().as_str());
        names.filter(|name| pattern.is_match(name)).map(Arc::from).collect()
    }
}
