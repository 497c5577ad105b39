//! DescribeConfigs (key 32), versions 1 to 4.
//!
//! Behaviour: settings of topics (type 2), of groups (type 32, whether the group exists or not) and of this broker (type
//! 4, by its node id; the empty name is the cluster's dynamic defaults, of which there are none). An unknown topic is 3,
//! a bad name 17, another broker or type and a group without name 42. A setting without effect yet is told too; the
//! documentation says so. The broker's are read-only.
//! Version notes: 1 can ask for synonyms; 3 for types and documentation.

use semel_log::Catalog;
use semel_types::{ErrorCode, GroupId, TopicName};
use semel_wire::{
    Text,
    api::describe_configs::{
        DescribeConfigsEntry, DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
        DescribeConfigsResult, DescribeConfigsSynonym, RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC,
    },
};

use super::Reply;
use crate::{
    call::Asked,
    common::message,
    facts::Facts,
    settings::{
        BROKER, Definition, Effect, Settings, Source,
        group::GROUP,
        topic::{TOPIC, TopicDefinition, TopicSource, effective},
    },
    topic_name,
};

const SOURCE_TOPIC: i8 = 1;
const SOURCE_BROKER: i8 = 4;
const SOURCE_DEFAULT: i8 = 5;
const SOURCE_GROUP: i8 = 8;

/// The number of a topic setting's source.
pub(super) const fn topic_source(source: TopicSource) -> i8 {
    match source {
        TopicSource::Topic => SOURCE_TOPIC,
        TopicSource::Broker => SOURCE_BROKER,
        TopicSource::Default => SOURCE_DEFAULT,
    }
}

const fn broker_source(source: Source) -> i8 {
    match source {
        Source::Default => SOURCE_DEFAULT,
        Source::File | Source::Environment | Source::Flag => SOURCE_BROKER,
    }
}

pub(super) fn answer(facts: &Facts, catalog: &Catalog, asked: &Asked<DescribeConfigsRequest>) -> Reply {
    let request = &asked.body;
    let results = request.resources.iter().map(|resource| {
        let configs = configs(facts, catalog, request, resource);
        let (error_code, error_message, configs) = match configs {
            Ok(configs) => (ErrorCode::None, None, configs),
            Err((code, text)) => (code, Some(message(&text)), Vec::new()),
        };
        DescribeConfigsResult {
            error_code: error_code.into(),
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs,
        }
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }.into()
}

fn configs(
    facts: &Facts,
    catalog: &Catalog,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribeConfigsEntry>, (ErrorCode, String)> {
    let name = resource.resource_name.as_str();
    let wanted = |definition: &Definition| {
        let keys = resource.configuration_keys.as_ref();
        keys.is_none_or(|keys| keys.iter().any(|key| key == definition.name))
    };
    match resource.resource_type {
        RESOURCE_TOPIC => {
            topic_name::check(name).map_err(|error| (ErrorCode::InvalidTopicException, error.to_string()))?;
            let unknown = || (ErrorCode::UnknownTopicOrPartition, format!("there is no topic {name}"));
            let topic = catalog.topic(&TopicName::new(name)).ok_or_else(unknown)?;
            let known = TOPIC.iter().filter(|definition| wanted(&definition.definition));
            let own = Own { given: &topic.settings, source: SOURCE_TOPIC };
            Ok(known.map(|one| own.entry(one, &facts.settings, request)).collect())
        }
        RESOURCE_GROUP if name.is_empty() => {
            Err((ErrorCode::InvalidRequest, "a group's name is not empty".to_owned()))
        }
        RESOURCE_GROUP => {
            let own = Own { given: catalog.group_settings(&GroupId::new(name)), source: SOURCE_GROUP };
            let known = GROUP.iter().filter(|definition| wanted(&definition.definition));
            Ok(known.map(|one| own.entry(one, &facts.settings, request)).collect())
        }
        RESOURCE_BROKER if name.is_empty() => Ok(Vec::new()),
        RESOURCE_BROKER if name.parse() == Ok(facts.settings.node_id()) => {
            let known = BROKER.iter().filter(|definition| wanted(definition));
            Ok(known.map(|definition| broker_entry(definition, &facts.settings, request)).collect())
        }
        RESOURCE_BROKER => {
            let here = facts.settings.node_id();
            Err((ErrorCode::InvalidRequest, format!("this is broker {here}, not {name:?}")))
        }
        other => Err((ErrorCode::InvalidRequest, format!("resource type {other} has no settings here"))),
    }
}

fn entry(definition: &Definition, request: &DescribeConfigsRequest) -> DescribeConfigsEntry {
    let documentation = request.include_documentation.then(|| match definition.effect {
        Effect::Active => Text::from(definition.doc),
        Effect::StoredOnly => {
            Text::from(&*format!("{} (Kept and told; without effect yet.)", definition.doc))
        }
    });
    DescribeConfigsEntry {
        name: Text::from(definition.name),
        read_only: true,
        config_type: definition.wire_type(),
        documentation,
        ..Default::default()
    }
}

/// What a topic or a group was given, and the number of that source.
struct Own<'a> {
    given: &'a [semel_events::Setting],
    source: i8,
}

impl Own<'_> {
    fn entry(
        &self,
        definition: &TopicDefinition,
        settings: &Settings,
        request: &DescribeConfigsRequest,
    ) -> DescribeConfigsEntry {
        let (value, source) = effective(definition, self.given, settings);
        let synonyms =
            if request.include_synonyms { self.synonyms(definition, settings) } else { Vec::new() };
        let config_source = if source == TopicSource::Topic { self.source } else { topic_source(source) };
        DescribeConfigsEntry {
            value: Some(Text::from(&*value)),
            read_only: false,
            config_source,
            synonyms,
            ..entry(&definition.definition, request)
        }
    }

    /// The value in each source, the one in force first.
    fn synonyms(&self, definition: &TopicDefinition, settings: &Settings) -> Vec<DescribeConfigsSynonym> {
        let mut synonyms = Vec::new();
        let mut add = |name: &str, value: &str, source| {
            synonyms.push(DescribeConfigsSynonym {
                name: Text::from(name),
                value: Some(Text::from(value)),
                source,
            });
        };
        let name = definition.definition.name;
        if let Some(own) = self.given.iter().find(|setting| setting.name == name) {
            add(name, &own.value, self.source);
        }
        let (inherited, source) = effective(definition, &[], settings);
        let broker = definition.broker.unwrap_or(name);
        if source == TopicSource::Broker {
            add(broker, &inherited, SOURCE_BROKER);
        }
        add(broker, definition.definition.default.unwrap_or_default(), SOURCE_DEFAULT);
        synonyms
    }
}

fn broker_entry(
    definition: &Definition,
    settings: &Settings,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsEntry {
    let value = settings.get(definition.name);
    let source = value.map_or(SOURCE_DEFAULT, |(_, source)| broker_source(source));
    let mut synonyms = Vec::new();
    if request.include_synonyms {
        let synonym = |value: &str, source| DescribeConfigsSynonym {
            name: Text::from(definition.name),
            value: Some(Text::from(value)),
            source,
        };
        if let Some((value, _)) = value.filter(|_| source == SOURCE_BROKER) {
            synonyms.push(synonym(value, SOURCE_BROKER));
        }
        synonyms.extend(definition.default.map(|default| synonym(default, SOURCE_DEFAULT)));
    }
    DescribeConfigsEntry {
        value: value.map(|(value, _)| Text::from(value)),
        config_source: source,
        synonyms,
        ..entry(definition, request)
    }
}
