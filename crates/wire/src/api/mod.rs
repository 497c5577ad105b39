//! One module per API, named after it; the file name carries the API key.
//!
//! [`API_TABLE`] is the one place that says which versions exist, which we advertise, and from which on an API is
//! flexible. The struct definitions are in the notation of the `message!` macro (`message.rs`).

use core::{fmt, ops::RangeInclusive};

use crate::Request;

macro_rules! apis {
    ($(
        $key:literal $variant:ident $module:ident $file:literal ($request:ident, $response:ident)
        decode $decode:expr, advertise $advertise:expr, flexible $flexible:literal;
    )*) => {
        $(#[path = $file] pub mod $module;)*

        /// The APIs of this crate.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(i16)]
        pub enum ApiKey {
            $(
                #[doc = concat!("Key ", stringify!($key), ".")]
                $variant = $key,
            )*
        }

        /// Every API in the order of keys.
        pub const API_TABLE: &[ApiSpec] = &[$(ApiSpec {
            key: ApiKey::$variant,
            name: stringify!($variant),
            decode_min: *$decode.start(),
            decode_max: *$decode.end(),
            advertise_min: *$advertise.start(),
            advertise_max: *$advertise.end(),
            flexible_from: $flexible,
        }),*];

        impl ApiKey {
            /// From the wire; `None` for an API that this crate lacks.
            #[must_use]
            pub const fn from_wire(raw: i16) -> Option<Self> {
                match raw {
                    $($key => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        $(
            impl Request for $module::$request {
                type Response = $module::$response;
            }
        )*

        /// Visits every API in the order of keys.
        pub fn for_each_api(visitor: &mut impl ApiVisitor) {
            $(visitor.visit::<$module::$request>();)*
        }
    };
}

/// Something to be done with the types of every API.
pub trait ApiVisitor {
    /// One API.
    fn visit<R: Request>(&mut self);
}

/// What is known of one API as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiSpec {
    /// The API.
    pub key: ApiKey,
    /// Kafka's name of it.
    pub name: &'static str,
    /// Lowest version that can be decoded and encoded.
    pub decode_min: i16,
    /// Highest version that can be decoded and encoded.
    pub decode_max: i16,
    /// Lowest version to advertise; below `decode_min` where clients derive features from it (KAFKA-18659).
    pub advertise_min: i16,
    /// Highest version to advertise.
    pub advertise_max: i16,
    /// First version with compact lengths and tagged fields (KIP-482).
    pub flexible_from: i16,
}

impl ApiSpec {
    /// The versions that can be decoded and encoded.
    #[must_use]
    pub const fn decodable(&self) -> RangeInclusive<i16> {
        self.decode_min..=self.decode_max
    }

    /// The versions to name in an ApiVersions answer.
    #[must_use]
    pub const fn advertised(&self) -> RangeInclusive<i16> {
        self.advertise_min..=self.advertise_max
    }
}

impl ApiKey {
    /// The key on the wire.
    #[must_use]
    pub const fn get(self) -> i16 {
        self as i16
    }

    /// The API's row of [`API_TABLE`].
    #[must_use]
    pub fn spec(self) -> &'static ApiSpec {
        let row = API_TABLE.iter().find(|spec| spec.key == self);
        row.expect("the table has a row for every key: one macro makes both")
    }

    /// Version of the request header: 2 (tagged fields) in flexible versions, else 1.
    #[must_use]
    pub fn request_header_version(self, version: i16) -> i16 {
        if version >= self.spec().flexible_from { 2 } else { 1 }
    }

    /// Version of the response header: 1 (tagged fields) in flexible versions, else 0. `ApiVersions` always has 0, so
    /// that a client can read the refusal of a version that it has and we lack (KIP-511).
    #[must_use]
    pub fn response_header_version(self, version: i16) -> i16 {
        i16::from(self != Self::ApiVersions && version >= self.spec().flexible_from)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)
    }
}

apis! {
    0 Produce produce "k000_produce.rs" (ProduceRequest, ProduceResponse)
        decode 3..=13, advertise 0..=13, flexible 9;
    1 Fetch fetch "k001_fetch.rs" (FetchRequest, FetchResponse)
        decode 4..=18, advertise 4..=18, flexible 12;
    2 ListOffsets list_offsets "k002_list_offsets.rs" (ListOffsetsRequest, ListOffsetsResponse)
        decode 1..=11, advertise 1..=11, flexible 6;
    3 Metadata metadata "k003_metadata.rs" (MetadataRequest, MetadataResponse)
        decode 0..=13, advertise 0..=13, flexible 9;
    8 OffsetCommit offset_commit "k008_offset_commit.rs" (OffsetCommitRequest, OffsetCommitResponse)
        decode 2..=10, advertise 2..=10, flexible 8;
    9 OffsetFetch offset_fetch "k009_offset_fetch.rs" (OffsetFetchRequest, OffsetFetchResponse)
        decode 1..=10, advertise 1..=10, flexible 6;
    10 FindCoordinator find_coordinator "k010_find_coordinator.rs"
        (FindCoordinatorRequest, FindCoordinatorResponse)
        decode 0..=6, advertise 0..=6, flexible 3;
    11 JoinGroup join_group "k011_join_group.rs" (JoinGroupRequest, JoinGroupResponse)
        decode 0..=9, advertise 0..=9, flexible 6;
    12 Heartbeat heartbeat "k012_heartbeat.rs" (HeartbeatRequest, HeartbeatResponse)
        decode 0..=4, advertise 0..=4, flexible 4;
    13 LeaveGroup leave_group "k013_leave_group.rs" (LeaveGroupRequest, LeaveGroupResponse)
        decode 0..=5, advertise 0..=5, flexible 4;
    14 SyncGroup sync_group "k014_sync_group.rs" (SyncGroupRequest, SyncGroupResponse)
        decode 0..=5, advertise 0..=5, flexible 4;
    15 DescribeGroups describe_groups "k015_describe_groups.rs" (DescribeGroupsRequest, DescribeGroupsResponse)
        decode 0..=6, advertise 0..=6, flexible 5;
    16 ListGroups list_groups "k016_list_groups.rs" (ListGroupsRequest, ListGroupsResponse)
        decode 0..=5, advertise 0..=5, flexible 3;
    18 ApiVersions api_versions "k018_api_versions.rs" (ApiVersionsRequest, ApiVersionsResponse)
        decode 0..=5, advertise 0..=5, flexible 3;
    19 CreateTopics create_topics "k019_create_topics.rs" (CreateTopicsRequest, CreateTopicsResponse)
        decode 2..=7, advertise 2..=7, flexible 5;
    20 DeleteTopics delete_topics "k020_delete_topics.rs" (DeleteTopicsRequest, DeleteTopicsResponse)
        decode 1..=6, advertise 1..=6, flexible 4;
    21 DeleteRecords delete_records "k021_delete_records.rs" (DeleteRecordsRequest, DeleteRecordsResponse)
        decode 0..=2, advertise 0..=2, flexible 2;
    22 InitProducerId init_producer_id "k022_init_producer_id.rs"
        (InitProducerIdRequest, InitProducerIdResponse)
        decode 0..=6, advertise 0..=5, flexible 2;
    23 OffsetForLeaderEpoch offset_for_leader_epoch "k023_offset_for_leader_epoch.rs"
        (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse)
        decode 2..=4, advertise 2..=4, flexible 4;
    24 AddPartitionsToTxn add_partitions_to_txn "k024_add_partitions_to_txn.rs"
        (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse)
        decode 0..=5, advertise 0..=5, flexible 3;
    25 AddOffsetsToTxn add_offsets_to_txn "k025_add_offsets_to_txn.rs"
        (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse)
        decode 0..=4, advertise 0..=4, flexible 3;
    26 EndTxn end_txn "k026_end_txn.rs" (EndTxnRequest, EndTxnResponse)
        decode 0..=5, advertise 0..=5, flexible 3;
    27 WriteTxnMarkers write_txn_markers "k027_write_txn_markers.rs"
        (WriteTxnMarkersRequest, WriteTxnMarkersResponse)
        decode 1..=2, advertise 1..=2, flexible 1;
    28 TxnOffsetCommit txn_offset_commit "k028_txn_offset_commit.rs"
        (TxnOffsetCommitRequest, TxnOffsetCommitResponse)
        decode 0..=6, advertise 0..=6, flexible 3;
    32 DescribeConfigs describe_configs "k032_describe_configs.rs"
        (DescribeConfigsRequest, DescribeConfigsResponse)
        decode 1..=4, advertise 1..=4, flexible 4;
    33 AlterConfigs alter_configs "k033_alter_configs.rs" (AlterConfigsRequest, AlterConfigsResponse)
        decode 0..=2, advertise 0..=2, flexible 2;
    37 CreatePartitions create_partitions "k037_create_partitions.rs"
        (CreatePartitionsRequest, CreatePartitionsResponse)
        decode 0..=3, advertise 0..=3, flexible 2;
    42 DeleteGroups delete_groups "k042_delete_groups.rs" (DeleteGroupsRequest, DeleteGroupsResponse)
        decode 0..=2, advertise 0..=2, flexible 2;
    44 IncrementalAlterConfigs incremental_alter_configs "k044_incremental_alter_configs.rs"
        (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse)
        decode 0..=1, advertise 0..=1, flexible 1;
    47 OffsetDelete offset_delete "k047_offset_delete.rs" (OffsetDeleteRequest, OffsetDeleteResponse)
        decode 0..=0, advertise 0..=0, flexible 1;
    60 DescribeCluster describe_cluster "k060_describe_cluster.rs"
        (DescribeClusterRequest, DescribeClusterResponse)
        decode 0..=2, advertise 0..=2, flexible 0;
    61 DescribeProducers describe_producers "k061_describe_producers.rs"
        (DescribeProducersRequest, DescribeProducersResponse)
        decode 0..=0, advertise 0..=0, flexible 0;
    65 DescribeTransactions describe_transactions "k065_describe_transactions.rs"
        (DescribeTransactionsRequest, DescribeTransactionsResponse)
        decode 0..=0, advertise 0..=0, flexible 0;
    66 ListTransactions list_transactions "k066_list_transactions.rs"
        (ListTransactionsRequest, ListTransactionsResponse)
        decode 0..=2, advertise 0..=2, flexible 0;
    68 ConsumerGroupHeartbeat consumer_group_heartbeat "k068_consumer_group_heartbeat.rs"
        (ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse)
        decode 0..=1, advertise 0..=1, flexible 0;
    69 ConsumerGroupDescribe consumer_group_describe "k069_consumer_group_describe.rs"
        (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse)
        decode 0..=1, advertise 0..=1, flexible 0;
    74 ListConfigResources list_config_resources "k074_list_config_resources.rs"
        (ListConfigResourcesRequest, ListConfigResourcesResponse)
        decode 0..=1, advertise 0..=1, flexible 0;
    88 StreamsGroupHeartbeat streams_group_heartbeat "k088_streams_group_heartbeat.rs"
        (StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse)
        decode 0..=1, advertise 0..=1, flexible 0;
    89 StreamsGroupDescribe streams_group_describe "k089_streams_group_describe.rs"
        (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse)
        decode 0..=1, advertise 0..=1, flexible 0;
}
