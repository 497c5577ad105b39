//! WriteTxnMarkers (key 27): a coordinator, or an operator, ends transactions in partitions.
//!
//! Versions: 1 is flexible. 2 says which version of transactions the marker belongs to (KIP-1228).

use alloc::vec::Vec;

use semel_types::PartitionIndex;

use crate::{RawCoordinatorEpoch, RawProducerEpoch, RawProducerId, Text, WireCode, message::message};

message! {
    /// Markers to write.
    pub struct WriteTxnMarkersRequest for WriteTxnMarkers {
        /// The markers.
        [0..] markers: Vec<WritableTxnMarker>,
    }
}

message! {
    /// The end of one producer's transaction.
    pub struct WritableTxnMarker {
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// Its epoch.
        [0..] producer_epoch: RawProducerEpoch = RawProducerEpoch(0),
        /// True commits, false aborts.
        [0..] transaction_result: bool,
        /// By topic.
        [0..] topics: Vec<WritableTxnMarkerTopic>,
        /// The coordinator's epoch.
        [0..] coordinator_epoch: RawCoordinatorEpoch = RawCoordinatorEpoch(0),
        /// 0 or 1 for the classic protocol, 2 for epochs that are bumped with each transaction.
        [2..] transaction_version: i8,
    }
}

message! {
    /// Partitions of one topic.
    pub struct WritableTxnMarkerTopic {
        /// The topic's name.
        [0..] name: Text,
        /// Its partitions.
        [0..] partition_indexes: Vec<PartitionIndex>,
    }
}

message! {
    /// What became of each marker.
    pub struct WriteTxnMarkersResponse for WriteTxnMarkers {
        /// By marker.
        [0..] markers: Vec<WritableTxnMarkerResult>,
    }
}

message! {
    /// Results of one marker.
    pub struct WritableTxnMarkerResult {
        /// The producer id.
        [0..] producer_id: RawProducerId = RawProducerId(0),
        /// By topic.
        [0..] topics: Vec<WritableTxnMarkerTopicResult>,
    }
}

message! {
    /// Results of one topic.
    pub struct WritableTxnMarkerTopicResult {
        /// The topic's name.
        [0..] name: Text,
        /// By partition.
        [0..] partitions: Vec<WritableTxnMarkerPartitionResult>,
    }
}

message! {
    /// The result of one partition.
    pub struct WritableTxnMarkerPartitionResult {
        /// The partition.
        [0..] partition_index: PartitionIndex,
        /// What went wrong, if anything.
        [0..] error_code: WireCode,
    }
}
