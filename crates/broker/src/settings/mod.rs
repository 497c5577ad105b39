//! Every setting that the broker knows, once: its name (Kafka's where Kafka has it), type, default, range and what it
//! does. Reading a configuration, DescribeConfigs, CreateTopics and the documentation all use these lists.
//!
//! Purpose: [`Settings`] holds what the operator gave for the broker; [`topic`] knows what a topic may be given.
//! Invariants: a value held here is of its type and in its range; a name not in a list is refused, with the reason.
//! What it does not do: read files, environment or flags.

mod broker;
mod definition;
pub mod group;
pub mod topic;

use std::{collections::BTreeMap, fmt};

use semel_groups::consumer;

pub use broker::BROKER;
pub use definition::{Definition, Effect, Kind};

/// Where a value came from, in rising order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// The default.
    Default,
    /// The configuration file.
    File,
    /// The environment.
    Environment,
    /// A flag of the command line.
    Flag,
}

/// Why a setting was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingError {
    /// No setting has this name.
    Unknown {
        /// The name given.
        name: String,
    },
    /// The value is not of its type, or out of its range.
    Value {
        /// The setting's name.
        name: &'static str,
        /// The value given.
        value: String,
        /// What it should be.
        expected: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "unknown setting {name}"),
            Self::Value { name, value, expected } => {
                write!(f, "invalid value {value:?} for {name}: expected {expected}")
            }
        }
    }
}

impl std::error::Error for SettingError {}

/// A value that was given, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The text of the value.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

/// The broker's settings: what was given, over the defaults of [`BROKER`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    given: BTreeMap<&'static str, Given>,
}

impl Settings {
    /// All defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a setting its value; a value from a lower source than the present one changes nothing.
    ///
    /// # Errors
    /// [`SettingError`]: an unknown name, or a value of the wrong type or out of range.
    pub fn set(&mut self, name: &str, value: &str, source: Source) -> Result<(), SettingError> {
        let definition = find(name).ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
        definition.check(value)?;
        let present = self.given.get(definition.name).map_or(Source::Default, |given| given.source);
        if source >= present {
            self.given.insert(definition.name, Given { value: value.trim().to_owned(), source });
        }
        Ok(())
    }

