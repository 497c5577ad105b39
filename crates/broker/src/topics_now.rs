//! The topics as a consumer group asks for them.
//!
//! Purpose: [`Topics`] over the catalogue, and the patterns of subscriptions. Invariants: a pattern matches a whole name,
//! in time that grows with the name's length alone; one that would take much memory is refused like a wrong one.
//! What it does not do: keep compiled patterns (they are asked for when topics or subscriptions change).

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use semel_groups::consumer::{TopicView, Topics};
use semel_types::{PartitionHandle, PartitionIndex};

use crate::catalog::Catalog;

/// Memory that one compiled pattern may take, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

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
        compiled(pattern).is_some()
    }

    fn matching(&self, pattern: &str) -> Vec<Arc<str>> {
        let Some(pattern) = compiled(pattern) else { return Vec::new() };
        let names = self.catalog.topics().map(|topic| topic.name().as_str());
        names.filter(|name| pattern.is_match(name)).map(Arc::from).collect()
    }
}

/// The pattern, for whole names; `None` for a bad one.
fn compiled(pattern: &str) -> Option<Regex> {
    let build = |text: &str| RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().ok();
    // By itself first: what stands around it must not make a bad one good.
    build(pattern)?;
    build(&format!(r"\A(?:{pattern})\z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_names_and_a_bad_one_is_refused() {
        let matches = |pattern: &str, name: &str| compiled(pattern).is_some_and(|found| found.is_match(name));
        assert!(matches("orders-.*", "orders-eu"));
        assert!(matches("a|orders", "orders"));
        assert!(!matches("orders", "orders-eu"));
        assert!(!matches("a|orders", "orders-eu"));
        for bad in ["(", "a)(b", "[", "(?:x{1000}){1000}{1000}"] {
            assert!(compiled(bad).is_none(), "{bad}");
        }
    }
}
