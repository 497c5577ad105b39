//! Event 21: a transaction started or grew (AddPartitionsToTxn, AddOffsetsToTxn, first Produce of version 2).

use alloc::vec::Vec;

use semel_types::{GroupId, Now, PartitionHandle, TransactionNumber, TransactionalId};

choice! {
    /// How a client drives a transaction (`transaction.version`, KIP-890).
    Protocol {
        /// Partitions are added by their own request; the epoch stays.
        Classic = 0,
        /// Partitions are added by the first write; every end bumps the epoch.
        Version2 = 2,
    }
}

record! {
    /// A transaction started or grew.
    TransactionExtended {
        /// Which transactional id.
        id: TransactionalId,
        /// The transaction's number; one more than the last if it starts here.
        number: TransactionNumber,
        /// The client's protocol.
        protocol: Protocol,
        /// Partitions added.
        partitions: Vec<PartitionHandle>,
        /// Groups added.
        groups: Vec<GroupId>,
        /// When; the start of the timeout if the transaction starts here.
        now: Now,
    }
}
