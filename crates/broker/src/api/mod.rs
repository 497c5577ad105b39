//! The dispatch table: which request goes where, and what can be answered.
//!
//! Purpose: [`dispatch`] turns a frame into a [`Routed`] request, on the connection's task; [`ViewCall::answer`]
//! answers what the published view alone can answer; [`Reply::encode`] writes an answer. One file for each API, headed
//! by its versions, behaviour and notes; `skipped.md` lists what is left out.
//! Invariants: a request that cannot be decoded changes nothing; no handler compares an epoch or a sequence.
//! What it does not do: sockets, waiting, ordering of answers.

pub mod answer;
mod k000_produce;
mod k001_fetch;
mod k002_list_offsets;
mod k003_metadata;
mod k008_offset_commit;
mod k009_offset_fetch;
mod k010_find_coordinator;
mod k011_join_group;
mod k012_heartbeat;
mod k013_leave_group;
mod k014_sync_group;
mod k015_describe_groups;
mod k016_list_groups;
mod k018_api_versions;
mod k019_create_topics;
mod k020_delete_topics;
mod k021_delete_records;
mod k022_init_producer_id;
mod k023_offset_for_leader_epoch;
mod k024_add_partitions_to_txn;
mod k025_add_offsets_to_txn;
mod k026_end_txn;
mod k027_write_txn_markers;
mod k028_txn_offset_commit;
mod k032_describe_configs;
mod k033_alter_configs;
mod k037_create_partitions;
mod k042_delete_groups;
mod k044_incremental_alter_configs;
mod k047_offset_delete;
mod k060_describe_cluster;
mod k061_describe_producers;
mod k065_describe_transactions;
mod k066_list_transactions;
mod k068_consumer_group_heartbeat;
mod k069_consumer_group_describe;
mod k074_list_config_resources;
mod k088_streams_group_heartbeat;
mod k089_streams_group_describe;

use std::{fmt, io};

use bytes::Bytes;
use semel_log::{Published, View};
use semel_types::{PartitionIndex, TopicName};
use semel_wire::{
    ApiKey, DecodeError, EncodeError, Message, Reader, RequestHeader, Text, Unsupported, Writer,
    api::{
        add_offsets_to_txn::AddOffsetsToTxnResponse, add_partitions_to_txn::AddPartitionsToTxnResponse,
        alter_configs::AlterConfigsResponse, api_versions::ApiVersionsResponse,
        consumer_group_describe::ConsumerGroupDescribeResponse,
        consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
        create_partitions::CreatePartitionsResponse, create_topics::CreateTopicsResponse,
        delete_groups::DeleteGroupsResponse, delete_records::DeleteRecordsResponse,
        delete_topics::DeleteTopicsResponse, describe_cluster::DescribeClusterResponse,
        describe_configs::DescribeConfigsResponse, describe_groups::DescribeGroupsResponse,
        describe_producers::DescribeProducersResponse, describe_transactions::DescribeTransactionsResponse,
        end_txn::EndTxnResponse, fetch::FetchRequest, fetch::FetchResponse,
        find_coordinator::FindCoordinatorResponse, heartbeat::HeartbeatResponse,
        incremental_alter_configs::IncrementalAlterConfigsResponse, init_producer_id::InitProducerIdResponse,
        join_group::JoinGroupResponse, leave_group::LeaveGroupResponse,
        list_config_resources::ListConfigResourcesRequest,
        list_config_resources::ListConfigResourcesResponse, list_groups::ListGroupsResponse,
        list_offsets::ListOffsetsRequest, list_offsets::ListOffsetsResponse,
        list_transactions::ListTransactionsResponse, metadata::MetadataRequest, metadata::MetadataResponse,
        offset_commit::OffsetCommitResponse, offset_delete::OffsetDeleteResponse,
        offset_fetch::OffsetFetchResponse, offset_for_leader_epoch::OffsetForLeaderEpochRequest,
        offset_for_leader_epoch::OffsetForLeaderEpochResponse, produce::ProduceResponse,
        streams_group_describe::StreamsGroupDescribeResponse,
        streams_group_heartbeat::StreamsGroupHeartbeatResponse, sync_group::SyncGroupResponse,
        txn_offset_commit::TxnOffsetCommitResponse, write_txn_markers::WriteTxnMarkersResponse,
    },
    frame,
};

use crate::{
    call::{Asked, Call},
    facts::Facts,
    inquiry::{self, Cut, Inquiry},
    node::{Handled, Step},
};

