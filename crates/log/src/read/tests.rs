//! Reading: what a reader is given of a partition, and where it stops.

use super::*;

#[test]
fn nothing_is_planned_of_an_unknown_partition() {
    let request = ReadRequest {
        partition: PartitionHandle::new(3),
        offset: Offset::ZERO,
        max_bytes: 1,
        at_least_one: true,
        isolation: Isolation::ReadCommitted,
    };
    assert_eq!(View::default().plan(&request).err(), Some(ReadRefusal::UnknownPartition));
}
