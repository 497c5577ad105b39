//! Event 31: a transaction carries offsets (TxnOffsetCommit); they wait for its end.

use alloc::vec::Vec;

use semel_types::{GroupId, Now, ProducerStamp, TransactionNumber, TransactionalId};

use crate::CommittedOffset;

record! {
    /// Offsets that become visible when the transaction commits and vanish when it aborts.
    PendingOffsetsAdded {
        /// Which group.
        group: GroupId,
        /// Whose transaction.
        id: TransactionalId,
        /// The identity that sent them.
        stamp: ProducerStamp,
        /// Which transaction.
        number: TransactionNumber,
        /// The offsets.
        offsets: Vec<CommittedOffset>,
        /// When.
        now: Now,
    }
}
