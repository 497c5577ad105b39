//! What goes into the node and what comes out: plain data, no sockets.

use std::sync::Arc;

use semel_eos::{Refused, txn::Fence};
use semel_events::Author;
use semel_log::Proposal;
use semel_types::{ConnectionNumber, Now, RequestToken, TopicName, TransactionalId};
use semel_wire::api::{
    add_offsets_to_txn::AddOffsetsToTxnRequest, add_partitions_to_txn::AddPartitionsToTxnRequest,
    alter_configs::AlterConfigsRequest, consumer_group_heartbeat::ConsumerGroupHeartbeatRequest,
    create_partitions::CreatePartitionsRequest, create_topics::CreateTopicsRequest,
    delete_groups::DeleteGroupsRequest, delete_records::DeleteRecordsRequest,
    delete_topics::DeleteTopicsRequest, end_txn::EndTxnRequest, heartbeat::HeartbeatRequest,
    incremental_alter_configs::IncrementalAlterConfigsRequest, init_producer_id::InitProducerIdRequest,
    join_group::JoinGroupRequest, leave_group::LeaveGroupRequest, metadata::MetadataRequest,
    offset_commit::OffsetCommitRequest, offset_delete::OffsetDeleteRequest, offset_fetch::OffsetFetchRequest,
    streams_group_heartbeat::StreamsGroupHeartbeatRequest, sync_group::SyncGroupRequest,
    txn_offset_commit::TxnOffsetCommitRequest, write_txn_markers::WriteTxnMarkersRequest,
};

use crate::{
    api::{ProduceCall, Reply, ViewCall},
    inquiry::{Inquiry, StateCall},
    state::State,
};

/// Who is at the other end of a connection: stands in the fence log and in messages to a fenced producer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientInfo {
    /// `client.id` of the request.
    pub client_id: Arc<str>,
    /// Software name and version from ApiVersions, empty if not told.
    pub software: Arc<str>,
    /// Address of the other side.
    pub address: Arc<str>,
}

/// Bytes of a client's name that the fence log keeps: 100,000 fences are to stay small whatever clients call
/// themselves.
const NAME_BYTES_MAX: usize = 255;

/// A name, cut where it is too long.
fn cut(name: &Arc<str>) -> Arc<str> {
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    if end == name.len() { Arc::clone(name) } else { Arc::from(&name[..end]) }
}

impl ClientInfo {
    /// The author of an event, for this API.
    #[must_use]
    pub fn author(&self, api: &str) -> Author {
        Author {
            client_id: cut(&self.client_id),
            software: cut(&self.software),
            address: Arc::clone(&self.address),
            api: api.to_owned(),
        }
    }
}

/// A request body with the version it came in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked<T> {
    /// The API's version.
    pub version: i16,
    /// The body.
    pub body: T,
}

/// A request that only the node can answer.
#[derive(Clone, Debug)]
pub enum Call {
    /// Produce, its batches checked.
    Produce(ProduceCall),
    /// OffsetCommit.
    OffsetCommit(Asked<OffsetCommitRequest>),
    /// OffsetFetch.
    OffsetFetch(Asked<OffsetFetchRequest>),
    /// JoinGroup.
    JoinGroup(Asked<JoinGroupRequest>),
    /// Heartbeat.
    Heartbeat(Asked<HeartbeatRequest>),
    /// LeaveGroup.
    LeaveGroup(Asked<LeaveGroupRequest>),
    /// SyncGroup.
    SyncGroup(Asked<SyncGroupRequest>),
    /// ConsumerGroupHeartbeat.
    ConsumerGroupHeartbeat(Asked<ConsumerGroupHeartbeatRequest>),
    /// DeleteGroups.
    DeleteGroups(Asked<DeleteGroupsRequest>),
    /// OffsetDelete.
    OffsetDelete(Asked<OffsetDeleteRequest>),
    /// StreamsGroupHeartbeat.
    StreamsGroupHeartbeat(Box<Asked<StreamsGroupHeartbeatRequest>>),
    /// CreateTopics.
    CreateTopics(Asked<CreateTopicsRequest>),
    /// DeleteTopics.
    DeleteTopics(Asked<DeleteTopicsRequest>),
    /// DeleteRecords.
    DeleteRecords(Asked<DeleteRecordsRequest>),
    /// AlterConfigs.
    AlterConfigs(Asked<AlterConfigsRequest>),
    /// IncrementalAlterConfigs.
    IncrementalAlterConfigs(Asked<IncrementalAlterConfigsRequest>),
    /// CreatePartitions.
    CreatePartitions(Asked<CreatePartitionsRequest>),
    /// InitProducerId.
    InitProducerId(Asked<InitProducerIdRequest>),
    /// AddPartitionsToTxn.
    AddPartitionsToTxn(Asked<AddPartitionsToTxnRequest>),
    /// AddOffsetsToTxn.
    AddOffsetsToTxn(Asked<AddOffsetsToTxnRequest>),
    /// EndTxn.
    EndTxn(Asked<EndTxnRequest>),
    /// WriteTxnMarkers.
    WriteTxnMarkers(Asked<WriteTxnMarkersRequest>),
    /// TxnOffsetCommit.
    TxnOffsetCommit(Asked<TxnOffsetCommitRequest>),
    /// A question about the whole state.
    Inquire(Inquiry),
    /// Metadata named topics that do not exist and may be made: make them, then answer from the view.
    CreateMissing {
        /// The names, valid and unknown when the view was read.
        names: Vec<TopicName>,
        /// The request to answer afterwards.
        metadata: Asked<MetadataRequest>,
    },
}