pub use k000_produce::{BatchFault, CheckedBatch, ProduceCall, ProduceTopicCall};
pub use k001_fetch::FetchPlan;
pub use k002_list_offsets::OffsetsPlan;
pub use k018_api_versions::Software;
pub(crate) use k019_create_topics::PARTITIONS_PER_REQUEST_MAX;

/// What must be kept of a request to write its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Key of the API, on the wire.
    pub api_key: i16,
    /// Version of the answer.
    pub version: i16,
    /// The client's number of the request.
    pub correlation_id: i32,
}

/// A request that was read.
#[derive(Clone, Debug)]
pub struct Routed {
    /// To write the answer with.
    pub head: Head,
    /// `client.id`, empty if absent.
    pub client_id: Text,
    /// Where it goes.
    pub route: Route,
}

/// Where a request goes.
#[derive(Clone, Debug)]
pub enum Route {
    /// To the node.
    Node(Call),
    /// It is answered from the published view, when all earlier answers of the connection have been written.
    View(ViewCall),
    /// This is the answer; it rests on nothing.
    Reply(Reply),
    /// The same, and this is for the server's log, rate-limited there: what the client did wrong.
    Refused(Reply, String),
    /// ApiVersions: the answer, and the client's software for [`ClientInfo`](crate::ClientInfo).
    Hello(Reply, Option<Software>),
}

/// A request that the published view can answer.
#[derive(Clone, Debug)]
pub enum ViewCall {
    /// Fetch.
    Fetch(Asked<FetchRequest>),
    /// ListOffsets.
    ListOffsets(Asked<ListOffsetsRequest>),
    /// Metadata.
    Metadata(Asked<MetadataRequest>),
    /// OffsetForLeaderEpoch.
    OffsetForLeaderEpoch(Asked<OffsetForLeaderEpochRequest>),
    /// DescribeConfigs.
    DescribeConfigs(Asked<semel_wire::api::describe_configs::DescribeConfigsRequest>),
    /// ListConfigResources.
    ListConfigResources(Asked<ListConfigResourcesRequest>),
}

/// What the view says.
#[derive(Debug)]
pub enum ViewAnswer {
    /// This.
    Reply(Reply),
    /// The node has to do something first.
    Node(Call),
    /// These reads, once there is enough or the client has waited long enough: see [`FetchPlan`].
    Fetch(FetchPlan),
    /// These look-ups, which may have to read: see [`OffsetsPlan`].
    ListOffsets(OffsetsPlan),
}

/// The answer of a [`FetchPlan`] or an [`OffsetsPlan`].
#[derive(Clone, Debug)]
pub struct Finished {
    /// The answer.
    pub reply: Reply,
    /// For the server's log, to be said once each: what could not be read, and why. The client was told 56.
    pub failures: Vec<String>,
}

impl Finished {
    fn failure(topic: &TopicName, index: PartitionIndex, error: &io::Error) -> String {
        format!("cannot read {topic}-{index}: {error}; its readers are answered 56, nothing of it is served")
    }
}

/// Why a frame was not taken. Its connection is closed, as Kafka does; nothing of it was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The bytes are no request.
    Malformed(DecodeError),
    /// No such API here, or not in this version.
    Unsupported(Unsupported),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed request: {error}"),
            Self::Unsupported(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl From<Unsupported> for Refused {
    fn from(error: Unsupported) -> Self {
        Self::Unsupported(error)
    }
}

/// Reads one request frame (without its length prefix) and says where it goes. Checks batches of Produce on the way:
/// framing, checksums and counts cost no time of the node.
///
/// # Errors
/// [`Refused`]: the connection is to be closed.
pub fn dispatch(facts: &Facts, frame: Bytes) -> Result<Routed, Refused> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader)?;
    let mut head =
        Head { api_key: header.api_key, version: header.version, correlation_id: header.correlation_id };
    let client_id = header.client_id.clone().unwrap_or_default();
    let route = match served(&header) {
        Ok(api) => route(facts, api, header.version, &mut reader)?,
        Err(unsupported) => {
            let (version, route) = k018_api_versions::unsupported(facts, unsupported).ok_or(unsupported)?;
            head.version = version;
            route
        }
    };
    Ok(Routed { head, client_id, route })
}

/// The API, if the version is one that we serve.
fn served(header: &RequestHeader) -> Result<ApiKey, Unsupported> {
    let api = header.api()?;
    let version = header.version;
    if api.spec().advertised().contains(&version) {
        Ok(api)
    } else {
        Err(Unsupported::Version { api, version })
    }
}

