//! AlterConfigs (key 33): replace all settings of a resource.
//!
//! Versions: 2 is flexible.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// New settings.
    pub struct AlterConfigsRequest for AlterConfigs {
        /// By resource.
        [0..] resources: Vec<AlterConfigsResource>,
        /// Only check?
        [0..] validate_only: bool,
    }
}

message! {
    /// Settings of one resource: what is not named goes back to its default.
    pub struct AlterConfigsResource {
        /// As in DescribeConfigs.
        [0..] resource_type: i8,
        /// The topic's or group's name, or the broker's node id.
        [0..] resource_name: Text,
        /// The settings.
        [0..] configs: Vec<AlterableConfig>,
    }
}

message! {
    /// One setting.
    pub struct AlterableConfig {
        /// Its name.
        [0..] name: Text,
        /// Its value.
        [0.., null 0..] value: Option<Text>,
    }
}

message! {
    /// What became of it.
    pub struct AlterConfigsResponse for AlterConfigs {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By resource.
        [0..] responses: Vec<AlterConfigsResourceResponse>,
    }
}

message! {
    /// The result for one resource.
    pub struct AlterConfigsResourceResponse {
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
