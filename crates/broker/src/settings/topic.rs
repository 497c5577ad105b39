//! What a topic may be given.
//!
//! Purpose: names, types and defaults of Kafka 4.4's topic settings; a default is the broker setting of the same
//! meaning. What it does not do: act on them; [`TopicLimits`] holds the few that Produce needs.

use semel_events::Setting;

use super::{
    Definition, Effect,
    Effect::{Active, StoredOnly},
    Kind,
    Kind::{Boolean, Choice, Double, Int, List, Long, Text},
    SettingError, Settings, Source,
};

/// Compression types by Kafka's names.
pub(super) const COMPRESSIONS: &[&str] = &["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"];

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;

/// One setting of a topic, or of a group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TopicDefinition {
    /// Name, type and default.
    pub definition: Definition,
    /// The broker setting whose value is the default, if there is one.
    pub broker: Option<&'static str>,
}

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    broker: Option<&'static str>,
    effect: Effect,
    doc: &'static str,
) -> TopicDefinition {
    TopicDefinition { definition: Definition { name, kind, default: Some(default), effect, doc }, broker }
}

/// Every topic setting, by name.
#[rustfmt::skip]
pub static TOPIC: &[TopicDefinition] = &[
    setting("cleanup.policy", List(&["delete", "compact"]), "delete", Some("log.cleanup.policy"), Active, "What happens to old records, nothing if it is empty; compact refuses records without key."),
    setting("compression.gzip.level", Int(-1, 9), "-1", None, StoredOnly, "Level of gzip."),
    setting("compression.lz4.level", Int(1, 17), "9", None, StoredOnly, "Level of lz4."),
    setting("compression.type", Choice(COMPRESSIONS), "producer", Some("compression.type"), StoredOnly, "Compression of stored batches; they are kept as the producer sent them."),
    setting("compression.zstd.level", Int(-131_072, 22), "3", None, StoredOnly, "Level of zstd."),
    setting("delete.retention.ms", Long(0, I64), "86400000", Some("log.cleaner.delete.retention.ms"), StoredOnly, "How long tombstones are kept."),
    setting("file.delete.delay.ms", Long(0, I64), "60000", Some("log.segment.delete.delay.ms"), StoredOnly, "Wait before a file is removed."),
    setting("flush.messages", Long(1, I64), "9223372036854775807", Some("log.flush.interval.messages"), StoredOnly, "Records between two syncs; see --durability instead."),
    setting("flush.ms", Long(0, I64), "9223372036854775807", Some("log.flush.interval.ms"), StoredOnly, "Time between two syncs; see --durability instead."),
    setting("follower.replication.throttled.replicas", Text, "", None, StoredOnly, "Copies whose catching up is throttled."),
    setting("index.interval.bytes", Int(0, I32), "4096", Some("log.index.interval.bytes"), StoredOnly, "Bytes between two entries of a segment's index."),
    setting("leader.replication.throttled.replicas", Text, "", None, StoredOnly, "Leaders whose sending is throttled."),
    setting("local.retention.bytes", Long(-2, I64), "-2", Some("log.local.retention.bytes"), StoredOnly, "Size kept locally with tiered storage."),
    setting("local.retention.ms", Long(-2, I64), "-2", Some("log.local.retention.ms"), StoredOnly, "Age of records kept locally with tiered storage."),
    setting("max.compaction.lag.ms", Long(1, I64), "9223372036854775807", Some("log.cleaner.max.compaction.lag.ms"), StoredOnly, "How long a record may escape compaction."),
    setting("max.message.bytes", Int(0, 100 << 20), "1048588", Some("message.max.bytes"), Active, "Largest record batch."),
    setting("message.timestamp.after.max.ms", Long(0, I64), "3600000", Some("log.message.timestamp.after.max.ms"), StoredOnly, "How far in the future a record's time may be."),
    setting("message.timestamp.before.max.ms", Long(0, I64), "9223372036854775807", Some("log.message.timestamp.before.max.ms"), StoredOnly, "How far in the past a record's time may be."),
    setting("message.timestamp.type", Choice(&["CreateTime", "LogAppendTime"]), "CreateTime", Some("log.message.timestamp.type"), StoredOnly, "Whose clock stamps records."),
    setting("min.cleanable.dirty.ratio", Double(0.0, 1.0), "0.5", Some("log.cleaner.min.cleanable.ratio"), StoredOnly, "Dead share at which compaction starts."),
    setting("min.compaction.lag.ms", Long(0, I64), "0", Some("log.cleaner.min.compaction.lag.ms"), StoredOnly, "How long a record is safe from compaction."),
    setting("min.insync.replicas", Int(1, I32), "1", Some("min.insync.replicas"), StoredOnly, "Copies that must have a batch; one node has one."),
    setting("preallocate", Boolean, "false", Some("log.preallocate"), StoredOnly, "Files are reserved ahead; they always are."),
    setting("remote.log.copy.disable", Boolean, "false", None, StoredOnly, "No more copies to tiered storage."),
    setting("remote.log.delete.on.disable", Boolean, "false", None, StoredOnly, "Tiered copies go when tiering is switched off."),
    setting("remote.storage.enable", Boolean, "false", None, StoredOnly, "Tiered storage."),
    setting("retention.bytes", Long(-1, I64), "-1", Some("log.retention.bytes"), StoredOnly, "Size of a partition beyond which old records may be deleted."),
    setting("retention.ms", Long(-1, I64), "604800000", Some("log.retention.ms"), StoredOnly, "Age at which records may be deleted."),
    setting("segment.bytes", Int(1 << 20, I32), "1073741824", Some("log.segment.bytes"), Active, "Largest batch that a partition takes (Kafka: the segment's size)."),
    setting("segment.index.bytes", Int(4, I32), "10485760", Some("log.index.size.max.bytes"), StoredOnly, "Size of a segment's index."),
    setting("segment.jitter.ms", Long(0, I64), "0", Some("log.roll.jitter.ms"), StoredOnly, "Spread of the time before a new segment."),
    setting("segment.ms", Long(1, I64), "604800000", Some("log.roll.ms"), StoredOnly, "Longest time before a new segment."),
    setting("unclean.leader.election.enable", Boolean, "false", Some("unclean.leader.election.enable"), StoredOnly, "A copy that lags may lead; one node has none."),
];

