//! Changes of settings: what AlterConfigs and IncrementalAlterConfigs share.
//!
//! Purpose: finds the resource, works out its settings as they would be, checks them, and makes the event. Invariants:
//! a resource is changed whole or not at all; what would not change makes no event. What it does not do: brokers, whose
//! settings are given at their start.

use std::{collections::BTreeMap, sync::Arc};

use semel_events::{GroupSettingsChanged, Setting, TopicSettingsChanged};
use semel_types::{ErrorCode, GroupId};
use semel_wire::{
    Text,
    api::describe_configs::{RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC},
};

use crate::{
    catalog::Topic,
    common::message,
    node::Step,
    settings::{
        Kind, SettingError, group,
        topic::{self, TopicDefinition, effective},
    },
    topic_name,
};

/// Why nothing is changed: code and text for people.
pub(crate) type Refused = (ErrorCode, String);

fn refuse<T>(code: ErrorCode, text: impl Into<String>) -> Result<T, Refused> {
    Err((code, text.into()))
}

/// What has settings that can be altered.
pub(crate) enum Resource {
    /// A topic.
    Topic(Arc<Topic>),
    /// A group, whether it exists or not.
    Group(GroupId),
}

/// A change of one setting.
pub(crate) enum Change<'a> {
    /// It is this.
    Set(&'a str),
    /// Back to the default.
    Delete,
    /// These are added to the list.
    Append(&'a str),
    /// These go from the list.
    Subtract(&'a str),
}

impl Resource {
    /// By type and name as on the wire.
    pub(crate) fn find(step: &Step<'_>, resource_type: i8, name: &str) -> Result<Self, Refused> {
        match resource_type {
            RESOURCE_TOPIC => {
                if let Err(error) = topic_name::check(name) {
                    return refuse(ErrorCode::InvalidTopicException, error.to_string());
                }
                let unknown =
                    || (ErrorCode::UnknownTopicOrPartition, format!("The topic '{name}' does not exist."));
                step.state()
                    .catalog
                    .topic(name)
                    .map(|topic| Self::Topic(Arc::clone(topic)))
                    .ok_or_else(unknown)
            }
            RESOURCE_GROUP if name.is_empty() => {
                refuse(ErrorCode::InvalidRequest, "a group's name is not empty")
            }
            RESOURCE_GROUP => Ok(Self::Group(GroupId::new(name))),
            RESOURCE_BROKER => refuse(
                ErrorCode::InvalidRequest,
                "settings of the broker are given at its start, by file, environment or flags: they cannot be altered",
            ),
            other => refuse(ErrorCode::InvalidRequest, format!("resource type {other} has no settings here")),
        }
    }

    /// The settings that it was given.
    pub(crate) fn given(&self, step: &Step<'_>) -> Vec<Setting> {
        match self {
            Self::Topic(topic) => topic.settings().to_vec(),
            Self::Group(group) => step.state().group_settings.of(group).to_vec(),
        }
    }

    fn definition(&self, name: &str) -> Option<&'static TopicDefinition> {
        match self {
            Self::Topic(_) => topic::find(name),
            Self::Group(_) => group::find(name),
        }
    }

    fn check(&self, name: &str, value: &str) -> Result<(), SettingError> {
        match self {
            Self::Topic(_) => topic::check(name, value),
            Self::Group(_) => group::check(name, value),
        }
    }

    /// Its settings after these changes of what it has now, all of them good.
    fn changed<'a>(
        &self,
        step: &Step<'_>,
        mut given: Vec<Setting>,
        changes: impl Iterator<Item = (&'a str, Change<'a>)>,
    ) -> Result<Vec<Setting>, Refused> {
        let mut named = BTreeMap::new();
        for (name, change) in changes {
            if named.insert(name, ()).is_some() {
                return refuse(ErrorCode::InvalidRequest, format!("{name} stands twice in the request"));
            }
            let value = self.value(step, &given, name, &change)?;
            given.retain(|setting| setting.name != name);
            if let Some(value) = value {
                if let Err(error) = self.check(name, &value) {
                    return refuse(ErrorCode::InvalidConfig, error.to_string());
                }
                given.push(Setting { name: name.to_owned(), value });
            }
        }
        given.sort_by(|one, other| one.name.cmp(&other.name));
        self.check_together(step, &given)?;
        Ok(given)
    }

    /// The value of a setting after a change; `None` for the default, of a name that there is not too, as in Kafka.
    fn value(
        &self,
        step: &Step<'_>,
        given: &[Setting],
        name: &str,
        change: &Change<'_>,
    ) -> Result<Option<String>, Refused> {
        let list = || {
            let Some(definition) = self.definition(name) else {
                return refuse(
                    ErrorCode::InvalidConfig,
                    SettingError::Unknown { name: name.to_owned() }.to_string(),
                );
            };
            if !matches!(definition.definition.kind, Kind::List(_)) {
                return refuse(ErrorCode::InvalidConfig, format!("{name} is no list"));
            }
            let (present, _) = effective(definition, given, step.settings);
            Ok(parts(&present).map(str::to_owned).collect::<Vec<_>>())
        };
        match change {
            Change::Set(value) => Ok(Some((*value).to_owned())),
            Change::Delete => Ok(None),
            Change::Append(more) => {
                let mut list = list()?;
                let new: Vec<_> =
                    parts(more).filter(|part| !list.iter().any(|known| known == part)).collect();
                list.extend(new.into_iter().map(str::to_owned));
                Ok(Some(list.join(",")))
            }
            Change::Subtract(less) => {
                let mut list = list()?;
                list.retain(|known| !parts(less).any(|part| part == known));
                Ok(Some(list.join(",")))
            }
        }
    }

    /// A topic's settings must not contradict each other; a member has to be heard of more than once in a session.
    fn check_together(&self, step: &Step<'_>, given: &[Setting]) -> Result<(), Refused> {
        if let Self::Topic(_) = self {
            let checked = topic::check_together(given, step.settings);
            return checked.map_err(|error| (ErrorCode::InvalidConfig, error));
        }
        let limits = group::GroupLimits::of(given, step.settings);
        let pairs = [
            ("consumer", limits.consumer_heartbeat_interval, limits.consumer_session_timeout),
            ("streams", limits.streams_heartbeat_interval, limits.streams_session_timeout),
        ];
        match pairs.into_iter().find(|(_, heartbeat, session)| heartbeat >= session) {
            None => Ok(()),
            Some((kind, ..)) => refuse(
                ErrorCode::InvalidConfig,
                format!("{kind}.session.timeout.ms must be above {kind}.heartbeat.interval.ms"),
            ),
        }
    }

    /// Changes `given`, and gives it what comes of that unless the request only asks whether it could be.
    pub(crate) fn alter<'a>(
        &self,
        step: &mut Step<'_>,
        given: Vec<Setting>,
        changes: Vec<(&'a str, Change<'a>)>,
        validate_only: bool,
    ) -> Result<(), Refused> {
        let settings = self.changed(step, given, changes.into_iter())?;
        if !validate_only {
            self.set(step, settings);
        }
        Ok(())
    }

    /// Gives it these settings.
    fn set(&self, step: &mut Step<'_>, settings: Vec<Setting>) {
        if settings == self.given(step) {
            return;
        }
        let now = step.context.now;
        match self {
            Self::Topic(topic) => {
                step.apply(TopicSettingsChanged { id: topic.id(), settings, now }.into());
            }
            Self::Group(group) => {
                step.apply(GroupSettingsChanged { group: group.clone(), settings, now }.into());
            }
        }
    }
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// What comes of each resource of a request; `key` tells its type and name. Of those that stand twice nothing is changed.
pub(crate) fn each<R>(
    resources: &[R],
    key: impl Fn(&R) -> (i8, &str),
    mut alter: impl FnMut(&R) -> Result<(), Refused>,
) -> impl Iterator<Item = (&R, Result<(), Refused>)> {
    let twice = named_twice(resources.iter().map(&key));
    let twice: Vec<_> = resources.iter().map(|resource| twice.contains(&key(resource))).collect();
    resources.iter().zip(twice).map(move |(resource, twice)| {
        let outcome = if twice {
            refuse(ErrorCode::InvalidRequest, "the resource stands twice in the request")
        } else {
            alter(resource)
        };
        (resource, outcome)
    })
}

/// Code and text of an answer.
pub(crate) fn told(outcome: Result<(), Refused>) -> (ErrorCode, Option<Text>) {
    match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err((code, text)) => (code, Some(message(&text))),
    }
}

/// The value of a setting that has to have one.
pub(crate) fn value_of<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, Refused> {
    value.ok_or_else(|| (ErrorCode::InvalidRequest, format!("null value for {name}")))
}

/// Why nothing is changed on a full disk.
pub(crate) fn no_room(code: ErrorCode) -> Result<(), Refused> {
    refuse(code, "no room on the disk")
}

/// Of resources by type and name, those that are named more than once.
fn named_twice<'a>(resources: impl Iterator<Item = (i8, &'a str)>) -> Vec<(i8, &'a str)> {
    let mut counts: BTreeMap<(i8, &str), usize> = BTreeMap::new();
    resources.for_each(|resource| *counts.entry(resource).or_default() += 1);
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(resource, _)| resource).collect()
}
