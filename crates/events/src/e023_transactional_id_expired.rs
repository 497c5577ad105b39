//! Event 23: a transactional id was forgotten (`transactional.id.expiration.ms`).

use semel_types::{Now, ProducerStamp, TransactionalId};

record! {
    /// A transactional id was idle for too long and is forgotten; its slot is closed, so that an old owner is still
    /// refused.
    TransactionalIdExpired {
        /// Which id.
        id: TransactionalId,
        /// Its last identity.
        identity: ProducerStamp,
        /// When.
        now: Now,
    }
}