/// Where a topic's value came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TopicSource {
    /// It was given to the topic.
    Topic,
    /// A broker setting of the same meaning was given.
    Broker,
    /// Nobody gave it.
    Default,
}

/// The definition of a topic setting.
#[must_use]
pub fn find(name: &str) -> Option<&'static TopicDefinition> {
    TOPIC.iter().find(|topic| topic.definition.name == name)
}

/// Is this a setting that a topic may have, with a value of its type?
///
/// # Errors
/// [`SettingError`]: an unknown name, or a value of the wrong type or out of range.
pub fn check(name: &str, value: &str) -> Result<(), SettingError> {
    let topic = find(name).ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
    // Without a policy everything is kept (KIP-1161).
    if name == "cleanup.policy" && value.trim().is_empty() {
        return Ok(());
    }
    topic.definition.check(value)
}

/// Do these settings of a topic go together (upstream `LogConfig.validateValues`)?
///
/// # Errors
/// A text for people: records would have to be compacted before they may be.
pub fn check_together(given: &[Setting], settings: &Settings) -> Result<(), String> {
    const LEAST: &str = "min.compaction.lag.ms";
    const MOST: &str = "max.compaction.lag.ms";
    if !given.iter().any(|setting| [LEAST, MOST].contains(&&*setting.name)) {
        return Ok(());
    }
    let lag_ms = |name| {
        let (value, _) = effective(find(name).expect("the list has it"), given, settings);
        value.trim().parse::<i64>().unwrap_or_default()
    };
    let (least_ms, most_ms) = (lag_ms(LEAST), lag_ms(MOST));
    if least_ms <= most_ms {
        return Ok(());
    }
    Err(format!("{LEAST} is {least_ms}, above {MOST}, which is {most_ms}"))
}

