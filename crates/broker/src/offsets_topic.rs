//! The topic in which Kafka keeps the offsets of groups. Here it does not exist; transactions that carry offsets are
//! described with its partitions, and an administrator names them to end such a transaction.

use semel_types::{GroupId, PartitionIndex};

/// Its name.
pub(crate) const NAME: &str = "__consumer_offsets";

/// Its partitions, as many as Kafka makes by default.
const PARTITIONS: i32 = 50;

/// True if this is one of its partitions.
pub(crate) fn has(topic: &str, partition: PartitionIndex) -> bool {
    topic == NAME && (0..PARTITIONS).contains(&partition.get())
}

/// The partition that Kafka keeps a group in: Java's hash of its name over UTF-16 code units.
pub(crate) fn partition_of(group: &GroupId) -> PartitionIndex {
    let units = group.as_str().encode_utf16();
    let hash = units.fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    PartitionIndex::new(hash.checked_abs().unwrap_or(0) % PARTITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_in_the_partition_where_kafka_keeps_it() {
        // As Java computes them; the hash of the last one is the smallest integer, whose absolute value is taken as 0.
        for (group, partition) in
            [("", 0), ("g", 3), ("my-group", 12), ("grüße", 23), ("polygenelubricants", 0)]
        {
            assert_eq!(partition_of(&GroupId::from(group)), PartitionIndex::new(partition), "{group}");
        }
    }
}
