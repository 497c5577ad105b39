//! IncrementalAlterConfigs (key 44), versions 0 and 1.
//!
//! Behaviour: changes single settings of topics (type 2) and groups (type 32); each resource is judged by itself and
//! changed whole or not at all. A resource or a setting named twice is 42, and so are an unknown operation, a missing
//! value and a broker, whose settings are given at its start; an unknown topic is 3, an unknown setting, a bad value,
//! values that contradict each other, and APPEND or SUBTRACT on what is no list 40. DELETE of a setting that there is not
//! is fine, as in Kafka. A group need not exist. Without room 56.

use semel_log::RoomClass;
use semel_types::ErrorCode;
use semel_wire::api::incremental_alter_configs::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResource, IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse, IncrementallyAlterableConfig, OPERATION_APPEND, OPERATION_DELETE,
    OPERATION_SET, OPERATION_SUBTRACT,
};

use crate::{
    alter::{self, Change, Refused, Resource},
    call::Asked,
    common::{COORDINATOR_BYTES, no_room_or, room},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<IncrementalAlterConfigsRequest>) -> Handled {
    let request = &asked.body;
    if let Err(no_room) = room(step, bytes(step, request), RoomClass::Reserve, ErrorCode::KafkaStorageError) {
        return no_room_or(no_room, |code| {
            let full = |resource| respond(resource, alter::no_room(code));
            let responses = request.resources.iter().map(full).collect();
            IncrementalAlterConfigsResponse { responses, ..Default::default() }.into()
        });
    }
    let outcomes = alter::each(
        &request.resources,
        |resource| (resource.resource_type, &resource.resource_name),
        |resource| change_one(step, resource, request.validate_only),
    );
    let responses = outcomes.map(|(resource, outcome)| respond(resource, outcome)).collect();
    IncrementalAlterConfigsResponse { responses, ..Default::default() }.into()
}

/// All settings of a resource are written anew.
fn bytes(step: &Step<'_>, request: &IncrementalAlterConfigsRequest) -> u64 {
    let of = |resource: &IncrementalAlterConfigsResource| {
        let found = Resource::find(step, resource.resource_type, &resource.resource_name);
        let given = found.map(|found| found.given(step)).unwrap_or_default();
        let kept: usize = given.iter().map(|setting| setting.name.len() + setting.value.len()).sum();
        let new: usize = resource
            .configs
            .iter()
            .map(|config| config.name.len() + config.value.as_deref().map_or(0, str::len))
            .sum();
        COORDINATOR_BYTES + 2 * (kept + new) as u64
    };
    request.resources.iter().map(of).sum()
}

fn change_one(
    step: &mut Step<'_>,
    resource: &IncrementalAlterConfigsResource,
    validate_only: bool,
) -> Result<(), Refused> {
    let found = Resource::find(step, resource.resource_type, &resource.resource_name)?;
    let changes = resource.configs.iter().map(|config| Ok((config.name.as_str(), change(config)?)));
    let changes = changes.collect::<Result<Vec<_>, Refused>>()?;
    found.alter(step, found.given(step), changes, validate_only)
}

fn change(config: &IncrementallyAlterableConfig) -> Result<Change<'_>, Refused> {
    let value = || alter::value_of(&config.name, config.value.as_deref());
    match config.config_operation {
        OPERATION_SET => Ok(Change::Set(value()?)),
        OPERATION_DELETE => Ok(Change::Delete),
        OPERATION_APPEND => Ok(Change::Append(value()?)),
        OPERATION_SUBTRACT => Ok(Change::Subtract(value()?)),
        other => Err((ErrorCode::InvalidRequest, format!("unknown operation {other} on {}", config.name))),
    }
}

fn respond(
    resource: &IncrementalAlterConfigsResource,
    outcome: Result<(), Refused>,
) -> IncrementalAlterConfigsResourceResponse {
    let (code, error_message) = alter::told(outcome);
    IncrementalAlterConfigsResourceResponse {
        error_code: code.into(),
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
    }
}