fn route(facts: &Facts, api: ApiKey, version: i16, reader: &mut Reader) -> Result<Route, DecodeError> {
    Ok(match api {
        ApiKey::Produce => k000_produce::route(facts, asked(reader, version)?),
        ApiKey::Fetch => Route::View(ViewCall::Fetch(asked(reader, version)?)),
        ApiKey::ListOffsets => Route::View(ViewCall::ListOffsets(asked(reader, version)?)),
        ApiKey::Metadata => Route::View(ViewCall::Metadata(asked(reader, version)?)),
        ApiKey::OffsetCommit => Route::Node(Call::OffsetCommit(asked(reader, version)?)),
        ApiKey::OffsetFetch => Route::Node(Call::OffsetFetch(asked(reader, version)?)),
        ApiKey::FindCoordinator => {
            Route::Reply(k010_find_coordinator::answer(facts, &asked(reader, version)?))
        }
        ApiKey::JoinGroup => Route::Node(Call::JoinGroup(asked(reader, version)?)),
        ApiKey::Heartbeat => Route::Node(Call::Heartbeat(asked(reader, version)?)),
        ApiKey::LeaveGroup => Route::Node(Call::LeaveGroup(asked(reader, version)?)),
        ApiKey::SyncGroup => Route::Node(Call::SyncGroup(asked(reader, version)?)),
        ApiKey::DescribeGroups => inquire(Inquiry::Groups(asked(reader, version)?)),
        ApiKey::ListGroups => inquire(Inquiry::GroupList(asked(reader, version)?)),
        ApiKey::DeleteGroups => Route::Node(Call::DeleteGroups(asked(reader, version)?)),
        ApiKey::OffsetDelete => Route::Node(Call::OffsetDelete(asked(reader, version)?)),
        ApiKey::ApiVersions => k018_api_versions::route(facts, &asked(reader, version)?),
        ApiKey::CreateTopics => Route::Node(Call::CreateTopics(asked(reader, version)?)),
        ApiKey::DeleteTopics => Route::Node(Call::DeleteTopics(asked(reader, version)?)),
        ApiKey::DeleteRecords => Route::Node(Call::DeleteRecords(asked(reader, version)?)),
        ApiKey::InitProducerId => Route::Node(Call::InitProducerId(asked(reader, version)?)),
        ApiKey::OffsetForLeaderEpoch => Route::View(ViewCall::OffsetForLeaderEpoch(asked(reader, version)?)),
        ApiKey::AddPartitionsToTxn => Route::Node(Call::AddPartitionsToTxn(asked(reader, version)?)),
        ApiKey::AddOffsetsToTxn => Route::Node(Call::AddOffsetsToTxn(asked(reader, version)?)),
        ApiKey::EndTxn => Route::Node(Call::EndTxn(asked(reader, version)?)),
        ApiKey::WriteTxnMarkers => Route::Node(Call::WriteTxnMarkers(asked(reader, version)?)),
        ApiKey::TxnOffsetCommit => Route::Node(Call::TxnOffsetCommit(asked(reader, version)?)),
        ApiKey::DescribeConfigs => Route::View(ViewCall::DescribeConfigs(asked(reader, version)?)),
        ApiKey::AlterConfigs => Route::Node(Call::AlterConfigs(asked(reader, version)?)),
        ApiKey::IncrementalAlterConfigs => {
            Route::Node(Call::IncrementalAlterConfigs(asked(reader, version)?))
        }
        ApiKey::ListConfigResources => Route::View(ViewCall::ListConfigResources(asked(reader, version)?)),
        ApiKey::CreatePartitions => Route::Node(Call::CreatePartitions(asked(reader, version)?)),
        ApiKey::DescribeCluster => {
            Route::Reply(k060_describe_cluster::answer(facts, &asked(reader, version)?))
        }
        ApiKey::DescribeProducers => inquire(Inquiry::Producers(asked(reader, version)?)),
        ApiKey::DescribeTransactions => inquire(Inquiry::Transactions(asked(reader, version)?)),
        ApiKey::ListTransactions => inquire(Inquiry::TransactionList(asked(reader, version)?)),
        ApiKey::ConsumerGroupHeartbeat => Route::Node(Call::ConsumerGroupHeartbeat(asked(reader, version)?)),
        ApiKey::ConsumerGroupDescribe => inquire(Inquiry::ConsumerGroups(asked(reader, version)?)),
        ApiKey::StreamsGroupHeartbeat => {
            Route::Node(Call::StreamsGroupHeartbeat(Box::new(asked(reader, version)?)))
        }
        ApiKey::StreamsGroupDescribe => inquire(Inquiry::StreamsGroups(asked(reader, version)?)),
    })
}

