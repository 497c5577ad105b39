//! DescribeCluster (key 60), versions 0 to 2.
//!
//! Behaviour: one broker, which is also the controller. Authorized operations are all of them while there are no ACLs.
//! Version notes: 1 can ask for controllers, which a single node does not list: 114 in Kafka, here 35 with a text (the
//! admin client falls back to brokers); 2 adds the fenced flag.

use semel_types::ErrorCode;
use semel_wire::{
    Text,
    api::{
        describe_cluster::{
            DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse, ENDPOINT_BROKERS,
        },
        metadata::OPERATIONS_NOT_ASKED,
    },
};

use super::Reply;
use crate::{call::Asked, facts::Facts};

/// Create, alter, describe, cluster action, describe and alter configs, idempotent write: the bits of Kafka's
/// `AclOperation` codes that a cluster has.
pub(super) const CLUSTER_OPERATIONS: i32 = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

pub(super) fn answer(facts: &Facts, asked: &Asked<DescribeClusterRequest>) -> Reply {
    let request = &asked.body;
    let node_id = facts.settings.node_id();
    if request.endpoint_type != ENDPOINT_BROKERS {
        return DescribeClusterResponse {
            error_code: ErrorCode::UnsupportedVersion.into(),
            error_message: Some(Text::from("this node lists brokers only")),
            endpoint_type: request.endpoint_type,
            ..Default::default()
        }
        .into();
    }
    let operations =
        if request.include_cluster_authorized_operations { CLUSTER_OPERATIONS } else { OPERATIONS_NOT_ASKED };
    DescribeClusterResponse {
        cluster_id: Text::from(&*facts.cluster_id),
        controller_id: node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: node_id,
            host: Text::from(&*facts.advertised.host),
            port: i32::from(facts.advertised.port),
            ..Default::default()
        }],
        cluster_authorized_operations: operations,
        ..Default::default()
    }
    .into()
}
