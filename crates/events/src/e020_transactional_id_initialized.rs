//! Event 20: a transactional id got an identity (InitProducerId, KIP-98, KIP-360).

use alloc::{string::String, sync::Arc};
use core::fmt;

use semel_types::{DurationMs, Now, ProducerStamp, TransactionalId, WallTime};

record! {
    /// Who asked: what the fence log tells the victim.
    Author {
        /// `client.id` of the request.
        client_id: Arc<str>,
        /// Software name and version from ApiVersions, empty if not told.
        software: Arc<str>,
        /// Address of the other side.
        address: Arc<str>,
        /// Name of the API, or of the command.
        api: String,
    }
}

/// For people, without the API; parts that are not known are left out.
impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client_id, software, address, .. } = self;
        write!(f, "client \"{client_id}\"")?;
        match (software.is_empty(), address.is_empty()) {
            (false, false) => write!(f, " ({software}, {address})"),
            (true, true) => Ok(()),
            (true, false) => write!(f, " ({address})"),
            (false, true) => write!(f, " ({software})"),
        }
    }
}

choice! {
    /// Why an identity was given.
    InitCause {
        /// The id was new, unknown or expired.
        New = 0,
        /// A new instance took the id: the old identity is fenced.
        Takeover = 1,
        /// The owner itself recovered (KIP-360).
        Recovery = 2,
    }
}

record! {
    /// A transactional id got an identity. What was open was ended by an event before it in the same decision.
    TransactionalIdInitialized {
        /// Which id.
        id: TransactionalId,
        /// Why.
        cause: InitCause,
        /// The identity from here on. A producer id other than the one before closes the old slot for good.
        identity: ProducerStamp,
        /// The pair that the request carried (KIP-360): becomes the remembered pair; `None` clears it.
        carried: Option<ProducerStamp>,
        /// The transaction timeout from here on.
        timeout: DurationMs,
        /// Who asked.
        author: Author,
        /// When, by the broker's clock.
        now: Now,
        /// When, for people.
        wall: WallTime,
    }
}
