//! FindCoordinator (key 10), versions 0 to 6.
//!
//! Behaviour: this node coordinates every group, transactional id and share partition; no topic has to exist first,
//! so 15 never occurs. An empty transactional id or group is answered like any other key, as Kafka does.
//! Version notes: 0 asks for groups only; 4 asks for several keys and answers each; 6 has share groups, which are
//! not built: key type 2 is answered with 42.

use semel_types::ErrorCode;
use semel_wire::{
    Text,
    api::find_coordinator::{
        Coordinator, FindCoordinatorRequest, FindCoordinatorResponse, KEY_TYPE_GROUP, KEY_TYPE_TRANSACTION,
    },
};

use super::Reply;
use crate::{call::Asked, facts::Facts};

pub(super) fn answer(facts: &Facts, asked: &Asked<FindCoordinatorRequest>) -> Reply {
    let request = &asked.body;
    let known = [KEY_TYPE_GROUP, KEY_TYPE_TRANSACTION].contains(&request.key_type);
    if asked.version >= 4 {
        let coordinators =
            request.coordinator_keys.iter().map(|key| coordinator(facts, key, known)).collect();
        return FindCoordinatorResponse { coordinators, ..Default::default() }.into();
    }
    let Coordinator { node_id, host, port, error_code, error_message, .. } =
        coordinator(facts, &request.key, known);
    FindCoordinatorResponse { error_code, error_message, node_id, host, port, ..Default::default() }.into()
}

fn coordinator(facts: &Facts, key: &Text, known: bool) -> Coordinator {
    let key = key.clone();
    if !known {
        let error_message = Some(Text::from("this key type has no coordinator here"));
        let error_code = ErrorCode::InvalidRequest.into();
        return Coordinator { key, node_id: -1, port: -1, error_code, error_message, ..Default::default() };
    }
    Coordinator {
        key,
        node_id: facts.settings.node_id(),
        host: Text::from(&*facts.advertised.host),
        port: i32::from(facts.advertised.port),
        ..Default::default()
    }
}
