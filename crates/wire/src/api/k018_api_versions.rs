//! ApiVersions (key 18): what both sides can speak.
//!
//! Versions: 1 has the throttle time. 3 is flexible, carries the client's name and our features. 4 allows 0 as a
//! feature's lowest level. 5 says which cluster and node the client means to reach. The response header is always
//! version 0, and an unknown version is answered in version 0 with error 35 (KIP-511).

use alloc::vec::Vec;

use crate::{Text, WireCode, message::message};

message! {
    /// Who asks.
    pub struct ApiVersionsRequest for ApiVersions {
        /// Name of the client's library.
        [3..] client_software_name: Text,
        /// Its version.
        [3..] client_software_version: Text,
        /// The cluster the client means to reach.
        [5.., null 5..] cluster_id: Option<Text>,
        /// The node the client means to reach, or -1.
        [5..] node_id: i32 = -1,
    }
}

message! {
    /// APIs and features of this broker.
    pub struct ApiVersionsResponse for ApiVersions {
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
        /// The APIs.
        [0..] api_keys: Vec<ApiVersion>,
        /// How long the client was or should be held back, for a quota.
        [1..] throttle_time_ms: i32,
        /// Features this broker could run with.
        [3.., tag 0] supported_features: Vec<SupportedFeature>,
        /// Raised with every change of the finalized features; clients ignore them at -1.
        [3.., tag 1] finalized_features_epoch: i64 = -1,
        /// Features in force.
        [3.., tag 2] finalized_features: Vec<FinalizedFeature>,
        /// Of no use without ZooKeeper.
        [3.., tag 3] zk_migration_ready: bool,
    }
}

message! {
    /// One API.
    pub struct ApiVersion {
        /// Its key.
        [0..] api_key: i16,
        /// Lowest version.
        [0..] min_version: i16,
        /// Highest version.
        [0..] max_version: i16,
    }
}

message! {
    /// A feature this broker could run with.
    pub struct SupportedFeature {
        /// Its name.
        [3..] name: Text,
        /// Lowest level.
        [3..] min_version: i16,
        /// Highest level.
        [3..] max_version: i16,
    }
}

message! {
    /// A feature in force.
    pub struct FinalizedFeature {
        /// Its name.
        [3..] name: Text,
        /// Highest level in force.
        [3..] max_version_level: i16,
        /// Lowest level in force.
        [3..] min_version_level: i16,
    }
}
