//! AlterConfigs (key 33), versions 0 to 2.
//!
//! Behaviour: gives topics (type 2) and groups (type 32) exactly these settings; what is not named goes back to its
//! default. Codes as in IncrementalAlterConfigs. Without room 56.

use semel_log::RoomClass;
use semel_types::ErrorCode;
use semel_wire::api::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};

use crate::{
    alter::{self, Change, Refused, Resource},
    call::Asked,
    common::{COORDINATOR_BYTES, no_room_or, room},
    node::{Handled, Step},
};

pub(super) fn run(step: &mut Step<'_>, asked: &Asked<AlterConfigsRequest>) -> Handled {
    let request = &asked.body;
    if let Err(no_room) = room(step, bytes(request), RoomClass::Reserve, ErrorCode::KafkaStorageError) {
        return no_room_or(no_room, |code| {
            let full = |resource| respond(resource, alter::no_room(code));
            let responses = request.resources.iter().map(full).collect();
            AlterConfigsResponse { responses, ..Default::default() }.into()
        });
    }
    let outcomes = alter::each(
        &request.resources,
        |resource| (resource.resource_type, &resource.resource_name),
        |resource| change_one(step, resource, request.validate_only),
    );
    let responses = outcomes.map(|(resource, outcome)| respond(resource, outcome)).collect();
    AlterConfigsResponse { responses, ..Default::default() }.into()
}

fn bytes(request: &AlterConfigsRequest) -> u64 {
    let configs = request.resources.iter().flat_map(|resource| &resource.configs);
    let texts: usize =
        configs.map(|config| config.name.len() + config.value.as_deref().map_or(0, str::len)).sum();
    (1 + request.resources.len() as u64) * COORDINATOR_BYTES + 2 * texts as u64
}

fn change_one(
    step: &mut Step<'_>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), Refused> {
    let found = Resource::find(step, resource.resource_type, &resource.resource_name)?;
    let changes = resource.configs.iter().map(|config| {
        let value = alter::value_of(&config.name, config.value.as_deref())?;
        Ok((config.name.as_str(), Change::Set(value)))
    });
    let changes = changes.collect::<Result<Vec<_>, Refused>>()?;
    found.alter(step, Vec::new(), changes, validate_only)
}

fn respond(resource: &AlterConfigsResource, outcome: Result<(), Refused>) -> AlterConfigsResourceResponse {
    let (code, error_message) = alter::told(outcome);
    AlterConfigsResourceResponse {
        error_code: code.into(),
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
    }
}