const fn inquire(inquiry: Inquiry) -> Route {
    Route::Node(Call::Inquire(inquiry))
}

fn asked<T: Message>(reader: &mut Reader, version: i16) -> Result<Asked<T>, DecodeError> {
    Ok(Asked { version, body: T::decode_start(reader, version)? })
}

/// Runs a call in the node. A call that is deferred is left as it was; any other may be taken apart.
pub(crate) fn run(step: &mut Step<'_>, call: &mut Call) -> Handled {
    match call {
        Call::Produce(call) => k000_produce::run(step, call),
        Call::OffsetCommit(asked) => k008_offset_commit::run(step, asked),
        Call::OffsetFetch(asked) => k009_offset_fetch::run(step, asked),
        Call::JoinGroup(asked) => k011_join_group::run(step, asked),
        Call::Heartbeat(asked) => k012_heartbeat::run(step, asked),
        Call::LeaveGroup(asked) => k013_leave_group::run(step, asked),
        Call::SyncGroup(asked) => k014_sync_group::run(step, asked),
        Call::ConsumerGroupHeartbeat(asked) => k068_consumer_group_heartbeat::run(step, asked),
        Call::DeleteGroups(asked) => k042_delete_groups::run(step, asked),
        Call::OffsetDelete(asked) => k047_offset_delete::run(step, asked),
        Call::StreamsGroupHeartbeat(asked) => k088_streams_group_heartbeat::run(step, asked),
        Call::CreateTopics(asked) => k019_create_topics::run(step, asked),
        Call::DeleteTopics(asked) => k020_delete_topics::run(step, asked),
        Call::DeleteRecords(asked) => k021_delete_records::run(step, asked),
        Call::AlterConfigs(asked) => k033_alter_configs::run(step, asked),
        Call::IncrementalAlterConfigs(asked) => k044_incremental_alter_configs::run(step, asked),
        Call::CreatePartitions(asked) => k037_create_partitions::run(step, asked),
        Call::InitProducerId(asked) => k022_init_producer_id::run(step, asked),
        Call::AddPartitionsToTxn(asked) => k024_add_partitions_to_txn::run(step, asked),
        Call::AddOffsetsToTxn(asked) => k025_add_offsets_to_txn::run(step, asked),
        Call::EndTxn(asked) => k026_end_txn::run(step, asked),
        Call::WriteTxnMarkers(asked) => k027_write_txn_markers::run(step, asked),
        Call::TxnOffsetCommit(asked) => k028_txn_offset_commit::run(step, asked),
        Call::Inquire(inquiry) => inquiry::run(step, inquiry),
        Call::CreateMissing { names, metadata } => k003_metadata::create_missing(step, names, metadata),
    }
}

/// Answers a question from a copy of the state.
pub(crate) fn answer_inquiry(cut: &Cut, inquiry: &Inquiry) -> Reply {
    match inquiry {
        Inquiry::Groups(asked) => k015_describe_groups::answer(cut, asked),
        Inquiry::GroupList(asked) => k016_list_groups::answer(cut, &asked.body),
        Inquiry::ConsumerGroups(asked) => k069_consumer_group_describe::answer(cut, &asked.body),
        Inquiry::StreamsGroups(asked) => k089_streams_group_describe::answer(cut, asked),
        Inquiry::Producers(asked) => k061_describe_producers::answer(cut, &asked.body),
        Inquiry::Transactions(asked) => k065_describe_transactions::answer(cut, &asked.body),
        Inquiry::TransactionList(asked) => k066_list_transactions::answer(cut, &asked.body),
    }
}

impl ViewCall {
    /// Answers from one cut of the published view. Whoever holds the view's read lock keeps every publish waiting:
    /// [`ViewCall::answer_from`] holds it no longer than needed.
    #[must_use]
    pub fn answer(&self, facts: &Facts, view: &View) -> ViewAnswer {
        match self {
            Self::Fetch(asked) => ViewAnswer::Fetch(k001_fetch::plan(facts, view, asked)),
            Self::ListOffsets(asked) => ViewAnswer::ListOffsets(k002_list_offsets::plan(facts, view, asked)),
            Self::Metadata(asked) => k003_metadata::answer(facts, &view.catalog(), asked),
            Self::OffsetForLeaderEpoch(asked) => {
                ViewAnswer::Reply(k023_offset_for_leader_epoch::answer(facts, view, asked))
            }
            Self::DescribeConfigs(asked) => {
                ViewAnswer::Reply(k032_describe_configs::answer(facts, &view.catalog(), asked))
            }
            Self::ListConfigResources(asked) => {
                ViewAnswer::Reply(k074_list_config_resources::answer(facts, &view.catalog(), asked))
            }
        }
    }