    /// The value of a setting and where it came from; `None` if it has neither value nor default.
    ///
    /// # Panics
    /// If no setting has this name: names come from this crate's own lists.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<(&str, Source)> {
        let definition = find(name).expect("asked only for settings of the list");
        match self.given.get(definition.name) {
            Some(given) => Some((&given.value, given.source)),
            None => definition.default.map(|value| (value, Source::Default)),
        }
    }

    /// The value of a number.
    fn number(&self, name: &str) -> i64 {
        let (value, _) = self.get(name).expect("a number in use has a default");
        value.parse().expect("checked when it was given")
    }

    /// The value of a switch.
    fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|(value, _)| value.eq_ignore_ascii_case("true"))
    }

    /// The value of a size in bytes, as an index.
    fn bytes(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).unwrap_or(usize::MAX)
    }

    /// `node.id`.
    #[must_use]
    pub fn node_id(&self) -> i32 {
        i32::try_from(self.number("node.id")).expect("its range is that of i32")
    }

    /// `num.partitions`: of topics made without a count.
    #[must_use]
    pub fn num_partitions(&self) -> u32 {
        u32::try_from(self.number("num.partitions")).expect("its range starts at 1")
    }

    /// `auto.create.topics.enable`.
    #[must_use]
    pub fn auto_create_topics(&self) -> bool {
        self.flag("auto.create.topics.enable")
    }

    /// `delete.topic.enable`.
    #[must_use]
    pub fn delete_topics(&self) -> bool {
        self.flag("delete.topic.enable")
    }

    /// `message.max.bytes`: largest batch of topics without `max.message.bytes`.
    #[must_use]
    pub fn message_max_bytes(&self) -> usize {
        self.bytes("message.max.bytes")
    }

    /// `socket.request.max.bytes`: largest request frame.
    #[must_use]
    pub fn socket_request_max_bytes(&self) -> usize {
        self.bytes("socket.request.max.bytes")
    }

    /// `queued.max.request.bytes`: bound of all requests waiting in memory.
    #[must_use]
    pub fn queued_max_request_bytes(&self) -> usize {
        self.bytes("queued.max.request.bytes")
    }

    /// `offset.metadata.max.bytes`.
    #[must_use]
    pub fn offset_metadata_max_bytes(&self) -> usize {
        self.bytes("offset.metadata.max.bytes")
    }

    /// `fetch.max.bytes`: largest Fetch answer, whatever the client asks.
    #[must_use]
    pub fn fetch_max_bytes(&self) -> usize {
        self.bytes("fetch.max.bytes")
    }

    /// `connections.max.idle.ms`; negative: never.
    #[must_use]
    pub fn connections_max_idle_ms(&self) -> i64 {
        self.number("connections.max.idle.ms")
    }

    /// `semel.snapshot.interval.bytes`: event bytes between two snapshots, at least.
    #[must_use]
    pub fn snapshot_interval_bytes(&self) -> u64 {
        self.number("semel.snapshot.interval.bytes").unsigned_abs()
    }

    /// `semel.transaction.version`: the level of the finalized feature `transaction.version`.
    #[must_use]
    pub fn transaction_version(&self) -> i16 {
        i16::try_from(self.number("semel.transaction.version")).expect("its range is 0..=2")
    }

    /// `semel.topic.ids`: are clients told the ids of topics?
    #[must_use]
    pub fn tells_topic_ids(&self) -> bool {
        self.flag("semel.topic.ids")
    }

    /// What Produce asks for with every batch, looked up once.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            message_max_bytes: self.message_max_bytes(),
            segment_bytes: self.bytes("log.segment.bytes"),
            compacted: self.get("log.cleanup.policy").is_some_and(|(policy, _)| topic::is_compacted(policy)),
            offset_metadata_max_bytes: self.offset_metadata_max_bytes(),
        }
    }

    /// The settings that the exactly-once core needs.
    #[must_use]
    pub fn eos(&self) -> semel_eos::Settings {
        semel_eos::Settings {
            transaction_max_timeout: self.duration("transaction.max.timeout.ms"),
            producer_id_expiration: self.duration("producer.id.expiration.ms"),
            transactional_id_expiration: self.duration("transactional.id.expiration.ms"),
            producer_stubs_max: self.bytes("semel.producer.stubs.max"),
        }
    }

    /// The settings that groups need.
    #[must_use]
    pub fn groups(&self) -> consumer::Settings {
        let (assignors, _) = self.get("group.consumer.assignors").expect("it has a default");
        let assignors = assignors.split(',').filter_map(|name| consumer::Assignor::by_name(name.trim()));
        consumer::Settings {
            session_timeout: self.duration("group.consumer.session.timeout.ms"),
            size_max: self.bytes("group.consumer.max.size"),
            assignors: assignors.collect(),
            migration: self.migration(),
            classic: semel_groups::classic::Settings {
                session_timeout_min: self.duration("group.min.session.timeout.ms"),
                session_timeout_max: self.duration("group.max.session.timeout.ms"),
                initial_rebalance_delay: self.duration("group.initial.rebalance.delay.ms"),
                size_max: self.bytes("group.max.size"),
            },
        }
    }

    fn migration(&self) -> consumer::Migration {
        match self.get("group.consumer.migration.policy").map(|(policy, _)| policy) {
            Some("disabled") => consumer::Migration::Disabled,
            Some("downgrade") => consumer::Migration::Downgrade,
            Some("upgrade") => consumer::Migration::Upgrade,
            Some(_) | None => consumer::Migration::Bidirectional,
        }
    }

    /// `group.consumer.heartbeat.interval.ms`.
    #[must_use]
    pub fn consumer_heartbeat_interval_ms(&self) -> i32 {
        i32::try_from(self.number("group.consumer.heartbeat.interval.ms")).expect("its range is that of i32")
    }

    /// `offsets.retention.minutes`.
    #[must_use]
    pub fn offsets_retention(&self) -> semel_types::DurationMs {
        semel_types::DurationMs::from_ms(self.number("offsets.retention.minutes").saturating_mul(60_000))
    }

    /// `offsets.retention.check.interval.ms`.
    #[must_use]
    pub fn offsets_retention_check_interval(&self) -> semel_types::DurationMs {
        self.duration("offsets.retention.check.interval.ms")
    }

    /// What streams groups need, as far as a group was not given settings of its own.
    #[must_use]
    pub fn streams(&self) -> semel_groups::streams::Settings {
        let duration = |name: &str| self.duration(&format!("group.streams.{name}"));
        semel_groups::streams::Settings {
            session_timeout: duration("session.timeout.ms"),
            heartbeat_interval: duration("heartbeat.interval.ms"),
            task_offset_interval: duration("task.offset.interval.ms"),
            recovery_lag: self.number("group.streams.acceptable.recovery.lag"),
            standby_replicas: u32::try_from(self.bytes("group.streams.num.standby.replicas"))
                .unwrap_or(u32::MAX),
            tags: Vec::new(),
            size_max: self.bytes("group.streams.max.size"),
            initial_rebalance_delay: duration("initial.rebalance.delay.ms"),
            assignment_interval: duration("assignment.interval.ms"),
        }
    }

    fn duration(&self, name: &str) -> semel_types::DurationMs {
        semel_types::DurationMs::from_ms(self.number(name))
    }
}