impl Call {
    /// Part of a transaction in the classic protocol, where the epoch does not tell one transaction from the next:
    /// not to be executed once its client has gone (design section 4, the connection rule).
    #[must_use]
    pub const fn is_classic_transaction_request(&self) -> bool {
        match self {
            Self::AddPartitionsToTxn(_) | Self::AddOffsetsToTxn(_) => true,
            Self::TxnOffsetCommit(asked) => asked.version < 5,
            Self::EndTxn(asked) => asked.version < 5,
            Self::Produce(_)
            | Self::OffsetCommit(_)
            | Self::OffsetFetch(_)
            | Self::JoinGroup(_)
            | Self::Heartbeat(_)
            | Self::LeaveGroup(_)
            | Self::SyncGroup(_)
            | Self::ConsumerGroupHeartbeat(_)
            | Self::DeleteGroups(_)
            | Self::OffsetDelete(_)
            | Self::StreamsGroupHeartbeat(_)
            | Self::CreateTopics(_)
            | Self::DeleteTopics(_)
            | Self::DeleteRecords(_)
            | Self::AlterConfigs(_)
            | Self::IncrementalAlterConfigs(_)
            | Self::CreatePartitions(_)
            | Self::InitProducerId(_)
            | Self::WriteTxnMarkers(_)
            | Self::Inquire(_)
            | Self::CreateMissing { .. } => false,
        }
    }
}

/// A request on its way to the node.
#[derive(Clone, Debug)]
pub struct NodeRequest {
    /// The connection it came on.
    pub connection: ConnectionNumber,
    /// Names it in the answer.
    pub token: RequestToken,
    /// Who asks.
    pub client: Arc<ClientInfo>,
    /// What is asked.
    pub call: Call,
}

/// What the node takes.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request, in the order of its connection.
    Request(NodeRequest),
    /// A connection was closed: nothing of it needs to be remembered.
    ConnectionClosed(ConnectionNumber),
    /// The moment of [`Outputs::wake_at`] has come (or any other: nothing happens early).
    Wake,
}

/// What the node gives back. The caller submits the proposal first; every answer then waits until the last sequence
/// submitted so far is published.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// To be submitted to the log as a whole.
    pub proposal: Option<Proposal>,
    /// Answers, in order. They rest on the proposal, or, without one, on everything proposed before.
    pub answers: Vec<Answer>,
    /// Connections to close without a further answer.
    pub close: Vec<ConnectionNumber>,
    /// When to send [`Input::Wake`]; `None` for never. Replaces the one before.
    pub wake_at: Option<Now>,
    /// The log could not say yet whether there is room: nothing was decided; send this input again, before any
    /// other, when the log reports an outcome.
    pub deferred: Option<Input>,
    /// For the server's log, rate-limited there: what a client did wrong.
    pub notes: Vec<String>,
    /// The fences that this step made, the oldest first: one line each in the server's log, rate-limited there.
    pub fences: Vec<Arc<Fence>>,
}

/// Everything that an administrator may ask about, as it is after everything proposed: for descriptions that are made
/// off the node's thread. It may be shown once all of that is published.
#[derive(Clone)]
pub struct Inspection {
    /// What the log holds.
    pub state: State,
    /// What was refused of each transactional id since the start.
    pub refused: RefusedById,
    /// What is known of groups beside the state.
    pub groups: semel_groups::Volatile,
}

/// What was refused, by transactional id.
pub type RefusedById = rpds::RedBlackTreeMapSync<TransactionalId, Refused>;

/// An answer of the node.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The connection that asked.
    pub connection: ConnectionNumber,
    /// Which request.
    pub token: RequestToken,
    /// What is answered.
    pub reply: NodeReply,
}

/// What the node answers to one request.
#[derive(Clone, Debug)]
pub enum NodeReply {
    /// This, once what it rests on is visible.
    Reply(Reply),
    /// Whatever this reads from the published view once what it rests on is visible.
    View(ViewCall),
    /// What this finds in its copy of the state, built off the node's thread and off the network's.
    State(StateCall),
    /// Nothing is written (Produce with acks 0); the request is done.
    Nothing,
}
