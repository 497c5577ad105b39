//! Every event of the one log, one numbered file each, and what readers may see of it.
//!
//! Purpose: an [`Event`] is everything that `apply` takes, live and on replay; its written format is in
//! `docs/formats/events.md`. Invariants: an event is complete (whatever was random, configured or read from a clock
//! and matters later stands in it); numbers and versions are never reused; an unknown number or a newer version is
//! refused with an error that says so. What it does not do: decide anything, hold state, know files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod codec;
#[macro_use]
mod define;

mod blob;
mod e001_shard_started;
mod e002_producer_ids_reserved;
mod e003_topic_created;
mod e004_topic_deleted;
mod e005_records_deleted;
mod e006_topic_settings_changed;
mod e007_partitions_added;
mod e010_batch_appended;
mod e011_producers_shrunk;
mod e012_stubs_dropped;
mod e020_transactional_id_initialized;
mod e021_transaction_extended;
mod e022_transaction_ended;
mod e023_transactional_id_expired;
mod e030_offsets_committed;
mod e031_pending_offsets_added;
mod e032_group_generation_started;
mod e033_group_assigned;
mod e034_group_member_replaced;
mod e035_group_members_removed;
mod e036_group_deleted;
mod e037_offsets_deleted;
mod e038_consumer_member_changed;
mod e039_consumer_epoch_started;
mod e040_consumer_member_reconciled;
mod e041_consumer_members_removed;
mod e042_consumer_member_replaced;
mod e043_group_kind_changed;
mod e044_streams_topology_set;
mod e045_streams_member_changed;
mod e046_streams_epoch_started;
mod e047_streams_target_set;
mod e048_streams_member_reconciled;
mod e049_streams_members_removed;
mod e050_group_settings_changed;
mod visible;

pub use blob::Blob;
pub use codec::{Decode, DecodeError, Encode, Reader};
pub use e001_shard_started::ShardStarted;
pub use e002_producer_ids_reserved::ProducerIdsReserved;
pub use e003_topic_created::{Setting, TopicCreated};
pub use e004_topic_deleted::TopicDeleted;
pub use e005_records_deleted::{LogStart, RecordsDeleted};
pub use e006_topic_settings_changed::TopicSettingsChanged;
pub use e007_partitions_added::PartitionsAdded;
pub use e010_batch_appended::{BatchAppended, BatchProducer};
pub use e011_producers_shrunk::ProducersShrunk;
pub use e012_stubs_dropped::StubsDropped;
pub use e020_transactional_id_initialized::{Author, InitCause, TransactionalIdInitialized};
pub use e021_transaction_extended::{Protocol, TransactionExtended};
pub use e022_transaction_ended::{EndCause, Marker, Outcome, TransactionEnded};
pub use e023_transactional_id_expired::TransactionalIdExpired;
pub use e030_offsets_committed::{CommittedOffset, OffsetsCommitted};
pub use e031_pending_offsets_added::PendingOffsetsAdded;
pub use e032_group_generation_started::{GroupGenerationStarted, GroupMember, GroupProtocol};
pub use e033_group_assigned::{GroupAssigned, GroupAssignment};
pub use e034_group_member_replaced::GroupMemberReplaced;
pub use e035_group_members_removed::GroupMembersRemoved;
pub use e036_group_deleted::GroupDeleted;
pub use e037_offsets_deleted::OffsetsDeleted;
pub use e038_consumer_member_changed::{ClassicTraits, ConsumerMember, ConsumerMemberChanged};
pub use e039_consumer_epoch_started::{ConsumerEpochStarted, ConsumerTarget};
pub use e040_consumer_member_reconciled::{ConsumerMemberReconciled, ConsumerProgress, OwnedPartition};
pub use e041_consumer_members_removed::ConsumerMembersRemoved;
pub use e042_consumer_member_replaced::ConsumerMemberReplaced;
pub use e043_group_kind_changed::{GroupKind, GroupKindChanged};
pub use e044_streams_topology_set::{
    StreamsCopartition, StreamsInternalTopic, StreamsPair, StreamsSubtopology, StreamsTopology,
    StreamsTopologySet,
};
pub use e045_streams_member_changed::{StreamsEndpoint, StreamsMember, StreamsMemberChanged};
pub use e046_streams_epoch_started::{StreamsEpochStarted, StreamsHandleRun, StreamsKnownTopic};
pub use e047_streams_target_set::{StreamsTarget, StreamsTargetSet, StreamsTaskId};
pub use e048_streams_member_reconciled::{
    StreamsActiveTask, StreamsHeldTasks, StreamsMemberReconciled, StreamsProgress,
};
pub use e049_streams_members_removed::StreamsMembersRemoved;
pub use e050_group_settings_changed::GroupSettingsChanged;
pub use visible::{AbortedTransaction, Visible};

/// The pattern of every event about who belongs to a group and what each member got, of all kinds of groups: for the
/// `match` of somebody to whom they are all the same. It names each event, so that such a match stays exhaustive.
#[macro_export]
macro_rules! membership_event {
    () => {
        $crate::Event::GroupGenerationStarted(_)
            | $crate::Event::GroupAssigned(_)
            | $crate::Event::GroupMemberReplaced(_)
            | $crate::Event::GroupMembersRemoved(_)
            | $crate::Event::ConsumerMemberChanged(_)
            | $crate::Event::ConsumerEpochStarted(_)
            | $crate::Event::ConsumerMemberReconciled(_)
            | $crate::Event::ConsumerMembersRemoved(_)
            | $crate::Event::ConsumerMemberReplaced(_)
            | $crate::Event::GroupKindChanged(_)
            | $crate::Event::StreamsTopologySet(_)
            | $crate::Event::StreamsMemberChanged(_)
            | $crate::Event::StreamsEpochStarted(_)
            | $crate::Event::StreamsTargetSet(_)
            | $crate::Event::StreamsMemberReconciled(_)
            | $crate::Event::StreamsMembersRemoved(_)
    };
}

define::events! {
    1 ShardStarted, version 1;
    2 ProducerIdsReserved, version 1;
    3 TopicCreated, version 1;
    4 TopicDeleted, version 1;
    5 RecordsDeleted, version 1;
    6 TopicSettingsChanged, version 1;
    7 PartitionsAdded, version 1;
    10 BatchAppended, version 1;
    11 ProducersShrunk, version 1;
    12 StubsDropped, version 1;
    20 TransactionalIdInitialized, version 1;
    21 TransactionExtended, version 1;
    22 TransactionEnded, version 1;
    23 TransactionalIdExpired, version 1;
    30 OffsetsCommitted, version 1;
    31 PendingOffsetsAdded, version 1;
    32 GroupGenerationStarted, version 1;
    33 GroupAssigned, version 1;
    34 GroupMemberReplaced, version 1;
    35 GroupMembersRemoved, version 1;
    36 GroupDeleted, version 1;
    37 OffsetsDeleted, version 1;
    38 ConsumerMemberChanged, version 1;
    39 ConsumerEpochStarted, version 1;
    40 ConsumerMemberReconciled, version 1;
    41 ConsumerMembersRemoved, version 1;
    42 ConsumerMemberReplaced, version 1;
    43 GroupKindChanged, version 1;
    50 GroupSettingsChanged, version 1;
    44 StreamsTopologySet, version 1;
    45 StreamsMemberChanged, version 1;
    46 StreamsEpochStarted, version 1;
    47 StreamsTargetSet, version 1;
    48 StreamsMemberReconciled, version 1;
    49 StreamsMembersRemoved, version 1;
}

#[cfg(test)]
mod tests;