    /// The same, but answers over thousands of topics are built after the lock is gone.
    #[must_use]
    pub fn answer_from(&self, facts: &Facts, published: &Published) -> ViewAnswer {
        match self {
            Self::Fetch(_) | Self::ListOffsets(_) | Self::OffsetForLeaderEpoch(_) => {
                self.answer(facts, &published.read())
            }
            Self::Metadata(asked) => {
                let catalog = published.read().catalog();
                k003_metadata::answer(facts, &catalog, asked)
            }
            Self::DescribeConfigs(asked) => {
                let catalog = published.read().catalog();
                ViewAnswer::Reply(k032_describe_configs::answer(facts, &catalog, asked))
            }
            Self::ListConfigResources(asked) => {
                let catalog = published.read().catalog();
                ViewAnswer::Reply(k074_list_config_resources::answer(facts, &catalog, asked))
            }
        }
    }
}

macro_rules! replies {
    (@message $response:ty) => { $response };
    (@message $response:ty, $message:ty) => { $message };

    ($($name:ident($response:ty) $(of $message:ty)?,)*) => {
        /// An answer, not yet written.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Reply {
            $(
                #[doc = concat!("Of ", stringify!($name), ".")]
                $name($response),
            )*
        }

        impl Reply {
            /// Appends the whole response frame, length prefix included.
            ///
            /// # Errors
            /// A value that the version cannot carry: a bug of the handler.
            pub fn encode(&self, head: &Head, writer: &mut Writer) -> Result<(), EncodeError> {
                match self {
                    $(Self::$name(response) => {
                        let response: &replies!(@message $response $(, $message)?) = response;
                        frame::response(response, head.version, head.correlation_id, writer)
                    })*
                }
            }
        }

        $(impl From<$response> for Reply {
            fn from(response: $response) -> Self {
                Self::$name(response)
            }
        })*
    };
}

replies! {
    Produce(ProduceResponse),
    Fetch(FetchResponse),
    ListOffsets(ListOffsetsResponse),
    Metadata(MetadataResponse),
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchResponse),
    FindCoordinator(FindCoordinatorResponse),
    JoinGroup(JoinGroupResponse),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    SyncGroup(SyncGroupResponse),
    DescribeGroups(DescribeGroupsResponse),
    ListGroups(ListGroupsResponse),
    ApiVersions(ApiVersionsResponse),
    CreateTopics(CreateTopicsResponse),
    DeleteTopics(DeleteTopicsResponse),
    DeleteRecords(DeleteRecordsResponse),
    InitProducerId(InitProducerIdResponse),
    OffsetForLeaderEpoch(OffsetForLeaderEpochResponse),
    AddPartitionsToTxn(AddPartitionsToTxnResponse),
    AddOffsetsToTxn(AddOffsetsToTxnResponse),
    EndTxn(EndTxnResponse),
    WriteTxnMarkers(WriteTxnMarkersResponse),
    TxnOffsetCommit(TxnOffsetCommitResponse),
    DescribeConfigs(DescribeConfigsResponse),
    AlterConfigs(AlterConfigsResponse),
    CreatePartitions(CreatePartitionsResponse),
    DeleteGroups(DeleteGroupsResponse),
    IncrementalAlterConfigs(IncrementalAlterConfigsResponse),
    OffsetDelete(OffsetDeleteResponse),
    DescribeCluster(DescribeClusterResponse),
    DescribeProducers(DescribeProducersResponse),
    DescribeTransactions(DescribeTransactionsResponse),
    ListTransactions(ListTransactionsResponse),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse),
    ConsumerGroupDescribe(ConsumerGroupDescribeResponse),
    ListConfigResources(ListConfigResourcesResponse),
    StreamsGroupHeartbeat(Box<StreamsGroupHeartbeatResponse>) of StreamsGroupHeartbeatResponse,
    StreamsGroupDescribe(StreamsGroupDescribeResponse),
}
