//! The one table that turns a refusal into a wire code, by API and version.
//!
//! Purpose: nowhere else does a refusal of the core become a number. Invariants: every refusal has an answer for
//! every API and version, and none is -1; a refusal that a version cannot name is answered with the code that
//! version's clients understand (kafka-facts 3.3 to 3.7). What it does not do: decide, or compare epochs.

use semel_eos::Refusal;
use semel_types::{
    ErrorCode,
    mutation::{Mutation, mutated},
};
use semel_wire::ApiKey;

/// How a refused request is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// With this code.
    Code(ErrorCode),
    /// Not at all: its connection is closed.
    Close,
}

/// Where a refusal is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The API.
    pub api: ApiKey,
    /// Its version.
    pub version: i16,
}

/// The table.
#[must_use]
pub fn answer(refusal: &Refusal, at: At) -> Answered {
    Answered::Code(match refusal {
        Refusal::SupersededConnection { .. } => return Answered::Close,
        Refusal::Fenced { .. } => fenced(at),
        Refusal::UnknownTransactionalId { .. }
        | Refusal::OtherProducer { .. }
        | Refusal::WrongOwner { .. } => ErrorCode::InvalidProducerIdMapping,
        Refusal::PlainBatchOfOwnedId { .. } | Refusal::WrongState { .. } | Refusal::CommitByMarker { .. } => {
            ErrorCode::InvalidTxnState
        }
        Refusal::OutOfOrder { .. } | Refusal::StrayOfEndedTransaction { .. } => {
            ErrorCode::OutOfOrderSequenceNumber
        }
        Refusal::ForgottenProducer { .. } => ErrorCode::UnknownProducerId,
        Refusal::AlreadyStored { .. } | Refusal::OtherPayload { .. } => ErrorCode::DuplicateSequenceNumber,
        Refusal::UnknownPartition { .. } => ErrorCode::UnknownTopicOrPartition,
        Refusal::NotInTransaction { .. } | Refusal::GroupNotInTransaction { .. } => {
            abortable_or(at, ErrorCode::InvalidTxnState)
        }
        Refusal::AbortedMeanwhile { .. } => abortable_or(at, fenced(at)),
        Refusal::ConcurrentTransactions { .. } => ErrorCode::ConcurrentTransactions,
        // An unlisted code makes clients abort the transaction, which is what is wanted; 48 would kill them.
        Refusal::TooManyPartitions { .. } => abortable_or(at, ErrorCode::PolicyViolation),
        Refusal::EmptyTransactionalId | Refusal::HalfAPair => ErrorCode::InvalidRequest,
        Refusal::InvalidTimeout { .. } => ErrorCode::InvalidTransactionTimeout,
    })
}

/// From which version on an API's clients know a code.
type Since = [(ApiKey, i16)];

/// 90 PRODUCER_FENCED (KIP-588). Not on Produce, TxnOffsetCommit and markers: those say 47 at every version.
const KNOWS_PRODUCER_FENCED: &Since = &[
    (ApiKey::InitProducerId, 4),
    (ApiKey::AddPartitionsToTxn, 2),
    (ApiKey::AddOffsetsToTxn, 2),
    (ApiKey::EndTxn, 2),
];

/// 120 TRANSACTION_ABORTABLE (KIP-890, KIP-1050).
const KNOWS_ABORTABLE: &Since = &[
    (ApiKey::Produce, 11),
    (ApiKey::InitProducerId, 5),
    (ApiKey::AddPartitionsToTxn, 4),
    (ApiKey::AddOffsetsToTxn, 4),
    (ApiKey::EndTxn, 4),
    (ApiKey::TxnOffsetCommit, 4),
];

/// 69 GROUP_ID_NOT_FOUND where 22 was told before (KIP-848, KIP-1319).
const KNOWS_GROUP_NOT_FOUND: &Since = &[(ApiKey::OffsetCommit, 9), (ApiKey::TxnOffsetCommit, 6)];

