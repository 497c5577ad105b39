//! Requests that the published view answers: planned in one cut, read off the network's threads when cold, parked
//! while a long poll waits.

use std::{future::poll_fn, io, sync::Arc, task::Poll, time::Duration};

use semel_broker::{
    Call, Facts,
    api::{FetchPlan, Finished, OffsetsPlan, Reply, ViewAnswer, ViewCall},
};
use semel_log::{BlockCache, Changed, ReadError, ReadMode};
use tokio::{sync::Semaphore, time::Instant};

use crate::net::listener::Shared;

/// Cold reads in flight at a time: the disk gains nothing from more, and each holds a thread.
pub const COLD_READS_MAX: usize = 8;

/// A long poll that has not found enough yet.
pub struct LongPoll {
    deadline: Instant,
    changed: Changed,
}

/// How an attempt ended.
pub enum Attempt {
    /// This is the answer.
    Answered(Reply),
    /// The node has to do something first.
    Node(Call),
    /// There is not enough yet; try again when [`Parked::wait`] is over.
    Parked,
    /// The reading thread failed.
    Failed(io::Error),
}

/// The state of the request at the front while it waits.
#[derive(Default)]
pub struct Parked {
    waiting: Option<LongPoll>,
}

impl Parked {
    /// True while a long poll waits.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Completes when there may be more, or when the client has waited long enough.
    pub async fn wait(&mut self) {
        if let Some(LongPoll { deadline, changed }) = &mut self.waiting {
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(*deadline) => {}
            }
        }
    }

    /// One attempt at an answer.
    pub async fn attempt(&mut self, shared: &Arc<Shared>, facts: &Facts, call: &ViewCall) -> Attempt {
        match plan(shared, facts, call) {
            ViewAnswer::Reply(reply) => Attempt::Answered(reply),
            ViewAnswer::Node(call) => Attempt::Node(call),
            ViewAnswer::ListOffsets(plan) => read(shared, plan).await,
            ViewAnswer::Fetch(plan) => match self.enough(shared, facts, call, plan) {
                Some(plan) => read(shared, plan).await,
                None => Attempt::Parked,
            },
        }
    }

    /// The plan to be read: this one if there is enough or the time is up, else what a second look finds; `None` if
    /// that is not enough either, and the poll waits.
    fn enough(
        &mut self,
        shared: &Shared,
        facts: &Facts,
        call: &ViewCall,
        plan: FetchPlan,
    ) -> Option<FetchPlan> {
        let deadline = self.waiting.take().map(|poll| poll.deadline);
        let deadline = deadline.unwrap_or_else(|| Instant::now() + Duration::from_millis(plan.max_wait_ms()));
        if plan.is_ready() || Instant::now() >= deadline {
            return Some(plan);
        }
        // Registered before the second look: a change in between is not missed.
        let changed = shared.published.changed(&plan.partitions());
        let again = match self::plan(shared, facts, call) {
            ViewAnswer::Fetch(again) => again,
            ViewAnswer::Reply(_) | ViewAnswer::Node(_) | ViewAnswer::ListOffsets(_) => plan,
        };
        if again.is_ready() {
            return Some(again);
        }
        self.waiting = Some(LongPoll { deadline, changed });
        None
    }
}

fn plan(shared: &Shared, facts: &Facts, call: &ViewCall) -> ViewAnswer {
    call.answer_from(facts, &shared.published)
}

/// What reads from the log to make an answer.
trait Readable: Send + Sync + 'static {
    /// Reads and answers.
    fn finish(&self, cache: &BlockCache, mode: ReadMode) -> Result<Finished, ReadError>;
}

impl Readable for FetchPlan {
    fn finish(&self, cache: &BlockCache, mode: ReadMode) -> Result<Finished, ReadError> {
        Self::finish(self, cache, mode)
    }
}

impl Readable for OffsetsPlan {
    fn finish(&self, cache: &BlockCache, mode: ReadMode) -> Result<Finished, ReadError> {
        Self::finish(self, cache, mode)
    }
}

/// Answers from memory if everything is there, else on a thread that may block.
async fn read<T: Readable>(shared: &Arc<Shared>, plan: T) -> Attempt {
    let plan = Arc::new(plan);
    loop {
        let outcome = match plan.finish(&shared.cache, ReadMode::Cached) {
            Err(ReadError::Cold) => read_cold(shared, Arc::clone(&plan)).await,
            outcome @ (Ok(_) | Err(ReadError::Busy | ReadError::Failed(_))) => outcome,
        };
        match outcome {
            Ok(Finished { reply, failures }) => {
                failures.iter().for_each(|line| shared.damage.lock().say(line));
                return Attempt::Answered(reply);
            }
            Err(ReadError::Busy | ReadError::Cold) => unpinned(shared).await,
            Err(ReadError::Failed(error)) => return Attempt::Failed(error),
        }
    }
}

async fn read_cold<T: Readable>(shared: &Arc<Shared>, plan: Arc<T>) -> Result<Finished, ReadError> {
    let _permit = shared.cold_reads.acquire().await.map_err(io::Error::other)?;
    let cache = Arc::clone(&shared.cache);
    let read = tokio::task::spawn_blocking(move || plan.finish(&cache, ReadMode::MayBlock));
    read.await.map_err(io::Error::other)?
}

/// Waits until reads in flight have given something back.
async fn unpinned(shared: &Shared) {
    let mut registered = false;
    poll_fn(|context| {
        if registered {
            return Poll::Ready(());
        }
        registered = true;
        shared.cache.wake_when_unpinned(context.waker());
        Poll::Pending
    })
    .await;
}

/// The bound on cold reads.
pub fn cold_reads() -> Semaphore {
    Semaphore::new(COLD_READS_MAX)
}
