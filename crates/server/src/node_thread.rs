//! The node's thread: takes inputs, steps the node, hands its proposals to the log and its answers to connections.
//!
//! Invariants: the node is stepped by this thread alone; a proposal is submitted before the answers that rest on it
//! are delivered; nothing is decided while the log has too much waiting. What it does not do: wait for I/O.

use std::{
    collections::HashMap,
    iter, mem,
    panic::{self, AssertUnwindSafe},
    process,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use semel_broker::{Input, Inspection, Node, NodeReply, NodeRequest, Outputs};
use semel_eos::txn::Fence;
use semel_log::{Log, ReserveTaken, SnapshotSource};
use semel_types::{
    ConnectionNumber, LogSequence, Now, WallTime,
    mutation::{Mutation, mutated},
};
use tokio::sync::{oneshot, watch};

use crate::{
    cli::EXIT_FAILED,
    clock::{self, Clock},
    net::mailbox::{Delivery, Mailbox},
    rate_limit::RateLimit,
};

/// Bytes waiting in the log above which the node takes nothing more.
const WAITING_BYTES_MAX: u64 = 8 << 20;

/// Messages after which connections are told what came of them, however many more there are.
const SETTLED_AFTER: usize = 64;
/// How often a fresh start looks whether it is known what the log got of its reserve.
const RESERVE_POLL: Duration = Duration::from_millis(100);

/// What the thread is told.
enum Message {
    Connected(ConnectionNumber, Arc<Mailbox>),
    Request(NodeRequest),
    Disconnected(ConnectionNumber),
    Inspect(oneshot::Sender<Inspected>),
    Stop,
}

/// What an administrator may look at, and when it may be shown.
pub struct Inspected {
    /// The state after everything proposed.
    pub inspection: Inspection,
    /// It may be shown once everything up to here is published.
    pub rests_on: LogSequence,
    /// The broker's time.
    pub now: Now,
    /// The same moment for people.
    pub wall: WallTime,
}

impl Inspected {
    /// A moment of the broker's time as people read it.
    pub const fn wall(&self, then: Now) -> WallTime {
        WallTime::from_ms(self.wall.as_ms().saturating_sub(self.now.as_ms().saturating_sub(then.as_ms())))
    }
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    durable: bool,
    /// The thread waits for the log and for nothing else.
    awaits_durable: bool,
    /// The thread has ended: nothing more is taken.
    closed: bool,
}

/// The inbox, shared by connections and the log.
#[derive(Default)]
pub struct NodeQueue {
    inbox: Mutex<Inbox>,
    signal: Condvar,
    newest_fence: watch::Sender<u64>,
}

impl NodeQueue {
    /// A new, shared queue.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// False if the thread has ended.
    fn push(&self, messages: impl Iterator<Item = Message>) -> bool {
        let mut inbox = self.inbox.lock();
        if inbox.closed {
            return false;
        }
        inbox.messages.extend(messages);
        drop(inbox);
        self.signal.notify_one();
        true
    }

    /// A connection was accepted; its answers go to `mailbox`.
    pub fn connected(&self, number: ConnectionNumber, mailbox: Arc<Mailbox>) {
        self.push(iter::once(Message::Connected(number, mailbox)));
    }

    /// Requests to be decided, in order; false if nothing is decided any more.
    #[must_use]
    pub fn requests(&self, requests: &mut Vec<NodeRequest>) -> bool {
        self.push(requests.drain(..).map(Message::Request))
    }

    /// Asks for a look at the state; `None` if the thread has ended.
    pub async fn inspect(&self) -> Option<Inspected> {
        let (sender, receiver) = oneshot::channel();
        if !self.push(iter::once(Message::Inspect(sender))) {
            return None;
        }
        receiver.await.ok()
    }

    /// The number of the newest fence, as it rises. A fence is seen here before it is durable.
    pub fn newest_fence(&self) -> watch::Receiver<u64> {
        self.newest_fence.subscribe()
    }

    /// A connection is gone.
    pub fn disconnected(&self, number: ConnectionNumber) {
        self.push(iter::once(Message::Disconnected(number)));
    }

    /// The log became durable up to some sequence: there may be room again.
    pub fn durable(&self) {
        let mut inbox = self.inbox.lock();
        inbox.durable = true;
        if inbox.awaits_durable {
            self.signal.notify_one();
        }
    }

    fn stop(&self) {
        self.push(iter::once(Message::Stop));
    }

    /// Waits for messages, at most until the node wants to be woken; they go into an empty vector.
    fn wait(&self, timeout: Duration, into: &mut Vec<Message>) {
        let mut inbox = self.inbox.lock();
        if inbox.messages.is_empty() {
            self.signal.wait_for(&mut inbox, timeout);
        }
        mem::swap(&mut inbox.messages, into);
    }

    /// Waits until the log says that something became durable.
    fn wait_durable(&self) {
        let mut inbox = self.inbox.lock();
        inbox.awaits_durable = true;
        if !inbox.durable {
            self.signal.wait_for(&mut inbox, Duration::from_millis(100));
        }
        inbox.awaits_durable = false;
        inbox.durable = false;
    }

    /// Takes nothing more; gives what was left.
    fn close(&self) -> Vec<Message> {
        let mut inbox = self.inbox.lock();
        inbox.closed = true;
        mem::take(&mut inbox.messages)
    }
}

/// The running thread.
pub struct NodeThread {
    queue: Arc<NodeQueue>,
    thread: JoinHandle<Option<Box<dyn SnapshotSource>>>,
}

impl NodeThread {
    /// Starts the thread with a node whose start events are already in the log.
    ///
    /// # Errors
    /// The system's error if no thread can be made.
    pub fn start(driver: Driver) -> std::io::Result<Self> {
        let queue = Arc::clone(&driver.queue);
        let run = move || {
            let run = panic::catch_unwind(AssertUnwindSafe(|| driver.run()));
            run.unwrap_or_else(|_| {
                tracing::error!("the node failed, see above; stopping at once, nothing acknowledged is lost");
                process::exit(EXIT_FAILED.into());
            })
        };
        let thread = thread::Builder::new().name("node".to_owned()).spawn(run)?;
        Ok(Self { queue, thread })
    }

    /// Lets the thread finish what it has and end; gives the state for a last snapshot.
    pub fn stop(self) -> Option<Box<dyn SnapshotSource>> {
        self.queue.stop();
        self.thread.join().ok().flatten()
    }
}

/// The thread's own things.
pub struct Driver {
    node: Node,
    log: Arc<Log>,
    clock: Clock,
    queue: Arc<NodeQueue>,
    mailboxes: HashMap<ConnectionNumber, Arc<Mailbox>>,
    /// Mailboxes to be settled.
    touched: Vec<Arc<Mailbox>>,
    submitted: LogSequence,
    wake_at: Option<Now>,
    notes: RateLimit,
    fence_lines: RateLimit,
    /// It is known, and said if it is less than wanted, how much of its reserve the log got.
    reserve_is_known: bool,
}

impl Driver {
    /// Puts the pieces together; `submitted` is the sequence of the node's start events.
    pub fn new(
        node: Node,
        log: Arc<Log>,
        clock: Clock,
        queue: Arc<NodeQueue>,
        submitted: LogSequence,
    ) -> Self {
        let wake_at = Some(clock.now());
        Self {
            node,
            log,
            clock,
            queue,
            mailboxes: HashMap::new(),
            touched: Vec::new(),
            submitted,
            wake_at,
            notes: RateLimit::new(),
            fence_lines: RateLimit::new(),
            reserve_is_known: false,
        }
    }

    fn run(mut self) -> Option<Box<dyn SnapshotSource>> {
        let mut messages = Vec::new();
        loop {
            self.queue.wait(self.until_wake(), &mut messages);
            let mut stop = false;
            for (count, message) in messages.drain(..).enumerate() {
                if count % SETTLED_AFTER == SETTLED_AFTER - 1 {
                    self.settle();
                }
                stop |= matches!(message, Message::Stop);
                if stop { self.refuse(message) } else { self.take(message) }
            }
            if stop {
                return self.end();
            }
            if self.wake_at.is_some_and(|due| due <= self.clock.now()) {
                self.step(Input::Wake);
            }
            self.settle();
            self.say_short_reserve();
            if self.log.wants_snapshot() {
                self.log.snapshot(self.node.snapshot_source());
            }
        }
    }

    /// One line per start: what little of the reserve there is decides what a full disk still serves.
    fn say_short_reserve(&mut self) {
        if self.reserve_is_known {
            return;
        }
        let Some(ReserveTaken { wanted_bytes, got_bytes }) = self.log.reserve_taken() else { return };
        self.reserve_is_known = true;
        if got_bytes < wanted_bytes {
            tracing::warn!(
                wanted_bytes,
                got_bytes,
                "the disk is too full for the whole reserve that ends transactions and deletes topics on a full disk"
            );
        }
    }

    fn take(&mut self, message: Message) {
        self.hold_while_log_is_full();
        match message {
            Message::Connected(number, mailbox) => {
                self.mailboxes.insert(number, mailbox);
            }
            Message::Request(request) if self.is_wanted(&request) => self.step(Input::Request(request)),
            Message::Request(request) => self.drop_unwanted(&request),
            Message::Disconnected(number) => {
                self.mailboxes.remove(&number);
                self.step(Input::ConnectionClosed(number));
            }
            // Nobody waits any more if it cannot be sent.
            Message::Inspect(asker) => drop(asker.send(self.inspect())),
            Message::Stop => {}
        }
    }

    fn inspect(&self) -> Inspected {
        let (now, wall) = (self.clock.now(), clock::wall());
        Inspected { inspection: self.node.inspect(), rests_on: self.submitted, now, wall }
    }

    /// A connection that was closed by a decision gets no further one. Nobody waits for a classic transaction request
    /// whose client has gone, and executed late it could end the next transaction instead.
    fn is_wanted(&self, request: &NodeRequest) -> bool {
        let mailbox = self.mailboxes.get(&request.connection);
        mailbox.is_some_and(|mailbox| !(mailbox.is_left() && request.call.is_classic_transaction_request()))
    }

    fn drop_unwanted(&mut self, request: &NodeRequest) {
        let (token, rests_on) = (request.token, self.submitted);
        self.put(request.connection, Delivery::Answer { token, reply: NodeReply::Nothing, rests_on });
    }

    /// Decides nothing more; everything that was asked too late is told so.
    fn end(mut self) -> Option<Box<dyn SnapshotSource>> {
        let queue = Arc::clone(&self.queue);
        queue.close().into_iter().for_each(|message| self.refuse(message));
        self.settle();
        Some(self.node.snapshot_source())
    }

    fn refuse(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.put(request.connection, Delivery::Close),
            Message::Connected(..) | Message::Disconnected(_) | Message::Inspect(_) | Message::Stop => {}
        }
    }

    fn until_wake(&self) -> Duration {
        let longest = if self.reserve_is_known { Duration::from_secs(3600) } else { RESERVE_POLL };
        self.wake_at.map_or(longest, |due| {
            let wait_ms = due.since(self.clock.now()).as_ms();
            Duration::from_millis(wait_ms.unsigned_abs()).min(longest)
        })
    }

    fn hold_while_log_is_full(&mut self) {
        while self.log.waiting_bytes() >= WAITING_BYTES_MAX {
            self.settle();
            self.queue.wait_durable();
        }
    }

    /// Steps the node; while the log is preparing room, the same input is given again each time it reports.
    fn step(&mut self, input: Input) {
        let mut input = Some(input);
        while let Some(next) = input.take() {
            let context = self.clock.context();
            let mut outputs = self.node.step(&context, next);
            input = outputs.deferred.take();
            self.deliver(outputs);
            if input.is_some() {
                self.settle();
                self.queue.wait_durable();
            }
        }
    }

    fn deliver(&mut self, outputs: Outputs) {
        if let Some(proposal) = outputs.proposal {
            self.submitted = self.log.submit(proposal);
        }
        let at_once = mutated(Mutation::AnswersBeforeWrite);
        let rests_on = if at_once { LogSequence::default() } else { self.submitted };
        for answer in outputs.answers {
            let delivery = Delivery::Answer { token: answer.token, reply: answer.reply, rests_on };
            self.put(answer.connection, delivery);
        }
        for connection in outputs.close {
            self.put(connection, Delivery::Close);
            self.mailboxes.remove(&connection);
        }
        for note in outputs.notes {
            self.notes.say(&note);
        }
        self.say_fences(&outputs.fences);
        self.wake_at = outputs.wake_at;
    }

    /// One line for each fence, and whoever follows them is told.
    pub fn say_fences(&mut self, fences: &[Arc<Fence>]) {
        if fences.is_empty() {
            return;
        }
        for fence in fences {
            self.fence_lines.inform(&format_args!("transactional id {:?}: {fence}", fence.id));
        }
        self.queue.newest_fence.send_replace(self.node.state().eos.transactions().fences().newest());
    }

    fn put(&mut self, connection: ConnectionNumber, delivery: Delivery) {
        if let Some(mailbox) = self.mailboxes.get(&connection)
            && mailbox.put(delivery)
        {
            self.touched.push(Arc::clone(mailbox));
        }
    }

    /// Sees to it that the connections that were answered wake when it is time.
    fn settle(&mut self) {
        let published = self.log.published();
        self.touched.drain(..).for_each(|mailbox| mailbox.settle(published));
    }
}