/// 113 STALE_MEMBER_EPOCH where 22 was told before (KIP-848, KIP-1319).
const KNOWS_STALE_MEMBER: &Since =
    &[(ApiKey::OffsetCommit, 9), (ApiKey::OffsetFetch, 9), (ApiKey::TxnOffsetCommit, 6)];

fn knows(since: &Since, at: At) -> bool {
    since.iter().any(|(api, version)| *api == at.api && at.version >= *version)
}

/// A fenced identity: 90 where the version's clients know it, else 47: aiokafka and librdkafka rest on that.
#[must_use]
pub fn fenced(at: At) -> ErrorCode {
    let known = knows(KNOWS_PRODUCER_FENCED, at) || mutated(Mutation::FencedToOldClients);
    if known { ErrorCode::ProducerFenced } else { ErrorCode::InvalidProducerEpoch }
}

/// 120 where the version's clients know it, else another code.
fn abortable_or(at: At, otherwise: ErrorCode) -> ErrorCode {
    let known = knows(KNOWS_ABORTABLE, at) || mutated(Mutation::AbortableToOldClients);
    if known { ErrorCode::TransactionAbortable } else { otherwise }
}

/// A group's refusal. An unknown group with a generation is 22, or 69 where the version has it.
#[must_use]
pub fn group_answer(refusal: semel_groups::Refusal, at: At) -> ErrorCode {
    let is_unknown = refusal == semel_groups::Refusal::UnknownGeneration;
    if is_unknown && knows(KNOWS_GROUP_NOT_FOUND, at) {
        return ErrorCode::GroupIdNotFound;
    }
    if refusal == semel_groups::Refusal::StaleMember && !knows(KNOWS_STALE_MEMBER, at) {
        return ErrorCode::IllegalGeneration;
    }
    group_code(refusal)
}

/// The same where the version makes no difference: of requests that were parked, too.
#[must_use]
pub const fn group_code(refusal: semel_groups::Refusal) -> ErrorCode {
    use semel_groups::Refusal as R;
    match refusal {
        R::InvalidGroupId => ErrorCode::InvalidGroupId,
        R::InvalidSessionTimeout => ErrorCode::InvalidSessionTimeout,
        R::MemberIdRequired => ErrorCode::MemberIdRequired,
        R::GroupFull => ErrorCode::GroupMaxSizeReached,
        R::AssignmentTooLarge => ErrorCode::InvalidRequest,
        R::InconsistentProtocol => ErrorCode::InconsistentGroupProtocol,
        R::FencedInstance => ErrorCode::FencedInstanceId,
        R::IllegalGeneration | R::UnknownGeneration => ErrorCode::IllegalGeneration,
        R::UnknownMember => ErrorCode::UnknownMemberId,
        R::RebalanceInProgress => ErrorCode::RebalanceInProgress,
        R::UnknownGroup => ErrorCode::GroupIdNotFound,
        R::NonEmpty => ErrorCode::NonEmptyGroup,
        R::Subscribed => ErrorCode::GroupSubscribedToTopic,
        R::UnstableOffset => ErrorCode::UnstableOffsetCommit,
        R::FencedMember => ErrorCode::FencedMemberEpoch,
        R::StaleMember => ErrorCode::StaleMemberEpoch,
        R::UnreleasedInstance => ErrorCode::UnreleasedInstanceId,
        R::UnsupportedAssignor => ErrorCode::UnsupportedAssignor,
        R::InvalidPattern => ErrorCode::InvalidRegularExpression,
        R::NeedsEpochs => ErrorCode::UnsupportedVersion,
        R::InvalidTopology => ErrorCode::StreamsInvalidTopology,
        R::InvalidHeartbeat(_) => ErrorCode::InvalidRequest,
    }
}

/// Kafka names the log start in Produce with refusals of the append itself, and clients decide by it (kafka-facts 1.3).
#[must_use]
pub const fn names_log_start(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::DuplicateSequenceNumber
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::InvalidTxnState
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidRecord
    )
}

#[cfg(test)]
mod tests;
