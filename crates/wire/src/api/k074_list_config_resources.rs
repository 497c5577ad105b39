//! ListConfigResources (key 74): which resources have settings of their own (KIP-1142).
//!
//! Versions: all are flexible. 0 lists client metrics alone (type 16), 1 names types.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Which resources are wanted.
    pub struct ListConfigResourcesRequest for ListConfigResources {
        /// As in DescribeConfigs; none for all.
        [1..] resource_types: Vec<i8>,
    }
}

message! {
    /// The resources.
    pub struct ListConfigResourcesResponse for ListConfigResources {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The resources.
        [0..] config_resources: Vec<ConfigResource>,
    }
}

message! {
    /// A resource.
    pub struct ConfigResource {
        /// Its name.
        [0..] resource_name: Text,
        /// As in DescribeConfigs.
        [1..] resource_type: i8 = 16,
    }
}
