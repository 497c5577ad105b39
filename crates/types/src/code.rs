//! Every wire error code that Semel can answer, with its number and whether clients retry it.

use core::fmt;

macro_rules! codes {
    ($($number:literal $name:ident $text:literal $retriable:literal;)*) => {
        /// A Kafka error code (upstream `org.apache.kafka.common.protocol.Errors`).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("Code ", stringify!($number), ", `", $text, "`.")]
                $name = $number,
            )*
        }

        impl ErrorCode {
            /// Every code that Semel knows, in rising order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Kafka's own name of the code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// True if Kafka's clients retry it by themselves.
            #[must_use]
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(Self::$name => $retriable,)*
                }
            }

            /// From the wire; `None` for a number that Semel never uses.
            #[must_use]
            pub const fn from_wire(raw: i16) -> Option<Self> {
                match raw {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    -1 UnknownServerError "UNKNOWN_SERVER_ERROR" false;
    0 None "NONE" false;
    1 OffsetOutOfRange "OFFSET_OUT_OF_RANGE" false;
    2 CorruptMessage "CORRUPT_MESSAGE" true;
    3 UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" true;
    4 InvalidFetchSize "INVALID_FETCH_SIZE" false;
    5 LeaderNotAvailable "LEADER_NOT_AVAILABLE" true;
    6 NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" true;
    7 RequestTimedOut "REQUEST_TIMED_OUT" true;
    8 BrokerNotAvailable "BROKER_NOT_AVAILABLE" false;
    9 ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" true;
    10 MessageTooLarge "MESSAGE_TOO_LARGE" false;
    11 StaleControllerEpoch "STALE_CONTROLLER_EPOCH" false;
    12 OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" false;
    13 NetworkException "NETWORK_EXCEPTION" true;
    14 CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" true;
    15 CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" true;
    16 NotCoordinator "NOT_COORDINATOR" true;
    17 InvalidTopicException "INVALID_TOPIC_EXCEPTION" false;
    18 RecordListTooLarge "RECORD_LIST_TOO_LARGE" false;
    19 NotEnoughReplicas "NOT_ENOUGH_REPLICAS" true;
    20 NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" true;
    21 InvalidRequiredAcks "INVALID_REQUIRED_ACKS" false;
    22 IllegalGeneration "ILLEGAL_GENERATION" false;
    23 InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" false;
    24 InvalidGroupId "INVALID_GROUP_ID" false;
    25 UnknownMemberId "UNKNOWN_MEMBER_ID" false;
    26 InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" false;
    27 RebalanceInProgress "REBALANCE_IN_PROGRESS" false;
    28 InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" false;
    29 TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" false;
    30 GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" false;
    31 ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" false;
    32 InvalidTimestamp "INVALID_TIMESTAMP" false;
    33 UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" false;
    34 IllegalSaslState "ILLEGAL_SASL_STATE" false;
    35 UnsupportedVersion "UNSUPPORTED_VERSION" false;
    36 TopicAlreadyExists "TOPIC_ALREADY_EXISTS" false;
    37 InvalidPartitions "INVALID_PARTITIONS" false;
    38 InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" false;
    39 InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" false;
    40 InvalidConfig "INVALID_CONFIG" false;
    41 NotController "NOT_CONTROLLER" true;
    42 InvalidRequest "INVALID_REQUEST" false;
    43 UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" false;
    44 PolicyViolation "POLICY_VIOLATION" false;
    45 OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" false;
    46 DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" false;
    47 InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" false;
    48 InvalidTxnState "INVALID_TXN_STATE" false;
    49 InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" false;
    50 InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" false;
    51 ConcurrentTransactions "CONCURRENT_TRANSACTIONS" true;
    52 TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" false;
    53 TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" false;
    54 SecurityDisabled "SECURITY_DISABLED" false;
    55 OperationNotAttempted "OPERATION_NOT_ATTEMPTED" false;
    56 KafkaStorageError "KAFKA_STORAGE_ERROR" true;
    57 LogDirNotFound "LOG_DIR_NOT_FOUND" false;
    58 SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" false;
    59 UnknownProducerId "UNKNOWN_PRODUCER_ID" false;
    60 ReassignmentInProgress "REASSIGNMENT_IN_PROGRESS" false;
    68 NonEmptyGroup "NON_EMPTY_GROUP" false;
    69 GroupIdNotFound "GROUP_ID_NOT_FOUND" false;
    70 FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" true;
    71 InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" true;
    72 ListenerNotFound "LISTENER_NOT_FOUND" true;
    73 TopicDeletionDisabled "TOPIC_DELETION_DISABLED" false;
    74 FencedLeaderEpoch "FENCED_LEADER_EPOCH" true;
    75 UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" true;
    76 UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" false;
    77 StaleBrokerEpoch "STALE_BROKER_EPOCH" false;
    78 OffsetNotAvailable "OFFSET_NOT_AVAILABLE" true;
    79 MemberIdRequired "MEMBER_ID_REQUIRED" false;
    80 PreferredLeaderNotAvailable "PREFERRED_LEADER_NOT_AVAILABLE" true;
    81 GroupMaxSizeReached "GROUP_MAX_SIZE_REACHED" false;
    82 FencedInstanceId "FENCED_INSTANCE_ID" false;
    83 EligibleLeadersNotAvailable "ELIGIBLE_LEADERS_NOT_AVAILABLE" true;
    84 ElectionNotNeeded "ELECTION_NOT_NEEDED" true;
    85 NoReassignmentInProgress "NO_REASSIGNMENT_IN_PROGRESS" false;
    86 GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" false;
    87 InvalidRecord "INVALID_RECORD" false;
    88 UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" true;
    89 ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" true;
    90 ProducerFenced "PRODUCER_FENCED" false;
    91 ResourceNotFound "RESOURCE_NOT_FOUND" false;
    92 DuplicateResource "DUPLICATE_RESOURCE" false;
    93 UnacceptableCredential "UNACCEPTABLE_CREDENTIAL" false;
    100 UnknownTopicId "UNKNOWN_TOPIC_ID" true;
    103 InconsistentTopicId "INCONSISTENT_TOPIC_ID" true;
    105 TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" false;
    106 FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" true;
    110 FencedMemberEpoch "FENCED_MEMBER_EPOCH" false;
    111 UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" false;
    112 UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" false;
    113 StaleMemberEpoch "STALE_MEMBER_EPOCH" false;
    120 TransactionAbortable "TRANSACTION_ABORTABLE" false;
    128 InvalidRegularExpression "INVALID_REGULAR_EXPRESSION" false;
    129 RebootstrapRequired "REBOOTSTRAP_REQUIRED" false;
    130 StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" false;
    131 StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" false;
    132 StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" false;
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> i16 {
        self as i16
    }

    /// True for anything but `None`.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::None)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_wire(code.get()), Some(*code));
        }
        assert_eq!(ErrorCode::from_wire(12345), None);
    }
}
