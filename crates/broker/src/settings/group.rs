//! What a group may be given.
//!
//! Purpose: names, types, ranges and defaults of Kafka 4.4's settings of consumer groups (KIP-848) and streams groups
//! (KIP-1071), and [`GroupLimits`], in which the code of groups finds those that hold for one group. Invariant: what is
//! stored passed [`check`]. What it does not do: share groups, which do not exist here: their settings are unknown.

use semel_events::Setting;
use semel_types::DurationMs;

use super::{
    Definition, Effect,
    Effect::{Active, StoredOnly},
    Kind,
    Kind::{Boolean, Choice, Int, Long},
    SettingError, Settings,
    topic::{TopicDefinition, effective},
};

const I32: i64 = i32::MAX as i64;

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    broker: &'static str,
    effect: Effect,
    doc: &'static str,
) -> TopicDefinition {
    TopicDefinition {
        definition: Definition { name, kind, default: Some(default), effect, doc },
        broker: Some(broker),
    }
}

/// Every group setting, by name. Ranges are those of Kafka's defaults for `group.consumer.min.session.timeout.ms` and
/// its neighbours.
#[rustfmt::skip]
pub static GROUP: &[TopicDefinition] = &[
    setting("consumer.assignment.interval.ms", Int(0, 15_000), "1000", "group.consumer.assignment.interval.ms", StoredOnly, "Shortest time between two assignments of a consumer group."),
    setting("consumer.heartbeat.interval.ms", Int(5_000, 15_000), "5000", "group.consumer.heartbeat.interval.ms", Active, "How often a member of a consumer group is to be heard of."),
    setting("consumer.session.timeout.ms", Int(45_000, 60_000), "45000", "group.consumer.session.timeout.ms", Active, "Silence after which a member of a consumer group is taken for dead."),
    setting("streams.acceptable.recovery.lag", Long(0, i64::MAX), "10000", "group.streams.acceptable.recovery.lag", Active, "Records that a store of a streams group may lack and count as caught up."),
    setting("streams.assignment.interval.ms", Int(0, 15_000), "1000", "group.streams.assignment.interval.ms", Active, "Shortest time between two assignments of a streams group."),
    setting("streams.assignor.name", Choice(&["sticky"]), "sticky", "group.streams.assignors", StoredOnly, "Who assigns the tasks of a streams group."),
    setting("streams.assignor.offload.enable", Boolean, "true", "group.streams.assignor.offload.enable", StoredOnly, "Assignments of a streams group are computed beside its other work; here they are part of it."),
    setting("streams.heartbeat.interval.ms", Int(5_000, 15_000), "5000", "group.streams.heartbeat.interval.ms", Active, "How often a member of a streams group is to be heard of."),
    setting("streams.initial.rebalance.delay.ms", Int(0, I32), "3000", "group.streams.initial.rebalance.delay.ms", Active, "Wait for more members before the first assignment of a streams group."),
    setting("streams.num.standby.replicas", Int(0, 2), "0", "group.streams.num.standby.replicas", Active, "Copies of each stateful task's state that a streams group keeps warm."),
    setting("streams.num.warmup.replicas", Int(0, 20), "2", "group.streams.num.warmup.replicas", StoredOnly, "Most warm-up tasks of a streams group at a time; as in Kafka 4.4 none are given out."),
    setting("streams.session.timeout.ms", Int(45_000, 60_000), "45000", "group.streams.session.timeout.ms", Active, "Silence after which a member of a streams group is taken for dead."),
    setting("streams.task.offset.interval.ms", Int(15_000, I32), "60000", "group.streams.task.offset.interval.ms", Active, "How often a member of a streams group tells how far its stores are."),
];

/// The definition of a group setting.
#[must_use]
pub fn find(name: &str) -> Option<&'static TopicDefinition> {
    GROUP.iter().find(|group| group.definition.name == name)
}

/// Is this a setting that a group may have, with a value of its type?
///
/// # Errors
/// [`SettingError`]: an unknown name, or a value of the wrong type or out of range.
pub fn check(name: &str, value: &str) -> Result<(), SettingError> {
    let group = find(name).ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
    group.definition.check(value)
}

/// The settings that hold for one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupLimits {
    /// `consumer.assignment.interval.ms`.
    pub consumer_assignment_interval: DurationMs,
    /// `consumer.heartbeat.interval.ms`.
    pub consumer_heartbeat_interval: DurationMs,
    /// `consumer.session.timeout.ms`.
    pub consumer_session_timeout: DurationMs,
    /// `streams.acceptable.recovery.lag`, in records.
    pub streams_recovery_lag: i64,
    /// `streams.assignment.interval.ms`.
    pub streams_assignment_interval: DurationMs,
    /// `streams.heartbeat.interval.ms`.
    pub streams_heartbeat_interval: DurationMs,
    /// `streams.initial.rebalance.delay.ms`.
    pub streams_initial_rebalance_delay: DurationMs,
    /// `streams.num.standby.replicas`.
    pub streams_standby_replicas: i32,
    /// `streams.session.timeout.ms`.
    pub streams_session_timeout: DurationMs,
    /// `streams.task.offset.interval.ms`.
    pub streams_task_offset_interval: DurationMs,
}

impl GroupLimits {
    /// Of a group that was given these settings.
    #[must_use]
    pub fn of(given: &[Setting], settings: &Settings) -> Self {
        let number = |name: &str| -> i64 {
            let (value, _) = effective(find(name).expect("the list has it"), given, settings);
            value.trim().parse().expect("checked when it was given")
        };
        let duration = |name: &str| DurationMs::from_ms(number(name));
        Self {
            consumer_assignment_interval: duration("consumer.assignment.interval.ms"),
            consumer_heartbeat_interval: duration("consumer.heartbeat.interval.ms"),
            consumer_session_timeout: duration("consumer.session.timeout.ms"),
            streams_recovery_lag: number("streams.acceptable.recovery.lag"),
            streams_assignment_interval: duration("streams.assignment.interval.ms"),
            streams_heartbeat_interval: duration("streams.heartbeat.interval.ms"),
            streams_initial_rebalance_delay: duration("streams.initial.rebalance.delay.ms"),
            streams_standby_replicas: i32::try_from(number("streams.num.standby.replicas")).unwrap_or(0),
            streams_session_timeout: duration("streams.session.timeout.ms"),
            streams_task_offset_interval: duration("streams.task.offset.interval.ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_own_value_holds_and_the_others_are_kafkas_defaults() {
        let given = [Setting { name: "consumer.session.timeout.ms".to_owned(), value: "50000".to_owned() }];
        let limits = GroupLimits::of(&given, &Settings::new());
        assert_eq!(limits.consumer_session_timeout, DurationMs::from_ms(50_000));
        assert_eq!(limits.consumer_heartbeat_interval, DurationMs::from_ms(5_000));
        assert_eq!(limits.streams_standby_replicas, 0);
    }

    #[test]
    fn every_default_is_in_its_range() {
        for group in GROUP {
            let (name, default) = (group.definition.name, group.definition.default.unwrap());
            assert_eq!(check(name, default), Ok(()));
        }
        assert!(check("consumer.session.timeout.ms", "1").is_err());
        assert!(check("share.session.timeout.ms", "45000").is_err());
    }
}
