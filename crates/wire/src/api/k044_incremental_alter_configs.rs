//! IncrementalAlterConfigs (key 44): change single settings of a resource (KIP-339).
//!
//! Versions: 1 is flexible.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

/// `config_operation`: the value is this.
pub const OPERATION_SET: i8 = 0;
/// `config_operation`: back to the default.
pub const OPERATION_DELETE: i8 = 1;
/// `config_operation`: these are added to the list.
pub const OPERATION_APPEND: i8 = 2;
/// `config_operation`: these go from the list.
pub const OPERATION_SUBTRACT: i8 = 3;

message! {
    /// Changes of settings.
    pub struct IncrementalAlterConfigsRequest for IncrementalAlterConfigs {
        /// By resource.
        [0..] resources: Vec<IncrementalAlterConfigsResource>,
        /// Only check?
        [0..] validate_only: bool,
    }
}

message! {
    /// Changes of one resource.
    pub struct IncrementalAlterConfigsResource {
        /// As in DescribeConfigs.
        [0..] resource_type: i8,
        /// The topic's or group's name, or the broker's node id.
        [0..] resource_name: Text,
        /// The changes.
        [0..] configs: Vec<IncrementallyAlterableConfig>,
    }
}

message! {
    /// One change.
    pub struct IncrementallyAlterableConfig {
        /// The setting's name.
        [0..] name: Text,
        /// See `OPERATION_SET` and its neighbours.
        [0..] config_operation: i8,
        /// The value.
        [0.., null 0..] value: Option<Text> = Some(Text::EMPTY),
    }
}

message! {
    /// What became of them.
    pub struct IncrementalAlterConfigsResponse for IncrementalAlterConfigs {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By resource.
        [0..] responses: Vec<IncrementalAlterConfigsResourceResponse>,
    }
}

message! {
    /// The result for one resource.
    pub struct IncrementalAlterConfigsResourceResponse {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [0.., null 0..] error_message: Option<Text> = Some(Text::EMPTY),
        /// As in DescribeConfigs.
        [0..] resource_type: i8,
        /// The topic's or group's name, or the broker's node id.
        [0..] resource_name: Text,
    }
}
