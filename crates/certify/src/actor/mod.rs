//! Somebody who acts in a scenario: one connection, and the notation of a scenario as words.
//!
//! `A.init(x)`, `A.add(me, T-0)`, `A.produce(T-0, me, 0, ["a"])`, `A.end(me, Commit)`, `A.reads(T-0, ["a"])`: each word
//! sends one request (or, where it says so, asks until a busy broker is done) and gives an [`Answer`] to be judged.
//! Every exchange is noted in the scenario's [`Trace`]. What it does not do: judge (see [`Answer`]).

mod consumers;
mod groups;
mod listing;
mod look;
pub mod members;
mod operator;
pub mod produce;
mod read;
pub mod streams;
pub mod transact;

use std::{
    fmt,
    time::{Duration, Instant},
};

use semel_types::{ProducerEpoch, ProducerId};
use semel_wire::{Request, WireCode};

pub use consumers::{Beaten, Consumer};
pub use groups::GroupOffset;
pub use listing::{Filter, Listing};
pub use look::{Fetched, Listed, Look};
pub use members::{Joined, Member};
pub use operator::Marker;
pub use read::Ends;
pub use transact::Outcome;

use crate::{
    Answer, ClientError, Identity, Session, Trace,
    scenario::Kept,
    session::{Place, Versions},
};

/// How long a busy broker may take, and how long markers may take to arrive.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Between two questions to a broker that can only be asked.
const PAUSE: Duration = Duration::from_millis(5);

/// Answers of a broker that asks to be asked again: 14, 15, 16, 51.
pub(crate) const BUSY: [i16; 4] = [14, 15, 16, 51];

/// Who writes: an identity, and the transactional id it belongs to.
#[derive(Clone, PartialEq, Eq)]
pub struct Producer {
    /// The transactional id; `None` for a producer that is idempotent only.
    pub id: Option<String>,
    /// Producer id and epoch.
    pub stamp: Identity,
}

impl Producer {
    /// The same at another epoch.
    #[must_use]
    pub fn at_epoch(&self, epoch: i16) -> Self {
        let epoch = ProducerEpoch::from_wire(epoch).unwrap_or_default();
        Self { id: self.id.clone(), stamp: Identity { epoch, ..self.stamp } }
    }

    /// The same with another producer id.
    #[must_use]
    pub fn with_producer_id(&self, producer_id: i64) -> Self {
        Self { id: self.id.clone(), stamp: Identity { id: ProducerId::new(producer_id), ..self.stamp } }
    }

    /// The same identity outside of any transaction.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { id: None, stamp: self.stamp }
    }

    /// Its epoch.
    #[must_use]
    pub const fn epoch(&self) -> i16 {
        self.stamp.epoch.get()
    }

    /// Its producer id.
    #[must_use]
    pub const fn producer_id(&self) -> i64 {
        self.stamp.id.get()
    }

    /// The transactional id, empty for none.
    pub(crate) fn id_or_empty(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    fn said(&self) -> String {
        format!("producer {} epoch {}", self.producer_id(), self.epoch())
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said())
    }
}

/// One connection with the words of a scenario.
pub struct Actor {
    name: String,
    trace: Trace,
    /// The connection, for what has no word here.
    pub session: Session,
}

impl Actor {
    /// Connects; `name` is how reports call it.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn connect(name: &str, address: &str, trace: &Trace) -> Kept<Self> {
        let session = Session::connect(address)?;
        session.client.set_patience(PATIENCE)?;
        Ok(Self { name: name.to_owned(), trace: trace.clone(), session })
    }

    /// Speaks other versions from here on.
    #[must_use]
    pub fn speaking(mut self, versions: Versions) -> Self {
        self.session.versions = versions;
        self
    }

    /// Speaks `transaction.version` 2 from here on.
    #[must_use]
    pub fn version_2(self) -> Self {
        self.speaking(Versions::VERSION_2)
    }

    /// The same with other versions of some requests: `a.using(|versions| versions.end_txn = 1)`.
    pub fn using(&mut self, change: impl FnOnce(&mut Versions)) -> &mut Self {
        change(&mut self.session.versions);
        self
    }

    /// Sends any request; `said` is how a report calls it, `code` finds the answer's code.
    pub fn ask<Q: Request>(
        &mut self,
        said: &str,
        request: &Q,
        version: i16,
        code: impl FnOnce(&Q::Response) -> WireCode,
    ) -> Answer<Q::Response> {
        let came = self.session.client.call(request, version);
        self.noted(format!("{said} v{version}"), came.map(|response| (code(&response), response)))
    }

    /// An answer of this actor, noted down.
    fn noted<T>(&self, said: String, came: Result<(WireCode, T), ClientError>) -> Answer<T> {
        Answer::noted(&self.trace, format!("{}: {said}", self.name), came)
    }

    /// Asks until the broker is no longer busy (14, 15, 16, 51), as every client does.
    pub fn until_free<T>(&mut self, ask: impl FnMut(&mut Self) -> Answer<T>) -> Answer<T> {
        self.until_not(&BUSY, ask)
    }

    /// Asks what is in no transaction until the refusal of its own version comes: 48, or 120 since KIP-890.
    ///
    /// Apache Kafka verifies the requests of several clients together and answers one now and then with the code of
    /// another one's version; the next question is verified alone.
    pub fn until_own_version<T>(&mut self, due: i16, ask: impl FnMut(&mut Self) -> Answer<T>) -> Answer<T> {
        let others = if due == 48 { [120] } else { [48] };
        self.until_not(&others, ask)
    }

    /// Asks until something else than these codes comes.
    pub fn until_not<T>(&mut self, busy: &[i16], mut ask: impl FnMut(&mut Self) -> Answer<T>) -> Answer<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = ask(self);
            let is_busy = answer.code().is_some_and(|code| busy.contains(&code));
            if !is_busy || Instant::now() > deadline {
                return answer;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Asks again until a condition holds or [`PATIENCE`] is over; gives what was seen last.
fn wait_for<T>(mut look: impl FnMut() -> Kept<T>, holds: impl Fn(&T) -> bool) -> Kept<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = look()?;
        if holds(&seen) || Instant::now() > deadline {
            return Ok(seen);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Places for people.
fn said(places: &[&Place]) -> String {
    places.iter().map(|place| format!("{}-{}", place.topic, place.index)).collect::<Vec<_>>().join(", ")
}
