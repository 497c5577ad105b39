//! ApiVersions (key 18), versions 0 to 5.
//!
//! Behaviour: names every API and version that is served, and the finalized features `transaction.version`
//! (`semel.transaction.version`, default 2: KIP-890 part 2), `group.version` 1 (KIP-848) and `streams.version` 1
//! (KIP-1071), by which clients choose their protocols.
//! An unknown version is answered in version 0 with error 35 and the range of this API alone (KIP-511), so that the
//! client asks again in a version that carries the features. A software name or version outside Kafka's pattern is 42.
//! A client that means to reach another cluster or node is told so with 129, and looks for it anew; one that names only
//! one of the two is told 42 (KIP-1242). Both answers are empty, as Kafka's.
//! With `semel.topic.ids` false no API and no version is named in which topics have ids (KIP-516), and no `group.version`.
//! Version notes: 3 is flexible and carries the features; 4 allows a lowest level of 0 in them; 5 names the cluster
//! and node that the client means to reach.
//! Produce 0 to 2 are named though they are refused: librdkafka reads features from them.

use semel_types::ErrorCode;
use semel_wire::{
    API_TABLE, ApiKey, ApiSpec, Text, Unsupported,
    api::api_versions::{
        ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeature, SupportedFeature,
    },
};

use super::Route;
use crate::{call::Asked, facts::Facts};

/// The library behind a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Software {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Features and their highest levels (upstream `Feature`). Java asks for KIP-848 only where `group.version` is 1.
const TRANSACTIONS: (&str, i16) = ("transaction.version", 2);
const GROUPS: (&str, i16) = ("group.version", 1);
const STREAMS: (&str, i16) = ("streams.version", 1);

/// The last versions in which topics have names only (KIP-516).
const LAST_BY_NAME: [(ApiKey, i16); 8] = [
    (ApiKey::Produce, 12),
    (ApiKey::Fetch, 12),
    (ApiKey::Metadata, 9),
    (ApiKey::OffsetCommit, 9),
    (ApiKey::OffsetFetch, 9),
    (ApiKey::CreateTopics, 6),
    (ApiKey::DeleteTopics, 5),
    (ApiKey::TxnOffsetCommit, 5),
];

/// APIs that have no such version.
const BY_ID_ONLY: [ApiKey; 2] = [ApiKey::ConsumerGroupHeartbeat, ApiKey::ConsumerGroupDescribe];

pub(super) fn route(facts: &Facts, asked: &Asked<ApiVersionsRequest>) -> Route {
    let (name, version) = (&asked.body.client_software_name, &asked.body.client_software_version);
    if asked.version >= 3 && !(is_software(name) && is_software(version)) {
        let mut response = everything(facts, asked.version);
        response.error_code = ErrorCode::InvalidRequest.into();
        return Route::Hello(response.into(), None);
    }
    if let Some(error) = misdirected(facts, &asked.body) {
        let response = ApiVersionsResponse { error_code: error.into(), ..Default::default() };
        return Route::Hello(response.into(), None);
    }
    let software = Software { name: name.as_str().to_owned(), version: version.as_str().to_owned() };
    Route::Hello(everything(facts, asked.version).into(), (asked.version >= 3).then_some(software))
}

/// The answer to a version that we lack: version and route.
pub(super) fn unsupported(facts: &Facts, unsupported: Unsupported) -> Option<(i16, Route)> {
    match unsupported {
        Unsupported::Version { api: ApiKey::ApiVersions, .. } => {
            let mut response = everything(facts, 0);
            response.api_keys.retain(|api| api.api_key == ApiKey::ApiVersions.get());
            response.error_code = ErrorCode::UnsupportedVersion.into();
            Some((0, Route::Reply(response.into())))
        }
        Unsupported::Version { .. } | Unsupported::Api { .. } => None,
    }
}

/// What is wrong with the cluster and the node that the client wants. Versions below 5 do not say.
fn misdirected(facts: &Facts, request: &ApiVersionsRequest) -> Option<ErrorCode> {
    let node = (request.node_id >= 0).then_some(request.node_id);
    match (request.cluster_id.as_deref(), node) {
        (None, None) => None,
        (Some(cluster), Some(node)) => {
            let is_here = *cluster == *facts.cluster_id && node == facts.settings.node_id();
            (!is_here).then_some(ErrorCode::RebootstrapRequired)
        }
        (Some(_), None) | (None, Some(_)) => Some(ErrorCode::InvalidRequest),
    }
}

fn everything(facts: &Facts, version: i16) -> ApiVersionsResponse {
    let by_id = facts.settings.tells_topic_ids();
    let named = API_TABLE.iter().filter(|spec| by_id || !BY_ID_ONLY.contains(&spec.key));
    let api_keys = named.map(|spec| versions(spec, by_id)).collect();
    // Version 3 cannot say "from 0" (KIP-511, KAFKA-17011); clients of it only look at the finalized level.
    let min_version = i16::from(version < 4);
    let supported = [GROUPS, STREAMS, TRANSACTIONS].map(|(name, max_version)| SupportedFeature {
        name: Text::from(name),
        min_version,
        max_version,
    });
    let groups = (GROUPS.0, if by_id { GROUPS.1 } else { 0 });
    let finalized = [groups, STREAMS, (TRANSACTIONS.0, facts.settings.transaction_version())];
    let finalized = finalized.into_iter().filter(|(_, level)| *level > 0);
    let finalized = finalized.map(|(name, level)| FinalizedFeature {
        name: Text::from(name),
        max_version_level: level,
        min_version_level: level,
    });
    ApiVersionsResponse {
        api_keys,
        supported_features: supported.to_vec(),
        finalized_features_epoch: 1,
        finalized_features: finalized.collect(),
        ..Default::default()
    }
}

fn versions(spec: &ApiSpec, by_id: bool) -> ApiVersion {
    let last_by_name = LAST_BY_NAME.iter().find(|(key, _)| !by_id && *key == spec.key);
    let max_version = last_by_name.map_or(spec.advertise_max, |(_, last)| *last);
    ApiVersion { api_key: spec.key.get(), min_version: spec.advertise_min, max_version }
}

/// Kafka's pattern: letters, digits, dots and dashes, with a letter or digit at both ends.
fn is_software(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inner)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_follow_kafkas_pattern() {
        for good in ["apache-kafka-java", "4.4.0", "a"] {
            assert!(is_software(good), "{good}");
        }
        for bad in ["", "-a", "a.", "a b", "ü"] {
            assert!(!is_software(bad), "{bad}");
        }
    }
}
