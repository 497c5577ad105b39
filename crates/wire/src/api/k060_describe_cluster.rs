//! DescribeCluster (key 60): the brokers, without topics.
//!
//! Versions: 1 asks for brokers or controllers. 2 shows fenced brokers.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

use super::metadata::OPERATIONS_NOT_ASKED;

/// `endpoint_type` of brokers.
pub const ENDPOINT_BROKERS: i8 = 1;
/// `endpoint_type` of controllers.
pub const ENDPOINT_CONTROLLERS: i8 = 2;

message! {
    /// What to tell.
    pub struct DescribeClusterRequest for DescribeCluster {
        /// Tell what the client may do with the cluster?
        [0..] include_cluster_authorized_operations: bool,
        /// Whose addresses are wanted.
        [1..] endpoint_type: i8 = ENDPOINT_BROKERS,
        /// Tell of fenced brokers too?
        [2..] include_fenced_brokers: bool,
    }
}

message! {
    /// The cluster.
    pub struct DescribeClusterResponse for DescribeCluster {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [0.., null 0..] error_message: Option<Text>,
        /// Whose addresses these are.
        [1..] endpoint_type: i8 = ENDPOINT_BROKERS,
        /// The cluster's id.
        [0..] cluster_id: Text,
        /// The controller's node id, or -1.
        [0..] controller_id: i32 = -1,
        /// The brokers.
        [0..] brokers: Vec<DescribeClusterBroker>,
        /// What the client may do with the cluster, as a bit field.
        [0..] cluster_authorized_operations: i32 = OPERATIONS_NOT_ASKED,
    }
}

message! {
    /// One broker.
    pub struct DescribeClusterBroker {
        /// Its node id.
        [0..] broker_id: i32,
        /// Its host name.
        [0..] host: Text,
        /// Its port.
        [0..] port: i32,
        /// Its rack.
        [0.., null 0..] rack: Option<Text>,
        /// Is it fenced?
        [2..] is_fenced: bool,
    }
}
