//! ListConfigResources (key 74), versions 0 and 1.
//!
//! Behaviour: topics (type 2), this broker (4 and 8) and groups with settings of their own (32), by the types asked for;
//! none means all. Client metrics (16) have no subscriptions here. Another type is 35.
//! Version notes: 0 asks for client metrics alone.

use semel_log::Catalog;
use semel_types::ErrorCode;
use semel_wire::{
    Text,
    api::{
        describe_configs::{
            RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, RESOURCE_TOPIC,
        },
        list_config_resources::{ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse},
    },
};

use super::Reply;
use crate::{call::Asked, facts::Facts};

const ALL: [i8; 5] =
    [RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP];

pub(super) fn answer(facts: &Facts, catalog: &Catalog, asked: &Asked<ListConfigResourcesRequest>) -> Reply {
    let wanted = match asked.body.resource_types.as_slice() {
        _ if asked.version == 0 => &[RESOURCE_CLIENT_METRICS],
        [] => &ALL[..],
        some => some,
    };
    if wanted.iter().any(|one| !ALL.contains(one)) {
        let error_code = ErrorCode::UnsupportedVersion.into();
        return ListConfigResourcesResponse { error_code, ..Default::default() }.into();
    }
    let mut config_resources = Vec::new();
    for resource_type in ALL.into_iter().filter(|one| wanted.contains(one)) {
        let names = names(facts, catalog, resource_type);
        let resource = |resource_name| ConfigResource { resource_name, resource_type };
        config_resources.extend(names.into_iter().map(resource));
    }
    ListConfigResourcesResponse { config_resources, ..Default::default() }.into()
}

fn names(facts: &Facts, catalog: &Catalog, resource_type: i8) -> Vec<Text> {
    match resource_type {
        RESOURCE_TOPIC => catalog.topics().map(|topic| Text::from(topic.name.as_str())).collect(),
        RESOURCE_BROKER | RESOURCE_BROKER_LOGGER => vec![Text::from(&*facts.settings.node_id().to_string())],
        RESOURCE_GROUP => catalog.groups_with_settings().map(|group| Text::from(group.as_str())).collect(),
        _ => Vec::new(),
    }
}
