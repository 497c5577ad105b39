//! Event 10: a record batch was appended. Its bytes stand in the payload section of the same group.

use semel_types::{
    Now, Offset, PartitionHandle, PayloadChecksum, ProducerStamp, Sequence, TransactionNumber,
};

record! {
    /// Who wrote a batch, if an idempotent or transactional producer did.
    BatchProducer {
        /// Producer id and epoch.
        stamp: ProducerStamp,
        /// Sequence of the first record; the batch takes as many as it has records.
        first_sequence: Sequence,
        /// Checksum of the bytes after the header, by which a retry is known.
        checksum: PayloadChecksum,
        /// The transaction it belongs to; `None` for a plain batch.
        transaction: Option<TransactionNumber>,
    }
}

record! {
    /// A record batch was appended to a partition.
    BatchAppended {
        /// Which partition.
        partition: PartitionHandle,
        /// Offset of the first record.
        base_offset: Offset,
        /// Number of records, at least 1.
        count: u32,
        /// The producer, if it has an id.
        producer: Option<BatchProducer>,
        /// When the broker took it.
        now: Now,
    }
}
