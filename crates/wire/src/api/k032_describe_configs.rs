//! DescribeConfigs (key 32): settings of topics and brokers.
//!
//! Versions: 1 has sources and synonyms. 3 has types and documentation. 4 is flexible.

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

/// `resource_type` of a topic.
pub const RESOURCE_TOPIC: i8 = 2;
/// `resource_type` of a broker.
pub const RESOURCE_BROKER: i8 = 4;
/// `resource_type` of a broker's log levels.
pub const RESOURCE_BROKER_LOGGER: i8 = 8;
/// `resource_type` of a subscription to clients' metrics (KIP-714).
pub const RESOURCE_CLIENT_METRICS: i8 = 16;
/// `resource_type` of a group (KIP-848).
pub const RESOURCE_GROUP: i8 = 32;

message! {
    /// Whose settings are wanted.
    pub struct DescribeConfigsRequest for DescribeConfigs {
        /// The topics and brokers.
        [0..] resources: Vec<DescribeConfigsResource>,
        /// Tell the other sources of each setting too?
        [1..] include_synonyms: bool,
        /// Tell what each setting means?
        [3..] include_documentation: bool,
    }
}

message! {
    /// One topic or broker.
    pub struct DescribeConfigsResource {
        /// See `RESOURCE_TOPIC` and its neighbours.
        [0..] resource_type: i8,
        /// The topic's name, or the broker's node id.
        [0..] resource_name: Text,
        /// The settings wanted; null for all.
        [0.., null 0..] configuration_keys: Option<Vec<Text>> = Some(Vec::new()),
    }
}

message! {
    /// The settings.
    pub struct DescribeConfigsResponse for DescribeConfigs {
        /// How long the client was or should be held back, for a quota.
        [0..] throttle_time_ms: i32,
        /// By topic or broker.
        [0..] results: Vec<DescribeConfigsResult>,
    }
}

message! {
    /// Settings of one topic or broker.
    pub struct DescribeConfigsResult {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// Why, for people.
        [0.., null 0..] error_message: Option<Text>,
        /// See `RESOURCE_TOPIC` and its neighbours.
        [0..] resource_type: i8,
        /// The topic's name, or the broker's node id.
        [0..] resource_name: Text,
        /// The settings.
        [0..] configs: Vec<DescribeConfigsEntry>,
    }
}

message! {
    /// One setting.
    pub struct DescribeConfigsEntry {
        /// Its name.
        [0..] name: Text,
        /// Its value; null if secret.
        [0.., null 0..] value: Option<Text> = Some(Text::EMPTY),
        /// Can it not be changed?
        [0..] read_only: bool,
        /// Where the value comes from: 1 topic, 2 and 3 broker, 4 file, 5 default; or -1.
        [1..] config_source: i8 = -1,
        /// Is the value secret?
        [0..] is_sensitive: bool,
        /// The value in each source, the one in force first.
        [1..] synonyms: Vec<DescribeConfigsSynonym>,
        /// The value's type: 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
        [3..] config_type: i8,
        /// What it means.
        [3.., null 0..] documentation: Option<Text>,
    }
}

message! {
    /// A setting's value in one source.
    pub struct DescribeConfigsSynonym {
        /// The setting's name there.
        [1..] name: Text,
        /// Its value there.
        [1.., null 0..] value: Option<Text> = Some(Text::EMPTY),
        /// The source, see `config_source`.
        [1..] source: i8,
    }
}