/// The value that holds for a topic.
#[must_use]
pub fn effective(topic: &TopicDefinition, given: &[Setting], settings: &Settings) -> (String, TopicSource) {
    let own = given.iter().find(|setting| setting.name == topic.definition.name);
    if let Some(own) = own {
        return (own.value.clone(), TopicSource::Topic);
    }
    if let Some(value) = broker_value(topic, settings) {
        return (value, TopicSource::Broker);
    }
    (topic.definition.default.unwrap_or_default().to_owned(), TopicSource::Default)
}

/// The broker's value for a topic setting, if the operator gave one.
fn broker_value(topic: &TopicDefinition, settings: &Settings) -> Option<String> {
    let given = |name: &str| {
        super::find(name)?;
        settings.get(name).filter(|(_, source)| *source != Source::Default)
    };
    if let Some((value, _)) = given(topic.broker?) {
        return Some(value.to_owned());
    }
    let coarser: &[(&str, i64)] = match topic.definition.name {
        "retention.ms" => &[("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)],
        "segment.ms" => &[("log.roll.hours", 3_600_000)],
        _ => &[],
    };
    coarser.iter().find_map(|(name, factor_ms)| {
        let value: i64 = given(name)?.0.parse().ok()?;
        Some(if value < 0 { "-1".to_owned() } else { value.saturating_mul(*factor_ms).to_string() })
    })
}

/// What Produce must know of a topic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TopicLimits {
    /// `max.message.bytes`, if the topic has its own.
    pub max_message_bytes: Option<usize>,
    /// `segment.bytes`, if the topic has its own.
    pub segment_bytes: Option<usize>,
    /// `cleanup.policy` was given and names `compact` (or does not).
    pub compacted: Option<bool>,
}

impl TopicLimits {
    /// Picks them out of the settings that a topic was given.
    #[must_use]
    pub fn of(given: &[Setting]) -> Self {
        let value =
            |name: &str| given.iter().find(|setting| setting.name == name).map(|setting| &setting.value);
        Self {
            max_message_bytes: value("max.message.bytes").and_then(|value| value.parse().ok()),
            segment_bytes: value("segment.bytes").and_then(|value| value.parse().ok()),
            compacted: value("cleanup.policy").map(|value| is_compacted(value)),
        }
    }
}

/// May records of a topic with these settings be deleted before their time?
#[must_use]
pub fn is_deleted(given: &[Setting], settings: &Settings) -> bool {
    let policy = find("cleanup.policy").expect("the list has it");
    effective(policy, given, settings).0.split(',').any(|part| part.trim() == "delete")
}

/// Does a value of `cleanup.policy` name compaction?
#[must_use]
pub fn is_compacted(policy: &str) -> bool {
    policy.split(',').any(|part| part.trim() == "compact")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broker_synonym_is_a_broker_setting() {
        for topic in TOPIC {
            if let Some(broker) = topic.broker {
                assert!(super::super::find(broker).is_some(), "{broker}");
            }
        }
    }

    #[test]
    fn a_topics_value_beats_the_brokers_and_that_beats_the_default() {
        let retention = find("retention.ms").unwrap();
        let mut settings = Settings::new();
        assert_eq!(effective(retention, &[], &settings), ("604800000".to_owned(), TopicSource::Default));
        settings.set("log.retention.hours", "2", Source::File).unwrap();
        assert_eq!(effective(retention, &[], &settings), ("7200000".to_owned(), TopicSource::Broker));
        let own = [Setting { name: "retention.ms".to_owned(), value: "5".to_owned() }];
        assert_eq!(effective(retention, &own, &settings), ("5".to_owned(), TopicSource::Topic));
    }

    #[test]
    fn produce_sees_the_limits_that_a_topic_was_given() {
        let given = [
            Setting { name: "max.message.bytes".to_owned(), value: "100".to_owned() },
            Setting { name: "cleanup.policy".to_owned(), value: "delete, compact".to_owned() },
        ];
        let limits = TopicLimits::of(&given);
        assert_eq!((limits.max_message_bytes, limits.compacted), (Some(100), Some(true)));
    }
}