/// All lists as a page for people: `docs/settings.md` is this text.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(PAGE_HEAD);
    BROKER.iter().for_each(|definition| page.push_str(&row(definition, None)));
    page.push_str(PAGE_TOPICS);
    topic::TOPIC.iter().for_each(|topic| page.push_str(&row(&topic.definition, Some(topic.broker))));
    page.push_str(PAGE_GROUPS);
    group::GROUP.iter().for_each(|group| page.push_str(&row(&group.definition, Some(group.broker))));
    page
}

const PAGE_HEAD: &str = "\
# Settings

Made from the lists in `crates/broker/src/settings/`; a test holds this page to them. Names are Kafka's wherever Kafka
has the setting. A setting marked *kept* is taken, stored and told to clients, and changes nothing yet.

## Broker

| name | values | default | what it does |
|---|---|---|---|
";

const PAGE_TOPICS: &str = "
## Topic

Given with CreateTopics, altered with IncrementalAlterConfigs. Where a topic has no value of its own, the broker's setting of the same meaning holds.

| name | values | default | broker's setting | what it does |
|---|---|---|---|---|
";

const PAGE_GROUPS: &str = "
## Group

Given with IncrementalAlterConfigs, whether the group exists or not. They are about groups of the protocols of KIP-848
and KIP-1071.

| name | values | default | broker's setting in Kafka | what it does |
|---|---|---|---|---|
";

fn row(definition: &Definition, broker: Option<Option<&str>>) -> String {
    let default = definition.default.map_or("unset".to_owned(), |default| format!("`{default}`"));
    let default = if default == "``" { "empty".to_owned() } else { default };
    let broker = broker.map_or(String::new(), |name| match name {
        Some(name) => format!(" `{name}` |"),
        None => " |".to_owned(),
    });
    let kept = match definition.effect {
        Effect::Active => "",
        Effect::StoredOnly => "*Kept.* ",
    };
    let (name, values, doc) = (definition.name, definition.expected(), definition.doc);
    format!("| `{name}` | {values} | {default} |{broker} {kept}{doc} |\n")
}

/// Limits of batches and offsets, for topics without their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `message.max.bytes`.
    pub message_max_bytes: usize,
    /// `log.segment.bytes`.
    pub segment_bytes: usize,
    /// `log.cleanup.policy` names compaction.
    pub compacted: bool,
    /// `offset.metadata.max.bytes`.
    pub offset_metadata_max_bytes: usize,
}

/// The definition of a broker setting.
#[must_use]
pub fn find(name: &str) -> Option<&'static Definition> {
    BROKER.iter().find(|definition| definition.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_of_its_own_type_and_names_are_unique() {
        for definition in BROKER.iter().chain(topic::TOPIC.iter().map(|topic| &topic.definition)) {
            if let Some(default) = definition.default {
                assert_eq!(definition.check(default), Ok(()), "{}", definition.name);
            }
            assert!(definition.doc.ends_with('.'), "{}", definition.name);
        }
        let mut names: Vec<_> = BROKER.iter().map(|definition| definition.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BROKER.len());
    }

    /// `SEMEL_WRITE_DOCS=1 cargo test -p semel-broker` writes the page anew; read it before you commit it.
    #[test]
    fn the_page_of_settings_is_made_from_the_lists() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        if std::env::var_os("SEMEL_WRITE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert!(
            written == page(),
            "docs/settings.md is not what the lists say: SEMEL_WRITE_DOCS=1 writes it"
        );
    }

    #[test]
    fn a_higher_source_wins_whatever_the_order() {
        let mut settings = Settings::new();
        settings.set("num.partitions", "7", Source::Flag).unwrap();
        settings.set("num.partitions", "3", Source::File).unwrap();
        assert_eq!(settings.num_partitions(), 7);
        assert_eq!(settings.get("num.partitions"), Some(("7", Source::Flag)));
    }

    #[test]
    fn unknown_names_and_bad_values_are_refused_with_the_reason() {
        let mut settings = Settings::new();
        let unknown = settings.set("no.such", "1", Source::File).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown setting no.such");
        let range = settings.set("num.partitions", "0", Source::File).unwrap_err();
        assert!(range.to_string().contains("num.partitions"), "{range}");
        assert!(settings.set("auto.create.topics.enable", "maybe", Source::File).is_err());
        assert_eq!(settings, Settings::new());
    }
}
