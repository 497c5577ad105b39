//! The node's thread: takes inputs, steps the node, hands its proposals to the log and its answers to connections.
//!
//! Invariants: the node is stepped by this thread alone; a proposal is submitted before the answers that rest on it
//! are delivered; nothing is decided while the log has too much waiting. What it does not do: wait for I/O.

use std::{
    collections::HashMap,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use semel_broker::{Input, Node, NodeRequest, Outputs};
use semel_log::{Log, SnapshotSource};
use semel_types::{ConnectionNumber, LogSequence, Now};

use crate::{
    clock::Clock,
    net::mailbox::{Delivery, Mailbox},
    rate_limit::RateLimit,
};

/// Bytes waiting in the log above which the node takes nothing more.
const WAITING_BYTES_MAX: u64 = 8 << 20;

/// What the thread is told.
enum Message {
    Connected(ConnectionNumber, Arc<Mailbox>),
    Request(NodeRequest),
    Disconnected(ConnectionNumber),
    Stop,
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    durable: bool,
}

/// The inbox, shared by connections and the log.
#[derive(Default)]
pub struct NodeQueue {
    inbox: Mutex<Inbox>,
    signal: Condvar,
}

impl NodeQueue {
    /// A new, shared queue.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn push(&self, message: Message) {
        self.inbox.lock().messages.push(message);
        self.signal.notify_one();
    }

    /// A connection was accepted; its answers go to `mailbox`.
    pub fn connected(&self, number: ConnectionNumber, mailbox: Arc<Mailbox>) {
        self.push(Message::Connected(number, mailbox));
    }

    /// A request to be decided.
    pub fn request(&self, request: NodeRequest) {
        self.push(Message::Request(request));
    }

    /// A connection is gone.
    pub fn disconnected(&self, number: ConnectionNumber) {
        self.push(Message::Disconnected(number));
    }

    /// The log became durable up to some sequence: there may be room again.
    pub fn durable(&self) {
        self.inbox.lock().durable = true;
        self.signal.notify_one();
    }

    fn stop(&self) {
        self.push(Message::Stop);
    }

    /// Waits for messages, at most until the node wants to be woken.
    fn wait(&self, timeout: Duration) -> Vec<Message> {
        let mut inbox = self.inbox.lock();
        if inbox.messages.is_empty() {
            self.signal.wait_for(&mut inbox, timeout);
        }
        inbox.durable = false;
        std::mem::take(&mut inbox.messages)
    }

    /// Waits until the log says that something became durable.
    fn wait_durable(&self) {
        let mut inbox = self.inbox.lock();
        if !inbox.durable {
            self.signal.wait_for(&mut inbox, Duration::from_millis(100));
        }
        inbox.durable = false;
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
        let thread = thread::Builder::new().name("node".to_owned()).spawn(move || driver.run())?;
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
    submitted: LogSequence,
    wake_at: Option<Now>,
    notes: RateLimit,
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
            submitted,
            wake_at,
            notes: RateLimit::new(),
        }
    }

    fn run(mut self) -> Option<Box<dyn SnapshotSource>> {
        let mut touched = Vec::new();
        loop {
            let messages = self.queue.wait(self.until_wake());
            for message in messages {
                self.hold_while_log_is_full();
                match message {
                    Message::Connected(number, mailbox) => {
                        self.mailboxes.insert(number, mailbox);
                    }
                    Message::Request(request) => self.step(Input::Request(request), &mut touched),
                    Message::Disconnected(number) => {
                        self.mailboxes.remove(&number);
                        self.step(Input::ConnectionClosed(number), &mut touched);
                    }
                    Message::Stop => return Some(self.node.snapshot_source()),
                }
            }
            if self.wake_at.is_some_and(|due| due <= self.clock.now()) {
                self.step(Input::Wake, &mut touched);
            }
            touched.drain(..).for_each(|mailbox: Arc<Mailbox>| mailbox.notify());
            if self.log.wants_snapshot() {
                self.log.snapshot(self.node.snapshot_source());
            }
        }
    }

    fn until_wake(&self) -> Duration {
        let hour = Duration::from_secs(3600);
        self.wake_at.map_or(hour, |due| {
            let wait_ms = due.since(self.clock.now()).as_ms();
            Duration::from_millis(wait_ms.unsigned_abs()).min(hour)
        })
    }

    fn hold_while_log_is_full(&self) {
        while self.log.waiting_bytes() >= WAITING_BYTES_MAX {
            self.queue.wait_durable();
        }
    }

    /// Steps the node; while the log is preparing room, the same input is given again each time it reports.
    fn step(&mut self, input: Input, touched: &mut Vec<Arc<Mailbox>>) {
        let mut input = Some(input);
        while let Some(next) = input.take() {
            let context = self.clock.context();
            let mut outputs = self.node.step(&context, next);
            input = outputs.deferred.take();
            self.deliver(outputs, touched);
            if input.is_some() {
                self.queue.wait_durable();
            }
        }
    }

    fn deliver(&mut self, outputs: Outputs, touched: &mut Vec<Arc<Mailbox>>) {
        if let Some(proposal) = outputs.proposal {
            self.submitted = self.log.submit(proposal);
        }
        let rests_on = self.submitted;
        for answer in outputs.answers {
            let delivery = Delivery::Answer { token: answer.token, reply: answer.reply, rests_on };
            self.put(answer.connection, delivery, touched);
        }
        for connection in outputs.close {
            self.put(connection, Delivery::Close, touched);
        }
        for note in outputs.notes {
            self.notes.say(&note);
        }
        self.wake_at = outputs.wake_at;
    }

    fn put(&self, connection: ConnectionNumber, delivery: Delivery, touched: &mut Vec<Arc<Mailbox>>) {
        if let Some(mailbox) = self.mailboxes.get(&connection) {
            mailbox.put(delivery);
            touched.push(Arc::clone(mailbox));
        }
    }
}
