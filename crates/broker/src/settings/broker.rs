//! The broker's settings.

use super::{
    Definition,
    Effect::{Active, StoredOnly},
    Kind::{self, Boolean, Choice, Int, List, Long},
    definition::Effect,
};

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;
const MIB: i64 = 1 << 20;

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    effect: Effect,
    doc: &'static str,
) -> Definition {
    Definition { name, kind, default: Some(default), effect, doc }
}

const fn unset(name: &'static str, kind: Kind, doc: &'static str) -> Definition {
    Definition { name, kind, default: None, effect: StoredOnly, doc }
}

/// Every broker setting, in the order in which they are listed for people.
#[rustfmt::skip]
pub static BROKER: &[Definition] = &[
    setting("node.id", Int(0, I32), "1", Active, "The number by which clients know this node."),
    setting("num.partitions", Int(1, 10_000), "1", Active, "Partitions of a topic that is made without a count."),
    setting("default.replication.factor", Int(1, 1), "1", Active, "Copies of a new topic; one node has one."),
    setting("auto.create.topics.enable", Boolean, "true", Active, "Topics are made when a client first asks for their metadata."),
    setting("message.max.bytes", Int(0, 100 * MIB), "1048588", Active, "Largest record batch of a topic without max.message.bytes."),
    setting("socket.request.max.bytes", Int(1, I32), "104857600", Active, "Largest request; a larger one closes the connection."),
    setting("queued.max.request.bytes", Long(MIB, I64), "268435456", Active, "Bound of the memory of requests that wait (Kafka's default has none)."),
    setting("fetch.max.bytes", Int(1024, I32), "57671680", Active, "Largest Fetch answer, whatever the client asks."),
    setting("connections.max.idle.ms", Long(-1, I64), "600000", Active, "A connection without a request for this long is closed; -1: never."),
    setting("transaction.max.timeout.ms", Int(1, I32), "900000", Active, "Longest transaction timeout that a producer may ask for."),
    setting("producer.id.expiration.ms", Int(1, I32), "86400000", Active, "An idle producer's entry shrinks to a stub after this long; it is not forgotten."),
    setting("transactional.id.expiration.ms", Int(1, I32), "604800000", Active, "A transactional id without transactions for this long is forgotten."),
    setting("semel.producer.stubs.max", Long(0, I64), "16777216", Active, "Stubs of idle producers that are kept; beyond it the oldest go first."),
    setting("semel.snapshot.interval.bytes", Long(4096, I64), "67108864", Active, "Bytes of events after which the state is written out, so that a start has less to replay."),
    setting("semel.transaction.version", Int(0, 2), "2", Active, "Level of the finalized feature transaction.version that clients are told (2: KIP-890)."),
    setting("offset.metadata.max.bytes", Int(0, I32), "4096", Active, "Longest note of a committed offset."),
    setting("records.validation", Choice(&["header", "strict"]), "header", StoredOnly, "strict: compressed batches are unpacked and their records counted."),
    setting("offsets.retention.minutes", Int(1, I32), "10080", Active, "Committed offsets of an empty group, and those of topics that a group no longer reads, are kept for this long."),
    setting("offsets.retention.check.interval.ms", Long(1, I64), "600000", Active, "How often offsets are looked at that may be too old."),
    setting("group.initial.rebalance.delay.ms", Int(0, I32), "3000", Active, "Wait for more members before the first rebalance of a group."),
    setting("group.min.session.timeout.ms", Int(1, I32), "6000", Active, "Shortest session timeout of a group member."),
    setting("group.max.session.timeout.ms", Int(1, I32), "1800000", Active, "Longest session timeout of a group member."),
    setting("group.consumer.session.timeout.ms", Int(1, I32), "45000", Active, "Silence after which a member of a consumer group (KIP-848) is taken for dead."),
    setting("group.consumer.heartbeat.interval.ms", Int(1, I32), "5000", Active, "How often members of consumer groups are told to say that they are alive."),
    setting("group.consumer.min.session.timeout.ms", Int(1, I32), "45000", StoredOnly, "Shortest session timeout that a consumer group may be given."),
    setting("group.consumer.max.session.timeout.ms", Int(1, I32), "60000", StoredOnly, "Longest session timeout that a consumer group may be given."),
    setting("group.consumer.min.heartbeat.interval.ms", Int(1, I32), "5000", StoredOnly, "Shortest heartbeat interval that a consumer group may be given."),
    setting("group.consumer.max.heartbeat.interval.ms", Int(1, I32), "15000", StoredOnly, "Longest heartbeat interval that a consumer group may be given."),
    setting("group.consumer.max.size", Int(1, I32), "2147483647", Active, "Most members of a consumer group."),
    setting("group.consumer.assignors", List(&["uniform", "range"]), "uniform,range", Active, "Assignors of consumer groups, the default first."),
    setting("group.consumer.migration.policy", Choice(&["disabled", "downgrade", "upgrade", "bidirectional"]), "bidirectional", Active, "Which way groups may change between the classic protocol and KIP-848 while they have members."),
    setting("group.max.size", Int(1, I32), "2147483647", Active, "Most members of a group."),
    setting("delete.topic.enable", Boolean, "true", Active, "Topics can be deleted."),
    setting("compression.type", Choice(super::topic::COMPRESSIONS), "producer", StoredOnly, "Compression of stored batches; they are kept as the producer sent them."),
    setting("min.insync.replicas", Int(1, I32), "1", StoredOnly, "Copies that must have a batch; one node has one."),
    setting("unclean.leader.election.enable", Boolean, "false", StoredOnly, "A copy that lags may lead; one node has none."),
    setting("log.cleanup.policy", List(&["delete", "compact"]), "delete", Active, "What happens to old records; compact refuses records without key."),
    unset("log.retention.ms", Long(-1, I64), "Age at which records may be deleted."),
    unset("log.retention.minutes", Int(-1, I32), "Age at which records may be deleted, if log.retention.ms is unset."),
    setting("log.retention.hours", Int(-1, I32), "168", StoredOnly, "Age at which records may be deleted, if the finer settings are unset."),
    setting("log.retention.bytes", Long(-1, I64), "-1", StoredOnly, "Size of a partition beyond which old records may be deleted."),
    setting("log.retention.check.interval.ms", Long(1, I64), "300000", StoredOnly, "How often retention is applied."),
    setting("log.segment.bytes", Int(MIB, I32), "1073741824", Active, "Largest batch that a partition takes (Kafka: the segment's size)."),
    unset("log.roll.ms", Long(1, I64), "Longest time before a new segment."),
    setting("log.roll.hours", Int(1, I32), "168", StoredOnly, "Longest time before a new segment, if log.roll.ms is unset."),
    unset("log.roll.jitter.ms", Long(0, I64), "Spread of the time before a new segment."),
    setting("log.index.size.max.bytes", Int(4, I32), "10485760", StoredOnly, "Size of a segment's index."),
    setting("log.index.interval.bytes", Int(0, I32), "4096", StoredOnly, "Bytes between two entries of a segment's index."),
    setting("log.flush.interval.messages", Long(1, I64), "9223372036854775807", StoredOnly, "Records between two syncs; see --durability instead."),
    unset("log.flush.interval.ms", Long(0, I64), "Time between two syncs; see --durability instead."),
    setting("log.segment.delete.delay.ms", Long(0, I64), "60000", StoredOnly, "Wait before a file is removed."),
    setting("log.preallocate", Boolean, "false", StoredOnly, "Files are reserved ahead; they always are."),
    setting("log.message.timestamp.type", Choice(&["CreateTime", "LogAppendTime"]), "CreateTime", StoredOnly, "Whose clock stamps records."),
    setting("log.message.timestamp.before.max.ms", Long(0, I64), "9223372036854775807", StoredOnly, "How far in the past a record's time may be."),
    setting("log.message.timestamp.after.max.ms", Long(0, I64), "3600000", StoredOnly, "How far in the future a record's time may be."),
    setting("log.cleaner.delete.retention.ms", Long(0, I64), "86400000", StoredOnly, "How long tombstones are kept."),
    setting("log.cleaner.min.compaction.lag.ms", Long(0, I64), "0", StoredOnly, "How long a record is safe from compaction."),
    setting("log.cleaner.max.compaction.lag.ms", Long(1, I64), "9223372036854775807", StoredOnly, "How long a record may escape compaction."),
    setting("log.cleaner.min.cleanable.ratio", Kind::Double(0.0, 1.0), "0.5", StoredOnly, "Dead share at which compaction starts."),
    setting("log.local.retention.ms", Long(-2, I64), "-2", StoredOnly, "Age of records kept locally with tiered storage."),
    setting("log.local.retention.bytes", Long(-2, I64), "-2", StoredOnly, "Size kept locally with tiered storage."),
    setting("transaction.partition.verification.enable", Boolean, "true", StoredOnly, "Membership of a transaction is checked; it always is."),
    setting("transaction.two.phase.commit.enable", Boolean, "false", StoredOnly, "Two-phase commit (KIP-939); not built."),
    setting("offsets.topic.num.partitions", Int(1, I32), "50", StoredOnly, "Partitions of __consumer_offsets that descriptions name; the topic itself does not exist."),
];
